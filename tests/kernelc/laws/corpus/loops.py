"""Loops: what is carried, how they end, how long they are."""

from laws.bench import N, case, const, leaf, whole, zeros

import kernelc as kc


@kc.kernel
def sum_of_squares(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 0.0
    for i in range(n):
        s += x[i] * x[i]
    out[0] = s


case("sum of squares", sum_of_squares, x=leaf(5), n=5, out=zeros(1))
case("no iteration", sum_of_squares, x=leaf(5), n=0, out=zeros(1))


@kc.kernel
def product(x: kc.Array[float], n: int, out: kc.Array[float]):
    p = 1.0
    for i in range(n):
        p *= x[i]
    out[0] = p


case("product", product, x=leaf([2.0, 3.0, 4.0]), n=3, out=zeros(1))
case("product with a zero", product, x=leaf([2.0, 0.0, 4.0]), n=3, out=zeros(1))


@kc.func
def shrinking(v, floor):
    for k in range(6):
        while v > floor * float(k + 1):
            v = v * 0.8
            if v < 4.0:
                yield k, v


@kc.kernel
def yielded(x: kc.Array[float], floor: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    for k, v in shrinking(x[i], floor[0]):
        if k == 1 and v < 0.3:
            continue
        p *= 1.0 + 0.1 * v * float(k)
        if p > 2.5:
            break
    out[i] = p


case("what a func yields", yielded, N, x=leaf(N, low=2.0, high=9.0), floor=leaf([0.21]), out=zeros(N))


@kc.kernel
def square_of_sum(x: kc.Array[float], n: int, out: kc.Array[float]):
    first = x[0] * x[0]
    s = 0.0
    for i in range(n):
        s = s + x[i]
    out[0] = first * s * s


case("square of a sum, with a value from before the loop", square_of_sum, x=leaf(4), n=4, out=zeros(1))


@kc.kernel
def modulated(x: kc.Array[float], k: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    a = x[i] * x[i]
    b = kc.float2(k[0], a)
    s = 0.0
    for j in range(n):
        s += kc.sin(a * float(j)) * b.x
        while s > b.y * k[0]:
            s -= a * k[0]
    out[i] = s


case("values from outside in every iteration", modulated, N, x=leaf(N), k=leaf(1), n=7, out=zeros(N))


@kc.kernel
def pendulum(x: kc.Array[float], n: int, dt: float, out: kc.Array[float]):
    q = x[0]
    v = x[1]
    for _ in range(n):
        v = v - dt * kc.sin(q)
        q = q + dt * v
    out[0] = q


for steps in (20, 31, 32, 33, 400):
    case(f"pendulum, {steps} steps", pendulum, x=leaf([1.0, 0.5]), n=steps, dt=2.0 / steps, out=zeros(1))
case("pendulum, 20000 steps", pendulum, x=leaf([1.0, 0.5]), n=20000, dt=1e-4, out=zeros(1))


@kc.kernel
def pendulum_12(x: kc.Array[float], out: kc.Array[float]):
    q, v = x[0], x[1]
    for _ in range(12):
        v = v - 0.1 * kc.sin(q)
        q = q + 0.1 * v
    out[0] = q


@kc.kernel
def pendulum_40(x: kc.Array[float], out: kc.Array[float]):
    q, v = x[0], x[1]
    for _ in range(40):
        v = v - 0.1 * kc.sin(q)
        q = q + 0.1 * v
    out[0] = q


case("static loop, unrolled", pendulum_12, x=leaf([1.0, 0.5]), out=zeros(1))
case("static loop, too long to be unrolled", pendulum_40, x=leaf([1.0, 0.5]), out=zeros(1))


@kc.kernel
def pendulums(x: kc.Array[float], v0: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    q = x[i]
    v = v0[i]
    for _ in range(i % 7 * 3):
        v = v - 0.03 * kc.sin(q)
        q = q + 0.03 * v
    out[i] = q * q


case("another number of iterations in every thread", pendulums, N, x=leaf(N), v0=leaf(N), out=zeros(N))


@kc.kernel
def while_product(x: kc.Array[float], n: int, out: kc.Array[float]):
    p = 1.0
    i = 0
    while i < n:
        p = p * x[i] + x[i]
        i += 1
    out[0] = p


case("while", while_product, x=leaf(4), n=4, out=zeros(1))
case("while, never entered", while_product, x=leaf(4), n=0, out=zeros(1))


@kc.kernel
def newton(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    y = 1.0
    change = 1.0
    while kc.abs(change) > 1e-4:
        change = (y * y - x[i]) / (2.0 * y)
        y = y - change
    out[i] = y


case("while, until it converges", newton, N, x=leaf(N), out=zeros(N))


@kc.kernel
def positive_product(x: kc.Array[float], n: int, out: kc.Array[float]):
    p = 1.0
    i = -1
    while True:
        i += 1
        if i >= n:
            break
        if x[i] < 0.0:
            continue
        p = p * x[i] + 0.5 * x[i]
    out[0] = p


case("while True with break and continue", positive_product, x=leaf([2.0, -1.0, 3.0, 0.7]), n=4, out=zeros(1))


@kc.kernel
def nested_squares(x: kc.Array[float], n: int, out: kc.Array[float]):
    total = 0.0
    for i in range(n):
        s = 0.0
        for j in range(n):
            s += x[j] * x[i]
        total += s * s
    out[0] = total


case("nested loops", nested_squares, x=leaf(3), n=3, out=zeros(1))


@kc.kernel
def triangle(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 1.0
    for i in range(n):
        for j in range(i + 1):
            if s > 2.0:
                s = 0.4 * s
                break
            s = s * x[j] + kc.sin(x[i] * s)
    out[0] = s


case("nested loops with triangular bounds and a break", triangle, x=leaf([0.9, 1.1, 0.8, 1.3, 0.6]), n=5, out=zeros(1))


@kc.kernel
def three_deep(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = x[0]
    for i in range(n):
        a = s * x[i]
        for j in range(i, n):
            k = j
            while k > 0:
                k -= 2
                s = kc.sin(s + a * x[j])
                if k == 1:
                    continue
                a = 0.9 * a + 0.1 * s * x[i]
        s += 0.1 * a
    out[0] = s


case("three loops deep", three_deep, x=leaf(4), n=4, out=zeros(1))


@kc.kernel
def break_on_input(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 0.0
    for i in range(n):
        if x[i] > 3.5:
            break
        s += x[i] * x[i]
    out[0] = s


case("break on the input", break_on_input, x=leaf([2.0, 3.0, 4.0, 3.0]), n=4, out=zeros(1))


@kc.kernel
def break_on_state(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    s = x[i]
    for k in range(n):
        s = s * x[k] + s * s * 0.1
        if s > 1.5:
            s *= s
            break
    out[i] = s


case("break on the state", break_on_state, N, x=leaf(N, low=0.9), n=3, out=zeros(N))


@kc.kernel
def break_static(x: kc.Array[float], out: kc.Array[float]):
    s = 1.0
    for i in range(4):
        if x[i] > 3.5:
            break
        s *= x[i]
    out[0] = s


case("break out of an unrolled loop", break_static, x=leaf([2.0, 3.0, 4.0, 3.0]), out=zeros(1))


@kc.func
def first_above(x, n, level):
    s = 0.0
    for i in range(n):
        s += x[i] * x[i]
        if s > level:
            return s * 2.0
    return s


@kc.kernel
def returning(x: kc.Array[float], n: int, out: kc.Array[float]):
    out[0] = first_above(x, n, 10.0) + first_above(x, n, 1000.0)


case("return out of a loop in a function", returning, x=leaf([2.0, 3.0, 4.0]), n=3, out=zeros(1))


@kc.kernel
def leaving(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 1.0
    for i in range(n):
        for j in range(n):
            s = s * (1.0 + 0.1 * x[i] * x[j])
            if s > 3.0:
                out[0] = s * x[j]
                return
    out[0] = -s


case("return out of nested loops", leaving, x=leaf([2.0, 3.0, 4.0]), n=3, out=zeros(1))
case("return out of nested loops, not taken", leaving, x=leaf([0.2, 0.3, 0.4]), n=3, out=zeros(1))


@kc.kernel
def two_ways_out(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    a = x[i]
    for k in range(n):
        a = kc.sin(a) + 0.6 * x[k % 3]
        if a > 1.55:
            out[i] += a * a
            return
        if k > i + 4:
            break
        if a < 0.9:
            continue
        a *= 0.9
    out[i] += a


case("break, continue and return in one loop", two_ways_out, N, x=leaf(N), n=9, out=zeros(N))


@kc.kernel
def early(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    if x[i] < 1.0:
        return
    out[i] = x[i] * x[i]


case("threads that return at once", early, N, x=leaf(N), out=leaf(N))


@kc.kernel
def running_max(x: kc.Array[float], n: int, out: kc.Array[float]):
    m = -1.0e20
    for i in range(n):
        if x[i] < 2.5:
            continue
        v = x[i] * x[i]
        if v > m:
            m = v
    out[0] = m


case("continue, and a running maximum", running_max, x=leaf([2.0, 5.0, 4.0, 3.0]), n=4, out=zeros(1))


@kc.kernel
def running_extrema(x: kc.Array[float], n: int, out: kc.Array[float]):
    low = 1.0e20
    high = -1.0e20
    for i in range(n):
        low = kc.min(low, x[i] * x[i])
        high = kc.max(high, kc.sin(x[i]))
    out[0] = low * high


case("running min and max", running_extrema, x=leaf([4.0, 2.0, 3.0, 5.0]), n=4, out=zeros(1))


@kc.kernel
def nearest(x: kc.Array[float], n: int, out: kc.Array[float]):
    best = 1.0e20
    k = 0
    for i in range(n):
        d = (x[i] - 1.0) * (x[i] - 1.0)
        if d < best:
            best = d
            k = i
    out[0] = best * x[k] + x[k]


case("running argmin, used as an index", nearest, x=leaf([4.0, 1.5, 3.0, 0.2]), n=4, out=zeros(1))


@kc.kernel
def state_machine(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 1.0
    mode = 0
    for i in range(n):
        if mode == 0:
            s = s + x[i] * s
            if s > 2.0:
                mode = 1
        elif mode == 1:
            s = s * x[i]
            mode = 2
        else:
            s = kc.sin(s)
            mode = i % 2
    out[0] = s


case("whole-number state decides in a loop", state_machine, x=leaf([0.5, 0.7, 1.2, 0.8, 1.1, 0.9]), n=6, out=zeros(1))


@kc.kernel
def last_one(x: kc.Array[float], n: int, out: kc.Array[float]):
    w = 0.0
    for i in range(n):
        w = x[i] * x[i]
    out[0] = kc.sin(w)


case("overwritten in each iteration", last_one, x=leaf(3), n=3, out=zeros(1))


@kc.kernel
def backwards(x: kc.Array[float], start: int, stop: int, step: int, out: kc.Array[float]):
    p = 1.0
    for i in range(start, stop, step):
        p = p * x[i] + 0.5 * float(i)
    out[0] = p


case("range downwards", backwards, x=leaf(6), start=5, stop=0, step=-2, out=zeros(1))
case("range upwards by three", backwards, x=leaf(6), start=1, stop=6, step=3, out=zeros(1))
case("empty range", backwards, x=leaf(6), start=3, stop=3, step=-1, out=zeros(1))


@kc.kernel
def fibonacci(x: kc.Array[float], n: int, out: kc.Array[float]):
    a, b = x[0], x[1]
    for _ in range(n):
        a, b = b, a * b + x[2]
    out[0] = a * b


case("swap in a loop", fibonacci, x=leaf([0.9, 1.2, 0.4]), n=4, out=zeros(1))


@kc.kernel
def own_variable(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 1.0
    for i in range(n):
        i = i * 2
        n = i
        if i < 8:
            s = s * x[i % 3] + float(i)
    out[0] = s + x[n % 3]


case("loop variable and bound are changed inside", own_variable, x=leaf(3), n=6, out=zeros(1))


@kc.kernel
def loop_in_branch(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    a = x[i]
    for k in range(n):
        if a > 0.8:
            for j in range(k + 1):
                a = kc.sin(a * x[j])
        else:
            b = a
            while b < 1.5:
                b = b * 1.7 + 0.1
            a = b * 0.6
    out[i] = a


case("loops inside branches inside a loop", loop_in_branch, N, x=leaf(N), n=3, out=zeros(N))


@kc.kernel
def one_after_the_other(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 0.0
    for i in range(n):
        s += x[i]
    p = 1.0
    for i in range(n):
        p *= s - x[i]
    unused = 1.0
    for i in range(n):
        unused = unused * x[i]
    out[0] = p * s


case("loops that use what loops made", one_after_the_other, x=leaf(3), n=3, out=zeros(1))


@kc.kernel
def noisy(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    s = x[i]
    for k in range(n):
        s = s * (1.0 + 0.2 * kc.rand(42, i, k) * x[i])
    out[i] = s


case("random numbers in a loop", noisy, N, x=leaf(N), n=6, out=zeros(N))


@kc.kernel
def csr_product(start: kc.Array[int], column: kc.Array[int], value: kc.Array[float], x: kc.Array[float],
                y: kc.Array[float]):  # fmt: skip
    i = kc.tid()
    s = 0.0
    for k in range(start[i], start[i + 1]):
        s += value[k] * x[column[k]]
    y[i] = s * s


case("bounds from arrays", csr_product, 3, start=whole([0, 2, 2, 5]), column=whole([0, 2, 1, 1, 2]), value=leaf(5),
     x=leaf(3), y=zeros(3))  # fmt: skip


@kc.kernel
def int64_loop(x: kc.Array[float], n: kc.int64, out: kc.Array[float]):
    s = x[0]
    k = kc.int64(0)
    while k < n:
        s = s * 0.5 + kc.sin(s * x[1])
        k += 1
    out[0] = s


case("counting in 64 bits", int64_loop, x=leaf(2), n=7, out=zeros(1))
case("a constant that is only read", sum_of_squares, x=const(5), n=5, out=leaf(1))
