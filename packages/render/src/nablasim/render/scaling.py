"""Pictures in another size, by averaging, and never stretched.

The height decides, as the field of view of a camera is its vertical one: what is wider loses its sides, what is
narrower gets bars. The middle stays in the middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def fit(picture: NDArray[Any], size: tuple[int, int], *, bars: str = "edge") -> NDArray[Any]:
    """A picture of bytes (height, width, 3), or of real numbers (height, width), in a size of (height, width).

    bars: what is beside a picture that is too narrow: its "edge", or "zero"
    """
    height, width = size
    if picture.shape[:2] == (height, width):
        return picture
    inner = shared_width(picture.shape[:2], size)
    beyond = (picture.shape[1] - inner * picture.shape[0] / height) / 2
    made = Image.fromarray(picture) if picture.ndim == 3 else Image.fromarray(picture.astype(np.float32))
    box = (max(beyond, 0.0), 0.0, min(picture.shape[1] - beyond, picture.shape[1]), float(picture.shape[0]))
    small = np.asarray(made.resize((inner, height), Image.Resampling.BOX, box=box))
    beside = (width - inner) // 2
    pad = ((0, 0), (beside, beside), *(((0, 0),) if picture.ndim == 3 else ()))
    return np.pad(small, pad, mode="edge" if bars == "edge" else "constant") if beside else small


def shared_width(shape: tuple[int, int], size: tuple[int, int]) -> int:
    """Columns of the new size that show something of a picture of this shape."""
    height, width = size
    # A thousandth of a column is nothing: 1280 × 720 in 40 rows, and not what rounding made of it.
    most = int(shape[1] * height / shape[0] + 1e-3)
    if most >= width:
        return width
    inner = most - (width - most) % 2  # As many bars on the left as on the right.
    if inner < 1:
        raise ValueError(
            f"a picture of {shape[1]} × {shape[0]} pixels is less than a pixel wide in {height} rows: choose more"
        )
    return inner


def natural_width(shape: tuple[int, int], height: int) -> int:
    """How many columns belong to so many rows; a part of a column is left out."""
    return int(shape[1] * height / shape[0] + 1e-3)


def said(shape: tuple[int, int], size: tuple[int, int]) -> str:
    """What becomes of a picture, where that is more than a column; empty otherwise."""
    natural, height, width = natural_width(shape, size[0]), *size
    if abs(natural - width) <= 1:
        return ""
    what = "the sides are cut off" if natural > width else "there are bars beside it"
    return (
        f"{shape[1]} × {shape[0]} pixels do not have the shape of {width} × {height}: {what}, nothing is stretched; "
        f"size=({height}, {natural}) shows all of it and no more"
    )
