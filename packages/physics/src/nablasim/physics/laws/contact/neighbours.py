"""Which of many bodies may touch: found in every step, where a list of all pairs would be long.

A row of `swarm` is a body that moves by forces; what nothing moves is still paired with every body when the scene is
built. A row of `body_worlds` is a scene, so that those of a batch are told apart. Each table of pairs has rows that are
handed out to those that are near each other, `ROOM` per body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.laws.contact import neighbours_kernels as kernels
from nablasim.physics.laws.contact.touching_kernels import Cells, Seen
from nablasim.physics.laws.contact.touching_kernels import Rows as Near
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.surfaces import surfaces
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Layout

if TYPE_CHECKING:
    from nablasim.physics.model import Step

BODY, WORLD = Index("swarm.body", to="bodies"), Index("swarm.world", to="body_worlds")
ROUNDNESS, SMOOTHING = Index("swarm.roundness"), Column("swarm.smoothing")
FAMILIES = ("shape", "mesh")
START = {family: Index(f"body_worlds.{family}_start", to=f"{family}_pairs") for family in FAMILIES}
COUNT = {family: Index(f"body_worlds.{family}_count") for family in FAMILIES}
SLOTS = {family: (START[family], COUNT[family]) for family in FAMILIES}
"""Where the rows begin that are handed out, and how many there are."""

MANY = 100
"""From so many bodies on, pairs are found as they move."""
AROUND = 64
"""How many others may be near a body."""
ROOM_OF_BALLS, ROOM = 8, 40
"""Rows for each body: about six balls around one are counted with it, and everything has more near its ball."""


class Neighbours(System):
    """Lists of bodies that are near each other; the forces are those of `body_contacts.py`."""

    name = "swarm"
    columns = (SMOOTHING,)
    indices = (BODY, WORLD, ROUNDNESS, *START.values(), *COUNT.values())

    def step_bytes(self, layout: Layout) -> int:
        # The two of a row and the numbers of their contact.
        return 40 * sum(layout.rows(f"{family}_pairs") for family in FAMILIES)


def are_found(a: Any, family: str) -> bool:
    """Whether pairs of a family change from step to step."""
    return bool(family in FAMILIES and a.rows("swarm") and a.numpy(COUNT[family]).any())


def handed_out(a: Any, family: str) -> NDArray[np.bool_]:
    """Which rows of pairs are handed out."""
    made = np.zeros(a.rows(f"{family}_pairs"), bool)
    if are_found(a, family):
        for start, count in zip(a.numpy(START[family]), a.numpy(COUNT[family])):
            made[start : start + count] = True
    return made


def listed(s: Step, family: str, given: tuple[Index, Index]) -> tuple[Any, Any]:
    """The two of every row of a table of pairs in this step."""
    known = s.found.get(family)
    if known is None:
        n = s.rows(f"{family}_pairs")
        one, other = s.scratch(f"{family}.one", n, int), s.scratch(f"{family}.other", n, int)
        kc.launch(kernels.begin_pairs, n, [s[given[0]], s[given[1]]], [one, other])
        slots = kernels.Slots(s[START[family]], s[COUNT[family]], s.kept(f"{family}.used", s.rows("body_worlds"), int))
        kind, points = s[b.KIND], s[b.POINT_COUNT]
        kc.launch(kernels.hand_out_pairs, 1, [kind, int(family == "mesh"), swarm(s), points, near(s)],
                  [slots, one, other])  # fmt: skip
        known = s.found[family] = one, other
    return known


def swarm(s: Step) -> Any:
    return s.bundle(kernels.Swarm, BODY, WORLD, ROUNDNESS, SMOOTHING)


def near(s: Step) -> Any:
    """Of each body of the swarm, which others are near it in this step."""
    if "near" not in s.found:
        n, worlds = s.rows("swarm"), s.rows("body_worlds")
        buckets = 1 << max(n - 1, 1).bit_length()
        middle, reach = s.kept("swarm.middle", n, kc.float3), s.kept("swarm.reach", n)
        seen = Seen(s.kept("swarm.seen", 1, kc.float3), s.kept("swarm.seen_reach", 1), s.kept("swarm.slack", worlds),
                    s.kept("swarm.size", worlds))  # fmt: skip
        cells = Cells(s[WORLD], middle, s.kept("swarm.key", n, int), s.kept("swarm.start", buckets + 1, int),
                      s.kept("swarm.order", n, int))  # fmt: skip
        found = Near(s.kept("swarm.count", n, int), s.kept("swarm.near", (n, AROUND), int))
        kc.launch(kernels.look_at_bodies, n, [b.before(s), surfaces(s), swarm(s), s.dt], [middle, reach])
        kc.launch(kernels.find_near_bodies, 1, [reach], [seen, cells, found])
        s.found["near"] = found
    return s.found["near"]


def add_swarm(draft: Draft, rows: NDArray[np.int_], roundness: NDArray[np.int_], smoothing: float) -> None:
    """Let these bodies find each other."""
    made = draft.rows("swarm", len(rows))
    draft.rows("body_worlds", 1)
    draft.index(BODY.name, rows)
    draft.index(WORLD.name, np.zeros(len(rows)))
    draft.index(ROUNDNESS.name, roundness)
    draft.constant(SMOOTHING, made, smoothing)


def room(count: int, roundness: list[int]) -> int:
    """Rows of a family for a swarm of so many, whose bodies of this family are this round."""
    each = ROOM_OF_BALLS if min(roundness, default=0) == 2 else ROOM
    return min(len(roundness) * (count - 1), each * count) if roundness else 0


def stiffest(a: Any, rates: NDArray[Any], scene: Any, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bodies of the swarm, and the stiffest contact per mass that each could have with another one.

    `rates` are those of `bodies.contact_rates`, `scene` the numbers of a row that is handed out.
    """
    body = a.numpy(BODY)
    mass, own = a.numpy(b.MASS)[body].astype(np.float64), a.numpy(b.FOUR)[body, 0].astype(np.float64)
    kinds, which = np.unique(np.stack([rates[body], mass, own], axis=1), axis=0, return_inverse=True)
    rate, m, ke = kinds.T
    by_scene, swing = float(scene.ke.numpy()[row]), float(scene.rate.numpy()[row])
    most = np.zeros(len(kinds))
    for at in range(0, len(kinds), 256):  # All of them at once could be a hundred million pairs.
        i = slice(at, at + 256)
        with np.errstate(divide="ignore", invalid="ignore"):
            series = np.nan_to_num(ke[i, None] * ke / (ke[i, None] + ke))
        natural = by_scene if by_scene >= 0 else m[i, None] * m / (m[i, None] + m) * swing**2
        one, two = ke[i, None] >= 0, ke[None] >= 0
        k = np.where(one & two, series, np.where(one | two, np.maximum(ke[i, None], ke), natural))
        most[i] = ((rate[i, None] + rate) * k).max(axis=1)
    return body, most[which.ravel()]
