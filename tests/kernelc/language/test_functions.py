"""Functions: arguments of every kind, several results, generic types, returns anywhere, closures."""

import itertools

from as_python import Laws

import kernelc as kc

laws = Laws()
PAIRS = list(itertools.product([-7, -2, 1, 3], [-3, 1, 2, 5]))


# -- arguments
@kc.func
def weigh(a, b=10, *, scale=2, shift=0):
    return a * scale + b + shift


@laws.values(int, int, gives=int, over=PAIRS)
def defaults_and_keywords(a, b):
    return weigh(a) + 3 * weigh(a, b) + 5 * weigh(a, b=b, shift=1) + 7 * weigh(b=a, a=b) + 11 * weigh(b, scale=-a)


@kc.func
def only_by_position(a, b, /, c=1):
    return a - b * c


@laws.values(int, int, gives=int, over=PAIRS)
def positional_only(a, b):
    return only_by_position(a, b) + only_by_position(b, a, c=3)


@kc.func
def annotated(x: float, n: int, flag: bool = True) -> float:
    return x * n if flag else x


@laws.values(float, int, gives=float, over=[(0.5, 3), (-1.25, -2)])
def annotated_parameters(x, n):
    return annotated(x, n) + annotated(n, n=2, flag=n > 0) + annotated(3, 2, False)


@kc.func
def twice(x):
    return x + x


@laws.values(int, float, gives=float, over=[(2**30, 0.25), (-3, 1e-3)])
def generic_functions(n, x):
    # 2**31 wraps as an integer, but not as a real.
    return twice(x) + twice(float(n)) + twice(0.5) + twice(x > 0)


@laws.values(int, gives=float, over=[1, 3])
def literals_stay_weak_in_calls(n):
    return twice(1) / 4 + twice(1 / 3) * n


@kc.func
def clobber(a, b):
    a = a + 100
    b *= 2
    return a + b


@laws.values(int, int, gives=int, over=PAIRS)
def a_callee_does_not_change_its_caller(a, b):
    c = clobber(a, b)
    return a + 10 * b + 1000 * c


# -- results
@kc.func
def divide(a, b):
    q = a // b
    return q, a - q * b


@kc.func
def both_ways(a, b):
    return divide(a, b), divide(b, a)


@laws.values(int, int, gives=int, over=PAIRS)
def several_results(a, b):
    q, r = divide(a, b)
    (s, t), (u, v) = both_ways(a, b)
    pair = divide(b, a)
    return q + 10 * r + 100 * s + 1000 * t + 7 * u - v + pair[0] * 3 + pair[1] + divide(a, b)[1]


@kc.func
def grade(x):
    if x < 0:
        return -1
    if x == 0:
        return 0
    elif x > 100:
        return 3
    for k in range(5):
        if k * k > x:
            return k
    return 2


@laws.values(int, gives=int, over=[-5, 0, 1, 3, 8, 50, 101])
def return_anywhere(x):
    return grade(x) + 10 * grade(x - 1)


@kc.func
def mixed_returns(x):
    if x > 1:
        return x
    return 1


@laws.values(float, gives=float, over=[0.5, 2.5])
def literals_adapt_in_returns(x):
    return mixed_returns(x)


@kc.func
def pair_of_literals(x):
    if x > 0:
        return x, 1
    return 0, 2


@laws.values(float, gives=float, over=[-1.5, 2.5])
def literals_adapt_in_returned_tuples(x):
    a, b = pair_of_literals(x)
    return a + b / 4


@kc.func
def store_twice(out, i, v):
    if i < 0:
        return
    out[i] = v
    if i > 1:
        return
    out[i] = out[i] + 1


@laws.arrays(x=[1, 2, 3, 4], out=[0, 0, 0, 0])
def functions_without_a_result(i, x, out):
    store_twice(out, i, x[i])
    store_twice(out, i - 100, 7)


@kc.func
def total(x, first, last):
    s = 0.0
    for k in range(first, last):
        s += x[k]
    return s


@laws.arrays(x=[1.0, 2.0, 4.0, 8.0], out=[0.0, 0.0, 0.0, 0.0])
def arrays_are_passed_by_reference(i, x, out):
    y = x
    out[i] = total(y, 0, i + 1) - total(x, i, len(y))


# -- known conditions
MODE = 2


@kc.func
def by_mode(x):
    if MODE == 1:
        return x
    elif MODE == 2:
        return -x


@laws.values(float, gives=float, over=[1.5])
def a_known_condition_decides_what_returns(x):
    return by_mode(x)


@kc.func
def by_type(x, flag):
    if flag:
        y = x * 0.5
    else:
        y = 7
    return y


@laws.values(float, gives=float, over=[1.5])
def a_literal_argument_is_known(x):
    return by_type(x, True) + by_type(x, False)


# -- what only kernels know, in plain Python
@laws.values(float, gives=float, over=[1.5, -2.0])
def intrinsics_mean_something_in_python(x):
    return kc.where(x > 0, x, -x) + kc.stop_grad(x) * kc.static(2 + 1)


@laws.arrays(x=[1.0, 2.0], out=[0.0, 0.0])
def load_and_store(i, x, out):
    kc.store(out, i, kc.load(x, i) * 2)


# -- closures
def power_of(n):
    @kc.func
    def power(x):
        r = x
        for _ in range(n - 1):
            r *= x
        return r

    return power


cube, fourth = power_of(3), power_of(4)


def nested(outer):
    def middle(inner):
        @kc.func
        def innermost(x):
            return outer(x) + inner * x + cube(x)

        return innermost

    return middle


mixed = nested(cube)(0.5)


@laws.values(float, gives=float, over=[1.5, -2.0], exact=False)
def closures(x):
    return cube(x) + fourth(x) * mixed(x)


def compose(f, g):
    @kc.func
    def both(x):
        return f(g(x))

    return both


@laws.values(float, gives=float, over=[1.5, -2.0], exact=False)
def functions_are_captured(x):
    return compose_twice_and_cube(x)


compose_twice_and_cube = compose(twice, cube)


@kc.func
def apply(f, x):
    return f(x) - f(1.0)


@laws.values(float, gives=float, over=[1.5, -2.0], exact=False)
def functions_are_arguments(x):
    f = cube
    return apply(f, x) + apply(twice, x) + apply(abs, x)


@laws.values(float, gives=float, over=[1.5, -2.0])
def names_of_functions_do_not_meet(x):
    y = 3.0
    return hidden(x) + y


@kc.func
def hidden(x):
    y = x * 2
    return y


test_functions_mean_what_python_means = laws.test()
