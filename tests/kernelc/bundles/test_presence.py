"""Optional members: what is absent decides conditions while compiling, and is an error anywhere else."""

from types import SimpleNamespace

import numpy as np
import pytest

import kernelc as kc


@kc.struct
class Air:
    x: kc.Array[float]
    wind: kc.Array[float] | None
    rain: kc.Array[float] | None


NOTHING = None


@kc.func
def blown(wind, i, scale=None):
    if wind is None:
        return 0.0
    return wind[i] if scale is None else wind[i] * scale


@kc.kernel
def conditions(a: Air, n: int, out: kc.Array[float]):
    i = kc.tid()
    t = a.x[i]
    if a.wind is None:
        t += 1.0
    else:
        t += a.wind[i]
    if not a.wind is None:  # noqa: E714
        t += 2.0 * a.wind[i]
    if n > 0 and a.wind is not None and a.rain is not None:
        t += 4.0 * a.wind[i] * a.rain[i]
    if blown(a.wind, i) > 0.0 and blown(a.rain, i, 2.0) > 0.0 and not (a.wind is None or a.rain is None):
        t += 8.0 * a.wind[i] * a.rain[i]
    if (n > 100 and a.rain is not None) or a.wind is not None:
        t += 16.0
    while a.rain is not None and t < 100.0:
        t += 32.0 * (1.0 + a.rain[i])
    t += a.wind[i] if a.wind is not None else a.rain[i] if a.rain is not None else 64.0
    t += blown(a.rain, i) + blown(None, i) + (0.0 if NOTHING is None else 128.0)
    for _ in range(n):
        if a.rain is None:
            continue
        t += a.rain[i]
    out[i] = t


def in_python(a, n, i):
    """The kernel as plain Python reads it."""
    out = {}
    tid, kc.tid = kc.tid, lambda: i
    try:
        conditions.source.function(a, n, out)
    finally:
        kc.tid = tid
    return out[i]


@pytest.mark.parametrize("rain", [False, True])
@pytest.mark.parametrize("wind", [False, True])
def test_conditions_mean_what_python_means(wind, rain):
    data = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4))
    a = Air(kc.array(data[0]), kc.array(data[1]) if wind else None, kc.array(data[2]) if rain else None)

    plain = SimpleNamespace(x=data[0], wind=data[1] if wind else None, rain=data[2] if rain else None)
    for n in (0, 3):
        for device in ("cpu", "python"):
            out = kc.zeros(4, real=kc.float64)
            kc.launch(conditions, 4, [a, n], [out], device=device)
            np.testing.assert_allclose(out.numpy(), [in_python(plain, n, i) for i in range(4)], rtol=1e-12)


@kc.struct
class Sun:
    heat: kc.Array[float]
    towards: kc.float3


@kc.struct
class Sky:
    x: kc.Array[float]
    sun: Sun | None


@kc.kernel
def shone(s: Sky, out: kc.Array[float]):
    i = kc.tid()
    out[i] = s.x[i] if s.sun is None else s.x[i] * s.sun.heat[i] * kc.length(s.sun.towards)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_vectors_in_what_is_absent_are_recorded(device):
    x, out = kc.array(np.array([1.0, 2.0]), requires_grad=True), kc.zeros(2, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(shone, 2, [Sky(x=x, sun=None)], [out], device=device)
    tape.backward(grads={out: [3.0, 4.0]})
    assert out.tolist() == [1.0, 2.0]
    assert x.grad.tolist() == [3.0, 4.0]


def test_the_side_that_does_not_run_is_not_even_typed():
    @kc.kernel
    def nonsense(a: Air, out: kc.Array[float]):
        i = kc.tid()
        if a.wind is None:
            out[i] = no_such_function(a.x) + "text"  # noqa: F821
        if i > 0 and a.wind is None:
            out[i] = kc.float3(a)
        out[i] = a.x[i] if a.wind is not None else a.nothing

    assert kc.inspect(nonsense)
    with pytest.raises(kc.UnknownName, match="no_such_function"):
        kc.inspect(nonsense, absent=["a.wind"])


@kc.func
def first(wind: kc.Array[float]):
    return wind[0]


@kc.kernel
def reads(a: Air, out: kc.Array[float]):
    out[kc.tid()] = a.wind[0]


@kc.kernel
def writes(a: Air, out: kc.Array[float]):
    a.wind[kc.tid()] = 1.0


@kc.kernel
def adds(a: Air, out: kc.Array[float]):
    kc.atomic_add(a.wind, kc.tid(), 1.0)


@kc.kernel
def measures(a: Air, out: kc.Array[float]):
    out[kc.tid()] = float(len(a.wind) + a.wind.shape[0])


@kc.kernel
def names(a: Air, out: kc.Array[float]):
    wind = a.wind
    out[kc.tid()] = wind[0]


@pytest.mark.parametrize("kernel", [reads, writes, adds, measures, names], ids=lambda k: k.name)
def test_an_absent_member_that_is_used_is_named_with_its_line(kernel):
    with pytest.raises(kc.TypeMismatch, match=r"a\.wind is absent in this launch") as error:
        kc.launch(kernel, 2, [Air(x=kc.zeros(2))], [kc.zeros(2)], device="python")
    lines, at = kernel.source.lines
    assert "a.wind" in lines[error.value.lineno - at]
    assert error.value.advice == "ask first: `if a.wind is not None:`"


def test_a_func_that_needs_an_array_is_not_given_an_absent_one():
    @kc.kernel
    def passes(a: Air, out: kc.Array[float]):
        out[kc.tid()] = first(a.wind)

    with pytest.raises(kc.TypeMismatch, match=r"argument 'wind' of first\(\) is a.wind, which is absent, but Array"):
        kc.launch(passes, 2, [Air(x=kc.zeros(2))], [kc.zeros(2)], device="python")


def test_bundles_are_made_in_kernels_of_arrays_that_are_there():
    @kc.func
    def total(a: Air, i: int):
        return a.x[i] + (a.wind[i] if a.wind is not None else 10.0) + (0.0 if a.rain is None else a.rain[i])

    @kc.kernel
    def made(x: kc.Array[float], wind: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        calm = Air(x=wind)
        out[i] = total(Air(x, wind=wind), i) + total(calm, i)

    x, wind, out = kc.array(np.ones(3), requires_grad=True), kc.array(np.full(3, 2.0)), kc.zeros(3, real=kc.float64)
    kc.launch(made, 3, [x, wind], [out])
    assert out.numpy().tolist() == [15.0] * 3
    assert kc.testing.gradcheck(made, 3, [x, wind], [out])


def test_a_choice_between_bundles_at_run_time_is_refused():
    @kc.kernel
    def chooses(a: Air, b: Air, out: kc.Array[float]):
        i = kc.tid()
        c = a if i > 1 else b
        out[i] = c.x[i]

    with pytest.raises(kc.Unsupported, match="different things on the two branches: the Air a and the Air b"):
        kc.inspect(chooses)
