"""Which of many bodies may touch: found in every step, where a list of all pairs would be long.

A row of `swarm` is a body that moves by forces; what nothing moves is still paired with every body when the scene is
built. A row of `body_worlds` is a scene, so that those of a batch are told apart. Each table of pairs has rows that are
handed out to those that are near each other: those of all pairs where that is little, and else so many per body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.laws.contact import neighbours_kernels as kernels
from nablasim.physics.laws.contact.touching_kernels import Cells
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.surfaces import surfaces
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index

if TYPE_CHECKING:
    from nablasim.physics.model import Arrays, Layout, Step

BODY, WORLD = Index("swarm.body", to="bodies"), Index("swarm.world", to="body_worlds")
ROUNDNESS, SMOOTHING = Index("swarm.roundness"), Column("swarm.smoothing")
FAMILIES = ("shape", "mesh")
START = {family: Index(f"body_worlds.{family}_start", to=f"{family}_pairs", begins=True) for family in FAMILIES}
COUNT = {family: Index(f"body_worlds.{family}_count") for family in FAMILIES}
Ints = NDArray[np.int_]

MANY = 100
"""From so many bodies on, pairs are found as they move."""
LITTLE = 20_000
"""Rows that every scene may have."""
ROOM_OF_BALLS, ROOM = 8, 40
"""Rows for each body beyond that: about six balls around one are counted with it, and everything else has more near
the ball that holds it."""


class Neighbours(System):
    """Lists of bodies that are near each other; the forces are those of `body_contacts.py`."""

    name = "swarm"
    columns = (SMOOTHING,)
    indices = (BODY, WORLD, ROUNDNESS, *START.values(), *COUNT.values())

    def step_bytes(self, layout: Layout) -> int:
        # The two of a row and the numbers of their contact.
        return 40 * sum(layout.rows(f"{family}_pairs") for family in FAMILIES)


def handed_out(a: Arrays, family: str) -> NDArray[np.bool_]:
    """Which rows of pairs stand for other bodies from step to step."""
    made = np.zeros(a.rows(f"{family}_pairs"), bool)
    if family in FAMILIES and a.rows("swarm"):
        for start, count in zip(a.numpy(START[family]), a.numpy(COUNT[family])):
            made[start : start + count] = True
    return made


def listed(s: Step, family: str, given: tuple[Index, Index]) -> tuple[Any, Any]:
    """The two of every row of a table of pairs in this step."""
    note = f"{family}_pairs"
    if note not in s.notes:
        n = s.rows(note)
        one, other = s.scratch(f"{family}.one", n, int), s.scratch(f"{family}.other", n, int)
        kc.launch(kernels.begin_pairs, n, [s[given[0]], s[given[1]]], [one, other])
        slots = kernels.Slots(s[START[family]], s[COUNT[family]], s.kept(f"{family}.used", s.rows("body_worlds"), int))
        found = [s[b.KIND], int(family == "mesh"), s[b.POINT_COUNT], swarm(s), *in_cells(s)]
        kc.launch(kernels.find_pairs, 1, found, [slots, one, other])
        s.notes[note] = one, other
    known: tuple[Any, Any] = s.notes[note]
    return known


def swarm(s: Step) -> Any:
    return s.bundle(kernels.Swarm, BODY, WORLD, ROUNDNESS, SMOOTHING)


def in_cells(s: Step) -> tuple[Any, Any, Any]:
    """How far the bodies of the swarm reach in this step, the side of cells in each scene, and who is in which."""
    if "swarm" not in s.notes:
        n = s.rows("swarm")
        buckets = 1 << max(n - 1, 1).bit_length()
        middle, reach = s.kept("swarm.middle", n, kc.float3), s.kept("swarm.reach", n)
        size = s.kept("swarm.size", s.rows("body_worlds"))
        cells = Cells(s[WORLD], middle, s.kept("swarm.key", n, int), s.kept("swarm.start", buckets + 1, int),
                      s.kept("swarm.order", n, int))  # fmt: skip
        kc.launch(kernels.look_at_bodies, n, [b.before(s), surfaces(s), swarm(s), s.dt], [middle, reach])
        kc.launch(kernels.sort_bodies, 1, [reach], [size, cells])
        s.notes["swarm"] = reach, size, cells
    known: tuple[Any, Any, Any] = s.notes["swarm"]
    return known


def add_swarm(draft: Draft, bodies: Ints, roundness: Ints, smoothing: float) -> None:
    """Let these bodies find each other."""
    made = draft.rows("swarm", len(bodies))
    draft.rows("body_worlds", 1)
    draft.index(BODY.name, bodies)
    draft.index(WORLD.name, np.zeros(len(bodies)))
    draft.index(ROUNDNESS.name, roundness)
    draft.constant(SMOOTHING, made, smoothing)


def room(count: int, roundness: list[int]) -> int:
    """Rows of a family for a swarm of so many, whose bodies of this family are this round."""
    each = ROOM_OF_BALLS if min(roundness, default=0) == 2 else ROOM
    return min(len(roundness) * (count - 1), max(each * count, LITTLE)) if roundness else 0


def stiffest(
    a: Arrays, rates: NDArray[Any], scene: Any, row: int, *, firm: bool
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Bodies of the swarm, and the stiffest contact per mass that each could have with another one.

    `rates` are those of `bodies.contact_rates`, `scene` the numbers of a row that is handed out. firm: what has no ke
    limits nothing, because steps solve for it.
    """
    body: NDArray[np.int32] = a.numpy(BODY)
    mass, own = a.numpy(b.MASS)[body].astype(np.float64), a.numpy(b.FOUR)[body, 0].astype(np.float64)
    kinds, which = np.unique(np.stack([rates[body], mass, own], axis=1), axis=0, return_inverse=True)
    rate, m, ke = kinds.T
    by_scene, swing = float(scene.ke.numpy()[row]), float(scene.rate.numpy()[row])
    most = np.zeros(len(kinds))
    for at in range(0, len(kinds), 256):  # All of them at once could be a hundred million pairs.
        i = slice(at, at + 256)
        with np.errstate(divide="ignore", invalid="ignore"):
            series = np.nan_to_num(ke[i, None] * ke / (ke[i, None] + ke))
        natural = by_scene if by_scene >= 0 else m[i, None] * m / (m[i, None] + m) * (0.0 if firm else swing**2)
        one, two = ke[i, None] >= 0, ke[None] >= 0
        k = np.where(one & two, series, np.where(one | two, np.maximum(ke[i, None], ke), natural))
        most[i] = ((rate[i, None] + rate) * k).max(axis=1)
    return body, most[which.ravel()]
