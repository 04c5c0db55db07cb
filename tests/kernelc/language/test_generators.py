"""Loops over a func that yields: values one by one, in Python's order, with every way out."""

import numpy as np
from as_python import Laws

import kernelc as kc

laws = Laws()
COUNTS = [-1, 0, 1, 2, 5, 9]
STEP = 3


@kc.func
def counted(n: int, step=1):
    """With a default, a docstring, a constant from outside, and a name that the loop has as well."""
    k = 0
    while k < n:
        k += step
        yield k * STEP


@kc.func
def pairs(n):
    for a in range(n):
        for b in range(a + 1, n):
            if (a + b) % 3 != 0:
                yield a, b


@kc.func
def halves(n: int):
    while True:
        if n % 2 != 0:
            return
        n = n // 2
        yield n


@kc.func
def twice(n):
    """Two loops one after the other, and a branch with a value on each side."""
    for k in range(n):
        if k % 2 == 0:
            yield k
        else:
            yield -k
    for k in range(n, 0, -1):
        yield 10 * k


@kc.func
def below(n, top):
    """Over another one, until it is enough."""
    for v in twice(n):
        if v > top:
            return
        yield v


@laws.values(int, gives=int, over=COUNTS)
def all_values(n):
    r, k = 0, 7
    for v in counted(n):
        r = r * 5 + v
    for v in counted(n, step=2):
        r = r * 5 + v
    return r + k


@laws.values(int, gives=int, over=COUNTS)
def several_values(n):
    r = 0
    for a, b in pairs(n):
        r = r * 7 + a * b
    return r


@laws.values(int, gives=int, over=COUNTS)
def continue_and_break(n):
    r = 0
    for a, b in pairs(n):
        if a == 1 and b == 3:
            continue
        if a * b > 9:
            break
        r = r * 7 + a + b
    return r


@laws.values(int, gives=int, over=COUNTS)
def break_leaves_all_loops_of_the_func(n):
    r = 0
    for v in twice(n):
        if v == 4 or v == 30:
            r += 1000
            break
        r += v
    return r


@laws.values(int, gives=int, over=[1, 2, 12, 32, 96])
def the_func_ends_early(n):
    r = 0
    for v in halves(n):
        r = r * 3 + v
    return r


@laws.values(int, gives=int, over=COUNTS)
def one_over_another(n):
    r = 0
    for v in below(n, 25):
        r = r * 3 + v
    return r


@laws.values(int, gives=int, over=COUNTS)
def one_inside_another(n):
    r = 0
    for v in twice(n):
        for w in counted(v):
            if w > 9:
                break
            for _ in range(2):
                r += w
                if r % 2 == 0:
                    continue
                r += 1
        r = r + v
    return r


@laws.values(int, gives=int, over=COUNTS)
def return_from_within(n):
    for a, b in pairs(n):
        if a + b == 7:
            return 100 * a + b
    return -1


@laws.values(int, gives=int, over=COUNTS)
def in_a_short_loop(n):
    r = 0
    for k in range(3):
        for v in counted(n + k):
            r = r * 3 + v
    return r


@laws.values(int, gives=int, over=COUNTS)
def a_generator_in_its_own_loop(n):
    total = 0
    for a in counted(n):
        for b in counted(n, 2):
            if b > a:
                break
            for _ in counted(2):
                total = total * 3 % 1000 + a + b
    return total


@laws.arrays(dim=3, x=[1.0, 2.0, 4.0, 8.0], out=[0.0, 0.0, 0.0])
def over_elements(i, x, out):
    for v in elements(x, i):
        out[i] += v * v


@kc.func
def elements(x, first):
    for k in range(first, len(x)):
        yield x[k]


test_generators_mean_what_python_means = laws.test()


# --------------------------------------------------------------------------------------------------------- gradients
@kc.func
def decaying(v, factor):
    while v > 0.1:
        v = v * factor
        yield v


@kc.kernel
def total(x: kc.Array[float], factor: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    s = 0.0
    for v in decaying(x[i], factor[0]):
        if v < 0.3:
            break
        s += kc.sin(v) * v
    out[i] = s


def test_gradients_flow_through_what_is_yielded():
    x = kc.array(np.array([1.0, 2.5, 0.05, 7.0]), requires_grad=True)
    factor = kc.array(np.array([0.8]), requires_grad=True)
    assert kc.testing.gradcheck(total, 4, [x, factor], [kc.zeros(4, real=kc.float64)])


@kc.kernel
def sums(x: kc.Array[float, 2], out: kc.Array[float]):
    i = kc.tid()
    s = 0.0
    for a, b in pairs(x.shape[1]):
        s += x[i, a] * x[i, b]
    out[i] = s


def test_what_a_plain_loop_would_not_keep_is_not_kept():
    assert "taped: nothing" in str(kc.explain(sums))
