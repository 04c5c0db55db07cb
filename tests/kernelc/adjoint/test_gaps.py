"""Arrays with gaps in memory that an adjoint cannot take are refused by name, where they are used."""

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def lowest(a: kc.Array[float], lows: kc.Array[float]):
    i = kc.tid()
    kc.atomic_min(lows, i % 2, a[i])


def recorded():
    a = kc.array(np.arange(6.0), requires_grad=True)
    lows = kc.array(np.full(6, 9.0))[::3]
    with kc.Tape() as tape:
        kc.launch(lowest, 6, [a], [lows])
    return tape, a, lows


@pytest.mark.parametrize("ask", [
    lambda tape, a, lows: tape.backward(grads={lows: np.ones(2)}),
    lambda tape, a, lows: tape.jvp({a: np.ones(6)}, [lows]),
], ids=["backward", "jvp"])  # fmt: skip
def test_minima_with_gaps_are_refused_by_name_and_line(ask):
    with pytest.raises(kc.errors.TapeError, match="'lows', which has gaps") as caught:
        ask(*recorded())
    assert caught.value.span.file == __file__
