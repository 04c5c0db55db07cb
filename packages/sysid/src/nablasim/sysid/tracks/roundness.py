"""Whether what moves is a ball: its silhouettes are round, but for motion blur, which is along the way."""

from __future__ import annotations

import numpy as np

from nablasim.sysid.look import Look

ASKEW = 0.13
"""Of second moments: how far three quarters of all silhouettes are lopsided at most. Balls: 0.02 to 0.11, where a wide
lens stretches them; boxes that turn: 0.15 to 0.45."""
ACROSS = -0.25
"""The same for what is longer across its way than along it: half of all silhouettes."""
STRING = -0.6
"""From here on it is a string: with a bob alone it is -0.1, with a string along -0.96 was seen."""
FEWEST = 5


def is_round(look: Look) -> bool:
    """Whether silhouettes are those of a ball; True where there are too few to tell."""
    shapes = _shapes(look)
    if len(shapes) < FEWEST:
        return True
    return bool(np.quantile(np.abs(shapes.imag), 0.75) < ASKEW and np.median(shapes.real) > ACROSS)


def is_string(look: Look) -> bool:
    """Whether what swings is as long as a string: then its middle is not that of the bob."""
    shapes = _shapes(look)
    return len(shapes) >= FEWEST and bool(np.median(shapes.real) < STRING)


def _shapes(look: Look) -> np.ndarray:
    """How lopsided each silhouette is that stands alone, turned into its way: motion blur is real and positive."""
    if len(look.track) < FEWEST:
        return np.zeros(0, np.complex128)
    ways = np.gradient(look.steady, axis=0)
    some = np.flatnonzero(look.clear & np.isfinite(look.across))
    shapes = np.array([_lopsided(look.masks[int(look.track.frame[k])]) for k in some], np.complex128)
    return np.asarray(shapes * np.exp(-2j * np.arctan2(ways[some, 1], ways[some, 0])))


def _lopsided(mask: np.ndarray) -> complex:
    """(m_xx - m_yy + 2 i m_xy) / (m_xx + m_yy) of second moments: zero if it is round."""
    rows, columns = np.nonzero(mask > 0)
    weight = mask[rows, columns].astype(np.float64)
    weight /= weight.sum()
    x, y = columns - weight @ columns, rows - weight @ rows
    xx, yy, xy = float(weight @ (x * x)), float(weight @ (y * y)), float(weight @ (x * y))
    return complex(xx - yy, 2 * xy) / max(xx + yy, 1e-9)
