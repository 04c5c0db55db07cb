"""Generators of random numbers with a state: what kc.rng and kc.randf mean in Python."""

from __future__ import annotations

from .. import types as t
from . import meanings

RNG = t.Struct("rng", (("seed", t.UINT32), ("i", t.UINT32), ("k", t.UINT32)))
"""The stream (seed, i), and how many numbers have been drawn from it."""


def rng(seed: int, i: int) -> t.StructValue:
    return RNG(int(seed) % 2**32, int(i) % 2**32, 0)


def randf(state: t.StructValue) -> float:
    return meanings.rand(*meanings.advanced(state))
