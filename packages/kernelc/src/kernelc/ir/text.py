"""Prints the intermediate representation: what `kc.inspect(kernel, "ir")` shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import nodes as n


def kernel_text(kernel: n.Kernel) -> str:
    """The kernel as readable text, one statement per line, with source lines at the right."""
    return _Printer().kernel(kernel)


class _Printer:
    def __init__(self) -> None:
        self.names: dict[n.Value, str] = {}
        self.taken: set[str] = set()
        self.lines: list[str] = []
        self.line = -1

    def kernel(self, kernel: n.Kernel) -> str:
        params = []
        for p in kernel.params:
            if p.array is not None:
                params.append(f"{p.name}: {p.array.type!r}")
            else:
                params.extend(self.define(leaf) for leaf in p.leaves)
        self.lines.append(f"kernel {kernel.name}({', '.join(params)})  # {kernel.span}")
        self.block(kernel.body, 1)
        return "\n".join(self.lines) + "\n"

    def name(self, value: n.Value) -> str:
        if isinstance(value, n.Const):
            return str(value.value).lower() if isinstance(value.value, bool) else repr(value.value)
        if value not in self.names:
            base = value.name or "t"
            name, count = base, 1
            while name in self.taken:
                count += 1
                name = f"{base}'{count}"
            self.taken.add(name)
            self.names[value] = name
        return self.names[value]

    def define(self, value: n.Value) -> str:
        return f"{self.name(value)}: {value.type}"

    def list(self, values: Iterable[n.Value]) -> str:
        return ", ".join(self.name(v) for v in values)

    def defines(self, values: Iterable[n.Value]) -> str:
        return ", ".join(self.define(v) for v in values)

    def put(self, depth: int, text: str, stmt: n.Stmt) -> None:
        note = ""
        if stmt.span is not None and stmt.span.line != self.line:
            self.line = stmt.span.line
            note = f"  # line {stmt.span.line}"
        self.lines.append("  " * depth + text + note)

    def block(self, block: n.Block, depth: int) -> None:
        for stmt in block.body:
            getattr(self, type(stmt).__name__.lower())(stmt, depth)
        if not block.body:
            self.lines.append("  " * depth + "pass")

    def place(self, array: n.ArrayRef, index: Sequence[n.Value], comps: Sequence[int]) -> str:
        from ..types import leaves

        whole = len(comps) == len(leaves(array.type.element))
        return f"{array!r}[{self.list(index)}]" + ("" if whole else f".{','.join(map(str, comps))}")

    def op(self, s: n.Op, d: int) -> None:
        self.put(d, f"{self.define(s.out)} = {s.op} {self.list(s.args)}", s)

    def query(self, s: n.Query, d: int) -> None:
        of = f" {s.array!r}" if s.array else ""
        axis = "" if s.what == "asked" else f" {s.axis}"
        self.put(d, f"{self.define(s.out)} = {s.what}{of}{axis}", s)

    def load(self, s: n.Load, d: int) -> None:
        self.put(d, f"{self.defines(s.outs)} = load {self.place(s.array, s.index, s.comps)}", s)

    def store(self, s: n.Store, d: int) -> None:
        word = "store logged" if s.logged else "store"
        self.put(d, f"{word} {self.place(s.array, s.index, s.comps)} = {self.list(s.values)}", s)

    def atomic(self, s: n.Atomic, d: int) -> None:
        outs = f"{self.defines(s.outs)} = " if s.outs else ""
        log = " logged" if s.logged else ""
        place = self.place(s.array, s.index, s.comps)
        values = self.list((*s.expected, *s.values))
        self.put(d, f"{outs}atomic{log} {s.kind} {place}, {values}", s)

    def call(self, s: n.Call, d: int) -> None:
        self.put(d, f"{self.defines(s.outs)} = call {s.function.name}({self.list(s.args)})", s)

    def gradient(self, s: n.Gradient, d: int) -> None:
        self.put(d, f"{self.defines(s.outs)} = gradient at {self.list(s.args)}", s)

    def check(self, s: n.Check, d: int) -> None:
        self.put(d, f"check {self.name(s.cond)} else fail {s.code}: {s.message}", s)

    def print(self, s: n.Print, d: int) -> None:
        self.put(d, f"print {s.parts!r} {self.list(s.values)}", s)

    def push(self, s: n.Push, d: int) -> None:
        self.put(d, f"push {s.tape.name}: {self.list(s.values)}", s)

    def pop(self, s: n.Pop, d: int) -> None:
        self.put(d, f"{self.defines(s.outs)} = pop {s.tape.name}", s)

    def mark(self, s: n.Mark, d: int) -> None:
        self.put(d, f"{self.define(s.out)} = mark", s)

    def undo(self, s: n.Undo, d: int) -> None:
        self.put(d, f"undo to {self.name(s.mark)}", s)

    def record(self, s: n.Record, d: int) -> None:
        self.put(d, f"record {self.name(s.sequence)}: {self.name(s.value)}", s)

    def recall(self, s: n.Recall, d: int) -> None:
        self.put(d, f"{self.define(s.out)} = recall {self.name(s.sequence)}", s)

    def claim(self, s: n.Claim, d: int) -> None:
        place = self.place(s.array, s.index, [s.comp])
        self.put(d, f"{self.define(s.out)} = claim {place} if {self.name(s.cond)}", s)

    def results(self, outs: Sequence[n.Value]) -> str:
        return f"{self.defines(outs)} = " if outs else ""

    def yields(self, block: n.Block, depth: int) -> None:
        if block.yields:
            self.lines.append("  " * depth + f"yield {self.list(block.yields)}")

    def if_(self, s: n.If, d: int) -> None:
        self.put(d, f"{self.results(s.outs)}if {self.name(s.cond)}", s)
        self.block(s.then, d + 1)
        self.yields(s.then, d + 1)
        if s.orelse.body or s.orelse.yields:
            self.lines.append("  " * d + "else")
            self.block(s.orelse, d + 1)
            self.yields(s.orelse, d + 1)

    def loop(self, s: n.Loop, d: int) -> None:
        trips = self.name(s.trips) if s.trips is not None else "ever"
        carried = ", ".join(
            f"{self.define(p)} = {self.name(i)}" for p, i in zip(s.body.params[1:], s.inits, strict=True)
        )
        order = "from the last below" if s.down else "below"
        head = f"{self.results(s.outs)}loop {self.define(s.body.params[0])} {order} {trips}"
        self.put(d, head + (f" with {carried}" if carried else ""), s)
        self.block(s.body, d + 1)
        self.yields(s.body, d + 1)
        if s.stop is not None:
            self.lines.append("  " * (d + 1) + f"stop if {self.name(s.stop)}")


setattr(_Printer, "if", _Printer.if_)
