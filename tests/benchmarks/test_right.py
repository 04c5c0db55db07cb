"""The programs of `benchmarks.right`: ours are right or refused, and a wrong rule is seen."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import right


@pytest.mark.parametrize("peer", ["kernelc", "jax"])
@pytest.mark.parametrize("name", right.PROGRAMS)
def test_no_gradient_is_silently_wrong(peer, name):
    gradients = importlib.import_module(f"benchmarks.right.{peer}").GRADIENTS
    said = right.verdict(gradients[name], right.slopes(right.PROGRAMS[name].value))
    assert said == "right" or said.startswith("refused")
    if peer == "kernelc" and name != "overwritten":
        assert said == "right"


@pytest.mark.parametrize("name", right.PROGRAMS)
def test_slopes_are_above_the_noise_of_differences(name):
    value = right.PROGRAMS[name].value
    coarse, fine = right.slopes(value, 1e-5), right.slopes(value, 1e-6)
    np.testing.assert_allclose(coarse, fine, atol=1e-5 * np.abs(fine).max())


def test_a_wrong_rule_is_called_wrong():
    truth = right.slopes(right.PROGRAMS["product"].value)
    assert right.verdict(lambda x: truth * 1.01, truth) == "wrong"
    assert right.verdict(lambda x: 1 / 0, truth).startswith("refused")


def test_every_peer_writes_every_program():
    for peer in ("kernelc", "jax"):
        assert set(importlib.import_module(f"benchmarks.right.{peer}").GRADIENTS) == set(right.PROGRAMS)
