"""What tells metres in a picture: the size of the object, a length beside it, or how far away it is.

A scene may have several of them. The first is used, and the others must agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from nablasim.sysid.look import Look
from nablasim.sysid.tracks.answers import CannotTell
from nablasim.sysid.tracks.questions import Known

ELSEWHERE = 0.03
"""By which part a line in the picture may be nearer or farther than the object: its scale is that uncertain."""
LENS = 0.95, 0.3
"""Focal length of what people film with, of the longer side of the picture, and how it scatters (of its logarithm)."""
DISAGREE = 2.2
"""Standard deviations by which two rulers may differ before one of them is wrong."""


@dataclass(frozen=True)
class Ruler:
    """Pixels per metre where the object is, its relative standard deviation, and how it is known."""

    per_metre: float
    unsure: float
    said: str
    name: str


def rulers(
    look: Look, known: Known, across: float, off: float, focal: tuple[float, float] | None = None
) -> list[Ruler]:
    """All that are known, the most direct one first.

    across, off: the object's size in pixels, and its relative deviation
    focal: logarithm of the focal length and its deviation, where a fit tells more than what is known beforehand
    """
    found = []
    if known.diameter is not None:
        said = f"the object is {known.diameter:g} m across"
        unsure = float(np.hypot(off, known.diameter_unsure))
        found.append(Ruler(across / known.diameter, unsure, said, "its size"))
    if known.length is not None:
        x0, y0, x1, y1, metres = known.length
        pixels = float(np.hypot(x1 - x0, y1 - y0))
        if pixels < 5 or metres <= 0:
            raise CannotTell(
                'a length is two places in the picture, some pixels apart, and more than 0 m: x,y,x,y,"1 m"'
            )
        said = f"a line of {pixels:.0f} pixels is {metres:g} m long, and as far away as the object, to {ELSEWHERE:.0%}"
        found.append(Ruler(pixels / metres, float(np.hypot(ELSEWHERE, 2**0.5 / pixels)), said, "the length"))
    if known.view.distance is not None:
        lens = focal or known.view.focal or (float(np.log(LENS[0] * max(look.size))), LENS[1])
        away, deep = known.view.distance
        unsure = float(np.sqrt(lens[1] ** 2 + deep**2 + ELSEWHERE**2))
        said = f"it is {np.exp(away):.3g} m away from the camera"
        found.append(Ruler(float(np.exp(lens[0] - away)), unsure, said, "the distance"))
    return found


def quarrels(found: list[Ruler]) -> tuple[str, ...]:
    """Pairs of rulers that contradict each other."""
    said = []
    for a, b in combinations(found, 2):
        apart = abs(float(np.log(a.per_metre / b.per_metre)))
        if apart > DISAGREE * np.hypot(a.unsure, b.unsure):
            said.append(
                f"{a.name} and {b.name} contradict each other by a factor of {np.exp(apart):.2f}: one of them, or the "
                "field of view, is wrong"
            )
    return tuple(said)
