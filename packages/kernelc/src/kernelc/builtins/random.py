"""Generators of random numbers with a state: what kc.rng and kc.randf mean in Python."""

from __future__ import annotations

from .. import types as t
from ..structs import StructValue
from . import meanings

RNG = t.Struct("rng", (("seed", t.UINT32), ("i", t.UINT32), ("k", t.UINT32)))
"""The stream (seed, i), and how many numbers have been drawn from it."""


def rng(seed: int, i: int) -> StructValue:
    made: StructValue = RNG(int(seed) % 2**32, int(i) % 2**32, 0)
    return made


def randf(state: StructValue) -> float:
    return meanings.rand(*meanings.advanced(state))
