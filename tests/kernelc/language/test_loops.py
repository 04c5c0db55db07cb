"""Loops: any range, while, break, continue, return, and what names hold afterwards."""

import itertools

from as_python import Laws

import kernelc as kc

laws = Laws()
BOUNDS = list(itertools.product([-3, 0, 2, 5], [-4, 0, 3, 6]))
STEPS = [(a, b, s) for a, b in BOUNDS for s in (-3, -2, -1, 1, 2, 4)]
COUNTS = [-2, 0, 1, 2, 5, 40]


# -- ranges
@laws.values(int, float, gives=float, over=[(k, x) for k in range(-1, 5) for x in (0.5, -2.0)])
def constant_loops_with_continue(n, x):
    v = kc.float3(x, 2.0 * x, 3.0 * x)
    total = x
    for k in range(3):
        if k == n:
            continue
        for j in range(2):
            if v[k] > 1.0:
                if j == n:
                    continue
                total += 1.0
            total = total * 2.0 + v[j]
        total += v[k]
        if k == 0 and n > 2:
            continue
        total -= 0.25
    return total


@laws.values(int, gives=int, over=COUNTS)
def range_of_one(n):
    r = 0
    for k in range(n):
        r = r * 3 + k
    return r


@laws.values(int, int, gives=int, over=BOUNDS)
def range_of_two(a, b):
    r = 1
    for k in range(a, b):
        r = r * 3 + k
    return r


@laws.values(int, int, int, gives=int, over=STEPS)
def range_with_any_step(a, b, s):
    r = 1
    for k in range(a, b, s):
        r = r * 3 + k
    return r


@laws.values(int, int, gives=int, over=BOUNDS)
def range_with_literal_steps(a, b):
    r = 1
    for k in range(a, b, 2):
        r = r * 3 + k
    for k in range(b, a, -1):
        r = r * 3 + k
    for k in range(a, b, -3):
        r = r * 3 + k
    return r


@laws.values(int, gives=int, over=[0, 1])
def literal_ranges(a):
    r = a
    for k in range(4):
        r = r * 3 + k
    for k in range(3, -3, -2):
        r = r * 3 + k
    for k in range(5, 5):
        r = -1
    for k in range(0, 100, 7):
        r = (r * 3 + k) % 1000
    return r


@laws.values(int, gives=int, over=[2**31 - 1, 2**31 - 2, 2**31 - 5])
def ranges_up_to_the_largest_integer(n):
    r = 0
    for k in range(n - 3, n):
        r += n - k
    for k in range(n - 7, n, 3):
        r = r * 10 + n - k
    for k in range(0, n, 2**30):
        r = r * 10 + k // 2**30
    return r


@laws.values(int, int, gives=int, over=[(-(2**31), 2**31 - 1), (-2000000000, 2000000000), (2000000000, -2000000000)])
def ranges_wider_than_an_integer(a, b):
    r = 1
    for k in range(a, b, 1000000000):
        r = r * 7 + k // 1000000
    for k in range(a, b, -1500000000):
        r = r * 7 + k // 1000000
    for k in range(a, b):
        r += 1
        if r > 1000 or k > a + 3:
            break
    return r


@laws.values(kc.int64, gives=kc.int64, over=[2**40, 2**40 + 3])
def ranges_of_long_integers(n):
    r = n - n
    for k in range(n - 2, n):
        r = r * 3 + k
    return r


@laws.values(kc.uint32, gives=kc.int64, over=[3000000000, 2**32 - 1])
def ranges_of_unsigned_integers(n):
    r = kc.int64(0)
    for k in range(n - 2, n):
        r = r + k
    return r


@laws.values(int, gives=int, over=COUNTS)
def bounds_are_computed_once(n):
    r = 0
    m = n
    for k in range(m):
        m = 0
        r += k + m
    return r


@laws.values(int, gives=int, over=COUNTS)
def the_counter_may_be_changed(n):
    r = 0
    for k in range(n):
        k *= 2
        k += 1
        r += k
    return r


@laws.values(int, gives=int, over=[0, 1])
def the_counter_of_a_short_loop_may_be_changed(a):
    r = a
    for k in range(3):
        r = 10 * r + k
        k = 7
        r += k
    return r


@laws.values(int, gives=int, over=COUNTS)
def the_counter_keeps_its_last_value(n):
    k = -1
    for k in range(0, n, 2):
        pass
    return k


@laws.values(int, gives=int, over=[0, 5])
def the_counter_of_a_short_loop_keeps_its_last_value(a):
    k = a
    for k in range(3):
        a += k
    j = a
    for j in range(0):
        a = 100
    return k * 100 + a + 1000 * j


@laws.values(int, gives=int, over=COUNTS)
def the_counter_after_break(n):
    k = 77
    for k in range(n):
        if k == 2:
            break
    return k


@laws.values(int, gives=int, over=COUNTS)
def a_counter_hides_an_argument(n):
    r = n
    for n in range(n):
        r += n
    return r * 100 + n


# -- leaving
@laws.values(int, int, gives=int, over=[(n, m) for n in COUNTS for m in (-1, 0, 3, 7)])
def break_and_continue(n, m):
    r = 0
    for k in range(n):
        if k == m:
            continue
        if k > m + 3:
            break
        r = r * 3 + k
    return r


@laws.values(int, int, gives=int, over=[(n, m) for n in COUNTS for m in (-1, 0, 3, 7)])
def return_in_a_loop(n, m):
    r = 1
    for k in range(n):
        r = r * 3 + k
        if r > 50:
            return -r
        if k == m:
            return r
    return 1000 + r


@laws.values(int, int, gives=float, over=[(n, m) for n in COUNTS for m in (0, 3)])
def return_in_a_loop_that_calls(n, m):
    for k in range(n):
        if is_three(k):
            return 1.5 * m
    return 0.5


@kc.func
def is_three(k):
    return k == 3


@laws.values(int, int, gives=int, over=[(n, m) for n in (0, 1, 4) for m in (0, 2, 5)])
def nested_loops_with_exits(n, m):
    r = 0
    for i in range(n):
        for j in range(m):
            if j > i + 1:
                break
            if (i + j) % 3 == 1:
                continue
            if i * j == 6:
                return -r
            r = r * 2 + i - j
        if r > 40:
            break
        r += 1
    return r


@laws.values(int, gives=int, over=COUNTS)
def two_exits_in_a_row(n):
    r = 0
    for k in range(n):
        if k % 2 == 0:
            if k > 5:
                break
            else:
                continue
        elif k == 3:
            r += 100
        r += k
    return r


@laws.values(int, gives=int, over=[0, 3])
def break_in_a_short_loop(a):
    r = 0
    for k in range(4):
        if k == a:
            break
        r += 1
    for k in range(4):
        if k == a:
            continue
        r += 10
    return r


# -- while
@laws.values(int, gives=int, over=[1, 2, 3, 7, 27])
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@laws.values(float, gives=float, over=[2.0, 10.0, 0.25])
def newton(a):
    x = a
    while abs(x * x - a) > 1e-3 * a:
        x = 0.5 * (x + a / x)
    return x


@laws.values(int, gives=int, over=COUNTS)
def while_true(n):
    r = 0
    while True:
        if r >= n:
            break
        r += 1
        if r % 3:
            continue
        r += 10
    return r


@laws.values(int, gives=int, over=COUNTS)
def while_true_returns(n):
    r = 0
    while True:
        r += 2
        if r > n:
            return r


@laws.values(int, gives=int, over=COUNTS)
def while_false(n):
    while False:
        n = -1
    while n < -100:
        n += 1
    return n


@laws.arrays(x=[3, 0, 5, 1], out=[0, 0, 0, 0])
def while_with_a_lazy_condition(i, x, out):
    k = i
    while k < x.shape[0] and x[k] != 1:
        out[i] += x[k]
        k += 1


@laws.values(int, gives=int, over=[0, 1, 5, 9])
def loops_in_branches(n):
    r = 0
    if n > 3:
        for k in range(n):
            r += k
    elif n > 0:
        while r < n:
            r += 4
    else:
        r = -1
    return r


@laws.values(int, gives=int, over=COUNTS)
def names_of_a_loop_body(n):
    r = 0
    for k in range(n):
        square = k * k
        if square > 3:
            half = square // 2
            r += half
        r += square
    return r


@laws.values(int, gives=int, over=COUNTS)
def many_carried_values(n):
    a, b = 0, 1
    c = 2.0
    flag = False
    for k in range(n):
        a, b = b, (a + b) % 1000
        c = c / 2 if flag else c + 1
        flag = not flag
    return a + int(c * 8) + flag


@laws.values(int, gives=int, over=COUNTS)
def early_return_before_a_loop(n):
    if n < 1:
        return -1
    r = 0
    for k in range(n):
        r += k
    if r > 5:
        return r
    return r + 100


@laws.values(int, int, gives=int, over=[(a, b) for a in (-5, 0, 5) for b in (1, 2, 4)])
def return_after_an_inner_loop(a, b):
    for i in range(b):
        for j in range(b):
            if i + j > a:
                break
            a -= 1
        if i == 2:
            return -1
    return a


@laws.values(int, gives=int, over=[0, 1, 2, 5])
def one_counter_for_two_loops(n):
    r = 0
    for k in range(3):
        for k in range(2):
            r = r * 3 + k
        r = r * 3 + k
    for k in range(n):
        for k in range(k):
            r += k
        r += 100 * k
    return r


@laws.values(int, gives=float, over=[0, 1, 2, 5])
def carried_tuples(n):
    t = (0, (1.0, True))
    for k in range(n):
        t = (t[0] + k, (t[1][0] * 2, not t[1][1]))
        if k == 3:
            t = (t[0], (0.5, False))
    while t[0] > 4:
        t = (t[0] - 3, t[1])
    a, (b, c) = t
    return a + b + 10 * c


@laws.values(int, gives=int, over=[0, 3, 10, 200])
def loops_that_leave_in_several_ways(n):
    k = 0
    while k < n:
        k += 1
        if k == 7:
            break
        while True:
            k += 1
            if k % 3 == 0:
                break
            if k > 100:
                return -1
    return k


@laws.values(int, gives=int, over=[0, 1, 5])
def known_conditions_in_short_loops(n):
    r = 0
    for k in range(4):
        if k == 0:
            first = n
            r += first
        elif k == 2:
            third = 5
            r += third
        else:
            r = -r
    return r


# -- backwards, and over tuples
@laws.values(int, int, int, gives=int, over=STEPS)
def backwards_with_any_step(a, b, s):
    r = 1
    for k in reversed(range(a, b, s)):
        r = r * 3 + k
    return r


@laws.values(int, gives=int, over=COUNTS)
def tuples_with_exits(n):
    r = 1
    for k, j in ((1, 2), (5, 3), (2, 7)):
        if k > n:
            continue
        for m in (j, n):
            r = r * 3 + m
            if r > 100:
                break
        r += k
        if r > 300:
            return r
    return r


WEIGHTS = (2, 5, 7, 11)


@laws.values(int, gives=int, over=COUNTS)
def tuples_backwards_counted_and_side_by_side(n):
    r = 1
    for w in reversed(WEIGHTS):
        r = r * 3 + w
    for k, w in enumerate(WEIGHTS):
        if k == n:
            continue
        r += k * w
    for (a, w), k in zip(enumerate(WEIGHTS), (n, 2, 3)):
        r = r * 2 + a * w + k
        if k == 5:
            break
    return r


test_loops_mean_what_python_means = laws.test()
