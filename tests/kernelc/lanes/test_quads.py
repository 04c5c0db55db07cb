"""Elements of four numbers and more: lanes read and write four of them at a time, and find what threads alone find."""

import numpy as np
import pytest

import kernelc as kc
from kernelc.codegen.lanes import header

vec5, vec12 = kc.vec(5), kc.vec(12)


@kc.struct
class Inner:
    a: kc.float32
    b: kc.float32
    c: kc.float32
    d: kc.float64


@kc.struct
class Apart:
    """The numbers of `inner` begin behind a gap."""

    first: kc.float32
    inner: Inner


@kc.kernel
def mix(at: kc.Array[int], q: kc.Array[kc.quat], five: kc.Array[vec5], m: kc.Array[kc.mat44], s: kc.Array[Apart],
        copied: kc.Array[Apart], own: kc.Array[vec12], sums: kc.Array[vec12], turned: kc.Array[kc.quat],
        kept: kc.Array[vec12], placed: kc.Array[kc.mat44]):  # fmt: skip
    i = kc.tid()
    k = at[i]
    r = q[k] * q[i]
    long = own[i] * five[k][0] + own[k] * (five[k][4] * m[k][3, 1])
    copied[i] = s[k]
    turned[i] = r
    kc.atomic_add(sums, k, long * r.x)
    kept[i] += long
    if i % 3 != 1:
        placed[k] = m[i] * 2.0


REALS = {"q": kc.quat, "five": vec5, "m": kc.mat44, "own": vec12, "sums": vec12, "turned": kc.quat, "kept": vec12,
         "placed": kc.mat44}  # fmt: skip


def run(n, real, strided):
    """Values, five tangents and gradients."""
    rng, step, leaves = np.random.default_rng(n), 2 if strided else 1, ("q", "five", "m", "own")
    arrays = {}
    for name, kind in REALS.items():
        data = rng.normal(size=(n * step, *kind.shape)).astype(real)
        arrays[name] = kc.array(data[::step], dtype=kind, requires_grad=name in leaves)
    structs, copied = kc.zeros(n, dtype=Apart), kc.zeros(n, dtype=Apart)
    structs.numpy()["first"] = rng.normal(size=n)
    for field in "abcd":
        structs.numpy()["inner"][field] = rng.normal(size=n)
    at, (q, five, m, *rest) = rng.permutation(n).astype(np.int32), arrays.values()
    with kc.Tape() as tape:
        kc.launch(mix, n, [at, q, five, m, structs, copied, *rest])
    assert copied.numpy().tolist() == structs.numpy()[at].tolist()
    out = [arrays[k] for k in ("sums", "turned", "kept", "placed")]
    moved = tape.jvp({arrays[k]: rng.normal(size=(5, *arrays[k].numpy().shape)) for k in leaves}, out)
    tape.backward(grads={a: rng.normal(size=a.numpy().shape) for a in out})
    return [a.numpy() for a in (*out, *moved.values(), *(arrays[k].grad for k in leaves))]


@pytest.mark.parametrize(("real", "strided"), [(np.float32, True), (np.float64, False)])
@pytest.mark.parametrize("n", [7, 37])
def test_lanes_compute_what_threads_alone_compute(n, real, strided, monkeypatch):
    lanes = run(n, real, strided)
    monkeypatch.setattr(kc.config, "lanes", 0)
    for found, alone in zip(lanes, run(n, real, strided), strict=True):
        close = (1e-13 if real is np.float64 else 1e-5) * abs(alone).max()
        np.testing.assert_allclose(found, alone, rtol=0, atol=close)


def test_quads_are_used():
    text = mix.variant(kc.float64).code("forward", frozenset(), frozenset(range(11)), 8).text
    assert "kc_load4(" in text and "kc_store4_own<12>" in text and "kc_quads(" in text


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_four_zeros_need_the_type_that_they_are_stored_as(name):
    """Nothing else of a kernel need be of that precision: a tangent of a constant is all zeros."""
    text = f"{name}_quad m[2]; kc_quads(m, zero, zero, zero, zero);"
    assert f"#define KC_WITH_{name.upper()} 1" in header([text], [2], False)
