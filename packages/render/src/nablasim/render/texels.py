"""Textures as kernels read them: all texels of all pictures, and of their smaller copies, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelc as kc
from nablasim.render.kernels import surface
from nablasim.render.kernels import textures as kernels
from nablasim.render.raster import Array, precision


@dataclass(frozen=True)
class Textures:
    """A table of texels, and what is known about it."""

    table: Any
    levels: int
    """Each texture and its smaller copies."""
    clear: bool
    """Whether one of them has an alpha channel."""
    mixed: bool
    """Whether some faces have none, and colours instead."""


def lay_side_by_side(pictures: Sequence[Array], repeats: Sequence[bool], *, mipmaps: bool, mixed: bool) -> Textures:
    """Pictures (n, height, width, 3 or 4), where n is one for all frames or one for each."""
    frames = max(p.shape[0] for p in pictures)
    levels = max(_count(p.shape[1:3]) for p in pictures) if mipmaps else 1
    copies = [_copies(p, levels) for p in pictures]
    sizes = [c.shape[1] * c.shape[2] for own in copies for c in own]
    table = kc.empty((frames, sum(sizes)), dtype=kc.float4, real=precision(pictures[0]))
    rows = np.zeros((len(pictures), levels, 4), np.int32)
    first = 0
    for k, own in enumerate(copies):
        for level in range(levels):
            if level < len(own):
                one = own[level]
                rows[k, level] = first, one.shape[1], one.shape[2], repeats[k]
                kc.launch(kernels.place, (frames, one.shape[1] * one.shape[2]), [one, first], [table])
                first += one.shape[1] * one.shape[2]
            else:
                rows[k, level] = rows[k, level - 1]
    found = surface.Textures(texels=table, levels=kc.array(rows, dtype=kc.int4))
    return Textures(found, levels, any(p.shape[3] > 3 for p in pictures), mixed)


def _count(size: Sequence[int]) -> int:
    """How many copies there are down to a single texel, with the picture itself."""
    return int(max(size)).bit_length()


def _copies(picture: Array, levels: int) -> list[Array]:
    """The picture, and copies of half the size of the one before, as far as there are some."""
    found = [_texels(picture, picture.shape[:3])]
    kc.launch(kernels.expand, found[0].shape, [picture], [found[0]])
    while len(found) < levels and max(found[-1].shape[1:]) > 1:
        n, rows, columns = found[-1].shape
        found.append(_texels(picture, (n, max(1, rows // 2), max(1, columns // 2))))
        kc.launch(kernels.shrink, found[-1].shape, [found[-2]], [found[-1]])
    return found


def _texels(like: Array, shape: Sequence[int]) -> Array:
    return kc.empty(tuple(shape), dtype=kc.float4, real=precision(like))
