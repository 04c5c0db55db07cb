"""Probes: arrays. Sharing, strides, one to four dimensions, nothing at all, precision at creation, views."""

import numpy as np
import pytest
from probes.harness import DEVICES, OUT, REALS, Arrays, array64, check_kernel, leaf, near, on, zeros64

import kernelc as kc


@kc.kernel
def double(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = 2.0 * x[i] * x[i]


@kc.kernel
def matrix(a: kc.Array[float, 2], out: kc.Array[float, 2]):
    i, j = kc.tid()
    out[i, j] = a[i, j] * a[i, j] + float(10 * i + j) * a[i, j]


@kc.kernel
def cube(a: kc.Array[float, 3], out: kc.Array[float]):
    i, j, k = kc.tid()
    kc.atomic_add(out, 0, a[i, j, k] * a[i, j, k] * float(100 * i + 10 * j + k))


@kc.kernel
def tesseract(a: kc.Array[float, 4], b: kc.Array[float, 4]):
    i, j, k, l = kc.tid()
    b[l, k, j, i] = a[i, j, k, l] * a[i, j, k, l] * float(1000 * i + 100 * j + 10 * k + l)


def test_memory_is_shared_with_numpy_and_torch():
    data = np.array([1.0, 2.0, 3.0])
    x = kc.array(data)
    data[0] = 5.0
    assert x.numpy()[0] == 5.0 and x.numpy() is data or np.shares_memory(x.numpy(), data)
    out = np.zeros(3)
    kc.launch(double, 3, [x], [out])
    near(out, [50, 8, 18], 0)
    torch = pytest.importorskip("torch")
    t = torch.zeros(3, dtype=torch.float64)
    y = kc.from_torch(t)
    kc.launch(double, 3, [x], [y])
    near(t.numpy(), [50, 8, 18], 0)
    assert np.shares_memory(y.torch().numpy(), t.numpy())
    z = kc.from_dlpack(t)
    z.zero_()
    assert t.sum() == 0


def test_a_list_is_copied():
    data = [1.0, 2.0]
    x = kc.array(data)
    x.assign([3.0, 4.0])
    assert data == [1.0, 2.0]


def test_creation():
    assert kc.zeros(3).numpy().dtype == np.float32
    assert kc.zeros((2, 3), dtype=kc.float3, real=kc.float64).numpy().shape == (2, 3, 3)
    assert kc.zeros((2, 3), dtype=kc.float3, real=kc.float64).shape == (2, 3)
    assert kc.array(np.zeros((5, 3)), dtype=kc.float3).numpy().dtype == np.float64
    assert kc.array(np.zeros((5, 3), np.float32), dtype=kc.float3).shape == (5,)
    assert kc.array([1, 2]).numpy().dtype == np.int32
    assert kc.array([True, False]).numpy().dtype == np.bool_
    assert kc.array([1.0, 2.0]).numpy().dtype == np.float32
    assert kc.array(np.array([1, 2])).numpy().dtype == np.int64
    assert kc.array(np.array([1, 2]), dtype=int).numpy().dtype == np.int32
    assert kc.array(np.array([1.5, 2.5]), dtype=kc.float32).numpy().dtype == np.float32
    assert kc.array([1, 2], dtype=float).numpy().dtype == np.float32
    assert kc.ones(3, dtype=kc.float64).numpy().tolist() == [1, 1, 1]
    assert kc.full((2,), 7.0).numpy().tolist() == [7, 7]
    assert kc.empty(4).shape == (4,)
    x = kc.array(np.ones(3), requires_grad=True)
    assert not kc.zeros_like(x).requires_grad and kc.zeros_like(x).numpy().dtype == np.float64
    assert kc.array(np.float64(3.0)).shape == (1,)
    assert kc.scalar(3.0).shape == (1,)
    assert x.grad.numpy().tolist() == [0, 0, 0]
    assert kc.zeros(3).grad is None


def test_a_launch_without_a_real_array_is_single_precision():
    @kc.kernel
    def number(x: float, out: kc.Array[kc.float64]):
        out[0] = kc.float64(x)

    @kc.kernel
    def index(n: int, out: kc.Array[int]):
        out[0] = int(1.0e9 * 0.1) + n

    out = kc.zeros(1, dtype=int)
    kc.launch(index, 1, [1], [out])
    assert out.numpy()[0] in (100000001,)


def test_weak_lists_take_the_precision_of_the_launch():
    for real in REALS:
        A = Arrays(real)
        x, w, out = A.array([1.0, 2.0]), kc.array([0.1, 0.2], requires_grad=True), A.zeros(1)

        @kc.kernel
        def dot(x: kc.Array[float], w: kc.Array[float], out: kc.Array[float]):
            i = kc.tid()
            kc.atomic_add(out, 0, x[i] * w[i])

        with kc.Tape() as tape:
            kc.launch(dot, 2, [x, w], [out])
        tape.backward(out)
        assert w.grad.numpy().dtype == real
        near(out.numpy(), [0.5], 1e-15 if real == np.float64 else 1e-6)


@pytest.mark.parametrize("order", ["C", "F", "transposed", "sliced", "negative", "broadcast"])
def test_strided_inputs(order):
    base = np.random.default_rng(0).normal(size=(4, 5))
    made = {
        "C": base,
        "F": np.asfortranarray(base),
        "transposed": np.ascontiguousarray(base.T).T,
        "sliced": np.repeat(np.repeat(base, 2, 0), 3, 1)[::2, ::3],
        "negative": base[::-1, ::-1][::-1, ::-1],
        "broadcast": np.broadcast_to(base[:1], (4, 5)),
    }[order]
    weights = np.random.default_rng(1).normal(size=(4, 5))
    rows = 10.0 * np.arange(4)[:, None] + np.arange(5)
    for device in DEVICES:
        x, out = kc.array(made, requires_grad=True), zeros64((4, 5))
        with kc.Tape() as tape:
            kc.launch(matrix, (4, 5), [x], [out], device=device)
        tape.backward(grads={out: weights})
        near(out.numpy(), made**2 + rows * made, 1e-12)
        near(x.grad.numpy(), weights * (2 * made + rows), 1e-12)


def test_strided_outputs_and_seeds():
    base, weights = np.random.default_rng(0).normal(size=(2, 4, 5))
    rows = 10.0 * np.arange(4)[:, None] + np.arange(5)
    for device in DEVICES:
        big = np.full((8, 10), 7.0)
        x, out = array64(base), kc.array(big[::2, 1::2])
        with kc.Tape() as tape:
            kc.launch(matrix, (4, 5), [x], [out], device=device)
        tape.backward(grads={out: np.asfortranarray(weights)})
        near(big[::2, 1::2], base**2 + rows * base, 1e-12)
        assert (big[1::2] == 7).all() and (big[:, ::2] == 7).all()
        near(x.grad.numpy(), weights * (2 * base + rows), 1e-12)


def test_strided_in_place_over_steps():
    @kc.kernel
    def logistic(x: kc.Array[float, 2]):
        i, j = kc.tid()
        x[i, j] = 3.0 * x[i, j] * (1.0 - x[i, j])

    base = np.random.default_rng(0).uniform(0.2, 0.8, size=(3, 4))
    for device in DEVICES:
        store = np.zeros((6, 4))
        store[::2] = base
        x = kc.array(store[::2], requires_grad=True)
        with kc.Tape() as tape:
            for _ in range(3):
                kc.launch(logistic, (3, 4), inputs=[x], device=device)
        tape.backward(grads={x: np.ones((3, 4))})
        y, slope = base, np.ones_like(base)
        for _ in range(3):
            slope = slope * 3 * (1 - 2 * y)
            y = 3 * y * (1 - y)
        near(store[::2], y, 1e-12)
        near(x.grad.numpy(), slope, 1e-12)


def test_vectors_in_strided_arrays():
    @kc.kernel
    def lengths(v: kc.Array[kc.float3], out: kc.Array[float]):
        i = kc.tid()
        out[i] = kc.dot(v[i], v[i]) * v[i].x

    base = np.random.default_rng(2).normal(size=(8, 3))
    for data in (base[::2], np.asfortranarray(base[:4]), np.ascontiguousarray(base[:4].T).T, base[::-2]):
        x, out = kc.array(data, dtype=kc.float3, requires_grad=True), zeros64(4)
        with kc.Tape() as tape:
            kc.launch(lengths, 4, [x], [out])
        tape.backward(grads={out: np.ones(4)})
        near(out.numpy(), (data**2).sum(1) * data[:, 0], 1e-12)
        want = 2 * data * data[:, :1]
        want[:, 0] += (data**2).sum(1)
        near(x.grad.numpy(), want, 1e-12)


def test_three_and_four_dimensions():
    shape = (2, 3, 4)
    weights = sum(
        w * np.arange(n).reshape(s) for w, n, s in ((100, 2, (2, 1, 1)), (10, 3, (1, 3, 1)), (1, 4, (1, 1, 4)))
    )
    check_kernel(
        cube, shape, [leaf(np.random.default_rng(0).normal(size=shape)), OUT], lambda a: (a**2 * weights).sum()
    )
    a = np.random.default_rng(1).normal(size=(2, 3, 2, 4))
    index = np.indices(a.shape)
    w = 1000 * index[0] + 100 * index[1] + 10 * index[2] + index[3]
    for device in DEVICES:
        x, out = array64(a), zeros64((4, 2, 3, 2))
        with kc.Tape() as tape:
            kc.launch(tesseract, (2, 3, 2, 4), [x], [out], device=device)
        seed = np.random.default_rng(3).normal(size=(4, 2, 3, 2))
        tape.backward(grads={out: seed})
        near(out.numpy(), (a**2 * w).transpose(3, 2, 1, 0), 1e-12)
        near(x.grad.numpy(), 2 * a * w * seed.transpose(3, 2, 1, 0), 1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_at_all(device):
    x, out, total = array64(np.zeros(0)), zeros64(0), zeros64(1)
    with on(device), kc.Tape() as tape:
        kc.launch(double, 0, [x], [out])
        kc.launch(sum_up, 0, [x], [total])
    tape.backward(total)
    assert x.grad.numpy().shape == (0,) and total.numpy()[0] == 0
    v = kc.zeros((0,), dtype=kc.float3)
    assert v.shape == (0,) and v.numpy().shape == (0, 3)
    kc.launch(matrix, (0, 5), [zeros64((0, 5))], [zeros64((0, 5))], device=device)
    with on(device), kc.Tape() as tape:
        kc.launch(double, 0, [array64([1.0])], [y := zeros64(1)])
    tape.backward(grads={y: [1.0]})
    tape.replay()


@kc.kernel
def sum_up(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, x[i])


def test_a_launch_of_no_threads_keeps_what_was_there():
    x, y = array64([2.0]), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(double, 1, [x], [y])
        kc.launch(double, 0, [x], [y])
    tape.backward(y)
    near(x.grad.numpy(), [8.0], 1e-12)


def test_rows_and_elements_of_arrays_are_views():
    x = array64(np.arange(12.0).reshape(3, 4))
    out = zeros64(1)
    with kc.Tape() as tape:
        kc.launch(sum_up, 4, [x[1]], [out])
        kc.launch(sum_up, 3, [x[:, 2]], [out])
        kc.launch(sum_up, 12, [x.reshape(12)], [out])
    tape.backward(out)
    want = np.ones((3, 4))
    want[1] += 1
    want[:, 2] += 1
    near(x.grad.numpy(), want, 0)


def test_writes_to_a_view_are_seen_by_the_tape_of_the_whole():
    x, out = array64([1.0, 2.0, 3.0, 4.0]), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(sum_up, 4, [x], [out])
    x[1:2].assign([9.0])
    with pytest.raises(kc.KernelError):
        tape.backward(out)


def test_gradients_of_a_launch_that_reads_one_array_as_vectors_and_as_numbers():
    @kc.kernel
    def lengths(v: kc.Array[kc.float3], out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, kc.length_sq(v[i]))

    x, out = array64(np.ones((4, 3))), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(lengths, 4, [x], [out])
        kc.launch(sum_up, 12, [x.reshape(12)], [out])
    tape.backward(out)
    near(x.grad.numpy(), 3 * np.ones((4, 3)), 1e-12)


def test_large_launches_are_right_everywhere():
    n = 100_003
    data = np.random.default_rng(0).normal(size=n)
    x, out = array64(data), zeros64(n)
    with kc.Tape() as tape:
        kc.launch(double, n, [x], [out])
    tape.backward(grads={out: data})
    near(out.numpy(), 2 * data**2, 1e-15)
    near(x.grad.numpy(), 4 * data * data, 1e-15)


def test_int64_indices_of_numpy_are_accepted():
    @kc.kernel
    def gather(x: kc.Array[float], index: kc.Array[int], out: kc.Array[float]):
        i = kc.tid()
        out[i] = x[index[i]]

    x, out = array64([1.0, 2.0, 3.0]), zeros64(2)
    kc.launch(gather, 2, [x, np.array([2, 0])], [out])
    near(out.numpy(), [3, 1], 0)
    with pytest.raises(kc.KernelError):
        kc.launch(gather, 2, [x, np.array([2**40, 0])], [out])


def test_bool_arrays():
    @kc.kernel
    def mask(x: kc.Array[float], on: kc.Array[bool], out: kc.Array[float]):
        i = kc.tid()
        if on[i]:
            kc.atomic_add(out, 0, x[i] * x[i])
        on[i] = not on[i]

    for device in DEVICES:
        x, flags, out = array64([1.0, 2.0, 3.0]), kc.array(np.array([True, False, True])), zeros64(1)
        with kc.Tape() as tape:
            kc.launch(mask, 3, [x, flags], [out], device=device)
        tape.backward(out)
        near(x.grad.numpy(), [2, 0, 6], 0)
        assert flags.numpy().tolist() == [False, True, False]


def test_results_on_both_devices_have_the_same_bits():
    @kc.kernel
    def work(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        s = x[i]
        for k in range(10):
            s = s * 0.9 + x[i] / (1.0 + s * s)
        out[i] = s

    data = np.random.default_rng(0).normal(size=50)
    rows = []
    for device in DEVICES:
        out = zeros64(50)
        kc.launch(work, 50, [array64(data)], [out], device=device)
        rows.append(out.numpy().copy())
    near(rows[0], rows[1], 1e-14)
