"""Contacts of a state one by one, by law: who touches whom in which row, where, and how hard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.laws.contact.reports_kernels import FAMILIES, Report
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.surfaces import BOUND, surfaces
from nablasim.physics.model import of_real

if TYPE_CHECKING:
    from nablasim.physics.model import Step

FAR = 1e29
"""The gap of what does not touch."""
Side = tuple[str, NDArray[np.int_]]
"""A table, and rows of it."""


@dataclass(frozen=True)
class Touches:
    """Contacts of one law: `one` and `other` touch at `point`; `normal` looks to the one, `force` acts on it."""

    one: Side
    other: Side
    point: NDArray[Any]
    normal: NDArray[Any]
    force: NDArray[Any]
    gap: NDArray[Any]


def blank(s: Step, count: int) -> Any:
    """Memory for so many contacts, in which nothing touches yet."""
    made = [kc.zeros(count, dtype=kc.float3, **of_real(kc.float3, s.real)) for _ in range(3)]
    gap = kc.zeros(count, **of_real(float, s.real))
    gap.numpy()[...] = 2 * FAR
    return Report(*made, gap)  # type: ignore[call-arg]


def touches(report: Any, one: Side, other: Side) -> Touches:
    """Those rows of a report that touch; the sides are those of all rows."""
    gap = report.gap.numpy()
    found = np.flatnonzero(gap < FAR)
    columns = (report.point, report.normal, report.force, report.gap)
    return Touches((one[0], one[1][found]), (other[0], other[1][found]), *(c.numpy()[found].copy() for c in columns))


def spread(counts: NDArray[np.int_]) -> tuple[Any, NDArray[np.int_]]:
    """For threads that write so many contacts each: where each begins, and which thread each contact is of."""
    start = kc.array(np.ascontiguousarray(np.cumsum(counts) - counts, np.int32))
    return start, np.repeat(np.arange(len(counts)), counts)


def rows(found: NDArray[np.int_]) -> Any:
    """Rows of a table, for kernels."""
    return kc.array(np.ascontiguousarray(found, np.int32))


def centres(s: Step) -> NDArray[Any]:
    """The middle of the ball around each body."""
    rot, v = s.numpy(b.ROT), s.numpy(BOUND)[:, :3]
    q = rot / np.linalg.norm(rot, axis=1, keepdims=True)
    return np.asarray(s.numpy(b.X) + v + 2 * np.cross(q[:, :3], np.cross(q[:, :3], v) + q[:, 3:] * v))


def of_pairs(s: Step, family: str, pairs: Any) -> list[Touches]:
    """Of pairs of bodies, whose rows are in the bundle `pairs`: only those are looked at whose balls touch."""
    centre, reach, one, other = centres(s), s.numpy(BOUND)[:, 3], pairs.one.numpy(), pairs.other.numpy()
    far = np.linalg.norm(centre[one] - centre[other], axis=1)
    close = np.flatnonzero((far < reach[one] + reach[other] + pairs.contact.smoothing.numpy()) & (one != other))
    points, edges = s.numpy(b.POINT_COUNT), s.numpy(b.EDGE_COUNT)
    start, of = spread((points[one] + edges[one] + edges[other])[close])
    report = blank(s, len(of))
    kc.launch(FAMILIES[family].pairs, len(close), [b.moving(s), surfaces(s), pairs, rows(close), start], [report])
    return [touches(report, ("bodies", one[close][of]), ("bodies", other[close][of]))]


def of_hits(
    s: Step, family: str, given: list[Any], particle: NDArray[np.int_], body: NDArray[np.int_]
) -> list[Touches]:
    """Of particles on bodies, a row each."""
    report = blank(s, len(particle))
    kc.launch(FAMILIES[family].hits, len(particle), given, [report])
    return [touches(report, ("particles", particle), ("bodies", body))]
