"""Trees of boxes: exactly the boxes that meet, rays that lose nothing, gradients, and rebuilding on replays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc

REALS = st.sampled_from([np.float32, np.float64])


@kc.kernel
def mark(
    lower: kc.Array[kc.float3], upper: kc.Array[kc.float3], order: kc.Array[int], boxes: kc.Array[kc.float3, 2],
    seen: kc.Array[int, 2],
):  # fmt: skip
    i = kc.tid()
    for j in kc.bvh_query(order, boxes, lower[i], upper[i]):
        seen[i, j] += 1


@kc.kernel
def mark_rays(
    origin: kc.Array[kc.float3], direction: kc.Array[kc.float3], reach: float, order: kc.Array[int],
    boxes: kc.Array[kc.float3, 2], seen: kc.Array[int, 2],
):  # fmt: skip
    i = kc.tid()
    for j in kc.bvh_query_ray(order, boxes, origin[i], direction[i], reach):
        seen[i, j] += 1


@kc.kernel
def cast(
    x: kc.Array[kc.float3], faces: kc.Array[int, 2], origin: kc.Array[kc.float3], direction: kc.Array[kc.float3],
    order: kc.Array[int], boxes: kc.Array[kc.float3, 2], depth: kc.Array[float],
):  # fmt: skip
    """The distance to the first triangle that a ray hits, 100 where there is none."""
    i = kc.tid()
    nearest = 100.0
    for f in kc.bvh_query_ray(order, boxes, origin[i], direction[i], 100.0):
        hit, t, u, v = kc.ray_triangle(origin[i], direction[i], x[faces[f, 0]], x[faces[f, 1]], x[faces[f, 2]])
        if hit and t < nearest:
            nearest = t
    depth[i] = nearest


@kc.kernel
def bound(x: kc.Array[kc.float3], faces: kc.Array[int, 2], lower: kc.Array[kc.float3], upper: kc.Array[kc.float3]):
    f = kc.tid()
    a, b, c = x[faces[f, 0]], x[faces[f, 1]], x[faces[f, 2]]
    lower[f] = kc.min(a, kc.min(b, c))
    upper[f] = kc.max(a, kc.max(b, c))


def random_boxes(seed, n, real, flat=False):
    rng = np.random.default_rng(seed)
    middle, half = rng.uniform(-3, 3, (n, 3)), rng.uniform(0, 1, (n, 3)) ** 3
    if flat:
        middle[:, 1], half[:, 1] = 0.5, 0.0
    return (middle - half).astype(real), (middle + half).astype(real)


def meeting(lower, upper):
    return ((lower[:, None] <= upper[None]) & (upper[:, None] >= lower[None])).all(axis=2)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 50), real=REALS, flat=st.booleans())
def test_a_query_visits_exactly_the_boxes_that_meet(seed, n, real, flat):
    lower, upper = random_boxes(seed, n, real, flat)
    tree = kc.Bvh(n).build(lower, upper)
    seen = np.zeros((n, n), np.int32)
    kc.launch(mark, n, [lower, upper, *tree.arrays], [seen])
    assert np.array_equal(seen, meeting(lower, upper))


@given(seed=st.integers(0, 10**6), n=st.integers(1, 30))
def test_a_tree_that_was_fitted_to_boxes_that_moved_is_right_as_well(seed, n):
    tree = kc.Bvh(n).build(*random_boxes(seed, n, np.float64))
    lower, upper = random_boxes(seed + 1, n, np.float64)
    tree.refit(lower, upper)
    seen = np.zeros((n, n), np.int32)
    kc.launch(mark, n, [lower, upper, *tree.arrays], [seen])
    assert np.array_equal(seen, meeting(lower, upper))


def hits(lower, upper, origin, direction, reach, margin):
    """Which rays meet which boxes, in double precision, with boxes grown by a margin."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = ((c[None] - origin[:, None]) / direction[:, None] for c in (lower - margin, upper + margin))
    inside = (lower[None] - margin <= origin[:, None]) & (origin[:, None] <= upper[None] + margin)
    zero = np.broadcast_to(direction[:, None] == 0, a.shape)
    near = np.where(zero, np.where(inside, -np.inf, np.inf), np.minimum(a, b)).max(axis=2)
    far = np.where(zero, np.where(inside, np.inf, -np.inf), np.maximum(a, b)).min(axis=2)
    return np.maximum(near, 0) <= np.minimum(far, reach)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), real=REALS, reach=st.sampled_from([1.0, 100.0]))
def test_a_ray_visits_every_box_that_it_meets_once(seed, n, real, reach):
    lower, upper = random_boxes(seed, n, real)
    rng = np.random.default_rng(seed)
    origin, direction = rng.uniform(-4, 4, (10, 3)).astype(real), rng.normal(size=(10, 3)).astype(real)
    direction[0], direction[1, :2] = (0, 0, 1), 0  # along the axes as well
    tree = kc.Bvh(n).build(lower, upper)
    seen = np.zeros((10, n), np.int32)
    kc.launch(mark_rays, 10, [origin, direction, reach, *tree.arrays], [seen])
    wide = [a.astype(float) for a in (lower, upper, origin, direction)]
    assert seen.max() <= 1
    assert seen[hits(*wide, reach, 0.0)].all()
    assert not seen[~hits(*wide, reach, 2e-4)].any()


def sphere():
    """A crumpled octahedron with its faces divided: 128 triangles."""
    x = [np.array(v, float) for v in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1))]
    faces = [(0, 1, 2), (1, 3, 2), (3, 4, 2), (4, 0, 2), (1, 0, 5), (3, 1, 5), (4, 3, 5), (0, 4, 5)]
    for _ in range(2):
        finer = []
        for a, b, c in faces:
            k = len(x)
            x += [(x[a] + x[b]) / 2, (x[b] + x[c]) / 2, (x[c] + x[a]) / 2]
            finer += [(a, k, k + 2), (k, b, k + 1), (k + 2, k + 1, c), (k, k + 1, k + 2)]
        faces = finer
    return np.array(x), np.array(faces, np.int32)


def test_the_depth_of_a_mesh_and_its_gradient_are_those_over_all_triangles():
    x0, faces = sphere()
    rng = np.random.default_rng(0)
    origin = np.array([[0, 0, 3.0]] * 20) + 0.02
    direction = np.stack([*rng.uniform(-0.4, 0.4, (2, 20)), -np.ones(20)], axis=1)
    m = len(faces)
    x = kc.array(x0, dtype=kc.float3, requires_grad=True)
    lower, upper = (kc.zeros(m, dtype=kc.float3, real=kc.float64) for _ in range(2))
    depth, tree = kc.zeros(20, real=kc.float64), kc.Bvh(m)
    with kc.Tape() as tape:
        kc.launch(bound, m, [x, faces], [lower, upper])
        tree.build(lower, upper)
        kc.launch(cast, 20, [x, faces, origin, direction, *tree.arrays], [depth])

    def brute(vertices):
        boxes, found = np.tile([[-1e9], [1e9]], (1, 3))[None], np.full(20, 100.0)
        for f in range(m):  # each triangle as a tree of one leaf that holds everything
            d = np.zeros(20)
            kc.launch(cast, 20, [vertices, faces, origin, direction, np.array([1, 1, f], np.int32), boxes], [d])
            found = np.minimum(found, d)
        return found

    for moved in (x0, 0.7 * x0 + 0.1):
        x.assign(moved)
        tape.replay()
        assert np.allclose(depth.numpy(), brute(moved), atol=1e-12) and (depth.numpy() < 100).any()
        tape.zero()
        tape.backward(grads={depth: np.ones(20)})
        step = rng.normal(size=x0.shape)
        slope = (brute(moved + 1e-6 * step).sum() - brute(moved - 1e-6 * step).sum()) / 2e-6
        assert np.isclose((x.grad.numpy() * step).sum(), slope, rtol=1e-4)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_devices_agree_and_python_runs_the_same_loop(device):
    lower, upper = random_boxes(3, 11, np.float64)
    tree = kc.Bvh(11).build(lower, upper)
    seen = np.zeros((11, 11), np.int32)
    kc.launch(mark, 11, [lower, upper, *tree.arrays], [seen], device=device)
    order, boxes = (a.numpy() for a in tree.arrays)
    for i in range(11):
        found = sorted(int(j) for j in kc.bvh_query(order, boxes, lower[i], upper[i]))
        assert found == list(np.flatnonzero(seen[i]))


def test_neighbours_stand_side_by_side_in_the_tree():
    """Else queries are right, but slow: of a line of items, shuffled, the tree has the order of the line."""
    x = np.zeros((64, 3))
    x[:, 0] = np.random.default_rng(0).permutation(64)
    tree = kc.Bvh(64).build(x - 0.1, x + 0.1)
    assert np.array_equal(x[tree.order.numpy()[2:], 0], np.arange(64))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kc.Bvh(0), "from 1 on, not 0"),
        (lambda: kc.Bvh(2).build(np.zeros((2, 3)), np.zeros((3, 3))), "upper has 3 elements, and the table is for 2"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(kc.KernelError, match=words):
        call()


@given(
    seed=st.integers(0, 10**6), n=st.integers(2, 20), real=REALS, odd=st.sampled_from([np.nan, np.inf, -np.inf]),
    device=st.sampled_from(["cpu", "cpu", "python"]), refit=st.booleans(),
)  # fmt: skip
def test_one_item_that_is_lost_loses_no_other(seed, n, real, odd, device, refit):
    """NaN anywhere in a box went up to the root, and no query met anything."""
    rng, (lower, upper) = np.random.default_rng(seed), random_boxes(seed, n, real)
    before = kc.config.device
    try:
        kc.config.device = device
        tree = kc.Bvh(n).build(lower, upper)
        for corner in (lower, upper):
            corner[rng.random(n) < 0.3, rng.integers(3)] = odd
        tree = tree.refit(lower, upper) if refit else tree.build(lower, upper)
        seen = np.zeros((n, n), np.int32)
        kc.launch(mark, n, [lower, upper, *tree.arrays], [seen])
    finally:
        kc.config.device = before
    assert np.array_equal(seen, meeting(lower, upper).astype(np.int32))
