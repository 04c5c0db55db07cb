"""Whether what flies is a ball: its silhouettes are round, but for motion blur, which is along the way."""

from __future__ import annotations

import numpy as np

from nablasim.sysid.look import Look

ASKEW = 0.13
"""Of second moments: how far three quarters of all silhouettes are lopsided at most. Balls: 0.02 to 0.11, where a wide
lens stretches them; boxes that turn: 0.15 to 0.45."""
ACROSS = -0.25
"""The same for what is longer across its way than along it: half of all silhouettes."""
FEWEST = 5


def is_round(look: Look) -> bool:
    """Whether silhouettes are those of a ball; True where there are too few to tell."""
    ways = np.gradient(look.steady, axis=0) if len(look.track) > 1 else np.zeros((1, 2))
    some = np.flatnonzero(look.clear & np.isfinite(look.across))
    if len(some) < FEWEST:
        return True
    shapes = np.array([_lopsided(look.masks[int(look.track.frame[k])]) for k in some])
    # Turned into the direction of the motion: blur is real and positive there.
    angles = np.arctan2(ways[some, 1], ways[some, 0])
    shapes = shapes * np.exp(-2j * angles)
    return bool(np.quantile(np.abs(shapes.imag), 0.75) < ASKEW and np.median(shapes.real) > ACROSS)


def _lopsided(mask: np.ndarray) -> complex:
    """(m_xx - m_yy + 2 i m_xy) / (m_xx + m_yy) of second moments: zero if it is round."""
    rows, columns = np.nonzero(mask > 0)
    weight = mask[rows, columns].astype(np.float64)
    weight /= weight.sum()
    x, y = columns - weight @ columns, rows - weight @ rows
    xx, yy, xy = float(weight @ (x * x)), float(weight @ (y * y)), float(weight @ (x * y))
    return complex(xx - yy, 2 * xy) / max(xx + yy, 1e-9)
