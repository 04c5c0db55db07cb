"""Random kernels, and what they mean: the same source runs as plain Python on dual numbers, which are exact.

A program is one to three launches over the same arrays: x (leaves), t (scratch, private to each thread), out. Bodies
have loops of every kind, exits, branches, stores to all arrays, vectors, local arrays and functions.
"""

import linecache
import math
import random

import numpy as np

import kernelc as kc

N, SCRATCH = 4, 5
COUNT = "kc.atomic_add"


class Dual:
    """A number with its derivatives by all leaves."""

    __slots__ = ("d", "v")

    def __init__(self, v, d=0.0):
        self.v, self.d = v, d

    def __add__(self, o):
        o = dual(o)
        return Dual(self.v + o.v, self.d + o.d)

    def __sub__(self, o):
        o = dual(o)
        return Dual(self.v - o.v, self.d - o.d)

    def __mul__(self, o):
        o = dual(o)
        return Dual(self.v * o.v, self.d * o.v + self.v * o.d)

    def __truediv__(self, o):
        o = dual(o)
        return Dual(self.v / o.v, (self.d - self.v / o.v * o.d) / o.v)

    def __pow__(self, n):
        return Dual(self.v**n, n * self.v ** (n - 1) * self.d)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, o):
        return dual(o) - self

    def __rtruediv__(self, o):
        return dual(o) / self

    def __neg__(self):
        return Dual(-self.v, -self.d)

    def __abs__(self):
        return Dual(abs(self.v), np.sign(self.v) * self.d)

    def __lt__(self, o):
        return self.v < dual(o).v

    def __gt__(self, o):
        return self.v > dual(o).v

    def __le__(self, o):
        return self.v <= dual(o).v

    def __ge__(self, o):
        return self.v >= dual(o).v

    def __int__(self):
        return int(self.v)


def dual(x):
    return x if isinstance(x, Dual) else Dual(float(x))


def _unary(f, df):
    return staticmethod(lambda x: Dual(f(dual(x).v), df(dual(x).v) * dual(x).d))


class Vector:
    def __init__(self, *c):
        self.c = [dual(x) for x in c]

    def __getitem__(self, i):
        return self.c[i]

    def __setitem__(self, i, v):
        self.c[i] = dual(v)

    def __add__(self, o):
        return Vector(*(a + b for a, b in zip(self.c, o.c)))

    def __sub__(self, o):
        return Vector(*(a - b for a, b in zip(self.c, o.c)))

    def __mul__(self, s):
        return Vector(*(a * s for a in self.c))

    def __getattr__(self, name):
        return self.c["xyz".index(name)]


class Matrix:
    def __init__(self, *c):
        self.c = [dual(x) for x in c]

    def __getitem__(self, ij):
        return self.c[2 * ij[0] + ij[1]]

    def __setitem__(self, ij, v):
        self.c[2 * ij[0] + ij[1]] = dual(v)


class State:
    def __init__(self, p, e, k):
        self.p, self.e, self.k = p, dual(e), k


def copied_state(p, e, k):
    """Values are copied."""
    return State(Vector(*p.c), e, k)


def ruled(x):
    """Its rule says three times the slope."""
    y = Plain.tanh(x)
    return Dual(y.v, 3.0 * y.d)


class Grid(list):
    """An array of duals; elements that are read are values."""


class Plain:
    """Stands for the module kc while a body runs as plain Python."""

    sin, cos = _unary(math.sin, math.cos), _unary(math.cos, lambda v: -math.sin(v))
    tanh = _unary(math.tanh, lambda v: 1 - math.tanh(v) ** 2)
    exp, sqrt = _unary(math.exp, math.exp), _unary(math.sqrt, lambda v: 0.5 / math.sqrt(v))
    thread = 0

    def tid(self):
        return self.thread

    def min(self, a, b):
        a, b = dual(a), dual(b)
        return a if a.v < b.v else b

    def max(self, a, b):
        a, b = dual(a), dual(b)
        return a if a.v > b.v else b

    def where(self, c, a, b):
        return a if c else b

    def float3(self, *c):
        return Vector(*c)

    def local(self, n):
        return [Dual(0.0) for _ in range(n)]

    def dot(self, a, b):
        return sum((p * q for p, q in zip(a.c, b.c)), Dual(0.0))

    def atomic_add(self, a, i, v):
        a[i] = a[i] + v

    def atomic_sub(self, a, i, v):
        a[i] = a[i] - v

    def stop_grad(self, a):
        return Dual(dual(a).v)

    def atomic_count(self, c, v):
        old = c[0]
        c[0] = old + v
        return old

    def mat22(self, *c):
        return Matrix(*c)

    def grad(self, f):
        """Of `potential` only: a a sin(b)."""
        return lambda a, b: (2.0 * dual(a) * self.sin(b), dual(a) * a * self.cos(b))


class Generator:
    """Writes one body. Values stay moderate, because every assignment goes through a bounded function."""

    def __init__(self, rng, *, one_thread):
        self.r, self.lines, self.one = rng, [], one_thread
        self.reals, self.ints, self.vectors, self.locals = ["a", "b"], ["n", "m"], ["v"], ["w"]
        self.counters = 0
        self.loops = 0
        self.count = f"{COUNT}(c, {'0, ' if COUNT == 'kc.atomic_add' else ''}{rng.randrange(1, 3)})"

    def pick(self, *choices):
        return self.r.choice(choices)

    def index(self, depth=0):
        i = self.pick(*self.ints, str(self.r.randrange(9)))
        if self.r.random() < 0.4:
            i = f"({i} {self.pick('+', '*', '-')} {self.pick(*self.ints, '3', '7')})"
        return i

    def entry(self):
        return f"g[{self.index()} % 2, {self.index()} % 2]"

    def t(self):
        return f"t[q + {self.index()} % {SCRATCH}]"

    def x(self):
        return f"x[{self.index()} % {N}]"

    def atom(self):
        return self.pick(
            *self.reals,
            *self.reals,
            self.t(),
            self.t(),
            self.x(),
            self.x(),
            f"{self.r.uniform(-1.5, 1.5):.3f}",
            f"v[{self.index()} % 3]",
            "v.y",
            f"w[{self.index()} % 3]",
            self.entry(),
            "s.e",
            "s.p.x",
        )

    def real(self, depth=2):
        if depth == 0 or self.r.random() < 0.2:
            return self.atom()
        k = self.r.randrange(14)
        a, b = self.real(depth - 1), self.real(depth - 1)
        if k < 4:
            return f"({a} {self.pick('+', '-')} {b})"
        if k < 7:
            return f"({a} * {b})"
        if k == 7:
            return f"kc.{self.pick('sin', 'cos', 'tanh')}({a})"
        if k == 8:
            return f"({a} / (1.5 + {b} * {b}))" if len(b) < 40 else f"kc.tanh({b})"
        if k == 9:
            return f"kc.{self.pick('min', 'max')}({a}, {b})"
        if k == 10:
            return f"({a} if {self.condition()} else {b})"
        if k == 11 and "push" not in a + b:  # plain Python would call it on both sides
            return f"kc.where({self.condition()}, {a}, {b})"
        if k == 12:
            return self.pick(f"helper({a}, {b})", f"ruled({a})", f"push(t, q, {self.index()}, {self.atom()})")
        return f"(-{a})" if self.r.random() < 0.5 else f"kc.tanh({a}) ** {self.r.randrange(2, 4)}"

    def condition(self):
        k = self.r.randrange(5)
        if k < 2:
            return f"{self.real(1)} {self.pick('<', '>')} {self.real(1)}"
        if k == 2:
            return f"{self.pick(*self.ints)} % {self.r.randrange(2, 4)} == {self.r.randrange(2)}"
        word = self.pick("and", "or")
        return f"({self.real(1)} > {self.real(0)} {word} {self.t()} < {self.real(0)})"

    def bounded(self):
        e = self.real()
        return (
            f"kc.tanh({e})"
            if self.r.random() < 0.6
            else f"0.5 * kc.sin({e}) + 0.3 * {self.atom()} * kc.tanh({self.atom()})"
        )

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    def block(self, depth, budget, *, in_loop):
        for _ in range(self.r.randrange(1, 4)):
            if self.statement(depth, budget, in_loop):
                return

    def statement(self, depth, budget, in_loop):
        k = self.r.randrange(22)
        if k < 4:
            self.put(depth, f"{self.pick(*self.reals)} = {self.bounded()}")
        elif k < 6:
            self.put(depth, f"{self.pick(*self.reals)} {self.pick('+=', '-=', '*=')} {self.bounded()}")
        elif k < 9:
            self.put(depth, f"{self.t()} = {self.bounded()}")
        elif k == 9:
            self.put(depth, f"{self.t()} {self.pick('+=', '-=', '*=')} {self.bounded()}")
        elif k == 10:
            self.put(depth, f"v[{self.index()} % 3] = {self.bounded()}")
        elif k == 11:
            self.put(depth, f"w[{self.index()} % 3] {self.pick('=', '*=', '+=')} {self.bounded()}")
        elif k == 12:
            self.put(
                depth,
                self.pick(
                    "n = (n * 3 + 1) % 11", "m += 1", "n, m = m, n", f"m = int(2.0 * kc.tanh({self.atom()}) + 3.0)"
                ),
            )
        elif k == 13:
            self.put(
                depth,
                self.pick(
                    f"v = v * ({self.bounded()})",
                    f"v = kc.float3({self.bounded()}, a, b)",
                    "v = v + kc.float3(a, b, a * b) * 0.1",
                ),
            )
        elif k == 14 and self.one:
            self.put(depth, f"{self.x()} {self.pick('=', '*=', '+=')} {self.bounded()}")
        elif k == 15 and self.r.random() < 0.7:
            self.put(
                depth,
                self.pick(
                    f"{self.entry()} {self.pick('=', '*=', '+=')} {self.bounded()}",
                    f"s.e {self.pick('=', '*=', '+=')} {self.bounded()}",
                    f"s.p[{self.index()} % 3] = {self.bounded()}",
                    f"s.p = s.p * 0.5 + v * {self.atom()}",
                    "s.k = s.k + 1; n = s.k % 7",
                    f"a, b = kc.grad(potential)({self.atom()}, {self.atom()})",
                    f"m = {self.count}",
                    f"t[q + {self.count} % {SCRATCH}] = {self.bounded()}",
                    "r = s; r.e *= 2.0; s.e = kc.tanh(s.e + r.e)",
                ),
            )
        elif k == 15:
            self.put(depth, f"kc.atomic_{self.pick('add', 'sub')}(out, 0, {self.bounded()})")
        elif k < 18 and budget > 0:
            self.put(depth, f"if {self.condition()}:")
            self.block(depth + 1, budget - 1, in_loop=in_loop)
            if self.r.random() < 0.6:
                self.put(depth, "else:")
                self.block(depth + 1, budget - 1, in_loop=in_loop)
        elif k < 21 and budget > 0 and self.loops < 3:
            self.loop(depth, budget)
        elif in_loop and self.r.random() < 0.7:
            self.put(depth, self.pick("break", "continue"))
            return True
        elif depth > 1 and self.r.random() < 0.5:
            self.put(depth, f"kc.atomic_add(out, 0, {self.bounded()})")
            self.put(depth, "return")
            return True
        else:
            self.put(depth, f"a, b = {self.bounded()}, a * kc.tanh(b)")
        return False

    def loop(self, depth, budget):
        c = f"k{self.counters}"
        self.counters += 1
        kind = self.r.randrange(4)
        self.loops += 1
        if kind == 0:
            self.put(depth, f"{c} = 0")
            self.put(depth, f"while {c} < {self.r.randrange(1, 5)} and {self.real(1)} < {self.r.uniform(0, 2):.2f}:")
            self.put(depth + 1, f"{c} += 1")
        elif kind == 1:
            self.put(depth, f"for {c} in range({self.r.randrange(1, 4)}):")
        elif kind == 2:
            self.put(depth, f"for {c} in range(size + {self.r.randrange(2)}):")
        else:
            self.put(depth, f"for {c} in range(size * 2, {self.r.randrange(2)}, -{self.r.randrange(1, 4)}):")
        self.ints.append(c)
        self.block(depth + 1, budget - 1, in_loop=True)
        self.ints.remove(c)
        self.loops -= 1

    def write(self, name):
        self.lines = [
            f"def {name}(x: kc.Array[float], size: int, t: kc.Array[float], c: kc.Array[int], out: kc.Array[float]):",
            "    i = kc.tid()",
            f"    q = i * {SCRATCH}",
            f"    n, m = i + {self.r.randrange(4)}, {self.r.randrange(4)}",
            f"    a, b = x[i % {N}], 0.5",
            f"    v = kc.float3(a, b, x[(i + 1) % {N}])",
            "    w = kc.local(3)",
            "    g = kc.mat22(a, b, 0.3, a * b)",
            "    s = State(v, 0.2, 1)",
        ]
        for _ in range(self.r.randrange(3, 8)):
            if self.statement(1, 3, False):
                break
        self.put(
            1, "kc.atomic_add(out, 0, a * b + kc.dot(v, v) + w[0] * w[1] + g[0, 1] * g[1, 0] + s.e * kc.dot(s.p, v))"
        )
        return self.lines


HELPER = """
@kc.func
def helper(a: float, b: float) -> float:
    s = a
    if b > 0.2:
        return kc.sin(a * b)
    for k in range(2):
        s = s * b + 0.3 * a
        if s > 1.0:
            return s * 0.5
    return s - b


@kc.func
def potential(a: float, b: float) -> float:
    return a * a * kc.sin(b)


@kc.func
def push(t: kc.Array[float], q: int, n: int, a: float) -> float:
    for k in range(2):
        t[q + (n + k) % 5] = t[q + n % 5] * 0.5 + kc.tanh(a)
        if t[q + (n + k) % 5] > 0.6:
            return t[q + n % 5] * a
    return kc.sin(t[q + (n + 1) % 5])
"""

TYPES = """
@kc.struct
class State:
    p: kc.float3
    e: float
    k: int


@kc.func
def ruled(x: float) -> float:
    return kc.tanh(x)


@ruled.adjoint
def _(x, adj):
    y = kc.tanh(x)
    return 3.0 * (1.0 - y * y) * adj
"""


class Program:
    """`seed` decides everything."""

    def __init__(self, seed):
        r = self.r = random.Random(seed)
        self.seed, self.threads = seed, r.choice((1, 1, 2, 3))
        self.count = r.choice((1, 1, 2, 3))
        self.size = r.randrange(0, 4)
        self.sources = []
        for k in range(self.count):
            lines = Generator(r, one_thread=self.threads == 1).write(f"body{k}")
            self.sources.append("\n".join(lines))
        self.text = "import kernelc as kc\n" + TYPES + HELPER + "\n\n" + "\n\n".join(self.sources) + "\n"
        self.x = np.array([r.uniform(-1.2, 1.2) for _ in range(N)])
        self.t = np.array([r.uniform(-1.0, 1.0) for _ in range(SCRATCH * self.threads)])

    def kernels(self, loop_tape="all"):
        name = f"<fuzz {self.seed}>"
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        scope = {"__name__": "fuzzed"}
        exec(compile(self.text, name, "exec"), scope)
        return [kc.kernel(scope[f"body{k}"], loop_tape=loop_tape) for k in range(self.count)]

    def expected(self):
        """Value of the loss and its derivatives by x and t; None if the point is too close to a kink or overflows."""
        size = N + len(self.t)
        unit = np.eye(size)
        x = Grid(Dual(v, unit[k]) for k, v in enumerate(self.x))
        t = Grid(Dual(v, unit[N + k]) for k, v in enumerate(self.t))
        out = Grid([Dual(0.0, np.zeros(size))])
        plain = Plain()
        plain.func = lambda f: f
        plain.Array = {float: None, int: None}
        count = [0]
        text = (
            self.text.replace("import kernelc as kc", "")
            .replace(TYPES, "")
            .replace("r = s;", "r = State(s.p, s.e, s.k);")
        )
        scope = {"kc": plain, "State": copied_state, "ruled": ruled}
        exec(text.replace("kc.atomic_add(c, 0, ", "kc.atomic_count(c, "), scope)
        for k in range(self.count):
            body = scope[f"body{k}"]
            for plain.thread in range(self.threads):
                body(x, self.size, t, count, out)
        total = out[0]
        for v in x:
            total = total + dual(v) * 0.1
        for v in t:
            total = total + dual(v) * 0.2
        return total.v, total.d[:N], total.d[N:]

    def run(self, device, loop_tape="all", real=np.float64):
        x = kc.array(self.x.astype(real), requires_grad=True)
        t = kc.array(self.t.astype(real), requires_grad=True)
        out, count = kc.array(np.zeros(1, real)), kc.zeros(1, dtype=int)
        with kc.Tape() as tape:
            for kernel in self.kernels(loop_tape):
                kc.launch(kernel, self.threads, [x, self.size], [t, count, out], device=device)
        value = out.numpy()[0] + 0.1 * x.numpy().sum() + 0.2 * t.numpy().sum()
        tape.backward(grads={out: [1.0], x: np.full(N, 0.1), t: np.full(len(self.t), 0.2)})
        return value, x.grad.numpy(), t.grad.numpy()
