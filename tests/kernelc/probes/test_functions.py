"""Probes: functions, captured constants, rules of one's own, derivatives inside kernels, forward mode."""

import math
import types

import numpy as np
import pytest
from probes.harness import (
    DEVICES,
    OUT,
    array64,
    central,
    check_kernel,
    const,
    leaf,
    near,
    on,
    refused,
    tmp,
    values,
    zeros64,
)

import kernelc as kc

FACTOR = 2.0
TABLE = [1.0, 2.0, 3.0]
SETTINGS = types.SimpleNamespace(k=2.0)
PAIR = (1.5, 4)


class Holder:
    gain = 2.0


# -- calls
@kc.func
def polynomial(x, a=1.0, b=2.0, *, c=3.0):
    return a * x * x + b * x + c


@kc.func
def divide(a: float, b: float) -> float:
    if b > 1.0:
        return a / b
    elif b < -1.0:
        return a * b
    return a - b


@kc.func
def both(x):
    return x * x, kc.sin(x)


@kc.func
def generic(a, b):
    return a * b + a


@kc.func
def first_above(x: kc.Array[float], n: int, limit: float):
    s = 0.0
    for i in range(n):
        s += x[i] * x[i]
        if s > limit:
            return s * x[i], i
    return -s, -1


def test_defaults_and_keywords():
    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        out[0] = polynomial(x[0]) + polynomial(x[1], 4.0) + polynomial(b=x[0], x=x[1]) + polynomial(x[0], c=x[1] * x[0])

    def p(x, a=1.0, b=2.0, c=3.0):
        return a * x * x + b * x + c

    check_kernel(
        call, 1, [leaf([0.7, 1.3]), OUT], lambda x: p(x[0]) + p(x[1], 4.0) + p(x[1], b=x[0]) + p(x[0], c=x[1] * x[0])
    )


def test_several_returns_and_several_values():
    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        s, c = both(x[i])
        t = both(x[i])
        kc.atomic_add(out, 0, divide(s, x[i]) * c + t[0] * divide(c, -x[i]) + divide(x[i], 0.5))

    def d(a, b):
        return a / b if b > 1 else a * b if b < -1 else a - b

    def reference(x):
        return sum(d(v * v, v) * np.sin(v) + v * v * d(np.sin(v), -v) + d(v, 0.5) for v in x)

    check_kernel(call, 3, [leaf([0.5, 2.0, -1.7]), OUT], reference)


def test_a_function_is_generic():
    @kc.kernel
    def call(x: kc.Array[float], v: kc.Array[kc.float3], n: int, out: kc.Array[float]):
        w = generic(v[0], x[0])
        m = generic(3, n)
        out[0] = generic(x[0], x[1]) + kc.dot(w, v[0]) + m

    check_kernel(
        call,
        1,
        [leaf([0.7, 1.3]), leaf([[1.0, 2.0, 0.5]], kc.float3), 4, OUT],
        lambda x, v: x[0] * x[1] + x[0] + (x[0] + 1) * (v @ v.T)[0, 0] + 15,
    )


def test_a_return_in_a_loop_of_a_function_with_two_values():
    @kc.kernel
    def call(x: kc.Array[float], n: int, out: kc.Array[float]):
        s, k = first_above(x, n, 3.0)
        t, j = first_above(x, n, 1000.0)
        out[0] = s * float(k + 1) + t * float(j)

    check_kernel(call, 1, [leaf([1.0, 1.5, 2.0]), 3, OUT], lambda x: 2 * (x[0] ** 2 + x[1] ** 2) * x[1] + (x**2).sum())


def test_functions_of_functions_and_early_return_in_a_kernel():
    @kc.func
    def inner(x: float) -> float:
        if x < 0.0:
            return -x
        y = x
        while y > 1.0:
            y = y * 0.5
            if y < 0.6:
                return y * x
        return y

    @kc.func
    def outer(x: float, n: int) -> float:
        s = 0.0
        for i in range(n):
            s += inner(x + float(i) - 1.5)
        return s

    @kc.kernel
    def call(x: kc.Array[float], n: int, out: kc.Array[float]):
        i = kc.tid()
        if i >= n:
            return
        if x[i] > 2.5:
            kc.atomic_add(out, 0, 10.0 * x[i])
            return
        kc.atomic_add(out, 0, outer(x[i], 4))

    def inner_ref(x):
        if x < 0:
            return -x
        y = x
        while y > 1:
            y *= 0.5
            if y < 0.6:
                return y * x
        return y

    def reference(x):
        return sum(10 * v if v > 2.5 else sum(inner_ref(v + i - 1.5) for i in range(4)) for v in x)

    check_kernel(call, 8, [leaf([0.3, 1.2, 2.0, 3.0]), 4, OUT], reference)


def test_a_function_may_write_arrays():
    @kc.func
    def accumulate(t: kc.Array[float], i: int, v: float):
        t[i] = t[i] * 0.5 + v * v

    @kc.kernel
    def call(x: kc.Array[float], t: kc.Array[float], out: kc.Array[float]):
        for i in range(3):
            accumulate(t, 0, x[i])
            accumulate(t, 1, t[0])
        out[0] = t[0] * t[1]

    def reference(x):
        a = b = 0.0
        for v in x:
            a = a * 0.5 + v * v
            b = b * 0.5 + a * a
        return a * b

    check_kernel(call, 1, [leaf([0.5, 0.7, -0.9]), tmp(2), OUT], reference)


def test_arguments_are_copied():
    @kc.func
    def change(x: float, n: int) -> float:
        x *= 2.0
        n += 1
        return x * n

    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        a, n = x[0], 3
        b = change(a, n) + change(a, n)
        out[0] = a * n + b

    check_kernel(call, 1, [leaf([0.7]), OUT], lambda x: x[0] * 3 + 16 * x[0])


def test_recursion_shows_the_cycle():
    @kc.func
    def odd(n: int) -> int:
        return even(n - 1)

    @kc.func
    def even(n: int) -> int:
        return odd(n - 1)  # here

    @kc.kernel
    def call(out: kc.Array[int]):
        out[0] = even(4)

    with pytest.raises(kc.KernelError) as caught:
        kc.inspect(call, "ir")
    assert caught.value.code == "KC106" and "even" in str(caught.value) and "odd" in str(caught.value)


def test_python_functions_and_numpy_are_refused_with_advice():
    def plain(x):
        return x

    @kc.kernel
    def call_plain(x: kc.Array[float]):
        x[0] = plain(x[0])  # here

    @kc.kernel
    def call_numpy(x: kc.Array[float]):
        x[0] = np.sin(x[0])  # here

    assert "kc.func" in refused(call_plain).advice
    assert "kc.sin" in refused(call_numpy).advice


# -- captured constants
def test_a_changed_global_recompiles():
    global FACTOR

    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        out[0] = FACTOR * x[0]

    try:
        for factor in (2.0, 3.0, 2.0, 5):
            FACTOR = factor
            x, out = array64([1.5]), zeros64(1)
            with kc.Tape() as tape:
                kc.launch(call, 1, [x], [out])
            tape.backward(out)
            assert out.numpy()[0] == factor * 1.5 and x.grad.numpy()[0] == factor
    finally:
        FACTOR = 2.0


def test_a_changed_global_of_a_called_function_recompiles():
    global FACTOR

    @kc.func
    def scaled(x: float) -> float:
        return x * FACTOR

    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        out[0] = scaled(x[0])

    try:
        for factor in (2.0, 3.0):
            FACTOR = factor
            assert all(r[0] == factor * 1.5 for r in values(call, 1, [const([1.5])]))
    finally:
        FACTOR = 2.0


@pytest.mark.parametrize("what", ["list", "namespace", "class", "closure", "module", "static"])
def test_what_is_captured_is_never_stale(what, monkeypatch):
    local = 2.0

    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        out[0] = x[0] * TABLE[1]

    @kc.kernel
    def call_namespace(x: kc.Array[float], out: kc.Array[float]):
        out[0] = x[0] * SETTINGS.k

    @kc.kernel
    def call_class(x: kc.Array[float], out: kc.Array[float]):
        out[0] = x[0] * Holder.gain

    @kc.kernel
    def call_closure(x: kc.Array[float], out: kc.Array[float]):
        out[0] = x[0] * local

    @kc.kernel
    def call_module(x: kc.Array[float], out: kc.Array[float]):
        out[0] = x[0] * math.tau

    @kc.kernel
    def call_static(x: kc.Array[float], out: kc.Array[float]):
        out[0] = x[0] * kc.static(sum(TABLE[:2]) - 1.0)

    kernel = {
        "list": call,
        "namespace": call_namespace,
        "class": call_class,
        "closure": call_closure,
        "module": call_module,
        "static": call_static,
    }[what]
    if what == "module":
        monkeypatch.setattr(math, "tau", 2.0)
    assert values(kernel, 1, [const([1.5])])[0][0] == 3.0
    if what in ("list", "static"):
        TABLE[1] = 5.0 if what == "static" else 4.0
    elif what == "namespace":
        monkeypatch.setattr(SETTINGS, "k", 4.0)
    elif what == "class":
        monkeypatch.setattr(Holder, "gain", 4.0)
    elif what == "closure":
        local = 4.0
    else:
        monkeypatch.setattr(math, "tau", 4.0)
    try:
        row = values(kernel, 1, [const([1.5])])[0]
    except kc.KernelError:
        return
    finally:
        TABLE[1] = 2.0
    assert row[0] == (7.5 if what == "static" else 6.0)


def test_static_expressions():
    width = 3

    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        s = 0.0
        for i in range(kc.static(width + 1)):
            s += x[i] * kc.static([math.sqrt(k) for k in range(9)][4])
        if kc.static(width > 2):
            s = s * PAIR[0] + PAIR[1]
        out[0] = s

    check_kernel(call, 1, [leaf([1.0, 2.0, 3.0, 4.0]), OUT], lambda x: 3 * x.sum() + 4, [3, 3, 3, 3])


def test_a_redefined_function_is_used():
    scope = {}

    def make(power):
        if power == 2:

            @kc.func
            def f(x: float) -> float:
                return x * x
        else:

            @kc.func
            def f(x: float) -> float:
                return x * x * x

        return f

    f = make(2)

    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        out[0] = f(x[0])

    assert values(call, 1, [const([2.0])])[0][0] == 4.0
    f = make(3)
    assert values(call, 1, [const([2.0])])[0][0] == 8.0


def test_a_kernel_made_in_a_loop_keeps_its_own_constants():
    kernels = []
    for k in (1.0, 2.0, 3.0):

        def make(k):
            @kc.kernel
            def scale(x: kc.Array[float], out: kc.Array[float]):
                out[0] = x[0] * k

            return scale

        kernels.append(make(k))
    assert [values(kernel, 1, [const([1.0])])[0][0] for kernel in kernels] == [1.0, 2.0, 3.0]


# -- rules of one's own
@kc.func
def clipped(x: float) -> float:
    return kc.clamp(x, -1.0, 1.0)


@clipped.adjoint
def _(x, adj):
    return adj


@kc.func
def rotate(v: kc.float2, angle: float, n: int):
    c, s = kc.cos(angle), kc.sin(angle)
    return kc.float2(c * v.x - s * v.y, s * v.x + c * v.y), angle * float(n)


@rotate.adjoint
def _(v, angle, n, adj_v, adj_angle):
    c, s = kc.cos(angle), kc.sin(angle)
    back = kc.float2(c * adj_v.x + s * adj_v.y, c * adj_v.y - s * adj_v.x)
    turned = kc.float2(-s * v.x - c * v.y, c * v.x - s * v.y)
    return back, kc.dot(turned, adj_v) + adj_angle * float(n), 0


def test_a_rule_replaces_the_derivative():
    @kc.kernel
    def straight(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, clipped(x[i] * 3.0) * x[i])

    check_kernel(straight, 2, [leaf([2.0, 0.1]), OUT], lambda x: (np.clip(3 * x, -1, 1) * x).sum(), [7, 0.6])


def test_a_rule_with_several_parameters_results_and_in_a_loop():
    @kc.kernel
    def spin(v: kc.Array[kc.float2], a: kc.Array[float], n: int, out: kc.Array[float]):
        w = v[0]
        s = 0.0
        for i in range(n):
            w, t = rotate(w * 1.1, a[0] * w.x, i)
            s += t * t
        out[0] = s + w.x * w.y

    def reference(v, a):
        w, s = v[0], 0.0
        for i in range(4):
            t = a[0] * w[0]
            w = 1.1 * np.array([np.cos(t) * w[0] - np.sin(t) * w[1], np.sin(t) * w[0] + np.cos(t) * w[1]])
            s += (t * i) ** 2
        return s + w[0] * w[1]

    try:
        check_kernel(spin, 1, [leaf([[0.7, -0.3]], kc.float2), leaf([0.8]), 4, OUT], reference)
    except kc.TypeMismatch as error:  # a rule may have to leave out what is not real
        pytest.fail(str(error))


def test_a_rule_given_after_a_launch_is_used():
    @kc.func
    def cube(x: float) -> float:
        return x * x * x

    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        out[0] = cube(x[0])

    def slope():
        x, out = array64([2.0]), zeros64(1)
        with kc.Tape() as tape:
            kc.launch(call, 1, [x], [out])
        tape.backward(out)
        return x.grad.numpy()[0]

    assert slope() == 12.0

    @cube.adjoint
    def _(x, adj):
        return 100.0 * adj

    try:
        assert slope() == 100.0
    except kc.KernelError:
        pass


def test_a_rule_of_the_wrong_shape_is_refused():
    @kc.func
    def product(a: float, b: float) -> float:
        return a * b

    @product.adjoint
    def _(a, b, adj):
        return adj * b

    @kc.kernel
    def call(x: kc.Array[float], out: kc.Array[float]):
        out[0] = product(x[0], x[1])

    with pytest.raises(kc.KernelError) as caught:
        kc.inspect(call, "adjoint")
    assert "test_functions.py" in str(caught.value)


# -- derivatives inside kernels
@kc.func
def potential(x: float, y: float) -> float:
    return x * x * kc.sin(y) + kc.exp(x * y)


@kc.func
def well(p: kc.float3, k: float) -> float:
    s = 0.0
    for i in range(3):
        s += k * p[i] * p[i] * p[(i + 1) % 3]
    return s + kc.length(p)


def test_grad_of_a_function():
    @kc.kernel
    def forces(x: kc.Array[float], out: kc.Array[float]):
        dx, dy = kc.grad(potential)(x[0], x[1])
        out[0] = dx
        out[1] = dy

    for row in values(forces, 1, [const([0.7, 0.4])], 2):
        near(row, [2 * 0.7 * np.sin(0.4) + 0.4 * np.exp(0.28), 0.49 * np.cos(0.4) + 0.7 * np.exp(0.28)], 1e-6)


def test_the_gradient_of_a_gradient():
    @kc.kernel
    def norm(x: kc.Array[float], out: kc.Array[float]):
        dx, dy = kc.grad(potential)(x[0], x[1])
        out[0] = dx * dx + dx * dy

    def reference(x):
        e = np.exp(x[0] * x[1])
        dx, dy = 2 * x[0] * np.sin(x[1]) + x[1] * e, x[0] ** 2 * np.cos(x[1]) + x[0] * e
        return dx * dx + dx * dy

    check_kernel(norm, 1, [leaf([0.7, 0.4]), OUT], reference)


def test_grad_of_a_function_with_a_loop_and_vectors():
    @kc.kernel
    def relax(p: kc.Array[kc.float3], k: kc.Array[float], n: int, out: kc.Array[float]):
        x = p[0]
        for i in range(n):
            g, dk = kc.grad(well)(x, k[0])
            x = x - 0.05 * g
        out[0] = well(x, k[0]) + kc.dot(x, x)

    def f(p, k):
        return k * (p**2 * np.roll(p, -1)).sum() + np.linalg.norm(p)

    def reference(p, k):
        x = p[0]
        for _ in range(3):
            g = k[0] * (2 * x * np.roll(x, -1) + np.roll(x, 1) ** 2) + x / np.linalg.norm(x)
            x = x - 0.05 * g
        return f(x, k[0]) + x @ x

    check_kernel(relax, 1, [leaf([[0.9, 0.5, -0.7]], kc.float3), leaf([1.3]), 3, OUT], reference)


def test_grad_of_a_function_with_branches_and_early_returns():
    @kc.func
    def bent(x: float) -> float:
        if x < 0.0:
            return x * x
        y = x
        while y < 4.0:
            y = y * y + 1.0
        return y

    @kc.kernel
    def slopes(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = kc.grad(bent)(x[i])

    x = np.array([-1.5, 0.5, 1.2, 5.0])

    def reference(v):
        if v < 0:
            return v * v
        while v < 4:
            v = v * v + 1
        return v

    want = [central(lambda t: reference(float(t[0])), [np.array([v])])[0][0] for v in x]
    for row in values(slopes, 4, [const(x)], 4):
        near(row, want, 1e-5)


# -- forward mode
def forward_and_reverse(kernel, dim, make, seeds=5):
    """⟨J v, w⟩ = ⟨v, Jᵀ w⟩ on both devices."""
    rng = np.random.default_rng(0)
    for device in DEVICES:
        leaves, args, outs = make()
        direction = {x: rng.normal(size=x.numpy().shape) for x in leaves}
        with on(device):
            dots = kc.jvp(kernel, dim, args, outs, tangents=direction)
        weights = {y: rng.normal(size=y.numpy().shape) for y in outs}
        forward = sum((dots[y].numpy() * weights[y]).sum() for y in outs)
        leaves2, args2, outs2 = make()
        with on(device), kc.Tape() as tape:
            kc.launch(kernel, dim, args2, outs2)
        tape.backward(grads={b: weights[a] for a, b in zip(outs, outs2)})
        reverse = sum((x.grad.numpy() * direction[a]).sum() for a, x in zip(leaves, leaves2))
        near([forward], [reverse], 1e-10, f"forward against reverse on {device}")
        for a, b in zip(outs, outs2):
            near(a.numpy(), b.numpy(), 1e-12, "value")


def test_jvp_of_a_loop_with_branches():
    @kc.kernel
    def walk(x: kc.Array[float], n: int, out: kc.Array[float]):
        i = kc.tid()
        p = x[i]
        for k in range(n):
            if p > 1.0:
                p = p * kc.sin(x[k])
                continue
            p = p * p + x[k]
            if p > 5.0:
                break
        out[i] = p

    def make():
        x, out = array64([0.7, 1.3, 0.4]), zeros64(3)
        return [x], [x, 3], [out]

    forward_and_reverse(walk, 3, make)


def test_jvp_in_place_with_atomics_and_vectors():
    @kc.kernel
    def mixed(x: kc.Array[kc.float3], m: kc.Array[float], low: kc.Array[float], y: kc.Array[kc.float3]):
        i = kc.tid()
        x[i] = x[i] * kc.length(x[i])
        y[i] += kc.cross(x[i], kc.float3(1.0, 2.0, 3.0))
        kc.atomic_add(m, 0, kc.dot(x[i], x[i]))
        kc.atomic_min(low, 0, x[i].x)

    data = np.random.default_rng(5).normal(size=(4, 3))

    def make():
        x, m, low, y = array64(data, kc.float3), zeros64(1), zeros64(1), zeros64(4, kc.float3)
        low.fill_(100.0)
        return [x], [x], [m, low, y]

    forward_and_reverse(mixed, 4, make)


def test_jvp_with_a_rule_and_a_scalar():
    @kc.kernel
    def ruled(x: kc.Array[float], k: float, out: kc.Array[float]):
        i = kc.tid()
        out[i] = clipped(x[i] * k) * k

    def make():
        x, k, out = array64([0.7, 2.3]), kc.array(np.array([1.5]), requires_grad=True), zeros64(2)
        return [x, k], [x, k], [out]

    forward_and_reverse(ruled, 2, make)


def test_jvp_of_a_kernel_without_the_tangent_is_refused():
    @kc.kernel
    def copy(x: kc.Array[float], out: kc.Array[float]):
        out[kc.tid()] = x[kc.tid()]

    with pytest.raises(kc.KernelError):
        kc.jvp(copy, 1, [array64([1.0])], [zeros64(1)], tangents={array64([1.0]): [1.0]})


def test_jvp_takes_array_likes_and_strides():
    @kc.kernel
    def square(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = x[i] * x[i]

    x, out = kc.array(np.arange(6.0)[::2]), zeros64(3)
    dots = kc.jvp(square, 3, [x], [out], tangents={x: [1, 2, 3]})
    near(dots[out].numpy(), 2 * np.array([0, 2, 4]) * [1, 2, 3], 1e-12)


# -- what can be seen
def test_inspect_shows_text():
    @kc.kernel
    def walk(x: kc.Array[float], n: int, out: kc.Array[float]):
        p = 1.0
        for i in range(n):
            p *= x[i]
        out[0] = p

    for what in ("ir", "adjoint", "cpp"):
        assert "walk" in kc.inspect(walk, what)
    try:
        assert "__global__" in kc.inspect(walk, "cuda")
    except kc.KernelError:
        pass
    with pytest.raises((kc.KernelError, ValueError)):
        kc.inspect(walk, "poem")


def test_explain_says_what_is_taped():
    @kc.kernel
    def product(x: kc.Array[float], n: int, out: kc.Array[float]):
        p = 1.0
        s = 0.0
        for i in range(n):
            p *= x[i]
            s += x[i]
        out[0] = p + s

    text = str(kc.explain(product))
    assert "p" in [t.variable for t in kc.explain(product).taped] and "4 bytes" in text

    @kc.kernel
    def sum_only(x: kc.Array[float], n: int, out: kc.Array[float]):
        s = 0.0
        for i in range(n):
            s += x[i]
        out[0] = s

    assert "nothing" in str(kc.explain(sum_only)) and not kc.explain(sum_only).taped


def test_explain_says_what_cuts():
    @kc.kernel
    def cuts(x: kc.Array[float], out: kc.Array[float]):
        a = kc.floor(x[0])
        b = kc.stop_grad(x[0])
        out[0] = a + b + x[0]

    text = str(kc.explain(cuts))
    assert "floor" in text and "stop_grad" in text and "test_functions.py" in text
