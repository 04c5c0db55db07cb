"""Grids of cells: every neighbour once, whatever the numbers are; gradients and replays as things move."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import kernelc as kc

REALS = st.sampled_from([np.float32, np.float64])


@kc.kernel
def mark(x: kc.Array[kc.float3], grid: kc.Array[int], radius: float, seen: kc.Array[int, 2]):
    i = kc.tid()
    for j in kc.hash_grid_query(grid, x[i], radius):
        seen[i, j] += 1


@kc.kernel
def smoothed(x: kc.Array[kc.float3], grid: kc.Array[int], radius: float, out: kc.Array[float]):
    """A sum over neighbours that is smooth where they come and go."""
    i = kc.tid()
    s = 0.0
    for j in kc.hash_grid_query(grid, x[i], radius):
        d = x[j] - x[i]
        q = kc.dot(d, d) / (radius * radius)
        if q < 1.0:
            s += (1.0 - q) ** 3 * (1.0 + kc.sin(3.0 * d.x))
    out[i] = s


@kc.kernel
def smoothed_by_all(x: kc.Array[kc.float3], radius: float, out: kc.Array[float]):
    i = kc.tid()
    s = 0.0
    for j in range(x.shape[0]):
        d = x[j] - x[i]
        q = kc.dot(d, d) / (radius * radius)
        if q < 1.0:
            s += (1.0 - q) ** 3 * (1.0 + kc.sin(3.0 * d.x))
    out[i] = s


def visits(x, width, radius, device=None):
    grid = kc.HashGrid(len(x), width).build(x)
    seen = np.zeros((len(x), len(x)), np.int32)
    kc.launch(mark, len(x), [x, grid.index, radius], [seen], device=device)
    return seen


def distances(x):
    d = x[:, None].astype(np.float64) - x[None].astype(np.float64)
    return np.sqrt((d**2).sum(axis=2))


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 40), scale=st.sampled_from([1e-3, 1.0, 50.0]),
    at=st.sampled_from([0.0, -3.0, 1000.0]), fine=st.sampled_from([0.25, 0.6, 1.0, 3.0]), real=REALS,
)  # fmt: skip
def test_every_point_within_the_radius_is_visited_once(seed, n, scale, at, fine, real):
    rng = np.random.default_rng(seed)
    x = (scale * (rng.uniform(-1, 1, (n, 3)) + at)).astype(real)
    x[rng.integers(n, size=n // 4)] = x[0]  # some in the same place
    radius = float(real(scale * 0.4))
    seen = visits(x, radius / fine, radius)
    assert seen.max() <= 1
    assert seen[distances(x) <= radius].all()
    # And not many more: all of them lie in the cells that the ball touches.
    assert (distances(x)[seen > 0] <= 2 * (radius + 2 * radius / fine)).all()


@given(steps=st.lists(st.integers(-3, 3), min_size=3, max_size=24), real=REALS)
@example([0, 1, 1, 2, 0, 0, 1], np.float32)
def test_points_on_the_borders_of_cells_are_found(steps, real):
    """Exactly a radius apart, exactly on the planes between cells."""
    n = len(steps) // 3
    x = np.array(steps[: 3 * n], real).reshape(n, 3) * real(0.1)
    seen = visits(x, 0.1, 0.1)
    d = x[:, None] - x[None]  # in their own precision, as a kernel would
    near = np.sqrt((d * d).sum(axis=2, dtype=real)) <= real(0.1)
    assert seen.max(initial=0) <= 1 and seen[near].all()


def test_cells_that_share_a_bucket_are_told_apart():
    """A line of a thousand cells, ten points: the buckets overlap many times."""
    x = np.zeros((10, 3))
    x[:, 0] = np.arange(10) * 100.0
    assert np.array_equal(visits(x, 1.0, 0.5), np.eye(10))
    assert np.array_equal(visits(x, 1.0, 150.0), (distances(x) <= 151.0))


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_devices_agree_and_python_runs_the_same_loop(device):
    x = np.random.default_rng(0).uniform(0, 1, (12, 3))
    grid = kc.HashGrid(12, 0.3).build(x)
    seen = visits(x, 0.3, 0.25, device)
    for i in range(12):
        found = [int(j) for j in kc.hash_grid_query(grid.index.numpy(), x[i], 0.25)]
        assert len(set(found)) == len(found) and set(found) == set(np.flatnonzero(seen[i]))


def test_the_table_is_the_same_on_every_run_and_any_number_of_threads():
    x = kc.array(np.random.default_rng(1).uniform(0, 1, (5000, 3)).astype(np.float32), dtype=kc.float3)
    tables, before = [], kc.config.threads
    for threads in (1, 2):
        kc.config.threads = threads
        tables.append(kc.HashGrid(5000, 0.05).build(x).index.numpy().copy())
    kc.config.threads = before
    assert np.array_equal(*tables)


def test_debug_mode_finds_nothing():
    kc.config.debug = True
    try:
        assert visits(np.random.default_rng(2).uniform(-1, 1, (20, 3)), 0.5, 0.5).any()
    finally:
        kc.config.debug = False


def test_gradients_flow_to_the_positions_and_the_radius():
    x = kc.array(np.random.default_rng(3).uniform(0, 1, (8, 3)), dtype=kc.float3, requires_grad=True)
    grid = kc.HashGrid(8, 0.6).build(x)
    radius = kc.array(np.array([0.6]), requires_grad=True)
    assert kc.testing.gradcheck(smoothed, 8, [x, grid.index, radius], [kc.zeros(8, real=kc.float64)])


@kc.kernel
def move(x: kc.Array[kc.float3], s: kc.Array[float], after: kc.Array[kc.float3]):
    i = kc.tid()
    after[i] = x[i] + kc.float3(0.3 * s[i], 0.2 * kc.sin(s[i]), -0.1 * s[i] * x[i].x)


def rollout(n, with_grid):
    """Points that move by what is around them: the neighbours change, and one grid serves all steps."""
    start = kc.array(np.random.default_rng(4).uniform(0, 1, (n, 3)), dtype=kc.float3, requires_grad=True)
    grid, s = kc.HashGrid(n, 0.4), kc.zeros(n, real=kc.float64)
    with kc.Tape() as tape:
        x = start
        for _ in range(4):
            s = kc.zeros(n, real=kc.float64)
            if with_grid:
                grid.build(x)
                kc.launch(smoothed, n, [x, grid.index, 0.4], [s])
            else:
                kc.launch(smoothed_by_all, n, [x, 0.4], [s])
            after = kc.zeros(n, dtype=kc.float3, real=kc.float64)
            kc.launch(move, n, [x, s], [after])
            x = after
    return tape, start, x


def test_a_rollout_with_a_grid_is_the_one_over_all_pairs_and_so_is_its_gradient_and_its_replay():
    n = 30
    (tape, x0, x1), (tape_all, y0, y1) = rollout(n, True), rollout(n, False)
    moved = x0.numpy() + np.random.default_rng(5).uniform(-0.3, 0.3, (n, 3))
    for again in (False, True):
        if again:
            for t, start in ((tape, x0), (tape_all, y0)):
                start.assign(moved)
                t.replay()
                t.zero()
        assert np.allclose(x1.numpy(), y1.numpy(), atol=1e-12)
        weights = np.random.default_rng(6).normal(size=(n, 3))
        tape.backward(grads={x1: weights})
        tape_all.backward(grads={y1: weights})
        assert np.allclose(x0.grad.numpy(), y0.grad.numpy(), atol=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kc.HashGrid(-1, 1.0), "a whole number of points, not -1"),
        (lambda: kc.HashGrid(3, 0.0), "the width of a cell cannot be 0.0"),
        (lambda: kc.HashGrid(3, np.inf), "the width of a cell cannot be inf"),
        (lambda: kc.HashGrid(3, 1.0).build(np.zeros((4, 3))), "points has 4 elements, and the table is for 3"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(kc.KernelError, match=words):
        call()


@given(width=st.floats(1e-6, 1e6))
def test_the_width_is_rounded_up_a_little(width):
    assert width <= kc.HashGrid(1, width).width <= width * 1.001


def test_a_grid_without_points_is_fine():
    assert visits(np.zeros((0, 3)), 1.0, 1.0).shape == (0, 0)
