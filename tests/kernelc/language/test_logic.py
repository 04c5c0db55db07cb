"""Comparisons, conditions and conditional expressions: chained, lazy, nested."""

import itertools

from as_python import Laws

laws = Laws()
REALS = [-2.0, -0.0, 0.0, 1.0, 2.5, float("inf"), float("-inf"), float("nan")]
PAIRS = list(itertools.product(REALS, REALS))
TRIPLES = list(itertools.product([-1.0, 0.0, 1.0, float("nan")], repeat=3))
INTS = list(itertools.product([-2, -1, 0, 1, 2], repeat=3))
BOOLS = list(itertools.product([False, True], repeat=3))


@laws.values(float, float, gives=int, over=PAIRS)
def comparisons(a, b):
    return (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b) + 16 * (a == b) + 32 * (a != b)


@laws.values(float, float, gives=int, over=PAIRS)
def negated_comparisons(a, b):
    return (not a < b) + 2 * (not a <= b) + 4 * (not a > b) + 8 * (not a >= b) + 16 * (not a == b) + 32 * (not a != b)


@laws.values(int, float, gives=bool, over=[(a, b) for a in (-1, 0, 1, 2) for b in REALS])
def compare_integers_with_reals(a, b):
    return a < b or a == b


@laws.values(float, float, float, gives=bool, over=TRIPLES)
def chained(a, b, c):
    return a < b <= c


@laws.values(float, float, float, gives=bool, over=TRIPLES)
def longer_chains(a, b, c):
    return a <= b != c > a < 5 != 3


@laws.values(int, gives=bool, over=[-5, 0, 3, 9, 10, 20])
def chained_with_literals(a):
    return 0 <= a < 10


@laws.values(int, int, int, gives=bool, over=INTS)
def chained_equality(a, b, c):
    return a == b == c


@laws.values(bool, bool, bool, gives=bool, over=BOOLS)
def and_binds_closer_than_or(a, b, c):
    return a or b and not c


@laws.values(bool, bool, bool, gives=bool, over=BOOLS)
def long_conditions(a, b, c):
    return a and b and c or not a and not b and not c


@laws.values(bool, bool, bool, gives=bool, over=BOOLS)
def compare_bools(a, b, c):
    return (a < b) != c and a <= b or a == c


@laws.arrays(x=[1, 0, 2, -3], out=[0, 0, 0, 0])
def the_right_side_is_lazy(i, x, out):
    # Without laziness the last thread would read past the end, and a zero would divide.
    if i + 1 < x.shape[0] and x[i + 1] > 0:
        out[i] += 1
    if x[i] == 0 or 6 // x[i] > 2:
        out[i] += 2


@laws.arrays(x=[1.0, 0.0, -2.0], out=[0.0, 0.0, 0.0])
def conditional_expressions_are_lazy(i, x, out):
    out[i] = 1 / x[i] if x[i] != 0 else x[i + 1] if i + 1 < x.shape[0] else 7.0


@laws.arrays(x=[1.0, 0.0, -2.0, 5.0], log=[0, 0, 0, 0])
def a_chain_stops_at_the_first_false(i, x, log):
    log[i] = int(0.0 < x[i] < (x[i + 1] if i + 1 < x.shape[0] else 100.0) < 50.0)


@laws.values(float, float, gives=float, over=[(a, b) for a, b in PAIRS if a == a and b == b])
def nested_conditionals(a, b):
    return a if a > b else b if b > 0 else -a


@laws.values(int, gives=float, over=[-1, 0, 1])
def literals_of_two_types(a):
    return (1 if a > 0 else 2.5) + (1.5 if a < 0 else 4)


@laws.values(bool, gives=int, over=[False, True])
def conditional_of_integers(a):
    return (3 if a else -3) // 2 + (True if a else False)


@laws.values(int, gives=bool, over=[-1, 0, 3])
def not_of_an_integer(a):
    return not a


@laws.values(float, gives=int, over=REALS)
def truth_of_a_real(a):
    if a:
        return 1
    return 0


@laws.values(int, gives=int, over=[-1, 0, 3])
def truth_of_an_integer(a):
    r = 0
    while a:
        r += 1
        a = 0
    return r + (10 if a else 20)


@laws.values(int, int, gives=int, over=[(a, b) for a in range(-2, 3) for b in range(-2, 3)])
def elif_chain(a, b):
    if a < 0:
        r = 1
    elif a == 0:
        r = 2
    elif b > 0:
        r = 3
    else:
        r = 4
    return r


@laws.values(int, int, gives=int, over=[(a, b) for a in range(-2, 3) for b in range(-2, 3)])
def nested_ifs(a, b):
    r = 0
    if a > 0:
        if b > 0:
            r = 1
        else:
            r = 2
            if b == 0:
                r = 3
    elif b < 0:
        r += 4
    r *= 10
    return r


@laws.values(float, gives=float, over=[-1.0, 2.0])
def known_conditions(a):
    if True:
        b = a
    else:
        b = nothing_here(a)  # noqa: F821
    return b if 1 < 2 else also_nothing  # noqa: F821


@laws.values(float, float, gives=float, over=[(1.0, 2.0), (2.0, 1.0)])
def tuples_in_conditionals(a, b):
    low, high = (a, b) if a < b else (b, a)
    return high - low * 3


test_conditions_mean_what_python_means = laws.test()
