"""Random programs: source text of kernels, drawn by Hypothesis from a grammar; so a failure shrinks to a few lines.

Every value stays in range, because what is assigned passes through sin, tanh or a factor below one: central differences
are meaningful. Threads write only rows of their own, or by atomics. Simple templates stand first: shrinking goes there.

    <E> real   <L> real leaf   <V> vector   <I> whole number   <T> truth
    <F> name of a real   <U> of a vector   <P> of a whole number   <C> component   <3> index below 3
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import hypothesis.strategies as st
from fuzz.layouts import BITS, HALVES

IMPORT = "import kernelc as kc\n\n\n"
STRUCT = """\
@kc.struct
class Ball:
    x: kc.float3
    m: float


"""
PACK = """\
@kc.struct
class Pack:
    x: kc.Array[float]
    s: kc.Array[float, 2]
    gain: float = 0.7
    wind: kc.Array[float] | None = None


"""
SIGNATURE = """\
@kc.kernel
def program(x: kc.Array[float], v: kc.Array[kc.float3], idx: kc.Array[int], n: int, s: kc.Array[float, 2],
            t: kc.Array[kc.float3, 2], sums: kc.Array[float], lows: kc.Array[float], highs: kc.Array[float],
            tally: kc.Array[int], flags: kc.Array[bool], bits: kc.Array[kc.bits, 2], half: kc.Array[kc.half, 2],
            out: kc.Array[float, 2]):
    i = kc.tid()
"""
LOCALS = {
    "a": "a = x[i]",
    "b": "b = 0.4",
    "c": "c = 0.5 * x[i + 1]",
    "u": "u = v[i]",
    "w": "w = kc.float3(0.3, -0.2, x[i])",
    "p": "p = idx[i]",
    "q": "q = 1",
    "ok": "ok = x[i] < 0.1",
    "buf": "buf = kc.local(3, float)",
    "ball": "ball = Ball(x=v[0], m=x[0])",
    "turn": "turn = kc.mat33(0.5, x[i], -0.3, 0.2, 0.7, x[0], -0.4, 0.1, 0.6)",
    "row": "row = s[i]",
    "pack": "pack = Pack(x=x, s=s, gain=kc.sin(x[i]))",
    "windy": "windy = Pack(x=x, s=s, wind=x)",
    "state": "state = kc.rng(n, i)",
}
"""What a program may use: each is declared at the top where it is used."""
RESULTS = {
    "a": "out[i, 0] += a",
    "b": "out[i, 1] += b",
    "c": "out[i, 2] = kc.sin(c)",
    "u": "t[i, 0] = u",
    "w": "t[i, 1] += w",
    "p": "s[i, 1] += 0.1 * float(p)",
    "q": "s[i, 2] += 0.1 * float(q)",
    "ok": "s[i, 3] += 0.3 if ok else -0.2",
    "buf": "s[i, 0] += buf[0] - 0.5 * buf[1] * buf[2]",
    "ball": "t[i, 0] += ball.x * ball.m",
    "turn": "t[i, 1] += turn[0] + 0.5 * turn[:, 1] - turn[2, 2] * turn[1]",
    "row": "row[2] += 0.2 * row[0]",
    "pack": "out[i, 0] += pack.gain * pack.x[i]",
    "windy": "out[i, 1] -= windy.gain * windy.wind[i]",
    "state": "out[i, 2] += 0.1 * kc.randf(state)",
}
"""And is written out at the end."""
FUNCTIONS = {
    "f": ("f(a, b)", {"c": "c = 0.5 * a", "p": "p = 1", "q": "q = 2"}, "", "kc.sin(a + c * b)"),
    "g": ("g(u, a)", {"b": "b = u.x", "c": "c = a", "w": "w = 0.5 * u", "p": "p = 1", "q": "q = 0"}, "vectors",
          "0.5 * u + a * w"),
    "h": ("h(s, i, a)", {"b": "b = 0.1", "c": "c = a", "p": "p = 2", "q": "q = i"}, "rows",
          "kc.tanh(a + s[i, 1] * b)"),
    "line": ("line(row, a)", {"b": "b = row[0]", "c": "c = a", "p": "p = 2", "q": "q = 1"}, "row",
             "kc.tanh(a + row[1] * b)"),
    "blow": ("blow(pack, i, a)", {"b": "b = pack.gain", "c": "c = a", "p": "p = i", "q": "q = 0"}, "pack",
             "kc.sin(a * b + (pack.wind[i] if pack.wind is not None else pack.s[i, 0]))"),
    "drawn": ("drawn(state, a)", {"b": "b = 0.3", "c": "c = a", "p": "p = 1", "q": "q = 2"}, "draws",
              "kc.sin(a + kc.randf(state) * b)"),
    "two": ("two(a, b)", {"c": "c = a * b", "p": "p = 3", "q": "q = 1"}, "", "kc.sin(a - c), 0.5 * b"),
}  # fmt: skip
"""Functions that a kernel may call: parameters, what they declare, what else they may use, and what they return."""

STATEMENTS = {
    "": ["<F> = kc.sin(<E>)", "<F> += 0.3 * kc.sin(<E>)", "<F> *= kc.cos(<E>)",
         "<F> = 0.5 * <F> + 0.4 * kc.tanh(<E>)", "<F> -= 0.2 * kc.tanh(<E>)", "<F> /= 1.5 + kc.sin(<E>)",
         "<F> = 0.5 * <E> / (1.0 + kc.abs(<E>))", "<F> **= 2", "<P> = <I> % 7", "<P> += 1",
         "<P> = (<P> * 3 + <I>) % 5", "<P> -= 2", "<P> //= 2", "a, b = b, a", "p, q = q, p",
         "a, c = 0.5 * c, kc.sin(<E>)", "<F> = <F>", "<P> = <P>"],
    "vectors": ["<U>.<C> = kc.sin(<E>)", "<U> = <V>", "<U>.<C> += 0.3 * kc.sin(<E>)", "<U>[<3>] = kc.tanh(<E>)",
                "<U>[<3>] *= kc.cos(<E>)", "<U> *= kc.cos(<E>)", "<U> -= 0.3 * <V>", "u, w = w, <V>", "<U> = <U>",
                "<U>[0:2] = 0.6 * <U>[1:]", "<U>[1:] *= kc.cos(<E>)", "<U>[::-1] = 0.7 * <V>",
                "<U>[:2] += 0.2 * (<V>)[1:3]"],
    "row": ["row[<4>] = kc.sin(<E>)", "row[<4>] *= kc.cos(<E>)", "row[<4>] += 0.3 * kc.sin(<L>)"],
    "draws": ["<F> = kc.randf(state)", "<F> += 0.2 * kc.randf(state)"],
    "rows": ["s[i, <4>] = kc.sin(<E>)", "s[i, <4>] *= kc.cos(<E>)", "s[i, <4>] += 0.3 * kc.sin(<L>)",
             "s[i, <4>] -= 0.3 * <L>", "s[i, <4>] /= 1.5 + kc.sin(<E>)"],
    "kernel": ["out[i, <3>] = <E>", "out[i, <3>] += <E>", "t[i, <2>] = <V>", "t[i, <2>].<C> = kc.sin(<E>)",
               "t[i, <2>] += 0.3 * <V>", "t[i, <2>][<3>] *= kc.cos(<E>)", "t[i, <2>] *= kc.sin(<E>)",
               "t[i, <2>].y -= 0.3 * kc.sin(<E>)", "buf[<3>] = kc.sin(<E>)", "buf[<3>] += 0.3 * kc.sin(<E>)",
               "buf[<3>] *= kc.cos(<E>)", "ball.m = kc.sin(<E>)", "ball.x.<C> *= kc.cos(<E>)", "ball.x = <V>",
               "ball = Ball(<V>, kc.sin(<E>))", "ok = <T>",
               "turn[<3>, <3>] = kc.sin(<E>)", "turn *= kc.cos(<E>)", "turn[<3>] = 0.7 * <V>",
               "turn[:, 1] = 0.6 * turn[<3>]", "turn[0:2, 1:] = turn[1:, 0:2]", "turn[2, :] -= 0.3 * <V>",
               "turn = 0.4 * (turn * kc.mat33(0.6, -0.3, 0.1, 0.2, 0.5, -0.4, 0.3, 0.1, 0.7))",
               "row[<4>] = kc.sin(<E>)", "row[<4>] -= 0.3 * kc.sin(<E>)", "<F> = kc.randf(state)",
               "<P> = kc.clamp(kc.int2(<I>, <P>), kc.int2(-1, 0), kc.int2(4, 5)).y",
               "<P> = kc.max(kc.abs(kc.int2(<P>, <I>) - kc.int2(1, 2)), kc.int2(1, 0)).x % 5",
               "<P> = int(3.0 * kc.sin(<E>))",
               "kc.atomic_xor(bits, i, <4>, stored(<N4>))", "kc.atomic_or(bits, i, <4>, stored(<N4>))",
               "kc.atomic_and(bits, i, <4>, stored(<N4>))",
               "p = int(kc.atomic_exchange(bits, i, <4>, stored(<N4>)) % 5)",
               "q = int(kc.atomic_cas(bits, i, <4>, stored(<N4>), stored(<N4>)) % 5)",
               "a, b = two(<E>, <L>)", "a, b = kc.grad(f)(<E>, <L>)",
               "kc.atomic_add(tally, <2>, 1)", "p = kc.atomic_add(tally, <2>, 1)",
               "q = kc.atomic_max(tally, <2>, <I>) % 5", "sums[<3>] += kc.sin(<E>)",
               "kc.atomic_add(sums, <3>, kc.sin(<E>))", "kc.atomic_sub(sums, <3>, kc.sin(<E>))",
               "kc.atomic_min(lows, <2>, kc.sin(<E>))", "kc.atomic_max(highs, <2>, kc.sin(<E>))",
               "bits[i, <4>] = stored(<I>)", "bits[i, <4>] += 1", "bits[i, <4>] *= 3", "bits[i, <4>] //= 2",
               "bits[i, <4>] ^= 5", "p = int(kc.atomic_add(bits, i, <4>, 100) % 5)", "half[i, <4>] = 0.1 * float(<I>)",
               "half[i, <4>] = <N> - 0.5 * half[i, <4>]", "half[i, <4>] += 0.3 - 0.5 * half[i, <4>]"],
}  # fmt: skip
REALS = {
    "": ["<L> * <E>", "(<L> + <E>)", "(<L> - <E>)", "kc.sin(<E>)", "(<E> / (2.5 + kc.sin(<L>)))", "-<E>",
         "kc.sqrt(2.0 + kc.sin(<E>))", "kc.exp(kc.sin(<L>))", "(<E> if <T> else <L>)", "kc.min(<E>, <L>)",
         "kc.max(<E>, <L>)", "kc.where(<T>, <E>, <L>)"],
    "vectors": ["kc.dot(<U>, <V>)"],
    "kernel": ["f(<E>, <L>)", "h(s, i, <E>)", "line(row, <E>)", "line(s[i], <E>)", "blow(pack, i, <E>)",
               "blow(windy, i, <E>)", "drawn(state, <E>)", "kc.min(b=<E>, a=<L>)", "kc.clamp(<E>, low=-0.4, high=0.7)",
               "kc.grad(kc.sin)(<E>)", "kc.grad(kc.tanh)(<L>)", "kc.noise(3, <E>)"],
}  # fmt: skip
LEAVES = {
    "": ["<F>", "<F>", "<N>", "0.1 * float(<I>)"],
    "vectors": ["<U>.<C>", "<U>[<3>]"],
    "rows": ["s[i, <4>]"],
    "kernel": [
        "x[<5>]",
        "buf[<3>]",
        "t[i, <2>].<C>",
        "out[i, <3>]",
        "ball.m",
        "ball.x.<C>",
        "half[i, <4>]",
        "0.1 * float(bits[i, <4>] % 9)",
        "turn[<3>, <3>]",
        "pack.gain",
        "pack.x[<5>]",
        "0.3 * kc.randf(state)",
    ],
    "row": ["row[<4>]"],
    "pack": ["pack.s[i, <4>]", "pack.gain"],
}
VECTORS = {
    "": ["(0.5 * u + 0.4 * w)", "0.6 * u * kc.sin(<E>)", "kc.float3(0.2, kc.sin(<E>), 0.5 * u.x)",
         "0.4 * kc.cross(u, w)", "(u if <T> else 0.5 * w)", "(-<U>)", "<U> / (1.5 + kc.sin(<E>))"],
    "kernel": ["0.5 * v[<4>]", "0.7 * t[i, <2>]", "g(<U>, 0.3 * kc.sin(<E>))", "0.8 * ball.x",
               "0.3 * (turn * <U>)", "0.3 * (<U> * turn)", "0.6 * turn[<3>]", "0.6 * turn[:, <3>]",
               "0.4 / (kc.float3(1.5) + kc.cw_mul(<U>, <U>))"],
}  # fmt: skip
WHOLES = {"": ["<P>", "<N4>", "(<P> + <N4>)", "(<P> - <P>)", "<P> * 2", "(<P> // 2)", "(<P> if <T> else <N4>)"],
          "kernel": ["idx[<6>]", "int(bits[i, <4>] % 7)"]}  # fmt: skip
TESTS = {"": ["<F> < <N>", "<P> % 2 == 0", "<F> > <L>", "<P> < <N4>", "<F> < -<N>", "-0.3 < <F> < <N>",
              "not <F> < <N>", "(<F> < <N> and <P> < <N4>)", "(<F> > <L> or <P> % 2 == 0)"],
         "vectors": ["<U>.y < <N>"],
         "kernel": ["ok", "(not ok and <F> < <N>)", "flags[<6>]", "(<F> < <N>) <= flags[<6>]", "flags[<6>] > ok",
                    "(flags[<6>] + ok) < <P>", "flags[<6>] != (<P> < <N4>)", "bits[i, <4>] > 100", "half[i, <4>] < <N>",
                    "bits[i, <4>] & 2 == 0"]}  # fmt: skip
RANGES = {"": ["range(2)", "range(<I> % 4)", "range(3, -1, -1)", "range(1, <P> % 3 + 3)", "range(<I> % 3, 5, 2)",
               "range(4, <I> % 4 - 1, -2)", "range(<P> % 3 + 1)", "range(20)"],
          "tuples": ["(2, 0, 3)", "reversed((1, 4))", "reversed(range(<I> % 4))", "reversed(range(1, <P> % 3 + 3, 2))",
                     "reversed(range(3))"],
          "kernel": ["range(n)", "range(n - 2, idx[<6>])", "range(0)"]}  # fmt: skip
GRAMMAR = {"E": REALS, "L": LEAVES, "V": VECTORS, "I": WHOLES, "T": TESTS}


@dataclass(frozen=True)
class Program:
    """The text of a module with one kernel, `program`, the seeds of its inputs and of how they lie in memory."""

    source: str
    seed: int
    layout: int = 0

    def __repr__(self) -> str:
        return f"\n{self.source}\n# inputs: seed {self.seed}, layout {self.layout}\n"

    def kind(self, name: str) -> str:
        """What `bits` or `half` is an array of."""
        found = re.search(rf"\b{name}: kc\.Array\[([\w.]+)", self.source)
        assert found is not None
        return found[1]

    def _repr_pretty_(self, printer, cycle) -> None:
        """For Hypothesis, which would print the source as one line."""
        printer.text(repr(self))

    def uses(self, pattern: str) -> bool:
        return re.search(pattern, self.source) is not None


@st.composite
def programs(draw: st.DrawFn) -> Program:
    kernel = _Writer(draw, ("", "vectors", "rows", "kernel", "tuples"), budget=16)
    kernel.block(1, at_least=1, more=9)
    names = [n for n in FUNCTIONS if re.search(rf"\b{n}\(|grad\({n}\)", kernel.text)]
    functions = [_function(draw, name) for name in names]
    used = [name for name in LOCALS if re.search(rf"\b{name}\b", kernel.text)]
    lines = [*(f"    {LOCALS[n]}" for n in used), *kernel.lines, *(f"    {RESULTS[n]}" for n in used)]
    head = IMPORT + (STRUCT if "ball" in used else "") + (PACK if {"pack", "windy"} & set(used) else "")
    kinds = draw(st.sampled_from(list(BITS))), draw(st.sampled_from(list(HALVES)))
    signature = SIGNATURE.replace("kc.bits", kinds[0]).replace("kc.half", kinds[1])
    text = "\n".join(lines).replace("stored(", "kc.uint64(" if kinds[0] == "kc.uint64" else "(")
    source = head + "".join(functions) + signature + text + "\n"
    return Program(source, draw(st.integers(0, 99)), draw(st.integers(0, 30)))


def _function(draw: st.DrawFn, name: str) -> str:
    head, local, feature, result = FUNCTIONS[name]
    writer = _Writer(draw, ("", feature, "tuples"), budget=4, returns=result)
    writer.block(1)
    text = f"{writer.text}\n{result}"
    lines = [f"    {line}" for n, line in local.items() if re.search(rf"\b{n}\b", text)]
    return "\n".join(["@kc.func", f"def {head}:", *lines, *writer.lines, f"    return {result}"]) + "\n\n\n"


@cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


class _Writer:
    """Writes one function. `returns` is what its `return` statements give back; a kernel's give nothing."""

    def __init__(self, draw: st.DrawFn, features: tuple[str, ...], budget: int, returns: str = ""):
        self.draw, self.features, self.budget, self.returns = draw, features, budget, returns
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.counters = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    # -- drawing
    def number(self, high: int, low: int = 0) -> int:
        return self.draw(_integers(low, high))

    def one(self, choices: list[str]) -> str:
        return choices[self.number(len(choices) - 1)]

    def fill(self, template: str, depth: int = 2) -> str:
        """The template with its places filled in."""
        return re.sub(r"<(\w+)>", lambda place: self.place(place[1], depth), template)

    def from_(self, table: dict[str, list[str]], depth: int = 2) -> str:
        choices = [c for feature in self.features for c in table.get(feature, ())]
        return self.fill(self.one(choices), depth)

    def place(self, kind: str, depth: int) -> str:
        if kind in GRAMMAR:
            if kind == "E" and (depth <= 0 or self.number(2) == 0):
                kind = "L"
            if depth < 0:
                return {"L": "a", "V": "(-u)", "I": "1", "T": "a < 0.2"}[kind]
            return self.from_(GRAMMAR[kind], depth - 1)
        if kind == "N":
            return str(self.number(12, 1) / 10)
        if kind == "N4":
            return str(self.number(4))
        if kind.isdigit():
            return self.index(int(kind))
        names = {"F": ["a", "b", "c"], "U": ["u", "w"], "P": ["p", "q", *self.loops], "C": ["x", "y", "z"]}
        return self.one(names[kind])

    def index(self, size: int) -> str:
        if self.number(2) == 0:
            return str(self.number(size - 1))
        return f"({self.place('P', 0)} + {self.number(2)}) % {size}"

    # -- statements
    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def block(self, depth: int, at_least: int = 0, more: int = 4) -> None:
        before = len(self.lines)
        while self.budget > 0 and (at_least > 0 or self.number(more) > 0):
            at_least -= 1
            self.budget -= 1
            self.statement(depth)
        if len(self.lines) == before and depth > 1:
            self.emit(depth, "pass")

    def statement(self, depth: int) -> None:
        kind = self.number(11)
        if kind < 6 or depth > 5:
            line = self.from_(STATEMENTS)
            # A loop variable may be changed, but stays small; the name of a counter of `while` decides its end.
            self.emit(depth, re.sub(r"^m\d+ .*", "a = kc.sin(a)", line))
        elif kind < 11:
            [self.if_, self.if_, self.for_, self.for_, self.while_][kind - 6](depth)
        else:
            self.leave(depth)

    def if_(self, depth: int) -> None:
        self.emit(depth, f"if {self.place('T', 1)}:")
        self.block(depth + 1, at_least=1)
        while self.number(3) == 3:
            self.emit(depth, f"elif {self.place('T', 1)}:")
            self.block(depth + 1, at_least=1)
        if self.number(1):
            self.emit(depth, "else:")
            self.block(depth + 1, at_least=1)

    def for_(self, depth: int) -> None:
        name = f"j{len(self.loops)}"
        ranges = RANGES if not self.loops else {k: [r for r in v if "20" not in r] for k, v in RANGES.items()}
        self.emit(depth, f"for {name} in {self.from_(ranges)}:")
        self.inside(name, depth)

    def while_(self, depth: int) -> None:
        name = f"m{self.counters}"
        self.counters += 1
        self.emit(depth, f"{name} = 0")
        forever = self.number(2) == 2
        self.emit(depth, "while True:" if forever else f"while {name} < {self.number(4, 1)} and {self.place('T', 1)}:")
        self.emit(depth + 1, f"{name} += 1")
        if forever:
            self.emit(depth + 1, f"if {name} > {self.number(3, 1)}:")
            self.emit(depth + 2, "break")
        self.inside(name, depth)

    def inside(self, name: str, depth: int) -> None:
        self.loops.append(name)
        self.block(depth + 1, at_least=1)
        self.loops.pop()

    def leave(self, depth: int) -> None:
        """break, continue or return, if something is the case."""
        back = f"return {self.returns}" if self.returns else "return"
        self.emit(depth, f"if {self.place('T', 1)}:")
        if self.number(2) == 2:
            self.block(depth + 1, at_least=1)
        self.emit(depth + 1, self.one(["break", "continue", back] if self.loops else [back]))
