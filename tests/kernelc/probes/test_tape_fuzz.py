"""Probes: random tapes against NumPy with Jacobians."""

import pytest
from probes.tape_fuzz import Tapes


@pytest.mark.parametrize("start", range(0, 240, 20))
def test_random_tapes(start):
    for seed in range(start, start + 20):
        Tapes(seed).check("python" if seed % 20 == 0 else "cpu")


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(0, 6000, 500))
def test_many_random_tapes(start):
    for seed in range(1000 + start, 1500 + start):
        Tapes(seed).check("cpu")
