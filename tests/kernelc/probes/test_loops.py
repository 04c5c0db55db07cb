"""Probes: loops. Every shape with every tape, the limit, unrolling that changes nothing, definite assignment."""

# ruff: noqa: F821, F823, PT017  (what is wrong is the subject)

import numpy as np
import pytest
from probes.harness import (
    DEVICES,
    OUT,
    REALS,
    Arrays,
    array64,
    check_kernel,
    const,
    leaf,
    near,
    refused,
    setting,
    tmp,
    zeros64,
)

import kernelc as kc

X = [0.9, 1.2, 0.8, 1.1, 0.7]


def while_newton(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    y = x[i]
    n = 0
    while abs(y * y - x[i]) > 1e-3:
        y = 0.5 * (y + x[i] / y)
        n += 1
    kc.atomic_add(out, 0, y * float(n))


def nested(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 1.0
    for i in range(n):
        t = x[i]
        j = 0
        while j < i:
            t = t * x[j] + 0.1
            if t > 1.5:
                break
            j += 1
        else_taken = j == i
        if else_taken:
            s = s * (1.0 + 0.1 * t)
            continue
        for k in range(n - 1, -1, -2):
            if k == i:
                continue
            s += t * x[k] * s * 0.1
            if s > 6.0:
                break
    out[0] = s


def nested_ref(x, n=5):
    s = 1.0
    for i in range(n):
        t, j = x[i], 0
        while j < i:
            t = t * x[j] + 0.1
            if t > 1.5:
                break
            j += 1
        if j == i:
            s = s * (1.0 + 0.1 * t)
            continue
        for k in range(n - 1, -1, -2):
            if k == i:
                continue
            s += t * x[k] * s * 0.1
            if s > 6.0:
                break
    return s


def in_place(x: kc.Array[float], n: int, t: kc.Array[float], out: kc.Array[float]):
    t[0] = 1.0
    k = 0
    while t[0] < 40.0:
        t[0] = t[0] * (1.0 + x[k % n])
        t[1 + k % 2] += t[0] * x[k % n]
        k += 1
        if k > 20:
            break
    out[0] = t[0] * t[1] + t[2]


def in_place_ref(x, n=5):
    t, k = np.array([1.0, 0, 0]), 0
    while t[0] < 40:
        t[0] *= 1 + x[k % n]
        t[1 + k % 2] += t[0] * x[k % n]
        k += 1
        if k > 20:
            break
    return t[0] * t[1] + t[2]


def long(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = x[0]
    for i in range(n):
        s = s * 0.99 + kc.sin(s) * x[i % 5] * 0.1
    out[0] = s


def long_ref(x, n=1000):
    s = x[0]
    for i in range(n):
        s = s * 0.99 + np.sin(s) * x[i % 5] * 0.1
    return s


def returns(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    s = x[i]
    for a in range(n):
        for b in range(a, n):
            s = s * 1.1 + x[b] * 0.1
            while s > 3.0:
                s = s * 0.9
                if s < 3.1 and a > 1:
                    kc.atomic_add(out, 0, s * x[a])
                    return
    kc.atomic_add(out, 0, s * s)


def returns_ref(x, n=5):
    total = 0.0
    for i in range(3):
        s = x[i]

        def run(s):
            for a in range(n):
                for b in range(a, n):
                    s = s * 1.1 + x[b] * 0.1
                    while s > 3:
                        s = s * 0.9
                        if s < 3.1 and a > 1:
                            return s * x[a]
            return s * s

        total += run(s)
    return total


def newton_ref(x):
    total = 0.0
    for v in x:
        y, n = v, 0
        while abs(y * y - v) > 1e-3:
            y, n = 0.5 * (y + v / y), n + 1
        total += y * n
    return total


SHAPES = {
    "while": (while_newton, 5, [leaf([2.0, 3.0, 4.5, 1.5, 0.2]), OUT], newton_ref),
    "nested": (nested, 1, [leaf(X), 5, OUT], nested_ref),
    "in place": (in_place, 1, [leaf(X), 5, tmp(3), OUT], in_place_ref),
    "long": (long, 1, [leaf(X), 1000, OUT], long_ref),
    "returns": (returns, 3, [leaf(X), 5, OUT], returns_ref),
}


@pytest.mark.parametrize("tape", ["all", "sqrt"])
@pytest.mark.parametrize("shape", SHAPES)
def test_loops_of_every_shape_with_every_tape(shape, tape):
    function, dim, args, reference = SHAPES[shape]
    devices = ("cpu",) if shape == "long" else DEVICES
    tol = 2e-3 if shape in ("returns", "in place") else None
    check_kernel(
        kc.kernel(function, loop_tape=tape),
        dim,
        args,
        reference,
        devices=devices,
        reals=(np.float64,) if tol else REALS,
    )


@pytest.mark.parametrize("tape", ["all", "sqrt"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 15, 16, 17, 100])
def test_every_length_of_a_loop(n, tape):
    kernel = LENGTHS[tape]
    x = np.linspace(0.8, 1.2, 100)

    def reference(x):
        return np.prod(x[:n]) * (1 + x[0])

    A = Arrays(np.float64)
    xs, out = A.leaf(x), A.zeros(1)
    with kc.Tape() as t:
        kc.launch(kernel, 1, [xs, n], [out])
    t.backward(out)
    want = np.zeros(100)
    want[:n] = reference(x) / x[:n]
    want[0] += np.prod(x[:n])
    near(out.numpy(), [reference(x)], 1e-12)
    near(xs.grad.numpy(), want, 1e-12)


def product(x: kc.Array[float], n: int, out: kc.Array[float]):
    p = 1.0
    for i in range(n):
        p *= x[i]
    out[0] = p * (1.0 + x[0])


LENGTHS = {tape: kc.kernel(product, loop_tape=tape) for tape in ("all", "sqrt")}


def test_sqrt_keeps_less_than_all():
    """With a small limit the long loop fits only the square-root tape."""
    n = 200_000
    for tape, fits in (("all", False), ("sqrt", True)):
        kernel = kc.kernel(long, loop_tape=tape)
        x, out = array64(X), zeros64(1)
        with setting(tape_limit=1 << 18):
            try:
                with kc.Tape() as t:
                    kc.launch(kernel, 1, [x, n], [out])
                t.backward(out)
                done = True
            except kc.KernelError as error:
                assert "test_loops.py" in str(error) or "tape" in str(error)
                done = False
        assert done == fits


def test_over_the_limit_is_an_error_and_the_next_launch_is_well():
    kernel = kc.kernel(long)
    x, out = array64(X), zeros64(1)
    with setting(tape_limit=1 << 16):
        with kc.Tape() as tape:
            kc.launch(kernel, 1, [x, 100_000], [out])
        with pytest.raises(kc.KernelError) as caught:
            tape.backward(out)
    assert "long" in str(caught.value)
    check_kernel(kernel, 1, [leaf(X), 100, OUT], lambda x: long_ref(x, 100))


def test_unrolling_never_changes_a_gradient():
    """The same body in static loops around the unroll limit, and in a dynamic loop."""

    def body(n, static):
        if static:

            @kc.kernel
            def kernel(x: kc.Array[float], out: kc.Array[float]):
                s, m = x[0], -100.0
                for i in range(n):
                    v = x[i % 5] * s
                    if v > m:
                        m = v
                    s = kc.min(s + v * 0.1, 3.0)
                out[0] = s * m

            return kernel

        @kc.kernel
        def dynamic(x: kc.Array[float], n: int, out: kc.Array[float]):
            s, m = x[0], -100.0
            for i in range(n):
                v = x[i % 5] * s
                if v > m:
                    m = v
                s = kc.min(s + v * 0.1, 3.0)
            out[0] = s * m

        return dynamic

    for n in (1, 5, 15, 16, 17, 31, 33, 64):
        results = []
        for static in (True, False):
            x, out = array64(X), zeros64(1)
            with kc.Tape() as tape:
                kc.launch(body(n, static), 1, [x] if static else [x, n], [out])
            tape.backward(out)
            results.append((out.numpy()[0], x.grad.numpy().copy()))
        near(results[0][0], results[1][0], 1e-13)
        near(results[0][1], results[1][1], 1e-13)


def test_static_loops_with_exits():
    @kc.kernel
    def exits(x: kc.Array[float], out: kc.Array[float]):
        s = 1.0
        for i in range(5):
            if x[i] > 1.15:
                continue
            for j in range(4):
                s = s * (1.0 + 0.1 * x[j])
                if s > 1.8:
                    break
            s += 0.1 * x[i]
        out[0] = s

    def reference(x):
        s = 1.0
        for i in range(5):
            if x[i] > 1.15:
                continue
            for j in range(4):
                s *= 1 + 0.1 * x[j]
                if s > 1.8:
                    break
            s += 0.1 * x[i]
        return s

    check_kernel(exits, 1, [leaf(X), OUT], reference)


def test_loop_bounds_from_arrays_and_threads():
    @kc.kernel
    def csr(start: kc.Array[int], column: kc.Array[int], a: kc.Array[float], x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        s = 0.0
        for k in range(start[i], start[i + 1]):
            s += a[k] * x[column[k]]
        y[0] += s * s

    rows, columns = np.array([0, 2, 2, 5]), np.array([0, 2, 1, 2, 0])

    def reference(a, x):
        return sum((a[rows[i] : rows[i + 1]] @ x[columns[rows[i] : rows[i + 1]]]) ** 2 for i in range(3))

    check_kernel(
        csr, 3, [const(rows), const(columns), leaf([1.0, 2.0, 3.0, 4.0, 5.0]), leaf([0.5, 1.5, -1.0]), OUT], reference
    )


def test_a_loop_that_carries_an_integer_state():
    @kc.kernel
    def lfsr(x: kc.Array[float], n: int, out: kc.Array[float]):
        state = 12345
        s = 1.0
        for i in range(n):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            s = s * (0.9 + 0.1 * x[state % 5]) + x[(state >> 4) % 5] * 0.01
        out[0] = s

    def reference(x):
        state, s = 12345, 1.0
        for _ in range(20):
            wide = (state * 1103515245 + 12345) & 0xFFFFFFFF
            state = wide & 0x7FFFFFFF
            s = s * (0.9 + 0.1 * x[state % 5]) + x[(state >> 4) % 5] * 0.01
        return s

    check_kernel(lfsr, 1, [leaf(X), 20, OUT], reference)


def test_a_variable_that_is_reset_in_every_iteration():
    @kc.kernel
    def reset(x: kc.Array[float], n: int, out: kc.Array[float]):
        total = 0.0
        acc = 5.0
        for i in range(n):
            acc = 1.0
            for j in range(n):
                acc *= x[j] + 0.1 * float(i)
            total += acc
        out[0] = total * acc

    def reference(x):
        p = [np.prod(x + 0.1 * i) for i in range(5)]
        return sum(p) * p[-1]

    check_kernel(reset, 1, [leaf(X), 5, OUT], reference)


def test_vectors_and_structs_carried_by_loops():
    @kc.struct
    class State:
        p: kc.float3
        n: int
        e: float

    @kc.kernel
    def orbit(x: kc.Array[kc.float3], steps: int, out: kc.Array[float]):
        s = State(p=x[0], n=0, e=0.0)
        v = x[1]
        for i in range(steps):
            r = kc.length(s.p)
            v -= s.p * (0.1 / (r * r * r))
            s.p += v * 0.1
            if r > 1.2:
                s.n += 1
            s.e += 0.5 * kc.dot(v, v) * float(s.n)
        out[0] = s.e + s.p.x

    def reference(x):
        p, v, n, e = x[0].copy(), x[1].copy(), 0, 0.0
        for _ in range(8):
            r = np.linalg.norm(p)
            v = v - p * 0.1 / r**3
            p = p + v * 0.1
            n += r > 1.2
            e += 0.5 * (v @ v) * n
        return e + p[0]

    check_kernel(orbit, 1, [leaf([[1.0, 0.5, 0.2], [0.3, 0.9, -0.2]], kc.float3), 8, OUT], reference)


def test_a_running_minimum_with_its_partner_values():
    @kc.kernel
    def closest(p: kc.Array[kc.float3], q: kc.Array[kc.float3], n: int, out: kc.Array[float]):
        i = kc.tid()
        best = 1.0e10
        normal = kc.float3()
        for j in range(n):
            d = kc.length(p[i] - q[j])
            if d < best:
                best = d
                normal = (p[i] - q[j]) / d
        kc.atomic_add(out, 0, best * best + normal.x * best)

    rng = np.random.default_rng(3)

    def reference(p, q):
        s = 0.0
        for a in p:
            d = [np.linalg.norm(a - b) for b in q]
            j = int(np.argmin(d))
            s += d[j] ** 2 + (a - q[j])[0]
        return s

    check_kernel(
        closest,
        4,
        [leaf(rng.normal(size=(4, 3)), kc.float3), leaf(rng.normal(size=(5, 3)), kc.float3), 5, OUT],
        reference,
    )


def test_rand_in_while_loops_is_replayed_by_the_adjoint():
    @kc.kernel
    def walk(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        y = x[i]
        k = 0
        while y < 3.0:
            y = y * (1.0 + kc.rand(5, i, k)) + 0.1 * x[i]
            k += 1
        kc.atomic_add(out, 0, y)

    A = Arrays(np.float64)
    from kernelc.builtins import meanings

    def reference(x):
        s = 0.0
        for i, v in enumerate(x):
            y, k = v, 0
            while y < 3:
                y, k = y * (1 + meanings.rand(5, i, k)) + 0.1 * v, k + 1
            s += y
        return s

    check_kernel(walk, 3, [leaf([0.5, 0.7, 1.1]), OUT], reference)


# -- definite assignment
def test_a_name_set_on_one_branch_is_refused_where_it_is_read():
    @kc.kernel
    def one_branch(x: kc.Array[float], out: kc.Array[float]):
        if x[0] > 0.0:
            y = x[0]
        out[0] = y  # here

    refused(one_branch, "KC102")

    @kc.kernel
    def in_loop(x: kc.Array[float], n: int, out: kc.Array[float]):
        for i in range(n):
            y = x[i]
        out[0] = y  # here

    refused(in_loop, "KC102")

    @kc.kernel
    def static_loop(x: kc.Array[float], out: kc.Array[float]):
        for i in range(3):
            y = x[i]
        out[0] = y  # here

    refused(static_loop, "KC102")

    @kc.kernel
    def counter_after(x: kc.Array[float], n: int, out: kc.Array[float]):
        for i in range(n):
            pass
        out[0] = x[i]  # here

    refused(counter_after, "KC102")

    @kc.kernel
    def before(x: kc.Array[float], out: kc.Array[float]):
        out[0] = y  # here
        y = x[0]

    refused(before, "KC102")

    @kc.kernel
    def augmented(x: kc.Array[float], out: kc.Array[float]):
        y += x[0]  # here
        out[0] = y

    refused(augmented, "KC102")

    @kc.kernel
    def previous_iteration(x: kc.Array[float], n: int, out: kc.Array[float]):
        for i in range(n):
            if i > 0:
                out[0] += y  # here
            y = x[i]

    refused(previous_iteration, "KC102")


def test_a_name_set_on_every_path_is_fine():
    @kc.kernel
    def paths(x: kc.Array[float], n: int, out: kc.Array[float]):
        i = kc.tid()
        if x[i] > 1.0:
            y = x[i] * 2.0
        elif x[i] > 0.85:
            return
        else:
            if x[i] > 0.75:
                y = x[i]
            else:
                y = 1.0
        s = 0.0
        for k in range(n):
            if k == 1:
                continue
            elif k == 3:
                break
            else:
                z = x[k] * y
            s += z
        kc.atomic_add(out, 0, s)

    def reference(x):
        total = 0.0
        for v in x:
            if v > 1:
                y = 2 * v
            elif v > 0.85:
                continue
            else:
                y = v if v > 0.75 else 1.0
            total += y * (x[0] + x[2])
        return total

    check_kernel(paths, 5, [leaf(X), 5, OUT], reference)


def test_a_local_name_hides_a_global_in_the_whole_function():
    """As in Python: a name that is assigned anywhere is local everywhere."""

    @kc.kernel
    def shadow(x: kc.Array[float], out: kc.Array[float]):
        out[0] = HIDDEN * x[0]  # here
        HIDDEN = 3.0

    refused(shadow, "KC102")


HIDDEN = 2.0
