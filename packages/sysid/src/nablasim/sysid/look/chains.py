"""Patches of one frame joined with those of the next: chains, each of which may be one thing that moves.

Fourth step of `look`. A patch is expected where its chain goes on with the same speed; a bounce may turn it around,
so the gate is as wide as the speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from nablasim.sysid.look.blobs import Blob

LOST = 4
"""Frames without a patch after which a chain ends."""
SHORTEST = 5
"""Patches of a chain that is worth a thought."""
FARTHEST = 0.14
"""Of the picture's diagonal: how far something may go from its first frame to its second."""
FOREIGN = 1e6
"""The cost of a pair that does not belong together."""


@dataclass(eq=False)
class Chain:
    """Patches of one thing, frame after frame."""

    blobs: list[Blob] = field(default_factory=list)

    @property
    def frames(self) -> NDArray[np.int64]:
        return np.array([b.frame for b in self.blobs])

    @property
    def places(self) -> NDArray[np.float64]:
        """(n, 2)"""
        return np.array([(b.x, b.y) for b in self.blobs])

    @property
    def size(self) -> float:
        return float(np.median([b.size for b in self.blobs]))

    def speed(self) -> NDArray[np.float64]:
        """Pixels per frame at its end."""
        last = self.blobs[-3:]
        if len(last) < 2:
            return np.zeros(2)
        return np.array([last[-1].x - last[0].x, last[-1].y - last[0].y]) / (last[-1].frame - last[0].frame)


def chains_of(blobs: Sequence[Sequence[Blob]], diagonal: float) -> list[Chain]:
    """Join the patches of all frames; chains of a few patches are left out."""
    going: list[Chain] = []
    ended: list[Chain] = []
    for k, found in enumerate(blobs):
        ended += [c for c in going if k - c.blobs[-1].frame > LOST]
        going = [c for c in going if k - c.blobs[-1].frame <= LOST]
        taken: set[int] = set()
        if going and found:
            cost = np.array([[_cost(chain, blob, diagonal) for blob in found] for chain in going])
            for i, j in zip(*linear_sum_assignment(cost)):
                if cost[i, j] < FOREIGN:
                    going[i].blobs.append(found[j])
                    taken.add(int(j))
        going += [Chain([blob]) for j, blob in enumerate(found) if j not in taken]
    return [c for c in ended + going if len(c.blobs) >= SHORTEST]


def _cost(chain: Chain, blob: Blob, diagonal: float) -> float:
    last, speed = chain.blobs[-1], chain.speed()
    gap = blob.frame - last.frame
    at = np.array([last.x, last.y]) + speed * gap
    off = float(np.hypot(blob.x - at[0], blob.y - at[1]))
    gate = FARTHEST * diagonal if len(chain.blobs) == 1 else 1.5 * last.size + 1.6 * gap * float(np.hypot(*speed)) + 3
    ratio = abs(float(np.log(blob.area / last.area)))
    if off > gate or ratio > 1.4:
        return FOREIGN
    color = float(np.abs(blob.color - last.color).max()) / 80
    return off / gate + 0.6 * ratio + 0.5 * color
