"""Structs: arrays of them are NumPy's structured arrays; single ones are arguments."""

import numpy as np
import pytest

import kernelc as kc


@kc.struct
class Particle:
    x: kc.float3
    mass: float
    kind: int


@kc.struct
class Material:
    k: float
    rest: float
    axis: kc.float3


@kc.struct
class Pair:
    left: Material
    right: Material


@kc.kernel
def energy(p: kc.Array[Particle], e: kc.Array[float]):
    i = kc.tid()
    e[i] = p[i].mass * kc.dot(p[i].x, p[i].x) * float(p[i].kind)


@kc.kernel
def move(p: kc.Array[Particle], v: kc.Array[kc.float3]):
    i = kc.tid()
    q = p[i]
    q.x = q.x + v[i] * q.mass
    p[i] = q


@kc.kernel
def spring(x: kc.Array[kc.float3], m: Material, e: kc.Array[float]):
    i = kc.tid()
    s = kc.dot(x[i], m.axis) - m.rest
    e[i] = 0.5 * m.k * s * s


@kc.kernel
def both(pair: Pair, e: kc.Array[float]):
    e[0] = pair.left.k * pair.right.rest + pair.right.axis.y


def packed(real, n=3):
    """Data as NumPy would lay it out: no padding, other order of the fields."""
    made = np.zeros(n, [("kind", np.int64), ("mass", real), ("x", real, 3)])
    made["x"] = np.arange(3 * n).reshape(n, 3) + 1
    made["mass"] = np.arange(n) + 0.5
    made["kind"] = np.arange(n) + 1
    return made


def expected_energy(data):
    return data["mass"] * (data["x"] ** 2).sum(axis=1) * data["kind"]


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_fields_are_taken_by_name_and_precision(real):
    data = packed(real)
    p, e = kc.array(data, dtype=Particle), kc.zeros(3, real=kc.float64 if real is np.float64 else None)
    assert p.real.numpy == real and p.shape == (3,)
    np.testing.assert_array_equal(p.numpy()["x"], data["x"])
    kc.launch(energy, 3, [p], [e])
    np.testing.assert_allclose(e.numpy(), expected_energy(data), rtol=1e-6)


def test_an_array_with_the_right_layout_is_shared():
    p = kc.zeros(3, dtype=Particle, real=kc.float64)
    again = kc.array(p.numpy(), dtype=Particle)
    assert np.shares_memory(again.numpy(), p.numpy())
    p.numpy()["mass"] = 2.0
    p.numpy()["x"] = 1.0
    p.numpy()["kind"] = 1
    e = kc.zeros(3, real=kc.float64)
    kc.launch(energy, 3, [again], [e])
    np.testing.assert_array_equal(e.numpy(), [6, 6, 6])


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_gradients_of_struct_arrays(real):
    data = packed(real)
    p, e = kc.array(data, dtype=Particle, requires_grad=True), kc.array(np.zeros(3, real))
    with kc.Tape() as tape:
        kc.launch(energy, 3, [p], [e])
    tape.backward(grads={e: np.ones(3)})
    g = p.grad.numpy()
    np.testing.assert_allclose(g["x"], 2 * (data["mass"] * data["kind"])[:, None] * data["x"], rtol=1e-6)
    np.testing.assert_allclose(g["mass"], (data["x"] ** 2).sum(axis=1) * data["kind"], rtol=1e-6)
    assert (g["kind"] == 0).all()


def test_struct_arrays_written_in_place_and_seeded():
    data = packed(np.float64)
    p, v = kc.array(data, dtype=Particle), kc.array(np.ones((3, 3)), requires_grad=True)
    with kc.Tape() as tape:
        kc.launch(move, 3, [p, v])
    np.testing.assert_array_equal(p.numpy()["x"], data["x"] + data["mass"][:, None])
    seeds = np.zeros(3, p.numpy().dtype)
    seeds["x"] = np.arange(9.0).reshape(3, 3)
    tape.backward(grads={p: seeds})
    np.testing.assert_array_equal(v.grad.numpy(), seeds["x"] * data["mass"][:, None])


def test_struct_leaves_accumulate_and_clear():
    p, e = kc.array(packed(np.float64), dtype=Particle, requires_grad=True), kc.zeros(3, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(energy, 3, [p], [e])
    tape.backward(grads={e: np.ones(3)})
    once = p.grad.numpy()["mass"].copy()
    tape.backward(grads={e: np.ones(3)})
    np.testing.assert_array_equal(p.grad.numpy()["mass"], 2 * once)
    tape.zero()
    assert (p.grad.numpy()["mass"] == 0).all() and (p.grad.numpy()["x"] == 0).all()


def test_wrong_fields_are_refused():
    with pytest.raises(kc.WrongDtype, match="fields"):
        kc.array(np.zeros(3, [("x", np.float32, 3), ("weight", np.float32)]), dtype=Particle)
    with pytest.raises(kc.WrongDtype, match="dtype="):
        kc.array(packed(np.float32))
    with pytest.raises(kc.WrongDtype):
        kc.array(np.zeros(3), dtype=Particle)
    with pytest.raises(kc.WrongDtype, match="torch has no tensors"):
        pytest.importorskip("torch")
        kc.zeros(3, dtype=Particle).torch()


# -- values
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_struct_values_are_arguments(real):
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(real)
    e = np.zeros(4, real)
    m = Material(k=3.0, rest=0.25, axis=[0.0, 1.0, 2.0])
    kc.launch(spring, 4, [x, m], [e])
    np.testing.assert_allclose(e, 1.5 * (x @ [0, 1, 2] - 0.25) ** 2, rtol=1e-5)


def test_struct_values_change_between_launches():
    x, e = np.ones((1, 3)), np.zeros(1)
    m = Material(k=1.0, axis=[1, 1, 1])
    for k in (1.0, 2.0):
        m.k = k
        kc.launch(spring, 1, [x, m], [e])
        assert e[0] == 4.5 * k


def test_gradients_of_a_struct_value_by_an_array_of_one():
    x, e = kc.array(np.ones((1, 3)), requires_grad=True), kc.zeros(1, real=kc.float64)
    data = np.zeros(1, [("k", float), ("rest", float), ("axis", float, 3)])
    data["k"], data["rest"], data["axis"] = 2.0, 0.5, 1.0
    m = kc.array(data, dtype=Material, requires_grad=True)
    with kc.Tape() as tape:
        kc.launch(spring, 1, [x, m], [e])
    tape.backward(e)
    g = m.grad.numpy()[0]
    assert g["k"] == 0.5 * 2.5**2 and g["rest"] == -2.0 * 2.5
    np.testing.assert_array_equal(g["axis"], [5, 5, 5])
    np.testing.assert_array_equal(x.grad.numpy(), [[5, 5, 5]])


def test_structs_in_structs():
    pair = Pair(left=Material(k=2.0), right=Material(rest=3.0, axis=[0, 7, 0]))
    e = kc.zeros(1)
    kc.launch(both, 1, [pair], [e])
    assert float(e) == 13.0


def test_wrong_structs_are_refused():
    e = np.zeros(1)
    for wrong in (Pair(), 3.0, {"k": 1.0}):
        with pytest.raises(kc.WrongDtype, match="'m'"):
            kc.launch(spring, 1, [np.ones((1, 3)), wrong], [e])
    with pytest.raises(TypeError, match="fields"):
        Material(stiffness=1.0)


@kc.struct
class Mixed:
    n: int
    a: float
    b: bool
    v: kc.float3


@kc.kernel
def told(m: Mixed, y: kc.Array[float]):
    y[0] = float(m.n) + m.a + m.v.x if m.b else 0.0


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize(("field", "value"), [
    ("n", 1.5), ("n", 2**40), ("n", "1"), ("n", np.timedelta64(3, "s")), ("a", "1"), ("a", 1j), ("a", None),
    ("a", np.ones(3)), ("b", 2), ("b", "x"), ("b", None), ("b", 0.5), ("v", [1, 2]), ("v", ["1", "2", "3"]),
    ("v", np.ones(3) * 1j), ("v", 1.0),
], ids=repr)  # fmt: skip
def test_a_field_that_is_no_number_of_its_type_is_named(device, field, value):
    """By name and content; 2 was true, "x" too, and 1.5 was 1 where the interpreter ran."""
    y = kc.full(4, 7.0)
    for _ in range(2):
        with pytest.raises(kc.WrongDtype, match=rf"argument 'm.{field}' is .*, which does not fit"):
            kc.launch(told, 1, [Mixed(**{"b": True, field: value})], [y], device=device)
    np.testing.assert_array_equal(y.numpy(), 7.0)


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.array([1.0, 2, 3], mask=[0, 1, 0])])
def test_a_masked_field_is_refused(value):
    with pytest.raises(kc.WrongDtype, match="masked"):
        kc.launch(told, 1, [Mixed(**{"v" if value.shape else "a": value})], [kc.zeros(4)])
