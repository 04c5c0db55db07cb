"""Restitution, the part of its speed that a body keeps in a bounce, and the damping of a contact that makes it.

A body of mass m that hits the floor head-on with one point is a spring and a dashpot with ζ = kd / (2 sqrt(ke m)).
Without gravity, and if the floor never pulls,

    -ln e = n g(ζ),   g(ζ) = ζ acos(ζ) / sqrt(1 - ζ²)   (acosh and ζ² - 1 for ζ > 1)

with n = 1 where the floor damps only while the body approaches ("linear"), and n = 2 where it damps all the way
("smooth", for penetrations far beyond its length `touch`; Schwager and Pöschel 2007).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

TIMES = {"linear": 1.0, "smooth": 2.0}
LEAST, MOST = 0.01, 0.999
"""Restitutions that can be asked for: beyond them a body sticks, or never loses anything."""


def restitution_of(damping: ArrayLike, *, stiffness: ArrayLike, mass: ArrayLike, law: str = "smooth") -> Any:
    """The restitution of a contact."""
    ratio = np.asarray(damping) / (2 * np.sqrt(np.asarray(stiffness) * np.asarray(mass)))
    return np.exp(-TIMES[law] * _losses(ratio))


def damping_of(restitution: Any, *, stiffness: Any, mass: Any, law: str = "smooth") -> Any:
    """The damping that gives a restitution: of numbers, arrays or tensors (with gradients), in any mixture."""
    import torch

    if any(isinstance(v, torch.Tensor) for v in (restitution, stiffness, mass)):
        e, ke, m = (torch.as_tensor(v, dtype=torch.float64) for v in (restitution, stiffness, mass))
        return 2 * _ratio_of(-e.log() / TIMES[law]) * (ke * m).sqrt()
    lost = -np.log(np.asarray(restitution, np.float64)) / TIMES[law]
    return 2 * _ratios()(lost) * np.sqrt(np.asarray(stiffness, np.float64) * np.asarray(mass, np.float64))


def _losses(ratio: ArrayLike) -> NDArray[np.float64]:
    """g(ζ)."""
    z = np.asarray(ratio, np.float64)
    under, over = np.minimum(z, 1 - 1e-9), np.maximum(z, 1 + 1e-9)
    below = under * np.arccos(under) / np.sqrt(1 - under**2)
    return np.where(z < 1, below, over * np.arccosh(over) / np.sqrt(over**2 - 1))


def _ratio_of(loss: Any) -> Any:
    """`_ratios()` of a tensor, by operations of torch alone: transforms of torch.func have no numbers for NumPy."""
    import torch

    spline = _ratios()
    knots, pieces = torch.from_numpy(spline.x), torch.from_numpy(spline.c)
    # Which piece, as a plain number: it has no slope.
    at = (torch.searchsorted(knots, loss.detach().contiguous(), right=True) - 1).clamp(0, len(knots) - 2)
    t = loss - knots[at]
    a, b, c, d = (piece[at] for piece in pieces)
    return ((a * t + b) * t + c) * t + d


@cache
def _ratios() -> CubicSpline:
    """ζ as a function of g, which grows with ζ."""
    dense = np.concatenate([np.linspace(0, 2, 4001), np.geomspace(2, 200, 2000)[1:]])
    return CubicSpline(_losses(dense), dense)
