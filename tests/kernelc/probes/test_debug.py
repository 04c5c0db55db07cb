"""Probes: debug mode finds what is silent otherwise, with kernel, thread, array, index and line."""

import pytest
from probes.harness import DEVICES, array64, names_line, near, setting, zeros64

import kernelc as kc


def fails(kernel, dim, args, *, device="cpu", text=()):
    with setting(debug=True), pytest.raises(kc.KernelError) as caught:
        kc.launch(kernel, dim, args, device=device)
    assert names_line(caught.value, kernel), caught.value
    for part in (kernel.name, *text):
        assert str(part) in str(caught.value), caught.value
    return caught.value


@kc.kernel
def shift(x: kc.Array[float], k: int, out: kc.Array[float]):
    i = kc.tid()
    out[i] = x[i + k]  # here


@kc.kernel
def shift_store(x: kc.Array[float], k: int, out: kc.Array[float]):
    i = kc.tid()
    out[i + k] = x[i]  # here


@pytest.mark.parametrize("device", DEVICES)
def test_bounds(device):
    x, out = zeros64(4), zeros64(4)
    error = fails(shift, 4, [x, 2, out], device=device, text=["x", 4])
    assert error.thread == 2
    error = fails(shift, 4, [x, -1, out], device=device, text=["-1"])
    assert error.thread == 0
    fails(shift_store, 4, [x, 1, out], device=device, text=["out"])
    with setting(debug=True):
        kc.launch(shift, 2, [x, 2, out], device=device)


def test_bounds_of_views_and_of_every_axis():
    @kc.kernel
    def corner(a: kc.Array[float, 2], i: int, j: int, out: kc.Array[float]):
        out[0] = a[i, j]  # here

    a = zeros64((4, 6))
    for i, j in ((2, 0), (0, 3), (-1, 0), (0, -1)):
        fails(corner, 1, [a[1:3, 0:3], i, j, zeros64(1)])
    with setting(debug=True):
        kc.launch(corner, 1, [a[1:3, 0:3], 1, 2, zeros64(1)])


@pytest.mark.parametrize("device", DEVICES)
def test_bounds_of_vectors_and_local_arrays(device):
    @kc.kernel
    def component(v: kc.Array[kc.float3], k: int, out: kc.Array[float]):
        w = v[0]
        out[0] = w[k]  # here

    @kc.kernel
    def local(k: int, out: kc.Array[float]):
        a = kc.local(4)
        a[k] = 1.0  # here
        out[0] = a[0]

    for k in (3, -1):
        fails(component, 1, [zeros64(1, kc.float3), k, zeros64(1)], device=device)
    fails(local, 1, [4, zeros64(1)], device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_not_a_number(device):
    @kc.kernel
    def root(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = kc.sqrt(x[i]) + 1.0  # here

    error = fails(root, 3, [array64([1.0, 4.0, -1.0]), zeros64(3)], device=device)
    assert error.thread == 2


@pytest.mark.parametrize("device", DEVICES)
def test_division_by_zero(device):
    @kc.kernel
    def divide(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = 1.0 / x[i]  # here

    @kc.kernel
    def remainder(x: kc.Array[int], out: kc.Array[int]):
        i = kc.tid()
        out[i] = 7 // x[i]  # here

    error = fails(divide, 3, [array64([1.0, 0.0, 2.0]), zeros64(3)], device=device)
    assert error.thread == 1
    fails(remainder, 2, [kc.array([1, 0]), kc.zeros(2, dtype=int)], device=device)


def test_uninitialised():
    @kc.kernel
    def total(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = x[i] * 2.0  # here

    for real in (kc.float32, kc.float64):
        with setting(debug=True):
            x, out = kc.empty(3, real=real), kc.zeros(3, real=real)
        fails(total, 3, [x, out], text=["x"])
        x.assign([1.0, 2.0, 3.0])
        with setting(debug=True):
            kc.launch(total, 3, [x, out])


def test_store_races():
    @kc.kernel
    def race(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i // 2] = x[i]  # here

    @kc.kernel
    def read_race(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        x[i] = 2.0
        out[i] = x[(i + 1) % 4]  # here

    @kc.kernel
    def mixed_race(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, x[i])
        if i == 3:
            out[0] = 1.0  # here

    for kernel in (race, read_race, mixed_race):
        with setting(debug=True), pytest.raises(kc.KernelError) as caught:
            kc.launch(kernel, 4, [zeros64(4)], [zeros64(4)])
        assert "test_debug.py" in str(caught.value)

    @kc.kernel
    def fine(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = x[i]
        out[i] = out[i] * 2.0
        kc.atomic_add(x, i, 1.0)

    with setting(debug=True):
        kc.launch(fine, 4, [zeros64(4)], [zeros64(4)])


def test_debug_mode_finds_errors_of_the_backward_pass_too():
    @kc.kernel
    def root(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = x[i] * x[i]

    with setting(debug=True):
        x, out = array64([1.0, 2.0]), zeros64(2)
        with kc.Tape() as tape:
            kc.launch(root, 2, [x], [out])
        tape.backward(grads={out: [1.0, 1.0]})
        near(x.grad.numpy(), [2, 4], 1e-12)


def test_debug_mode_gives_the_same_gradients():
    @kc.kernel
    def work(x: kc.Array[float], n: int, t: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        t[i] = x[i]
        for k in range(n):
            t[i] = t[i] * t[i] * 0.5 + kc.sqrt(x[i])
        kc.atomic_add(out, 0, t[i])

    runs = []
    for debug in (False, True):
        with setting(debug=debug):
            x, out = array64([0.5, 0.7, 0.0]), zeros64(1)
            with kc.Tape() as tape:
                kc.launch(work, 3, [x, 4], [zeros64(3), out])
            tape.backward(out)
            runs.append((out.numpy().copy(), x.grad.numpy().copy()))
    near(runs[0][0], runs[1][0], 1e-13)
    near(runs[0][1], runs[1][1], 1e-13)


def test_a_failure_in_debug_mode_leaves_the_process_well():
    x, out = zeros64(4), zeros64(4)
    for _ in range(3):
        fails(shift, 4, [x, 3, out])
    kc.launch(shift, 2, [x, 1, out])


def test_debug_in_replay_and_recording():
    with setting(debug=True):
        x, out = array64([1.0, 2.0, 3.0]), zeros64(3)
        with pytest.raises(kc.KernelError), kc.Tape():
            kc.launch(shift, 3, [x, 1], [out])
        with kc.Tape() as tape:
            kc.launch(shift, 2, [x, 1], [out])
        tape.replay()
        tape.backward(grads={out: [1, 1, 1]})
        near(x.grad.numpy(), [0, 1, 1], 1e-12)
