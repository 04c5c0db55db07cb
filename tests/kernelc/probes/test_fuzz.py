"""Probes: random kernels against the same source run as plain Python on dual numbers."""

# ruff: noqa: PT017  (what is wrong is the subject)

from contextlib import contextmanager, suppress

import numpy as np
import pytest
from probes.fuzz import Program
from probes.harness import near, setting

import kernelc as kc


@contextmanager
def refusal_allowed():
    """A line that updates an element, and calls a function that writes to the same array, is refused."""
    try:
        yield
    except kc.Unsupported as error:
        assert "which this line updates" in str(error)
        pytest.skip(str(error))


def agree(seed, device, loop_tape="all"):
    program = Program(seed)
    value, by_x, by_t = program.expected()
    with refusal_allowed():
        got, grad_x, grad_t = program.run(device, loop_tape)
    near([got], [value], 1e-9, f"value of program {seed}\n{program.text}")
    near(grad_x, by_x, 1e-8, f"gradient of program {seed}\n{program.text}")
    near(grad_t, by_t, 1e-8, f"gradient of program {seed}\n{program.text}")


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_interpreted(seed):
    agree(seed, "python", ("all", "sqrt")[seed % 2])


@pytest.mark.parametrize("seed", range(100, 106))
def test_random_programs_compiled(seed):
    agree(seed, "cpu", ("all", "sqrt")[seed % 2])


@pytest.mark.parametrize("seed", range(200, 210))
def test_random_programs_forward(seed):
    """Forward mode of the first launch, in a random direction."""
    program = Program(seed)
    program.count = 1
    _, by_x, by_t = program.expected()
    rng = np.random.default_rng(seed)
    x, t, out = kc.array(program.x.copy()), kc.array(program.t.copy()), kc.zeros(1, real=kc.float64)
    dx, dt = rng.normal(size=x.shape), rng.normal(size=t.shape)
    kernel = program.kernels()[0]
    with refusal_allowed():
        dots = kc.jvp(
            kernel,
            program.threads,
            [x, program.size],
            [t, kc.zeros(1, dtype=int), out],
            tangents={x: dx, t: dt},
            device="python",
        )
    zero = {x: dx}  # an array that the kernel only reads keeps its direction
    got = dots[out].numpy().sum() + 0.1 * np.sum(_dot(dots, x, zero)) + 0.2 * np.sum(_dot(dots, t, {t: dt}))
    near([got], [by_x @ dx + by_t @ dt], 1e-8, program.text)


def _dot(dots, array, otherwise):
    return dots[array].numpy() if array in dots else otherwise[array]


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(0, 2000, 100))
def test_many_random_programs(start):
    for seed in range(10_000 + start, 10_000 + start + 100):
        with suppress(pytest.skip.Exception):
            agree(seed, "cpu" if seed % 10 == 0 else "python", ("all", "sqrt")[seed % 2])


@pytest.mark.parametrize("seed", range(300, 304))
def test_random_programs_in_debug_mode(seed):
    with setting(debug=True):
        agree(seed, "cpu")
