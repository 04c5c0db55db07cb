"""Launches on a GPU: geometry, failures, prints, debug mode, loop tapes and their limit, the driver's errors."""

import numpy as np
import pytest

import kernelc as kc
from kernelc.runtime.cuda import device as devices
from kernelc.runtime.cuda import launching


@kc.kernel
def scaled(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 3.0 * x[i]


@kc.kernel
def grid(out: kc.Array[int, 3]):
    i, j, k = kc.tid()
    out[i, j, k] = 10000 * i + 100 * j + k


@kc.kernel
def counter(out: kc.Array[int]):
    out[0] = 2 * out[0] + 1


@kc.kernel
def talks(x: kc.Array[float]):
    i = kc.tid()
    if i % 2 == 0:
        print("thread", i, "has", x[i])
        print(i, kc.int64(2) ** 40, i > 2)


@kc.kernel
def careful(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    assert x[i] < 5.0
    y[i] = x[i]


@kc.kernel
def powers(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    for _ in range(n):
        p *= x[i]
    y[i] = p


@kc.kernel
def until(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    while p < 100.0:
        p *= x[i]
    y[i] = p


@kc.kernel
def update(x: kc.Array[float], at: kc.Array[int], n: kc.Array[int]):
    i = kc.tid()
    for k in range(n[i]):
        x[at[i]] = kc.sin(x[at[i]]) + 0.1


@kc.func
def decay(a: float, n: int) -> float:
    for _ in range(n):
        a = kc.sin(a) * a
    return a


@kc.kernel
def slopes(x: kc.Array[float], n: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.grad(decay)(x[i], n[i])


@kc.kernel
def slots(x: kc.Array[float], counts: kc.Array[int], order: kc.Array[float]):
    i = kc.tid()
    for k in range(2):
        slot = kc.atomic_add(counts, k, 1)
        order[slot + k * x.shape[0]] = x[i] * float(k + 1)


def on_gpu(*arrays):
    return [kc.array(a, device="cuda") for a in arrays]


def only(calls, name):
    return [call for call in calls if call.startswith(name)]


# -- geometry
@pytest.mark.parametrize(("threads", "geometry"), [(1, "1, 1"), (7, "1, 7"), (33, "1, 64"), (128, "1, 128"),
                                                   (1000, "8, 128")])  # fmt: skip
def test_blocks_cover_the_grid(driver, threads, geometry):
    x, y = on_gpu(np.arange(float(threads)), np.zeros(threads))
    if driver is not None:
        driver.calls()
    kc.launch(scaled, threads, [x], [y])
    if driver is not None:
        assert only(driver.calls(), "cuLaunch") == [f"cuLaunchKernel(kc_scaled, {geometry})"]
        assert driver.queued()  # nobody waited for it
    np.testing.assert_array_equal(y.numpy(), 3 * np.arange(float(threads)))


def test_grids_of_three_dimensions(driver):
    (out,) = on_gpu(np.zeros((3, 5, 70), np.int32))
    kc.launch(grid, (3, 5, 70), [], [out])
    i, j, k = np.indices((3, 5, 70))
    np.testing.assert_array_equal(out.numpy(), 10000 * i + 100 * j + k)


def test_threads_without_an_index_run_in_order(driver):
    (out,) = on_gpu(np.zeros(1, np.int32))
    kc.launch(counter, 5, [], [out])
    assert int(out) == 31


def test_no_threads_no_launch(driver):
    x, y = on_gpu(np.zeros(0), np.zeros(0))
    kc.launch(scaled, 0, [x], [y])


# -- devices
def test_arrays_decide_where_a_launch_runs(driver):
    there, here = kc.ones(3, device="cuda"), kc.ones(3)
    out = kc.zeros(3, device="cuda")
    kc.launch(scaled, 3, [there], [out])
    assert out.numpy().sum() == 9
    for args, device, said in (
        ([there, here], None, "'y' is on 'cpu'"), ([here, out], None, "'x' is on 'cpu'"),
        ([here, kc.zeros(3)], "cuda", "'x' is on 'cpu'"), ([there, out], "cpu", "'x' is on 'cuda'"),
        ([there, out], "python", "'x' is on 'cuda'"), ([np.ones(3, np.float32), out], None, "'x' is on 'cpu'"),
    ):  # fmt: skip
        with pytest.raises(kc.WrongDevice, match=said) as caught:
            kc.launch(scaled, 3, args, device=device)
        assert ".to(" in caught.value.advice


def test_integers_of_another_width_are_refused(driver):
    """As on the CPU: a copy would not see what is written."""
    for device in ("cpu", "cuda"):
        at, n = kc.array(np.arange(2), device=device), kc.zeros(2, dtype=int, device=device)
        with pytest.raises(kc.WrongDtype, match="'at' must be an array of int32, but holds int64"):
            kc.launch(update, 2, [kc.ones(2, device=device), at, n])


def test_what_is_written_overlaps_nothing(driver):
    x = kc.zeros(8, device="cuda")
    with pytest.raises(kc.Overlap, match="'y' is written"):
        kc.launch(scaled, 4, [x[:4]], [x[2:6]])
    kc.launch(scaled, 4, [x[:4]], [x[4:]])


# -- reports
def test_prints_come_in_the_order_of_the_threads(driver, capsys):
    kc.launch(talks, 5, on_gpu(np.array([0.5, 1, 1.5, 2, 2.5])))
    there = capsys.readouterr().out
    kc.launch(talks, 5, [np.array([0.5, 1, 1.5, 2, 2.5])])
    assert there == capsys.readouterr().out
    assert there.startswith("thread 0 has 0.5\n")


def test_too_many_prints_are_counted(driver, capsys):
    kc.launch(talks, 100_000, on_gpu(np.zeros(100_000)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("more lines were printed and dropped")
    assert len(lines) > 10_000


def test_a_failed_assertion_is_that_of_the_lowest_thread(driver):
    x, y = on_gpu(np.array([1.0, 2, 7, 3, 9]), np.zeros(5))
    with pytest.raises(kc.AssertFailed, match=r"careful, thread 2: assertion failed: x\[i\] < 5.0") as caught:
        kc.launch(careful, 5, [x], [y])
    assert (caught.value.kernel, caught.value.thread) == ("careful", 2)
    assert caught.value.filename == __file__
    x.zero_()
    kc.launch(careful, 5, [x], [y])  # and is forgotten
    assert y.numpy().sum() == 0


@pytest.mark.parametrize(("where", "error"), [([0, 1, 9], kc.OutOfBounds), ([0, 1, -1], kc.OutOfBounds),
                                              ([0, 1, 1], kc.StoreRace)])  # fmt: skip
def test_debug_mode(driver, monkeypatch, where, error):
    monkeypatch.setattr(kc.config, "debug", True)

    @kc.kernel
    def scatter(at: kc.Array[int], y: kc.Array[float]):
        i = kc.tid()
        y[at[i]] = 1.0 / float(i + 1)

    with pytest.raises(error, match="scatter, thread") as caught:
        kc.launch(scatter, 3, on_gpu(np.array(where, np.int32), np.zeros(3)))
    assert caught.value.array == "y"


def test_debug_mode_finds_numbers_that_are_none(driver, monkeypatch):
    monkeypatch.setattr(kc.config, "debug", True)

    @kc.kernel
    def ratio(x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        y[i] = kc.sqrt(x[i])

    @kc.kernel
    def inverse(x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        y[i] = 1.0 / x[i]

    x, y = on_gpu(np.array([1.0, -1.0, 0.0]), np.zeros(3))
    with pytest.raises(kc.NotANumber, match="thread 1"):
        kc.launch(ratio, 3, [x], [y])
    with pytest.raises(kc.DivisionByZero, match="thread 2"):
        kc.launch(inverse, 3, [x], [y])
    with pytest.raises(kc.Uninitialised, match="thread 0"):
        kc.launch(scaled, 1, [kc.empty(1, device="cuda")], [kc.zeros(1, device="cuda")])


def test_debug_mode_finds_them_in_gradients(driver, monkeypatch):
    """Where they come from: adding the weights up, which a kernel does as well, is no mistake of the user's."""
    monkeypatch.setattr(kc.config, "debug", True)
    x, y = kc.array(np.ones(2), requires_grad=True, device="cuda"), kc.array(np.zeros(2), device="cuda")
    with kc.Tape() as tape:
        kc.launch(scaled, 2, [x], [y])
    with pytest.raises(kc.NotANumber, match=r"the adjoint of scaled, thread 1: a NaN is stored in x.grad\[1\]"):
        tape.backward(grads={y: np.array([1.0, np.nan])})


def test_threads_that_depend_on_each_other_have_no_gradient(driver):
    x, at, n = kc.array(np.ones(3), requires_grad=True, device="cuda"), [0, 1, 1], [1, 1, 1]
    with pytest.raises(kc.StoreRace), kc.Tape():
        kc.launch(update, 3, [x, *on_gpu(np.array(at, np.int32), np.array(n, np.int32))])


# -- loop tapes
def gradient(kernel, device, x, *more, dim=None):
    """The gradient of the sum of the last argument, or of the first if the kernel changes that."""
    leaf = kc.array(x.copy(), requires_grad=True, device=device)
    others = [kc.array(a, device=device) if isinstance(a, np.ndarray) else a for a in more]
    out = others[-1] if isinstance(others[-1], type(leaf)) and others[-1].real is not None else leaf
    with kc.Tape() as tape:
        kc.launch(kernel, dim or len(x), [leaf, *others])
    tape.backward(grads={out: np.ones(out.shape)})
    return leaf.grad.numpy(), tape


def test_room_for_a_loop_of_known_length_is_made_before(driver):
    x = np.linspace(0.9, 1.1, 40)
    want, _ = gradient(powers, "cpu", x, 50, np.zeros(40))
    got, tape = gradient(powers, "cuda", x, 50, np.zeros(40))
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert tape.entries[0].count is None


def test_loops_of_unknown_length_are_counted_first(driver):
    x = np.linspace(1.1, 2.0, 40)
    want, _ = gradient(until, "cpu", x, np.zeros(40))
    got, tape = gradient(until, "cuda", x, np.zeros(40))
    np.testing.assert_allclose(got, want, rtol=1e-12)
    most = int(np.ceil(np.log(100) / np.log(1.1)))
    assert tape.entries[0].count.read() == (8 * (most + 1), 0)  # the last one finds that there is nothing to do


def test_the_undo_log_is_counted_as_well(driver):
    x, at, n = np.linspace(0.5, 1.5, 5), np.array([4, 2, 0, 1, 3], np.int32), np.array([0, 3, 9, 1, 2], np.int32)
    want, _ = gradient(update, "cpu", x, at, n)
    got, tape = gradient(update, "cuda", x, at, n)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert tape.entries[0].count.read()[1] == 9


@pytest.mark.parametrize(("threads", "fit", "geometry"), [
    (300, 70, "1, 64"), (300, 5, "1, 5"), (300, 200, "1, 128"), (300, 383, "2, 128"), (300, 384, "3, 128"),
    (60, 63, "1, 32"), (60, 64, "1, 64"), (160, 160, "1, 128"),
])  # fmt: skip
def test_few_threads_share_a_small_tape(driver, monkeypatch, threads, fit, geometry):
    """Where the limit does not allow a tape for every thread, threads of the grid take turns."""
    x = np.linspace(0.9, 1.1, threads)
    want, _ = gradient(powers, "cpu", x, 50, np.zeros(threads))
    monkeypatch.setattr(kc.config, "tape_limit", 50 * 8 * fit)
    got, tape = gradient(powers, "cuda", x, 50, np.zeros(threads))
    np.testing.assert_allclose(got, want, rtol=1e-12)
    if driver is not None:
        launched = only(driver.calls(), "cuLaunchKernel(kc_powers_adj")
        assert launched == [f"cuLaunchKernel(kc_powers_adjoint, {geometry})"]


def test_threads_share_what_a_small_gpu_has(driver, monkeypatch):
    """The limit would allow more than there is."""
    if driver is None:
        pytest.skip("sets the size of the stand-in")
    monkeypatch.setattr(launching, "_MUCH", 1000)
    gpu = devices.device()
    gpu._scratch.clear()
    gpu._collect()
    gpu._release()
    x = np.linspace(0.9, 1.1, 300)
    want, _ = gradient(powers, "cpu", x, 1000, np.zeros(300))
    driver.limit((1 << 32) - gpu.free_bytes() + 1_500_000)
    try:
        got, _ = gradient(powers, "cuda", x, 1000, np.zeros(300))
    finally:
        driver.limit(0)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    (launch,) = only(driver.calls(), "cuLaunchKernel(kc_powers_adj")
    assert launch == "cuLaunchKernel(kc_powers_adjoint, 1, 128)"  # not three blocks


def test_a_tape_that_another_thread_replaces_is_kept_until_the_launch(driver, monkeypatch):
    if driver is None:
        pytest.skip("looks at the calls of the stand-in")
    gpu, seen = devices.device(), []
    launch = gpu.launch

    def meanwhile(*args):
        tape = gpu._scratch.get(("tape", 0))
        if tape is not None:
            address, size = tape.address, 2 * tape.nbytes
            del tape
            gpu.scratch("tape", size)
            gpu._collect()
            seen.append(any(address in pieces for pieces in gpu._pool.values()))
        launch(*args)

    monkeypatch.setattr(gpu, "launch", meanwhile)
    gpu._scratch.pop(("tape", 0), None)
    x = np.linspace(0.9, 1.1, 40)
    got, _ = gradient(powers, "cuda", x, 50, np.zeros(40))
    np.testing.assert_allclose(got, 50 * x**49, rtol=1e-12)
    assert seen == [False]


@pytest.mark.parametrize("kernel", ["powers", "until"])
def test_a_tape_over_the_limit_is_an_exception(driver, monkeypatch, kernel):
    monkeypatch.setattr(kc.config, "tape_limit", 100)
    with pytest.raises(kc.TapeFull, match=f"{kernel}: the loop tape of a thread needs [0-9]+ bytes, more than 100"):
        if kernel == "powers":
            gradient(powers, "cuda", np.ones(4), 50, np.zeros(4))
        else:
            gradient(until, "cuda", np.full(4, 1.1), np.zeros(4))


def test_loops_inside_of_kc_grad_share_what_is_allowed(driver, monkeypatch):
    x, n = np.linspace(0.5, 1.5, 5), np.array([0, 1, 2, 3, 40], np.int32)
    want, got = np.zeros(5), kc.array(np.zeros(5), device="cuda")
    kc.launch(slopes, 5, [x, n], [want])
    kc.launch(slopes, 5, on_gpu(x, n), [got])
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    monkeypatch.setattr(kc.config, "tape_limit", 200)
    with pytest.raises(kc.TapeFull, match="slopes, thread 4: the loop tape needs more than 200 bytes"):
        kc.launch(slopes, 5, on_gpu(x, n), [got])


@pytest.mark.parametrize("limit", [1 << 20, 20_000, 4096, 2000, 512, 100])
def test_where_little_is_allowed_threads_take_turns(driver, monkeypatch, limit):
    """There is always room for one frame: a thread that needs more says so, and writes nowhere else."""
    x, n = np.linspace(0.5, 1.5, 300), np.full(300, 3, np.int32)
    want, got = np.zeros(300), kc.array(np.zeros(300), device="cuda")
    kc.launch(slopes, 300, [x, n], [want])
    monkeypatch.setattr(kc.config, "tape_limit", limit)
    kc.launch(slopes, 300, on_gpu(x, n), [got])
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    monkeypatch.setattr(kc.config, "tape_limit", 4)
    with pytest.raises(kc.TapeFull, match="slopes: the loop tape of a thread needs 8 bytes, more than 4"):
        kc.launch(slopes, 300, on_gpu(x, n), [got])


def test_what_atomics_return_is_found_again(driver):
    """In whatever order the threads come: the gradient is that of the order that ran."""
    x = kc.array(np.arange(1.0, 6.0), requires_grad=True, device="cuda")
    counts, order = kc.zeros(2, dtype=int, device="cuda"), kc.zeros(10, real=kc.float64, device="cuda")
    with kc.Tape() as tape:
        kc.launch(slots, 5, [x], [counts, order])
    weights = np.arange(1.0, 11.0)
    tape.backward(grads={order: weights})
    first, second = order.numpy()[:5], order.numpy()[5:] / 2
    for i, value in enumerate(x.numpy()):
        a, b = list(first).index(value), list(second).index(value)
        assert x.grad.numpy()[i] == weights[a] + 2 * weights[5 + b]


# -- tapes
def test_a_rollout_that_overwrites_its_state(driver):
    def rollout(device):
        x = kc.array(np.linspace(0.5, 1.5, 6), requires_grad=True, device=device)
        y = kc.zeros(6, real=kc.float64, device=device)
        at, n = (kc.array(np.array(a, np.int32), device=device) for a in (range(6), [2] * 6))
        with kc.Tape() as tape:
            for _ in range(3):
                kc.launch(update, 6, [x, at, n])
                kc.launch(scaled, 6, [x], [y])
                x.assign(y)
        tape.backward(grads={y: np.ones(6)})
        return x.grad.numpy(), y.numpy(), tape.memory()

    for there, here in zip(rollout("cuda"), rollout("cpu")):
        np.testing.assert_allclose(there, here, rtol=1e-12)


def test_checkpoints(driver):
    def rollout(device):
        x = kc.array(np.linspace(0.5, 1.5, 4), requires_grad=True, device=device)
        at, n = (kc.array(np.array(a, np.int32), device=device) for a in (range(4), [2] * 4))
        with kc.Tape() as tape:
            kc.checkpoint(lambda k: kc.launch(update, 4, [x, at, n]), [x], 7)
        tape.backward(grads={x: np.ones(4)})
        return x.grad.numpy()

    np.testing.assert_allclose(rollout("cuda"), rollout("cpu"), rtol=1e-12)


def test_an_operation_of_ones_own(driver):
    x, y = kc.array(np.arange(3.0), requires_grad=True, device="cuda"), kc.zeros(3, real=kc.float64, device="cuda")
    with kc.Tape() as tape:
        y.assign(x.numpy() ** 2)
        tape.record(lambda: x.grad.assign(2 * x.numpy() * y.grad.numpy()), reads=[x], writes=[y])
    tape.backward(grads={y: np.ones(3)})
    np.testing.assert_array_equal(x.grad.numpy(), [0, 2, 4])


# -- the driver
def test_errors_have_the_words_of_the_driver(driver):
    if driver is None:
        pytest.skip("lets the stand-in fail")
    x, y = on_gpu(np.zeros(3), np.zeros(3))
    kc.launch(scaled, 3, [x], [y])
    driver.fail("cuLaunchKernel", 700)
    with pytest.raises(kc.CudaError, match="cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory") as caught:
        kc.launch(scaled, 3, [x], [y])
    assert caught.value.status == 700
    assert "debug" in caught.value.advice
    driver.fail("cuMemcpyDtoHAsync_v2", 4711)
    with pytest.raises(kc.CudaError, match="cuMemcpyDtoHAsync: error 4711"):
        y.numpy()


def test_arguments_are_looked_at(driver):
    """The stand-in does refuse what is wrong: else the other tests would prove nothing."""
    if driver is None:
        pytest.skip("a real driver may die of it")
    gpu = devices.device()
    x, y = on_gpu(np.zeros(3), np.zeros(3))
    for wrong in (
        lambda: gpu.copy(x._address, y._address, 1 << 20), lambda: gpu.fill(12345, 0, 8),
        lambda: gpu.download(x._address + 500, np.zeros(100)), lambda: gpu.launch(99, 1, 1, [b"", b""]),
        lambda: gpu.driver.cuMemFree_v2(77), lambda: gpu.driver.cuModuleLoadData(None, b"not a module at all"),
    ):  # fmt: skip
        with pytest.raises(kc.CudaError, match="CUDA_ERROR_INVALID"):
            wrong()


def test_streams(driver):
    if driver is None:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("this torch has no CUDA")
        other = torch.cuda.Stream()
    else:
        other = driver.stream()
    x, y = on_gpu(np.arange(3.0), np.zeros(3))
    with kc.cuda.stream(other):
        kc.launch(scaled, 3, [x], [y])
        np.testing.assert_array_equal(y.numpy(), [0, 3, 6])
        if driver is not None:
            assert "cuStreamSynchronize(other)" in driver.calls()
            z = kc.zeros(3, device="cuda")
            del z
    kc.zeros(3, device="cuda")  # memory that the other stream gave back is waited for
    kc.cuda.synchronize()
    with pytest.raises(kc.WrongUse, match="no stream"), kc.cuda.stream("fast"):
        pass


def test_streams_of_ones_own(driver):
    x, y, z = on_gpu(np.arange(3.0), np.zeros(3), np.zeros(3))
    first, second = kc.cuda.Stream(), kc.cuda.Stream()
    assert first.cuda_stream != second.cuda_stream
    with kc.cuda.stream(first):
        kc.launch(scaled, 3, [x], [y])
    with kc.cuda.stream(second):
        kc.launch(scaled, 3, [x], [z])
    if driver is not None:
        assert driver.queued() == 2
    first.synchronize()
    if driver is not None:
        assert driver.queued() == 1
    second.synchronize()
    np.testing.assert_array_equal(y.numpy(), [0, 3, 6])
    np.testing.assert_array_equal(z.numpy(), [0, 3, 6])
    handle = second.cuda_stream
    del second
    assert kc.cuda.Stream().cuda_stream == handle  # used again, not made anew


def test_a_stream_does_not_wait_for_another(driver):
    """What is on a stream is done when that stream is waited for, and no earlier: nothing goes to another one."""
    if driver is None:
        pytest.skip("a real stream does its work without being asked")
    x, y = on_gpu(np.arange(3.0), np.zeros(3))
    with kc.cuda.stream(driver.stream()):
        kc.launch(scaled, 3, [x], [y])
        y.zero_()
        kc.launch(scaled, 3, [x], [y])
        z = kc.zeros_like(y)
        z.assign(y)
    assert driver.queued() == 5
    kc.cuda.synchronize()
    assert driver.queued() == 5
    with kc.cuda.stream(driver.stream()):
        kc.cuda.synchronize()
        assert driver.queued() == 0
        np.testing.assert_array_equal(z.numpy(), [0, 3, 6])


def test_gradients_on_a_stream(driver):
    """Loop tape, counts, undo log, winners, sums: all of it goes to the stream of the reverse sweep."""
    if driver is None:
        pytest.skip("a real stream does its work without being asked")
    x, at, n = np.linspace(0.5, 1.5, 5), np.array([4, 2, 0, 1, 3], np.int32), np.array([0, 3, 9, 1, 2], np.int32)
    y = np.linspace(1.1, 2.0, 40)
    want = [gradient(update, "cpu", x, at, n)[0], gradient(until, "cpu", y, np.zeros(40))[0]]
    kc.cuda.synchronize()
    with kc.cuda.stream(driver.stream()):
        got = [gradient(update, "cuda", x, at, n)[0], gradient(until, "cuda", y, np.zeros(40))[0]]
        for there, here in zip(got, want):
            np.testing.assert_allclose(there, here, rtol=1e-12)
        assert driver.queued() == 0
    waits = only(driver.calls(), "cuStreamSynchronize")
    assert waits.count("cuStreamSynchronize(default)") == 1  # that above


def test_each_thread_of_the_host_has_the_context(driver):
    from threading import Thread

    x, found = kc.ones(3, device="cuda"), []
    thread = Thread(target=lambda: found.append(x.numpy().sum()))
    thread.start()
    thread.join()
    assert found == [3.0]


def test_a_thread_that_works_on_another_gpu(driver):
    """As after torch.cuda.set_device(1): kernels and memory stay on ours, what the thread does next on the other."""
    if driver is None:
        pytest.skip("needs the second GPU of the stand-in")
    with driver.context_of_another():
        x, y = kc.array(np.arange(3.0), requires_grad=True, device="cuda"), kc.array(np.zeros(3), device="cuda")
        with kc.Tape() as tape:
            kc.launch(scaled, 3, [x], [y])
        tape.backward(grads={y: np.ones(3)})
        np.testing.assert_array_equal(y.numpy(), [0, 3, 6])
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3, 3])
