"""Operators and conversions on numbers, compared with Python over signs, sizes and types."""

import itertools
import math

from as_python import Laws

import kernelc as kc

laws = Laws()
INTS = [-17, -8, -7, -2, -1, 0, 1, 2, 3, 7, 8, 100, 2**31 - 1, -(2**31)]
SMALL = [-7, -3, -2, -1, 0, 1, 2, 3, 7]
REALS = [-7.5, -2.0, -0.5, -0.0, 0.0, 0.25, 1.0, 2.0, 3.5, 1024.0]
INT_PAIRS = list(itertools.product(INTS, INTS))
INT_DIVISIONS = [(a, b) for a, b in INT_PAIRS if b]
REAL_PAIRS = list(itertools.product(REALS, REALS))
REAL_DIVISIONS = [(a, b) for a, b in REAL_PAIRS if b]
MIXED = list(itertools.product(SMALL, REALS))
BOOLS = list(itertools.product([False, True], [False, True]))


# -- integers
@laws.values(int, int, gives=int, over=INT_PAIRS)
def add_integers(a, b):
    return a + b


@laws.values(int, int, gives=int, over=INT_PAIRS)
def subtract_integers(a, b):
    return a - b


@laws.values(int, int, gives=int, over=INT_PAIRS)
def multiply_integers(a, b):
    return a * b


@laws.values(int, int, gives=float, over=[(a, b) for a, b in INT_DIVISIONS if abs(a) < 2**20])
def divide_integers(a, b):
    return a / b


@laws.values(int, int, gives=int, over=INT_DIVISIONS)
def floor_divide_integers(a, b):
    return a // b


@laws.values(int, int, gives=int, over=INT_DIVISIONS)
def remainder_of_integers(a, b):
    return a % b


@laws.values(int, int, gives=int, over=INT_PAIRS)
def negate_and_plus(a, b):
    return -a + +b - -b


@laws.values(int, gives=int, over=INTS)
def integer_powers(a):
    return a**0 + a**1 + a**2 + a**3 + a**7


@laws.values(int, gives=float, over=[a for a in SMALL if a], exact=False)
def negative_integer_powers(a):
    return a**-1 + a**-2


@laws.values(int, float, gives=float, over=[(a, b) for a, b in MIXED if a > 0 and b < 10], exact=False)
def integer_to_a_real_power(a, b):
    return a**b


@laws.values(int, gives=int, over=[a for a in INTS if a != -(2**31)])
def absolute_integer(a):
    return abs(a)


# -- reals
@laws.values(float, float, gives=float, over=REAL_PAIRS)
def add_reals(a, b):
    return a + b - (b - a) * a


@laws.values(float, float, gives=float, over=REAL_DIVISIONS)
def divide_reals(a, b):
    return a / b


@laws.values(float, float, gives=float, over=REAL_DIVISIONS)
def floor_divide_reals(a, b):
    return a // b


@laws.values(float, float, gives=float, over=REAL_DIVISIONS)
def remainder_of_reals(a, b):
    return a % b


INFINITE = [(a, b) for a in (-5.0, 5.0, -0.0, 0.0) for b in (math.inf, -math.inf)]


@laws.values(float, float, gives=float, over=INFINITE)
def floor_divide_by_infinity(a, b):
    return a // b


@laws.values(float, float, gives=float, over=INFINITE)
def remainder_by_infinity(a, b):
    return a % b


@laws.values(float, gives=float, over=[1e-30, -1e-30, 5.0, -5.0])
def tiny_remainders(a):
    return a % 3.0 + a % -3.0


@laws.values(float, float, gives=float, over=[(a, b) for a, b in REAL_PAIRS if a > 0 and abs(b) < 10], exact=False)
def real_power(a, b):
    return a**b


@laws.values(float, int, gives=float, over=[(b, a) for a, b in MIXED if b], exact=False)
def real_to_an_integer_power(a, n):
    return a**n


@laws.values(float, gives=float, over=[r for r in REALS if r], exact=False)
def literal_powers(a):
    return a**0 + a**1 + a**2 + a**3 + a**4 + a**5 + a**-1 + a**-2 + a**2.0 + a**-3.0


@laws.values(float, gives=float, over=[0.25, 1.0, 2.0, 9.0], exact=False)
def fractional_powers(a):
    return a**0.5 + a**-0.5 + 2.0**a + 2**a


@laws.values(float, gives=float, over=REALS)
def signs(a):
    return -a + abs(a) - (+a)


# -- mixed
@laws.values(int, float, gives=float, over=MIXED)
def mix_integers_and_reals(a, b):
    return a + b * a - 2 * b + 3 * a - a * 0.5


@laws.values(int, float, gives=float, over=[(a, b) for a, b in MIXED if b])
def mixed_division(a, b):
    return a / b + a // b + a % b


@laws.values(float, int, gives=float, over=[(b, a) for a, b in MIXED if a])
def mixed_division_the_other_way(a, b):
    return a / b + a // b + a % b


@laws.values(float, gives=float, over=REALS)
def divide_by_literals(a):
    return a / 2 + a // 2 + a % 3 + a // -2 + a % -3 + a / -4


@laws.values(int, gives=int, over=INTS)
def divide_integers_by_literals(a):
    return a // 2 + a % 3 + a // -2 + a % -3


@laws.values(int, gives=float, over=SMALL)
def literals_divided_by_integers(a):
    return 7 / (a * a + 1) + 7 // (a * a + 1) + 7 % (a * a + 1) + -7 // (a * a + 1)


# -- rounding and conversion
@laws.values(float, gives=int, over=[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49, -0.51, 3.0])
def round_halves_to_even(a):
    return round(a)


@laws.values(float, gives=int, over=[-2.9, -2.0, -0.9, -0.0, 0.9, 2.9])
def int_truncates(a):
    return int(a)


@laws.values(float, gives=int, over=[-2.9, -2.0, -0.9, 0.9, 2.9])
def floor_ceil_trunc(a):
    return math.floor(a) + 10 * math.ceil(a) + 100 * math.trunc(a)


@laws.values(int, gives=int, over=[16777217, -16777217, 2**31 - 1, -(2**31), 0, 5])
def whole_numbers_stay_exact(a):
    return round(a) + math.floor(a) - math.ceil(a) + math.trunc(a) - int(a)


@laws.values(int, gives=float, over=SMALL)
def fabs_of_an_integer_is_real(a):
    return math.fabs(a) / 4 + math.fabs(a)


@laws.values(float, gives=float, over=REALS)
def conversions_between_types(a):
    return float(int(a)) + int(a > 0) + float(a > 0) + int(True) + float(3)


@laws.values(int, gives=bool, over=INTS)
def bool_of_an_integer(a):
    return bool(a)


@laws.values(float, gives=bool, over=[*REALS, math.nan, math.inf])
def bool_of_a_real(a):
    return bool(a)


# Which of the two zeros a minimum gives is left open.
@laws.values(float, float, gives=float, over=[(a, b) for a, b in REAL_PAIRS if a or b])
def smallest_and_largest(a, b):
    return min(a, b) + 2 * max(a, b) + min(a, b, 1.0) + max(a, 0, b)


@laws.values(int, int, gives=int, over=INT_PAIRS)
def smallest_and_largest_integers(a, b):
    return min(a, b) ^ max(a, b, 3)


# -- bools are numbers
@laws.values(bool, bool, gives=int, over=BOOLS)
def bool_arithmetic(a, b):
    return a + b + 2 * a - b * 3 + (-a) + (a == b) + (a > b) + a**2 + (a + 5) // (b + 2) + (a - 3) % (b + 2)


@laws.values(bool, bool, gives=float, over=BOOLS)
def bool_division(a, b):
    return a / (b + 1) + (a + 0.5) * b


@laws.values(bool, bool, gives=bool, over=BOOLS)
def bool_bits(a, b):
    return (a & b) | (a ^ b) & (a != b)


@laws.values(bool, int, gives=int, over=list(itertools.product([False, True], SMALL)))
def bools_meet_integers(a, b):
    return (a & b) + (a | b) * 2 + (a ^ b) * 3 + (b << a) + abs(a) + min(a, b) + max(a, b)


@laws.values(bool, gives=bool, over=[False, True])
def not_a_bool(a):
    return not a


# -- bits
@laws.values(int, int, gives=int, over=INT_PAIRS)
def bit_operations(a, b):
    return (a & b) ^ (a | ~b) + (a ^ b)


@laws.values(int, int, gives=int, over=[(a, b) for a in INTS for b in (0, 1, 5, 31)])
def shifts(a, b):
    return (a << b) ^ (a >> b)


@laws.values(int, int, gives=int, over=[(a, b) for a in INTS for b in (32, 33, 40, 100)])
def shifts_beyond_the_width(a, b):
    return (a >> b) + (a << b)


@laws.values(int, gives=int, over=INTS)
def literal_bits(a):
    return (a & 0xFF) | (a >> 4) ^ 0x7FFF & ~a << 3


# -- other integers
U = [0, 1, 2, 7, 2**31, 2**32 - 1]


@laws.values(kc.uint32, kc.uint32, gives=kc.uint32, over=list(itertools.product(U, U)))
def unsigned_arithmetic(a, b):
    return a + b * a - b ^ (a & 255) | b


@laws.values(kc.uint32, kc.uint32, gives=kc.uint32, over=[(a, b) for a in U for b in U if b])
def unsigned_division(a, b):
    return a // b + a % b


@laws.values(kc.uint32, int, gives=kc.int64, over=list(itertools.product(U, SMALL)))
def unsigned_meets_signed(a, b):
    return a * b + a - b


@laws.values(kc.uint32, int, gives=bool, over=list(itertools.product(U, SMALL)))
def compare_unsigned_with_signed(a, b):
    return a < b or a == b


LONGS = [0, 1, -1, 2**40, -(2**40), 2**62]


@laws.values(kc.uint32, gives=int, over=[0, 1, 7, 2**31 - 1])
def an_int_of_unsigned_has_a_sign(a):
    b = int(a)
    b -= 9
    return b


@laws.values(kc.int64, kc.int64, gives=kc.int64, over=list(itertools.product(LONGS, LONGS)))
def long_arithmetic(a, b):
    return a * b + a - b


@laws.values(kc.int64, int, gives=kc.int64, over=[(a, b) for a in LONGS for b in SMALL if b])
def long_meets_int(a, b):
    return a // b + a % b + b


@laws.values(kc.int64, gives=kc.int64, over=LONGS)
def long_literals(a):
    return a + 5_000_000_000 - 2**40


@laws.values(int, gives=kc.int64, over=[-3, 0, 7])
def integers_meet_large_literals(a):
    return (a * 3_000_000_000) // 1_000_000_000 + (a - 2**40)


@laws.values(int, gives=bool, over=[-3, 0, 7])
def compare_with_large_literals(a):
    return -3_000_000_000 < a < 3_000_000_000 and a != 2**40


@laws.values(kc.uint32, gives=bool, over=[0, 7, 2**32 - 1])
def compare_unsigned_with_a_negative_literal(a):
    return a > -1


@laws.values(float, gives=float, over=[1.0, 2.0])
def large_integer_literals_meet_reals(a):
    return a * 10**20 + 2**40


test_operators_mean_what_python_means = laws.test()
