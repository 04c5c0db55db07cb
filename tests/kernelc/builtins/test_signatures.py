"""The mini-language of signatures: what it parses, what it accepts, how it reads in messages."""

import pytest

from kernelc import types as t
from kernelc.builtins import TABLE
from kernelc.builtins.signatures import Pattern, bind, bind_values, candidates, describe, instantiate, match, parse

V2, V3, V3D = t.Vec(2, t.FLOAT32), t.Vec(3, t.FLOAT32), t.Vec(3, t.FLOAT64)
M23, M33 = t.Mat(2, 3, t.FLOAT32), t.Mat(3, 3, t.FLOAT32)
Q, T = t.Quat(t.FLOAT32), t.Transform(t.FLOAT32)
F, I, U, B = t.FLOAT32, t.INT32, t.UINT32, t.BOOL


def test_sizes_are_glued_or_apart():
    assert parse("vec3 -> mat33").params == parse("vec 3 -> mat 3 3").params == (Pattern("vec", (3,)),)
    assert parse("-> quat").params == ()
    assert parse("vec n[2], vec2 -> vec n").params[0] == Pattern("vec", ("n",), 2)


@pytest.mark.parametrize("text", ["vec -> real", "mat3 -> real", "float -> real", "vec n m -> real", "quat4 -> real"])
def test_nonsense_is_refused(text):
    with pytest.raises(ValueError, match="signature"):
        parse(text)


@pytest.mark.parametrize(
    ("signature", "types"),
    [
        ("vec n, vec n -> real", (V3, V3)),
        ("vec n -> real", (V3D,)),
        ("vec3, real -> quat", (V3, F)),
        ("vec3, real -> quat", (V3, I)),
        ("int, int, int -> real", (I, U, t.INT64)),
        ("mat r c, mat r c -> real", (M23, M23)),
        ("vec r, vec c -> mat r c", (V2, V3)),
        ("mat n n -> real", (M33,)),
        ("quat, vec3 -> vec3", (Q, V3)),
        ("transform -> vec3", (T,)),
        ("-> quat", ()),
        ("real[1], real -> int", (t.ArrayType(F, 1), F)),
        ("vec n[2], vec2 -> vec n", (t.ArrayType(V3, 2), V2)),
    ],
)
def test_what_fits(signature, types):
    assert match(signature, types)


@pytest.mark.parametrize(
    ("signature", "types"),
    [
        ("vec n, vec n -> real", (V3,)),  # arity
        ("vec n, vec n -> real", (V3, V3, V3)),
        ("vec n, vec n -> real", (V2, V3)),  # one letter, two sizes
        ("mat n n -> real", (M23,)),
        ("vec3 -> real", (V2,)),
        ("vec n -> real", (F,)),
        ("vec n -> real", (Q,)),
        ("vec n -> real", (M33,)),
        ("vec n -> real", (t.Vec(3, t.INT32),)),  # reals only
        ("real -> real", (V3,)),
        ("real -> real", (B,)),
        ("int, int, int -> real", (I, I, F)),
        ("quat -> real", (t.Vec(4, F),)),
        ("quat -> real", (T,)),
        ("real[1], real -> int", (F, F)),
        ("real[1], real -> int", (t.ArrayType(F, 2), F)),
        ("real[1], real -> int", (t.ArrayType(I, 1), F)),  # memory is not converted
        ("real -> real", (t.ArrayType(F, 1),)),
    ],
)
def test_what_does_not_fit(signature, types):
    assert not match(signature, types)


def test_letters_are_bound_and_put_back():
    assert bind("vec r, vec c -> mat r c", (V2, V3)) == {"r": 2, "c": 3}
    assert instantiate(parse("vec r, vec c -> mat r c").results[0], {"r": 2, "c": 3}) == t.Mat(2, 3)
    assert bind_values("quat, vec n, real -> quat", ([0, 0, 0, 1], [1, 2, 3], 0.5)) == {"n": 3}
    assert bind_values("quat, vec3 -> vec3", ([0, 0, 0, 1], [1, 2])) is None


def test_messages_name_parameters():
    assert candidates(TABLE.rows["length"]) == ("length(v: vec n) -> real", "length(v: quat) -> real")
    assert candidates(TABLE.rows["svd3"]) == ("svd3(m: mat33) -> (mat33, vec3, mat33)",)
    assert describe(TABLE.rows["texture_clamp"]).splitlines()[0] == "texture_clamp(texture: real[2], uv: vec2) -> real"
