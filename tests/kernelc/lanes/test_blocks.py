"""Blocks: what does not depend on the last index is the same for many threads. Rows: the first index parts threads."""

import numpy as np
import pytest

import kernelc as kc

WIDTHS = [0, 4, 8, 16, "auto"]


@pytest.fixture(autouse=True)
def restore_settings():
    lanes, threads = kc.config.lanes, kc.config.threads
    yield
    kc.config.lanes, kc.config.threads = lanes, threads


@kc.kernel(block=64)
def soft_sums(x: kc.Array[kc.float2, 2], first: kc.Array[int, 2], y: kc.Array[float, 3], most: kc.Array[int, 3]):
    """A loop that is as long for all threads of a block, with a branch that is not."""
    i, j, p = kc.tid()
    total = 0.0
    best = -1
    for k in range(first[i, j], first[i, j + 1]):
        v = x[i, k]
        d = v.x - 0.02 * float(p)
        if d > 0.0:
            total += kc.softplus(d * v.y)
            best = k
    y[i, j, p] = total
    most[i, j, p] = best


def run_soft_sums(real, rows=3, device=None):
    r = np.random.default_rng(0)
    x = kc.array(r.uniform(0, 1, (rows, 20, 2)).astype(real), dtype=kc.float2, requires_grad=True)
    first = np.sort(r.integers(0, 20, (rows, 6)), axis=1).astype(np.int32)
    y, most = kc.array(np.zeros((rows, 5, 64), real)), kc.array(np.zeros((rows, 5, 64), np.int32))
    with kc.Tape() as tape:
        kc.launch(soft_sums, (rows, 5, 64), [x, first], [y, most], device=device)
    tape.backward(grads={y: r.normal(size=(rows, 5, 64)).astype(real)})
    return [np.array(a.numpy()) for a in (y, most, x.grad)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_blocks_mean_what_threads_mean(real, width):
    kc.config.lanes = width
    expected = run_soft_sums(real, device="python")
    eps = np.finfo(real).eps
    for found, wanted in zip(run_soft_sums(real), expected):
        # Sums of up to 64 terms of size one, of both signs: they may cancel.
        np.testing.assert_allclose(found, wanted, rtol=64 * eps, atol=8 * eps)


def test_what_all_threads_of_a_block_share_is_loaded_once():
    text = soft_sums.variant(kc.float32).code("forward", frozenset(), frozenset(range(4)), 16).text
    assert "kc_gather" not in text
    assert "break;" not in text  # a loop that lanes leave at different times has one


def test_the_adjoint_of_blocks_against_differences():
    r = np.random.default_rng(1)
    x = kc.array(r.uniform(0, 1, (2, 6, 2)) + 1e-3, dtype=kc.float2, requires_grad=True)
    first = np.array([[0, 4, 6], [1, 1, 5]], np.int32)
    y, most = kc.zeros((2, 2, 64), real=kc.float64), kc.zeros((2, 2, 64), dtype=int)
    kc.testing.gradcheck(soft_sums, dim=(2, 2, 64), inputs=[x, first], outputs=[y, most])


@pytest.mark.parametrize("dim", [(3, 5, 32), (3, 5, 128), (3, 64)])
def test_a_launch_of_another_size_is_refused(dim):
    kc.launch(soft_sums, (3, 5, 64), [np.zeros((3, 20, 2)), np.zeros((3, 6), np.int32)],
              [np.zeros((3, 5, 64)), np.zeros((3, 5, 64), np.int32)])  # fmt: skip
    with pytest.raises(kc.WrongDim):
        kc.launch(soft_sums, dim, [np.zeros((3, 20, 2)), np.zeros((3, 6), np.int32)],
                  [np.zeros((3, 5, 64)), np.zeros((3, 5, 64), np.int32)])  # fmt: skip


@pytest.mark.parametrize("block", [24, -16, 1.0])
def test_blocks_fill_groups_of_every_width(block):
    with pytest.raises(kc.KernelError, match="multiple of 16"):
        kc.kernel(block=block)


@kc.kernel(block=64)
def runs(x: kc.Array[float, 2], v: kc.Array[kc.float3, 2], y: kc.Array[float, 3], total: kc.Array[float, 2]):
    """Elements that lie side by side although they are not the threads' own: several blocks read and add to them."""
    i, j, p = kc.tid()
    w = v[j, p]
    if p % 3 != 1:
        y[i, j, p] = x[i, p] * w.y + w.x * w.z
    total[i, p] += y[i, j, p] if p > 40 else x[i, p]


@pytest.mark.parametrize("width", WIDTHS)
def test_elements_side_by_side_are_read_and_written_together(width):
    kc.config.lanes = width
    results = []
    for device in ("cpu", "python"):
        r = np.random.default_rng(3)
        x = kc.array(r.normal(size=(2, 64)), requires_grad=True)
        v = kc.array(r.normal(size=(3, 64, 3)), dtype=kc.float3, requires_grad=True)
        y, total = kc.zeros((2, 3, 64), real=kc.float64), kc.zeros((2, 64), real=kc.float64)
        with kc.Tape() as tape:
            kc.launch(runs, (2, 3, 64), [x, v], [y, total], device=device)
        tape.backward(grads={y: r.normal(size=(2, 3, 64)), total: r.normal(size=(2, 64))})
        results.append([np.array(a.numpy()) for a in (y, total, x.grad, v.grad)])
    for found, wanted in zip(*results):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


# -- rows
@kc.kernel
def spread(index: kc.Array[int, 2], x: kc.Array[float, 2], total: kc.Array[float, 2]):
    i, j = kc.tid()
    total[i, index[i, j]] += kc.sin(x[i, index[i, j + 1]])


def test_sums_within_a_row_run_in_parallel_by_rows():
    found = kc.explain(spread)
    assert found.order.startswith("in parallel by rows")
    assert found.order_adjoint.startswith("in parallel by rows")


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_row_has_the_same_bits_whatever_is_beside_it(rows):
    """Whatever the number of rows and of threads: a row is summed in the order of its threads."""
    r, n = np.random.default_rng(2), 5000
    index = r.integers(0, 10, (rows, n + 1)).astype(np.int32)
    x = r.normal(size=(rows, 10)).astype(np.float32)
    weights = r.normal(size=(rows, 10)).astype(np.float32)

    def run(part):
        a, total = kc.array(x[part].copy(), requires_grad=True), kc.zeros((len(x[part]), 10))
        with kc.Tape() as tape:
            kc.launch(spread, (len(x[part]), n), [index[part], a], [total])
        tape.backward(grads={total: weights[part]})
        return np.stack([total.numpy(), a.grad.numpy()])

    kc.config.threads = 1
    alone = np.concatenate([run(slice(k, k + 1)) for k in range(rows)], axis=1)
    for kc.config.threads in (1, 2, 3):
        assert np.array_equal(run(slice(None)), alone)


@kc.kernel(block=16)
def grow_apart(x: kc.Array[float, 2], y: kc.Array[kc.float3, 3], total: kc.Array[float, 2]):
    """Memory of a block, in loops that its threads leave at different times, and in branches."""
    i, p = kc.tid()
    for k in range(y.shape[1]):
        y[i, k, p] = kc.float3(x[i, p], 1.0, -0.0)
    for n in range(20):
        if y[i, 0, p].x > 3.0:
            break
        for k in range(y.shape[1]):
            y[i, k, p] = y[i, k, p] * 1.5
            if y[i, k, p].x < 1.0 + float(k):
                total[i, p] += y[i, k, p].x


@pytest.mark.parametrize("width", WIDTHS)
def test_memory_of_threads_that_have_left_stays_as_it_is(width):
    kc.config.lanes = width
    x = np.random.default_rng(0).uniform(0.1, 4, (3, 16))

    def run(device=None):
        y, total = kc.zeros((3, 4, 16), dtype=kc.float3, real=kc.float64), kc.zeros((3, 16), real=kc.float64)
        kc.launch(grow_apart, (3, 16), [kc.array(x), y], [total], device=device)
        return np.array(y.numpy()), np.array(total.numpy())

    for found, wanted in zip(run(), run("python")):
        assert np.array_equal(found, wanted) and np.array_equal(np.signbit(found), np.signbit(wanted))


def test_memory_of_a_block_is_read_and_written_side_by_side_under_masks():
    text = grow_apart.variant(kc.float64).code("forward", frozenset(), frozenset(range(3)), 8).text
    assert "kc_gather" not in text and "kc_bits" not in text
