"""kc.testing: what a user writes to test a kernel of their own."""

import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import kernelc as kc
from kernelc.structs import StructValue


@kc.struct
class Body:
    mass: float
    x: kc.float3
    q: kc.quat
    parent: int


@kc.kernel
def turn(x: kc.Array[kc.float3], q: kc.Array[kc.quat], k: float, out: kc.Array[kc.float3]):
    i = kc.tid()
    out[i] = kc.quat_rotate(q[i], x[i]) * k


@kc.func
def square(a: float) -> float:
    return a * a


@square.adjoint
def _(a, adj_out):
    return adj_out * a  # half of what it should be


@kc.kernel
def squares(x: kc.Array[kc.float3], out: kc.Array[kc.float3]):
    i = kc.tid()
    v = x[i]
    v.y = square(v.y) + v.x
    out[i] = v


@kc.kernel
def energies(bodies: kc.Array[Body], out: kc.Array[float]):
    i = kc.tid()
    b = bodies[i]
    out[i] = b.mass * kc.dot(b.x, b.x) + b.q.w * float(b.parent)


@kc.kernel
def decay(x: kc.Array[float], n: int):
    i = kc.tid()
    for _ in range(n):
        x[i] = 0.5 * x[i] + kc.sin(x[i])


@kc.kernel
def magnitudes(v: kc.Array[kc.float3], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.length(v[i]) + kc.max(v[i].x, v[i].y) + kc.abs(v[i].z)


@kc.kernel
def jump(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = 3.0 + x[i] if x[i] < 0.0 else x[i] * x[i]


@kc.kernel
def pinned(x: kc.Array[kc.float32], out: kc.Array[kc.float32]):
    i = kc.tid()
    out[i] = x[i] * x[i]


def points(n, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(dtype)


# -- gradcheck
@given(x=kc.testing.arrays(kc.float3, 5), q=kc.testing.arrays(kc.quat, 5))
def test_a_new_kernel_is_tested_in_three_lines(x, q):
    kc.testing.gradcheck(turn, 5, [x, q, 2.0], [kc.zeros_like(x)])


def test_the_worst_entry_is_named():
    x = points(3)
    with pytest.raises(kc.testing.GradientMismatch, match=r"KC601.* d out\[\d\]\.y / d x\[\d\]\.y is ") as caught:
        kc.testing.gradcheck(squares, 3, [x], [np.zeros((3, 3), np.float32)])
    error = caught.value
    worst = int(np.argmax(np.abs(x[:, 1])))
    assert (error.of, error.wrt) == (f"out[{worst}].y", f"x[{worst}].y")
    assert error.differences == pytest.approx(2 * x[worst, 1], rel=1e-6)
    assert error.adjoint == pytest.approx(x[worst, 1], rel=1e-12)
    assert isinstance(error, kc.KernelError) and isinstance(error, AssertionError) and "help" in error.__notes__[0]


def test_without_an_exception_it_returns_false():
    assert not kc.testing.gradcheck(squares, 3, [points(3)], [np.zeros((3, 3))], raise_exception=False)
    assert kc.testing.gradcheck(squares, 3, [points(3) * [1, 0, 1]], [np.zeros((3, 3))], raise_exception=False)


def test_the_arrays_of_the_caller_stay_as_they_are():
    data = points(4)
    x, out = kc.array(data.copy(), dtype=kc.float3, requires_grad=True), kc.ones(4, dtype=kc.float3)
    q = np.tile(np.array([0, 0, 0, 1], np.float32), (4, 1))
    kc.testing.gradcheck(turn, 4, [x, q, 2.0], [out])
    assert x.dtype == kc.vec(3, kc.float32) and np.array_equal(x.numpy(), data) and not x.grad.numpy().any()
    assert (out.numpy() == 1).all() and out.version == 0 and out.grad is None
    weak = kc.array([0.5, 1.5])
    kc.testing.gradcheck(decay, 2, [weak, 3])
    assert weak.numpy().tolist() == [0.5, 1.5] and weak.dtype is kc.float32


def test_updates_in_place_are_checked_by_what_was_there_before():
    assert kc.testing.gradcheck(decay, 3, [np.array([0.1, 0.7, 1.9]), 5])
    J = kc.testing.jacobian(decay, 1, [np.array([0.4]), 1], wrt="x", of="x")
    np.testing.assert_allclose(J, [[0.5 + np.cos(0.4)]])


def test_numbers_and_chosen_arguments_can_be_checked():
    args = [points(2), np.array([[0, 0, 0, 1.0]] * 2), 2.0], [np.zeros((2, 3))]
    assert kc.testing.gradcheck(turn, 2, *args, wrt=["k", 0])
    with pytest.raises(kc.WrongChoice, match="'z' is no argument of turn") as caught:
        kc.testing.gradcheck(turn, 2, *args, wrt=["z"])
    assert caught.value.advice == "it has x, q, k, out"
    with pytest.raises(kc.WrongDtype, match="n holds no reals"):
        kc.testing.gradcheck(decay, 1, [np.ones(1), 2], wrt=["n"])


def test_a_program_of_several_launches_is_checked_as_a_function():
    def program(x, q, out):
        middle = kc.zeros_like(x)
        kc.launch(turn, 3, [x, q, 0.5], [middle])
        kc.launch(turn, 3, [middle, q, 3.0], [out])

    x, q = points(3, np.float64), np.random.default_rng(1).normal(size=(3, 4))
    arrays = [kc.array(x, dtype=kc.float3), kc.array(q, dtype=kc.quat)]
    out = kc.zeros(3, dtype=kc.float3)
    assert kc.testing.gradcheck(program, None, arrays, [out])
    J = kc.testing.jacobian(program, None, arrays, [out], wrt="x", of="out")
    np.testing.assert_allclose(np.einsum("aibj,bj->ai", J, x), _twice(x, q), rtol=1e-12)


def _twice(x, q):
    out = kc.zeros(3, dtype=kc.float3, real=kc.float64)
    kc.launch(turn, 3, [x, q, 0.5], [out])
    x = out.numpy().copy()
    kc.launch(turn, 3, [x, q, 3.0], [out])
    return out.numpy()


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_it_runs_on_every_device(device):
    assert kc.testing.gradcheck(decay, 2, [np.array([0.3, 0.9]), 4], device=device)


@given(kc.testing.arrays(kc.float3, 3, resolution=0.5))
def test_at_a_kink_any_slope_between_the_sides_is_right(v):
    kc.testing.gradcheck(magnitudes, 3, [v], [np.zeros(3)])


def test_at_a_jump_the_slope_of_the_side_that_ran_is_right():
    assert kc.testing.gradcheck(jump, 3, [np.array([-1.0, 0.0, 2.0])], [np.zeros(3)])


def test_single_precision_that_a_kernel_pins_is_checked_coarsely():
    assert kc.testing.gradcheck(pinned, 3, [np.array([0.1, 1.0, 3.0], np.float32)], [np.zeros(3, np.float32)])


# -- jacobian
@given(x=kc.testing.arrays(kc.float3, 2), q=kc.testing.arrays(kc.quat, 2))
def test_the_jacobian_of_a_rotation_is_its_matrix(x, q):
    J = kc.testing.jacobian(turn, 2, [x, q, 1.0], [kc.zeros_like(x)], wrt="x", of="out")
    assert J.shape == (2, 3, 2, 3)
    for i in range(2):
        np.testing.assert_allclose(J[i, :, i] @ J[i, :, i].T, np.eye(3), atol=1e-12)
        assert not J[i, :, 1 - i].any()


def test_the_jacobian_of_structs_counts_their_reals():
    bodies = kc.zeros(2, dtype=Body, real=kc.float64).numpy()
    bodies["mass"], bodies["x"], bodies["parent"] = [2.0, 3.0], [[1, 2, 3], [4, 5, 6]], [7, 8]
    J = kc.testing.jacobian(energies, 2, [kc.array(bodies, dtype=Body)], [np.zeros(2)], wrt="bodies", of="out")
    assert J.shape == (2, 2, 8)
    np.testing.assert_allclose(J[0, 0], [14, 4, 8, 12, 0, 0, 0, 7])
    np.testing.assert_allclose(J[1, 1], [77, 24, 30, 36, 0, 0, 0, 8])
    assert not J[0, 1].any()


# -- strategies
@given(kc.testing.arrays(Body, st.integers(0, 4), fields={"mass": {"min_value": 0.1}, "parent": {"max_value": 3}}))
def test_structs_have_valid_fields(bodies):
    data = bodies.numpy()
    assert data.dtype["mass"] == np.float64 and len(bodies) <= 4
    assert (data["mass"] >= 0.1).all() and (data["parent"] <= 3).all() and (np.abs(data["x"]) <= 2).all()
    np.testing.assert_allclose(np.linalg.norm(data["q"], axis=-1), 1, rtol=1e-12)
    kc.testing.gradcheck(energies, len(bodies), [bodies], [np.zeros(len(bodies))])


@given(kc.testing.arrays(kc.transform, (2, 3), real=kc.float32, max_value=1))
def test_transforms_are_rigid(t):
    assert t.shape == (2, 3) and t.dtype == kc.transform.with_scalar(kc.float32)
    np.testing.assert_allclose(np.linalg.norm(t.numpy()[..., 3:], axis=-1), 1, rtol=1e-6)
    assert (t.numpy()[..., :3] <= 1).all()


@given(st.data())
@pytest.mark.parametrize("dtype", [float, int, bool, kc.int64, kc.uint32, kc.float32, kc.int3, kc.mat(2, 3), kc.mat44,
                                   kc.vec(7), kc.quat, kc.transform, kc.spatial_matrix, Body], ids=repr)  # fmt: skip
def test_there_are_values_and_arrays_of_every_type(dtype, data):
    array = data.draw(kc.testing.arrays(dtype, 2))
    assert len(array) == 2 and (array.real in (None, kc.float64) or dtype is kc.float32)
    value = data.draw(kc.testing.values(dtype))
    if not isinstance(value, StructValue):
        assert np.shape(value) == array.numpy().shape[1:]


@given(kc.testing.scalars(float, min_value=5), kc.testing.scalars(float, max_value=-5, resolution=None),
       kc.testing.vectors(2, int, min_value=-3, max_value=-1), kc.testing.matrices(2, 3), kc.testing.quaternions(),
       kc.testing.transforms(min_value=1, max_value=2), kc.testing.structs(Body))  # fmt: skip
def test_ranges_are_kept(above, below, ints, matrix, q, t, body):
    assert 5 <= above <= 9 and -9 <= below <= -5 and set(ints) <= {-3, -2, -1}
    assert matrix.shape == (2, 3) and np.linalg.norm(q) == pytest.approx(1)
    assert (t[:3] >= 1).all() and (t[:3] <= 2).all() and 0 <= body.parent <= 9


def test_without_hypothesis_only_the_strategies_are_missing():
    program = """
import sys
sys.modules["hypothesis"] = None
import kernelc as kc
kc.testing.gradcheck
try:
    kc.testing.arrays(float, 3)
except ImportError as error:
    assert isinstance(error, kc.KernelError)
    print(error, error.advice)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "kc.testing.arrays needs Hypothesis" in found and "pip install hypothesis" in found
