"""Probes that fit nowhere else: sources, names, threads of Python, arguments, checkpoints with hidden state."""

# ruff: noqa: F821  (a name that does not exist is the subject)

import math
import sys
import threading

import numpy as np
import pytest
from probes.harness import DEVICES, OUT, array64, check_kernel, leaf, near, refused, zeros64

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


# fmt: off
def test_sources_with_odd_layout():
    @kc.kernel
    def odd(
        x: kc.Array[float],  # a comment
        out: kc.Array[float],
    ):
        """A docstring

that goes back to the margin."""
# and a comment there
        a = (x[0] +
  x[1])
        out[0] = a * a; out[0] += 1.0  # noqa: E702

    check_kernel(odd, 1, [leaf([1.0, 2.0]), OUT], lambda x: (x[0] + x[1]) ** 2 + 1, [6, 6])


def test_errors_in_odd_layout_name_the_right_line():
    @kc.kernel
    def odd(
        x: kc.Array[float],
        out: kc.Array[float],
    ):
# a comment at the margin
        out[0] = (x[0] +
                  unknown)  # here

    error = refused(odd, "KC101")
    assert error.text.strip().startswith("unknown")
# fmt: on


def test_names_of_other_languages():
    @kc.kernel
    def namespace(θ: kc.Array[float], out: kc.Array[float]):
        auto, double, thread, block = θ[0], θ[1], 2.0, 3.0
        this = auto * double
        ctx = this * thread * block
        for κ in range(len(θ)):
            ctx *= θ[κ]
        out[0] = ctx

    check_kernel(namespace, 1, [leaf([1.5, 2.0]), OUT], lambda x: 6 * (x[0] * x[1]) ** 2)


def test_infinite_constants():
    @kc.kernel
    def extremes(x: kc.Array[float], n: int, out: kc.Array[float]):
        low, high = math.inf, -math.inf
        for i in range(n):
            low = kc.min(low, x[i])
            if x[i] > high:
                high = x[i]
        out[0] = low * high

    check_kernel(extremes, 1, [leaf([3.0, 2.0, 4.0]), 3, OUT], lambda x: x.min() * x.max(), [0, 4, 2])


def test_python_threads_record_tapes_of_their_own():
    failures = []

    def work(start):
        for r in range(40):
            v = start + 0.1 * r
            x, y, z = array64([v]), zeros64(1), zeros64(1)
            with kc.Tape() as tape:
                kc.launch(square, 1, [x], [y])
                kc.launch(square, 1, [y], [z])
            tape.backward(z)
            if abs(x.grad.numpy()[0] - 4 * v**3) > 1e-9:
                failures.append((start, r))

    kc.launch(square, 1, [array64([1.0])], [zeros64(1)])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(1.0 + k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures


def test_an_array_of_many_is_no_number():
    @kc.kernel
    def fill(x: kc.Array[float], s: float):
        x[0] = s

    with pytest.raises(kc.KernelError):
        kc.launch(fill, 1, [zeros64(1), array64([1.0, 2.0, 3.0])])
    with pytest.raises(kc.KernelError):
        kc.launch(fill, 1, [zeros64(1), array64(np.zeros(0))])


def test_a_number_parameter_may_change_inside():
    @kc.kernel
    def change(x: kc.Array[float], s: float, out: kc.Array[float]):
        s *= x[0]
        s += 1.0
        out[0] = s * s

    x, s, out = array64([3.0]), kc.scalar(2.0, requires_grad=True), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(change, 1, [x, s], [out])
    tape.backward(out)
    near(x.grad.numpy(), [28], 1e-12)
    near(s.grad.numpy(), [42], 1e-12)


def test_hidden_state_of_a_checkpointed_step_is_refused_or_right():
    @kc.kernel
    def gather(x: kc.Array[float], f: kc.Array[float]):
        kc.atomic_add(f, 0, x[0] * x[0])

    @kc.kernel
    def move(f: kc.Array[float], x: kc.Array[float]):
        x[0] += 0.1 * f[0]

    def run(checkpointed):
        x, f = array64([0.7]), zeros64(1)

        def step(k):
            kc.launch(gather, 1, [x], [f])
            kc.launch(move, 1, [f], [x])

        with kc.Tape() as tape:
            if checkpointed:
                kc.checkpoint(step, [x], 6, every=2)
            else:
                for k in range(6):
                    step(k)
        tape.backward(x)
        return x.grad.numpy()[0]

    plain = run(False)
    try:
        got = run(True)
    except kc.KernelError:
        return
    near([got], [plain], 1e-12)


def test_scratch_of_a_checkpointed_step_needs_no_mention():
    @kc.kernel
    def gather(x: kc.Array[float], f: kc.Array[float]):
        kc.atomic_add(f, 0, x[0] * x[0])

    @kc.kernel
    def move(f: kc.Array[float], x: kc.Array[float]):
        x[0] += 0.1 * f[0]

    def run(checkpointed):
        x, f = array64([0.7]), zeros64(1)

        def step(k):
            f.zero_()
            kc.launch(gather, 1, [x], [f])
            kc.launch(move, 1, [f], [x])

        with kc.Tape() as tape:
            if checkpointed:
                kc.checkpoint(step, [x], 7)
            else:
                for k in range(7):
                    step(k)
        tape.backward(x)
        return x.grad.numpy()[0]

    near([run(True)], [run(False)], 1e-12)


def test_a_kernel_without_threads_of_its_own_runs_once_per_thread():
    @kc.kernel
    def count(out: kc.Array[int]):
        kc.atomic_add(out, 0, 1)

    for device in DEVICES:
        out = kc.zeros(1, dtype=int)
        kc.launch(count, 5, [], [out], device=device)
        kc.launch(count, (2, 3), [], [out], device=device)
        assert out.numpy()[0] == 11


def test_the_paper_spelling():
    @kc.kernel
    def listing(x: kc.tensor(kc.float3), out: kc.tensor(float)):
        i = kc.tid()
        v = kc.load(x, i)
        kc.store(out, i, kc.dot(v, v) * kc.step(v.x))

    x, out = array64([[1.0, 2.0, 3.0], [-1.0, 2.0, 3.0]], kc.float3), zeros64(2)
    with kc.Tape() as tape:
        kc.launch(listing, 2, [x], [out])
    tape.backward(grads={out: [1.0, 1.0]})
    near(x.grad.numpy(), [[2, 4, 6], [0, 0, 0]], 1e-12)


def test_gradcheck_finds_a_wrong_rule_and_passes_a_right_one():
    @kc.func
    def wrong(x: float) -> float:
        return x * x

    @wrong.adjoint
    def _(x, adj):
        return 3.0 * x * adj

    @kc.kernel
    def bad(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = wrong(x[i])

    kc.testing.gradcheck(square, 3, [array64([1.0, 2.0, 3.0])], [zeros64(3)])
    with pytest.raises(Exception, match="x") as caught:
        kc.testing.gradcheck(bad, 3, [array64([1.0, 2.0, 3.0])], [zeros64(3)])
    assert isinstance(caught.value, (kc.KernelError, AssertionError))


def test_gradcheck_leaves_the_arrays_alone():
    x, y = array64([1.0, 2.0, 3.0]), zeros64(3)
    kc.testing.gradcheck(square, 3, [x], [y])
    near(x.numpy(), [1, 2, 3], 0)
    near(y.numpy(), [0, 0, 0], 0)
    assert x.grad is None or not x.grad.numpy().any()


def test_tapes_can_be_made_and_dropped():
    x, y = array64(np.ones(1000)), zeros64(1000)
    for _ in range(200):
        with kc.Tape() as tape:
            kc.launch(square, 1000, [x], [y])
        tape.backward(grads={y: np.ones(1000)})
    near(x.grad.numpy(), 400 * np.ones(1000), 1e-12)


def test_star_import_leaves_python_alone():
    scope = {}
    exec("from kernelc import *\nr = (min([3, 1]), max(1, 5, 2), abs(-2), round(2.6), pow(2, 3), sum([1, 2]))", scope)
    assert scope["r"] == (1, 5, 2, 3, 8, 3)
