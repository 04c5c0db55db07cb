"""Declarations of structs: defaults, inheritance, members that may be absent; what a struct cannot be."""

from typing import Optional

import numpy as np
import pytest

import kernelc as kc


@kc.struct
class Material:
    stiffness: float = 2.5
    count: int = 3
    hard: bool = True
    axis: kc.float3 = kc.float3(1.0, 2.0, 3.0)
    turn: kc.mat22 = ((1.0, 2.0), (3.0, 4.0))
    rest: float


@kc.struct
class Body:
    material: Material
    mass: float


@kc.struct
class Bodies:
    x: kc.Array[float]
    gain: float = 4.0
    wind: kc.Array[float] | None = None


@kc.struct
class Driven(Bodies):
    force: kc.Array[float]
    gain: float = 5.0


@kc.kernel
def read(made: kc.Array[float]):
    b = Body(mass=7.0)
    m = Material(stiffness=1.0)
    made[0] = b.material.stiffness + float(b.material.count)
    made[1] = m.stiffness if b.material.hard else 0.0
    made[2] = b.material.turn[1, 0] + b.material.axis.z
    made[3] = b.material.rest


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_fields_that_are_not_given_have_their_default(device):
    made = kc.zeros(4)
    kc.launch(read, 1, [], [made], device=device)
    outside = Body(mass=7.0).material
    assert made.tolist() == [5.5, 1.0, 6.0, 0.0]
    assert (outside.stiffness, outside.count, bool(outside.hard), outside.rest) == (2.5, 3, True, 0.0)
    assert np.array_equal(outside.turn, [[1, 2], [3, 4]]) and np.array_equal(outside.axis, [1, 2, 3])


@kc.kernel
def scaled(b: Bodies, y: kc.Array[float]):
    i = kc.tid()
    y[i] = b.gain * b.x[i]
    if b.wind is not None:
        y[i] += b.wind[i]


@kc.kernel
def driven(b: Driven, y: kc.Array[float]):
    i = kc.tid()
    y[i] = b.gain * b.x[i] + b.force[i]


def test_bundles_have_defaults_and_inherit():
    x, y = kc.ones(2), kc.zeros(2)
    kc.launch(scaled, 2, [Bodies(x=x)], [y])
    assert y.tolist() == [4.0, 4.0]
    kc.launch(driven, 2, [Driven(x=x, force=x)], [y])
    assert y.tolist() == [6.0, 6.0]
    assert Driven.names == ("x", "gain", "wind", "force")
    assert isinstance(Driven(x=x, force=x), Bodies) and not isinstance(Bodies(x=x), Driven)
    assert not isinstance(3.0, Bodies)


def test_structs_that_differ_in_defaults_alone_are_two():
    def declare(value):
        @kc.struct
        class Same:
            a: float = value
            b: float

        @kc.kernel
        def k(y: kc.Array[float]):
            y[0] = Same(b=1.0).a

        return k

    for value in (1.0, 2.0, 1):
        y = kc.zeros(1)
        kc.launch(declare(value), 1, [], [y])
        assert y.item() == value


def test_optional_is_another_spelling():
    @kc.struct
    class Spelled:
        x: kc.Array[float]
        wind: Optional[kc.Array[float]]  # noqa: UP045

    assert Spelled(x=kc.zeros(1)).wind is None


REFUSED = {
    "the default of A.x is 'a', which is no float": {"x": (float, "a")},
    "the default of A.x is 2.5, which is no int32": {"x": (int, 2.5)},
    "the default of A.x is 300, which is no uint8": {"x": (kc.uint8, 300)},
    "the default of A.x is (1.0, 2.0), which is no float3": {"x": (kc.float3, (1.0, 2.0))},
    "the default of A.x is None, which is no Array[float, 1]": {"x": (kc.Array[float], None)},
    "float | None: only arrays, and structs that hold some, may be absent": {"x": (float | None, None)},
    "@kc.struct A has the method energy(): structs have fields only": {"x": (float, 0.0), "energy": (None, None)},
    "'limit' of @kc.struct A has a value, but no type: it is no field": {"x": (float, 0.0), "limit": (None, 3.0)},
    "'x' of @kc.struct A is a tuple, which no field can be": {"x": (tuple[kc.Array[float], kc.Array[float]], ())},
    "@kc.struct A: a type cannot be evaluated: name 'A' is not defined": {"x": ("A", None)},
    "@kc.struct A: a type cannot be evaluated: name 'Unknown' is not defined": {"x": ("Unknown", None)},
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_a_struct_cannot_have_is_said(text):
    def energy(self):
        return self.x

    fields = REFUSED[text]
    body = {name: energy if name == "energy" else value for name, (_, value) in fields.items()}
    body["__annotations__"] = {name: kind for name, (kind, _) in fields.items() if kind is not None}
    with pytest.raises(kc.WrongType) as caught:
        kc.struct(type("A", (), body))
    assert text in str(caught.value)


def test_arrays_hold_no_arrays_and_no_bundles():
    for element in (kc.Array[float], Bodies):
        with pytest.raises(kc.WrongType, match="an array holds values, not arrays or bundles of them"):
            kc.Array[element]


def test_a_field_is_given_once():
    with pytest.raises(kc.WrongUse, match="Body gets mass twice"):
        Body(Material(), 1.0, mass=2.0)


def test_a_type_in_the_place_of_a_bundle_is_said():
    @kc.kernel
    def k(b: Bodies):
        b.x[0] = 1.0

    with pytest.raises(kc.WrongDtype, match="argument 'b' must be a Bodies, not the type Bodies itself"):
        kc.launch(k, 1, [], [Bodies])
