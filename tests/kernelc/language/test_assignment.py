"""Assignment: names, tuples, elements, every augmented operator, annotations, shadowing."""

import itertools

from as_python import Laws

import kernelc as kc

laws = Laws()
PAIRS = list(itertools.product([-7, -2, 1, 3], [-3, 1, 2, 5]))
REALS = [(float(a), float(b)) for a, b in PAIRS]
SHIFTS = [(a, b) for a in (-7, 0, 9) for b in (0, 1, 3)]


# -- augmented assignment of names
@laws.values(int, int, gives=int, over=PAIRS)
def augmented_integers(a, b):
    r = a
    r += b
    r -= 2 * a
    r *= b
    r //= 3
    r %= 5
    r **= 2
    r &= 29
    r |= 8
    r ^= b
    return r


@laws.values(int, int, gives=int, over=SHIFTS)
def augmented_shifts(a, b):
    r = a
    r <<= b
    r >>= 1
    return r


@laws.values(float, float, gives=float, over=REALS, exact=False)
def augmented_reals(a, b):
    r = a
    r += b
    r -= 2
    r *= b
    r /= 3
    r //= 0.25
    r %= 5
    r **= 2
    return r


@laws.values(bool, bool, gives=bool, over=list(itertools.product([False, True], repeat=2)))
def augmented_bools(a, b):
    r = a
    r &= b
    r |= a
    r ^= b
    return r


# -- augmented assignment of elements
@laws.arrays(x=[-7, 3, 12, 0], y=[2, 5, -3, 1])
def augmented_integer_elements(i, x, y):
    x[i] += y[i]
    x[i] -= 3 * y[i]
    x[i] *= y[i]
    x[i] //= 3
    x[i] %= 7
    x[i] **= 2
    x[i] &= 29
    x[i] |= 8
    x[i] ^= y[i]
    x[i] <<= 2
    x[i] >>= 1


@laws.arrays(x=[-7.5, 3.0, 12.0], y=[2.0, 5.0, -3.0], exact=False)
def augmented_real_elements(i, x, y):
    x[i] += y[i]
    x[i] -= 2
    x[i] *= y[i]
    x[i] /= 3
    x[i] //= 0.25
    x[i] %= 5
    x[i] **= 2


@laws.arrays(x=[[1.0, 2.0], [3.0, 4.0]], y=[0.5, 0.25])
def augmented_elements_of_two_indices(i, x, y):
    x[i, 0] *= y[i]
    x[i, 1 - i] -= x[i, 0]
    x[i, i] += 1


@laws.arrays(x=[True, False, True], y=[True, True, False])
def augmented_bool_elements(i, x, y):
    x[i] &= y[i]
    x[i] |= i == 1
    x[i] ^= y[i]


@laws.arrays(dim=1, x=[5.0, 7.0], count=[0])
def the_old_content_is_read_before_the_right_side(i, x, count):
    x[0] *= grown(x, 0)
    x[1] -= 1.0


@kc.func
def grown(x, k):
    x[k] = x[k] + 1.0
    return x[k]


@laws.arrays(dim=1, x=[5.0, 7.0, 9.0], at=[0])
def an_index_is_computed_once(i, x, at):
    x[following(at)] *= 2.0
    x[following(at)] /= 4.0


@kc.func
def following(at):
    at[0] = at[0] + 1
    return at[0]


# -- tuples
@laws.values(int, int, gives=int, over=PAIRS)
def unpack_and_swap(a, b):
    c, d = a, b
    c, d = d, c
    a, b, c = c, d - a, a
    return a + 10 * b + 100 * c + 1000 * d


@laws.values(int, int, gives=int, over=PAIRS)
def nested_tuples(a, b):
    (c, (d, e)) = (a, (b, a - b))
    [f, g] = c, d
    t = (c, (d, e), f)
    p, (q, r), s = t
    return p + 10 * q + 100 * r + 1000 * s + t[1][0] + t[-1] * g + len(t)


@laws.values(int, int, gives=int, over=PAIRS)
def several_targets(a, b):
    x = y = a + b
    x += 1
    p = q, r = b, a
    return x * 100 + y + q * 10 + r + p[0]


TABLE = [3, 1, 4, 1, 5]
ROWS = ((1, 0.5), (2, 0.25), (3, 0.125))


@laws.values(int, gives=float, over=[0, 1, 2])
def items_at_run_time(k):
    t = (k + 1, k * 2, 7)
    mixed = (1, 2.5, k)
    total = 0.0
    for j in range(k + 2):
        total += TABLE[j] * ROWS[j % 3][1] + ROWS[k][0]
    return t[k] + mixed[k] * 10 + total + (1, 2.5, k)[k] + (True, False, k > 1)[k]


@laws.arrays(x=[1.0, 2.0, 3.0, 4.0], dim=1)
def swap_elements(i, x):
    x[0], x[3] = x[3], x[0]
    x[1], x[2], x[3] = x[2], x[3], x[1]


@laws.arrays(x=[10, 20, 30], out=[0, 0, 0], dim=1)
def targets_are_assigned_from_left_to_right(i, x, out):
    k = 0
    k, out[k] = 2, 5
    out[k - 1], k = k, 0
    out[k] = x[2]


@laws.values(float, gives=float, over=[0.5, -1.5])
def literals_adapt_in_tuples(a):
    low, high = 0.0, a
    low, high = 1, 2
    return low + high / 4


@laws.arrays(x=[[1, 2, 3], [4, 5, 6]], out=[0, 0], dim=2)
def shapes_unpack(i, x, out):
    rows, columns = x.shape
    out[i] = rows * 10 + columns + x.shape[-1] * 100 + len(x) * 1000 + len(x.shape) + x.ndim


# -- names
@laws.values(int, gives=float, over=[-3, 0, 4])
def annotated_names(a):
    b: int = a * 2
    c: float = b
    c: float = c / 4
    return c + b


@laws.values(float, gives=float, over=[1.5, -2.0])
def an_argument_may_be_assigned(a):
    a = a * 2
    a += 1
    return a


FACTOR = 5.0


@laws.values(float, gives=float, over=[1.5, -2.0])
def a_local_name_hides_a_global(a):
    FACTOR = 2.0
    abs = a * FACTOR
    return abs


@laws.values(int, gives=int, over=[1, 2])
def a_name_of_c_is_a_name(a):
    int_ = a
    double = int_ + 1
    new = double * 2
    return this(new, double) + thread(a)


@kc.func
def this(operator, ctx):
    return operator - ctx


@kc.func
def thread(block):
    begin = block
    end = begin
    return begin + end


@laws.values(float, gives=float, over=[1.5, -2.0])
def names_in_any_script(ε):
    δ = ε * 2
    größe = δ + 1
    return größe


@laws.values(float, gives=float, over=[1.5])
def a_docstring_says_nothing(a):
    """This is no statement."""
    ...
    "Neither is this."
    pass
    return a


@laws.values(int, int, gives=int, over=PAIRS)
def both_branches_assign(a, b):
    if a < b:
        low, high = a, b
    else:
        low = b
        high = a
    return high - low


@laws.values(int, gives=int, over=[-1, 0, 1, 2])
def a_branch_that_leaves_needs_no_value(a):
    if a < 0:
        return -10
    elif a == 0:
        b = 5
    else:
        b = a
    return b


test_assignments_mean_what_python_means = laws.test()
