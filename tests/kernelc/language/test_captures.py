"""Names from outside of a kernel: read by value, part of what is compiled; if one changes, the kernel follows."""

import math
import types

import numpy as np
import pytest

import kernelc as kc

SCALE = 2.0
COUNT = 3
FLAG = True
WEIGHTS = [1.0, 2.0, 4.0]
TABLE = ((1, 2), (3, 4))
settings = types.SimpleNamespace(dt=0.5, inner=types.SimpleNamespace(n=3))
module = types.ModuleType("module")
module.constant = 1.5


class Physics:
    gravity = -10.0


def run(kernel, n=1):
    out = kc.zeros(n, dtype=float, real=kc.float64)
    kc.launch(kernel, n, outputs=[out], device="python")
    return out.numpy().tolist() if n > 1 else out.numpy()[0]


@kc.kernel
def use_globals(out: kc.Array[float]):
    i = kc.tid()
    total = 0.0
    for k in range(COUNT):
        total += SCALE * WEIGHTS[k]
    out[i] = total if FLAG else -1.0


def test_a_changed_global_is_seen(monkeypatch):
    assert run(use_globals) == 14.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert run(use_globals) == 21.0
    monkeypatch.setitem(globals(), "COUNT", 2)
    assert run(use_globals) == 9.0
    monkeypatch.setitem(globals(), "FLAG", False)
    assert run(use_globals) == -1.0
    monkeypatch.undo()
    assert run(use_globals) == 14.0


def test_a_list_changed_in_place_is_seen():
    assert run(use_globals) == 14.0
    WEIGHTS[1] = 10.0
    try:
        assert run(use_globals) == 30.0
    finally:
        WEIGHTS[1] = 2.0


def test_a_changed_global_is_seen_by_compiled_kernels(monkeypatch):
    out = kc.zeros(1, dtype=float)
    kc.launch(use_globals, 1, outputs=[out])
    kc.launch(use_globals, 1, outputs=[out])
    assert out.numpy()[0] == 14.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    kc.launch(use_globals, 1, outputs=[out])
    assert out.numpy()[0] == 21.0


@kc.kernel
def use_attributes(out: kc.Array[float]):
    out[kc.tid()] = settings.dt * settings.inner.n + module.constant + Physics.gravity + math.tau + TABLE[1][0]


def test_a_changed_attribute_is_seen(monkeypatch):
    want = 0.5 * 3 + 1.5 - 10.0 + math.tau + 3
    assert run(use_attributes) == want
    monkeypatch.setattr(settings, "dt", 1.0)
    assert run(use_attributes) == pytest.approx(want + 1.5)
    monkeypatch.setattr(settings.inner, "n", 5)
    assert run(use_attributes) == pytest.approx(want + 3.5)
    monkeypatch.setattr(module, "constant", 2.5)
    assert run(use_attributes) == pytest.approx(want + 4.5)
    monkeypatch.setattr(Physics, "gravity", 0.0)
    assert run(use_attributes) == pytest.approx(want + 14.5)


@kc.func
def helper(x):
    return x * SCALE


@kc.kernel
def through_a_function(out: kc.Array[float]):
    out[kc.tid()] = helper(10.0)


def test_what_a_function_captures_is_seen(monkeypatch):
    assert run(through_a_function) == 20.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert run(through_a_function) == 50.0


def test_another_function_of_the_same_name_is_seen(monkeypatch):
    @kc.func
    def other(x):
        return x + 1.0

    assert run(through_a_function) == 20.0
    monkeypatch.setitem(globals(), "helper", other)
    assert run(through_a_function) == 11.0


def make(n, table):
    @kc.kernel
    def kernel(out: kc.Array[float]):
        out[kc.tid()] = n * 2.0 + table[0]

    def rebind(value):
        nonlocal n
        n = value

    return kernel, rebind


def test_closures_hold_their_own_values():
    first, rebind = make(1, [10])
    second, _ = make(2, (20.5,))
    assert (run(first), run(second)) == (12.0, 24.5)
    rebind(7)
    assert (run(first), run(second)) == (24.0, 24.5)


@kc.kernel
def use_static(out: kc.Array[float]):
    i = kc.tid()
    total = kc.static(sum(w * w for w in WEIGHTS)) + kc.static(math.sqrt(settings.dt * 8))
    for k in range(3):
        total += kc.static(10**k) * WEIGHTS[k]
    if kc.static(len(WEIGHTS) == 3 and FLAG):
        total += 0.5
    out[i] = total


def test_static_expressions_follow_what_they_read(monkeypatch):
    want = 21.0 + 2.0 + 421.0 + 0.5
    assert run(use_static) == want
    monkeypatch.setattr(settings, "dt", 2.0)
    assert run(use_static) == want + 2.0
    monkeypatch.setitem(globals(), "FLAG", False)
    assert run(use_static) == want + 1.5
    monkeypatch.setitem(globals(), "WEIGHTS", [1.0, 2.0, 5.0])
    assert run(use_static) == want + 1.5 + 9.0 + 100.0


@kc.kernel
def use_numpy_numbers(out: kc.Array[float]):
    out[kc.tid()] = NUMBERS["int"] if False else REAL * INTEGER + (1.0 if TRUE else 0.0)


REAL, INTEGER, TRUE, NUMBERS = np.float32(0.5), np.int64(6), np.bool_(True), {}


def test_numpy_numbers_are_constants(monkeypatch):
    assert run(use_numpy_numbers) == 4.0
    monkeypatch.setitem(globals(), "REAL", np.float32(1.5))
    assert run(use_numpy_numbers) == 10.0
    monkeypatch.setitem(globals(), "TRUE", np.bool_(False))
    assert run(use_numpy_numbers) == 9.0


# -- literals
THIRD = 1 / 3
BIG = 2**40


@kc.kernel
def weak_literals(x: kc.Array[float], out: kc.Array[float, 2]):
    i = kc.tid()
    out[i, 0] = x[i] * 0.1
    out[i, 1] = x[i] + 1 / 3
    out[i, 2] = THIRD * x[i]
    y = 0.1
    out[i, 3] = y * x[i]
    out[i, 4] = kc.pi * x[i] / 7
    out[i, 5] = x[i] * BIG


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("device", ["cpu", "python"])
def test_literals_have_full_precision_in_either_precision(real, device):
    x = np.array([1.0, 3.0], real)
    out = kc.zeros((2, 6), real=kc.float64 if real is np.float64 else kc.float32)
    kc.launch(weak_literals, 2, [x], [out], device=device)
    want = np.stack(
        [x * real(0.1), x + real(1 / 3), real(1 / 3) * x, real(0.1) * x, real(math.pi) * x / real(7), x * real(2**40)],
        1,
    )
    np.testing.assert_array_equal(out.numpy(), want)


def test_a_kernel_may_be_defined_again_under_the_same_name():
    def define(value):
        @kc.kernel
        def same(out: kc.Array[float]):
            out[kc.tid()] = value

        return same

    assert [run(define(1.0)), run(define(2.0))] == [1.0, 2.0]


NUMBERS = {"k": 2.0, "row": [1.0, 2.0, 3.0]}


@kc.kernel
def use_static_items(out: kc.Array[float]):
    total = 0.0
    for k in range(3):
        if k == 1:
            continue
        total += kc.static(NUMBERS["row"][k])
    out[kc.tid()] = total * kc.static(NUMBERS["k"])


def test_what_a_static_expression_reads_may_change(monkeypatch):
    assert run(use_static_items) == 8.0
    monkeypatch.setitem(NUMBERS, "k", 3.0)
    assert run(use_static_items) == 12.0
    NUMBERS["row"].__setitem__(2, 10.0)
    try:
        assert run(use_static_items) == 33.0
    finally:
        NUMBERS["row"][2] = 3.0
    monkeypatch.setitem(globals(), "NUMBERS", {"k": 1.0, "row": [5.0, 0.0, 0.0]})
    assert run(use_static_items) == 5.0


def test_a_static_expression_follows_methods_cells_and_comprehensions():
    scale, box = 2.0, types.SimpleNamespace(items=[1.0, 2.0], total=lambda: sum(box.items))

    @kc.kernel
    def kernel(out: kc.Array[float]):
        out[kc.tid()] = kc.static(box.total() + sum(scale * x for x in box.items))

    assert run(kernel) == 9.0
    box.items.append(3.0)
    assert run(kernel) == 18.0
    scale = 1.0
    assert run(kernel) == 12.0


def test_a_static_expression_that_fails_later_says_so(monkeypatch):
    assert run(use_static_items) == 8.0
    monkeypatch.delitem(NUMBERS, "k")
    with pytest.raises(kc.KernelError, match="KeyError: 'k'"):
        run(use_static_items)


ONE = 1
ZERO = 0.0
ONES = [1, 2]


@kc.kernel
def use_types(out: kc.Array[float]):
    out[kc.tid()] = (ONE / 2 if kc.static(isinstance(ONES[0], int)) else 7.0) + kc.copysign(1.0, ZERO)


def test_numbers_that_are_equal_but_not_the_same_recompile(monkeypatch):
    assert run(use_types) == 1.5
    monkeypatch.setitem(globals(), "ZERO", -0.0)
    assert run(use_types) == -0.5
    ONES.__setitem__(0, 1.0)
    try:
        assert run(use_types) == 6.0
    finally:
        ONES[0] = 1


def test_an_unchanged_static_expression_is_not_compiled_again():
    run(use_static_items)
    before = dict(use_static_items._variants)
    run(use_static_items)
    assert use_static_items._variants == before
