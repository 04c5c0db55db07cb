"""IR → C++: one function per kernel that runs a range of threads; lines carry Python's numbers."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import ir
from ..builtins import TABLE
from ..errors import Span
from ..records import record
from ..types import BOOL, FLOAT32, INT64, UINT64, Scalar, element_size, leaf_offsets, leaves
from .layout import SPECIAL, UNASKED, Layout, layout
from .ownership import first_arrays, strip_arrays, taken_arrays

_TYPES = {"bool": "bool", "int32": "int32_t", "int64": "int64_t", "uint32": "uint32_t", "uint64": "uint64_t",
          "float32": "float", "float64": "double", "int8": "int8_t", "int16": "int16_t", "uint8": "uint8_t",
          "uint16": "uint16_t", "float16": "kc_float16", "bfloat16": "kc_bfloat16"}  # fmt: skip


@record
class Site:
    """A place where a kernel may fail or print: what Python needs for the message."""

    span: Span | None
    message: str = ""
    array: str = ""
    ndim: int = 0
    axis: int = 0
    parts: tuple[str | None, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass
class Code:
    """The C++ of one kernel, and the places in it that can report something."""

    name: str
    text: str
    sites: list[Site] = field(default_factory=list)
    kernel: str = ""
    span: Span | None = None


def emit(
    kernel: ir.Kernel, name: str, *, contiguous: frozenset[int] = frozenset(), debug: bool = False,
    races: frozenset[int] = frozenset(),
) -> Code:  # fmt: skip
    """C++ for a kernel. `contiguous` are the positions of arrays whose elements lie densely, `races` of those that
    threads are watched on; debug mode watches all."""
    return _Emitter(kernel, name, contiguous, debug, races).run()


HEADER = '#include "kernelc/kernel.h"\n'
SIGNS = {"add": "+", "and": "&", "or": "|", "xor": "^"}
"""Of atomics that are operators."""


def _literal(value: ir.Const) -> str:
    kind, number = value.type, value.value
    if kind is BOOL:
        return "true" if number else "false"
    if kind.is_float:
        if math.isnan(number):
            return f'({_TYPES[kind.name]})__builtin_nan("")'
        if math.isinf(number):
            return f"({'-' if number < 0 else ''}({_TYPES[kind.name]})__builtin_inf())"
        return f"{number!r}f" if kind is FLOAT32 else repr(float(number))
    if kind.name == "int32":
        return f"({number})" if number > -(2**31) else "INT32_MIN"
    if kind.name == "int64":
        return f"INT64_C({number})" if number > -(2**63) else "INT64_MIN"
    if kind.name == "uint64":
        return f"UINT64_C({number})"
    return f"{number}u"


def label(array: ir.ArrayRef) -> str:
    """An array as its user calls it."""
    return array.name if array.role in ("value", "final") else f"{array.name}.{array.role}"


def _about(array: ir.ArrayRef) -> dict[str, Any]:
    """What the message of a failure says about an array."""
    return {"array": label(array), "ndim": array.type.ndim}


class _Emitter:
    FUNCTION = "static void"

    def __init__(
        self, kernel: ir.Kernel, name: str, contiguous: frozenset[int], debug: bool, races: frozenset[int] = frozenset()
    ):
        self.kernel, self.entry, self.contiguous, self.debug, self.races = kernel, name, contiguous, debug, races
        # An adjoint forms derivatives before it knows that they are not asked for: only what it stores is checked.
        writes = (s for s in kernel.body.walk() if isinstance(s, (ir.Store, ir.Atomic)))
        self.checks = debug and not kernel.derivative and not any(s.array.role == "grad" for s in writes)
        self.layout: Layout = layout(kernel)
        # All of them, or none: a launch in strips needs a copy of each.
        strips = [] if debug or races else strip_arrays(kernel)
        self.strips = strips if all(a.position in contiguous for a in strips) else []
        self.first = frozenset[int]() if debug else first_arrays(kernel)
        self.taken = frozenset[int]() if debug else taken_arrays(kernel)
        self.roles: defaultdict[int, set[str]] = defaultdict(set)
        """The roles of an array that the kernel has to do with, by its position."""
        self.asked: set[ir.ArrayRef] = set()
        """Those of which the kernel asks whether anybody wants their adjoint."""
        for s in kernel.body.walk():
            if isinstance(s, (ir.Load, ir.Store, ir.Atomic)):
                self.roles[s.array.position].add(s.array.role)
            elif isinstance(s, ir.Query) and s.what == "asked" and s.array is not None:
                self.asked.add(s.array)
        self.claimed: frozenset[int] = frozenset()
        """Arrays of which the back end has to find out who takes their adjoint."""
        self.lines: list[str] = []
        self.functions: dict[ir.Custom, str] = {}
        self.function_text: list[str] = []
        self.names: dict[ir.Value, str] = {}
        self.sites: list[Site] = []
        self.depth = 1
        self.line: str | None = None

    # -- the whole
    def run(self) -> Code:
        self.unpack()
        threads = self.lines
        self.lines = []
        self.depth = 2
        self.block(self.kernel.body)
        body = self.lines
        head = [f'extern "C" __attribute__((visibility("default"))) void {self.entry}'
                "(const int64_t* block, int64_t begin, int64_t end, kc_context* ctx) {"]  # fmt: skip
        loop = ["    for (int64_t thread = begin; thread < end; ++thread) {", "        ctx->thread = thread;"]
        text = "\n".join([*self.function_text, *head, *threads, *loop, *body, "    }", "}"]) + "\n"
        return Code(self.entry, text, self.sites, self.kernel.name, self.kernel.span)

    def unpack(self) -> None:
        self.put("(void)block; (void)ctx;")
        if self.strips:
            within = "(block[4] >> 32 ? begin % (block[4] >> 32) : begin)"
            self.put(f"const int64_t strip = block[4] ? {within} / (block[4] & 0x7fffffff) : 0;")
        for axis in range(self.kernel.dims):
            self.put(f"const int64_t dim{axis} = block[{axis}]; (void)dim{axis};")
        for param, slot in zip(self.kernel.params, self.layout.slots, strict=True):
            if param.array is None:
                for k, leaf in enumerate(param.leaves):
                    kind = _TYPES[leaf.type.name]
                    self.put(f"const {kind} {self.name(leaf)} = kc_word<{kind}>(block + {slot.first + k});")
            else:
                self.unpack_array(param.array)

    def unpack_array(self, array: ir.ArrayRef) -> None:
        slot, p = self.layout.slots[array.position], array.position
        used = self.roles[p]
        for axis in range(slot.ndim):
            self.put(f"const int64_t a{p}_n{axis} = block[{slot.shape(axis)}]; (void)a{p}_n{axis};")
        for role in sorted(used):
            # An array may be passed twice, so two gradients may be one; what a launch writes never overlaps.
            promise = "" if role == "grad" else " __restrict__"
            text = f"(char*)block[{slot.role(role)}]"
            if array.partner(role) in self.strips:
                text = self.strip_pointer(array, role)
            self.put(f"char* const{promise} a{p}_{role} = {text};")
        if p in self.first | self.taken:
            self.put(f"const bool special{p} = block[{slot.role('special')}] == {SPECIAL};")
        if array in self.asked:
            self.put(f"const bool asked{p} = block[{slot.role('special')}] != {UNASKED};")
        if self.debug or p in self.races or p in self.claimed:
            self.put(f"int64_t* const a{p}_shadow = (int64_t*)block[{slot.role('shadow')}]; (void)a{p}_shadow;")
        if used and p not in self.contiguous:
            for axis in range(slot.ndim):
                self.put(f"const int64_t a{p}_s{axis} = block[{slot.stride(axis)}]; (void)a{p}_s{axis};")
                self.put(f"const int64_t a{p}_g{axis} = block[{slot.grad_stride(axis)}]; (void)a{p}_g{axis};")

    def strip_pointer(self, array: ir.ArrayRef, role: str) -> str:
        """The first strip of threads adds to the array itself, each other one to a copy of its own (layout.py)."""
        slot, p = self.layout.slots[array.position], array.position
        element = array.partner(role).type.element
        size = " * ".join([f"a{p}_n{axis}" for axis in range(slot.ndim)] + [str(element_size(element))])
        copy = f"(char*)block[{slot.role('shadow')}] + (strip - 1) * {size}"
        return f"strip ? {copy} : (char*)block[{slot.role(role)}]"

    # -- text
    def put(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def place(self, span: Span | None) -> None:
        """What follows stands for a line of Python. `self.line` is the file that was named last."""
        if span is None:
            return
        escaped = span.file.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        self.lines.append(f"#line {span.line}" if span.file == self.line else f'#line {span.line} "{escaped}"')
        self.line = span.file

    def name(self, value: ir.Value) -> str:
        if isinstance(value, ir.Const):
            return _literal(value)
        if value not in self.names:
            hint = re.sub(r"\W+", "_", value.name).strip("_")
            self.names[value] = f"{hint}_{len(self.names)}" if hint and not hint[0].isdigit() else f"t{len(self.names)}"
        return self.names[value]

    def fresh(self, hint: str) -> str:
        """A name for a variable that is no value."""
        name = f"{hint}{len(self.names)}"
        self.names[ir.Value(BOOL)] = name
        return name

    def kind(self, value: ir.Value) -> str:
        return _TYPES[value.type.name]

    def define(self, value: ir.Value, text: str) -> None:
        self.put(f"const {self.kind(value)} {self.name(value)} = {text};")

    def site(self, stmt: ir.Stmt, **details: object) -> int:
        self.sites.append(Site(stmt.span, **details))  # type: ignore[arg-type]
        return len(self.sites) - 1

    def fail(self, condition: str, code: int, stmt: ir.Stmt, a: str = "0", b: str = "0", **details: object) -> None:
        site = self.site(stmt, **details)
        self.put(f"if (KC_UNLIKELY({condition})) {{ {self.call_core('fail', code, site, a, b)}; return; }}")

    def call_core(self, what: str, *args: object) -> str:
        """A call of what runs the kernel: it reports failures and prints."""
        return f"ctx->{what}({', '.join(map(str, ('ctx', *args)))})"

    # -- statements
    def block(self, block: ir.Block) -> None:
        for stmt in block.body:
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        self.place(stmt.span)
        start = len(self.lines)
        getattr(self, f"emit_{type(stmt).__name__}")(stmt)
        if not stmt.blocks():
            # On one line: the compiler counts from #line on, and its messages must be about the Python line.
            made = self.lines[start:]
            self.lines[start:] = ["    " * self.depth + " ".join(text.strip() for text in made)] if made else []

    def emit_Op(self, s: ir.Op) -> None:
        args = [self.name(a) for a in s.args]
        if s.op == "select":
            self.define(s.out, f"{args[0]} ? {args[1]} : {args[2]}")
        elif s.op == "cast":
            self.define(s.out, self.cast(s.out.type, s.args[0].type, args[0]))
        else:
            if self.checks and s.op in ("div", "floordiv", "mod"):
                self.fail(f"{args[1]} == 0", 4, s, message=s.op)
            row = TABLE.scalar(s.op)
            suffix = "f" if s.args[0].type is FLOAT32 else ""
            template = row.cpp_int if row.cpp_int and s.args[0].type.is_int else row.cpp
            self.define(s.out, template.format(*args, f=suffix))
            if self.checks and s.out.type.is_float:
                quiet = " && ".join(f"{a} == {a}" for a in args)
                self.fail(f"{self.name(s.out)} != {self.name(s.out)} && {quiet}", 3, s, message=s.op)

    def cast(self, target: Scalar, source: Scalar, text: str) -> str:
        if source.is_float and not target.is_float:
            return f"kc_to_{target.name}({text})"
        if source.is_int and target.is_float:
            return f"kc_real<{_TYPES[target.name]}>({text})"
        return f"({_TYPES[target.name]}){text}"

    def emit_Query(self, s: ir.Query) -> None:
        if s.what == "shape":
            assert s.array is not None
            self.define(s.out, f"({self.kind(s.out)})a{s.array.position}_n{s.axis}")
        elif s.what == "asked":
            assert s.array is not None
            self.define(s.out, f"asked{s.array.position}")
        elif s.what == "tid":
            inner = " * ".join(f"dim{a}" for a in range(s.axis + 1, self.kernel.dims))
            text = f"thread / ({inner})" if inner else "thread"
            if s.axis > 0:
                text = f"({text}) % dim{s.axis}"
            self.define(s.out, f"(int32_t)({text})")
        else:
            self.define(s.out, f"(int32_t)dim{s.axis}")

    # -- memory
    def address(self, array: ir.ArrayRef, index: Sequence[ir.Value]) -> str:
        """The address of an element, without the offset of a leaf."""
        p, size = array.position, element_size(array.type.element)
        names = [f"(int64_t){self.name(i)}" for i in index]
        if array.role in ("value", "grad") and p not in self.contiguous:
            step = "s" if array.role == "value" else "g"
            offset = " + ".join(f"{i} * a{p}_{step}{axis}" for axis, i in enumerate(names))
        else:
            offset = f"{self.linear(array, index)} * {size}"
        return f"a{p}_{array.role} + {offset}"

    def linear(self, array: ir.ArrayRef, index: Sequence[ir.Value]) -> str:
        """The number of an element."""
        text = f"(int64_t){self.name(index[0])}"
        for axis in range(1, array.type.ndim):
            text = f"({text} * a{array.position}_n{axis} + (int64_t){self.name(index[axis])})"
        return text

    def element(self, stmt: ir.Load | ir.Store | ir.Atomic) -> str:
        """A pointer variable to the element; in debug mode with its bounds checked."""
        array = stmt.array
        if self.debug:
            for axis, i in enumerate(stmt.index):
                bound, n = f"a{array.position}_n{axis}", self.name(i)
                outside = f"(int64_t){n} < 0 || (int64_t){n} >= {bound}"
                self.fail(outside, 2, stmt, f"(int64_t){n}", bound, axis=axis, **_about(array))
        if self.debug or array.position in self.races:
            self.race(stmt)
        pointer = self.fresh("e")
        self.put(f"char* const {pointer} = {self.address(array, stmt.index)};")
        return pointer

    def leaf(self, stmt: ir.Load | ir.Store | ir.Atomic, pointer: str, comp: int) -> str:
        element = stmt.array.type.element
        kind, offset = leaves(element)[comp], leaf_offsets(element)[comp]
        return f"*({_TYPES[kind.name]}*)({pointer} + {offset})" if offset else f"*({_TYPES[kind.name]}*)({pointer})"

    def read(self, stmt: ir.Load, pointer: str, comp: int) -> str:
        """What a leaf holds. Memory of others may have any byte where a bool is: all but zero are true."""
        element = stmt.array.type.element
        if leaves(element)[comp] is BOOL:
            return f"(*(const uint8_t*)({pointer} + {leaf_offsets(element)[comp]}) != 0)"
        return self.held(stmt, comp, self.leaf(stmt, pointer, comp))

    def held(self, stmt: ir.Load | ir.Atomic, comp: int, place: str) -> str:
        """What a leaf holds, as a number that kernels compute with."""
        if not leaves(stmt.array.type.element)[comp].is_stored:
            return place
        values = stmt.outs if isinstance(stmt, ir.Load) else stmt.values
        return f"({_TYPES[values[stmt.comps.index(comp)].type.name]}){place}"

    def index_words(self, stmt: ir.Load | ir.Store | ir.Atomic) -> tuple[str, str]:
        """The index of an element in two words, 32 bits for each dimension (runtime/reports.py reads them)."""
        names = [f"(int64_t){self.name(i)}" for i in stmt.index]
        if len(names) == 1:
            return names[0], "0"
        names += ["0"] * (4 - len(names))
        return f"({names[0]} | {names[1]} << 32)", f"({names[2]} | {names[3]} << 32)"

    def race(self, stmt: ir.Load | ir.Store | ir.Atomic) -> None:
        """The shadow of an array says of each number who stored to it, who read it and who changed it by atomics.

        Three words: 0 for nobody, thread + 1, and -1 for several. Two threads may read one number, or change it by
        atomics; if one stores to it, no other may touch it, and what changes by atomics is not read by others.
        """
        array = stmt.array
        if array.role != "value" or (isinstance(stmt, (ir.Store, ir.Atomic)) and stmt.logged):
            return
        p, count = array.position, len(leaves(array.type.element))
        linear = self.linear(array, stmt.index)
        words, short = self.index_words(stmt), array.type.ndim <= 2
        mine, foes = {ir.Store: (0, (0, 1, 2)), ir.Load: (1, (0, 2)), ir.Atomic: (2, (0, 1))}[type(stmt)]
        size = " * ".join(f"a{p}_n{axis}" for axis in range(array.type.ndim))
        self.put(f"if (a{p}_shadow && (uint64_t)({linear}) < (uint64_t)({size})) {{")
        self.depth += 1
        for comp in stmt.comps:
            who = self.fresh("w")
            self.put(f"int64_t* const {who} = a{p}_shadow + 3 * ({linear} * {count} + {comp});")
            for foe in foes:
                other = f"({who}[{foe}] > 0 ? {who}[{foe}] - 1 : -1)"
                # Where the index takes both words there is no room for the other thread.
                said = (other, words[0]) if short else words
                self.fail(f"{who}[{foe}] && {who}[{foe}] != thread + 1", 6, stmt, *said, **_about(array))
            self.put(f"{who}[{mine}] = {who}[{mine}] == 0 || {who}[{mine}] == thread + 1 ? thread + 1 : -1;")
        self.depth -= 1
        self.put("}")

    def emit_Load(self, s: ir.Load) -> None:
        pointer = self.element(s)
        for out, comp in zip(s.outs, s.comps, strict=True):
            self.define(out, self.read(s, pointer, comp))
            if self.debug and s.array.role == "value":
                self.uninitialised(s, pointer, comp)

    def uninitialised(self, s: ir.Load | ir.Atomic, pointer: str, comp: int) -> None:
        """Debug: kc.empty has filled the memory with a pattern."""
        kind = leaves(s.array.type.element)[comp]
        if kind.size not in (4, 8):
            return
        word = "uint32_t" if kind.size == 4 else "uint64_t"
        pattern = "0x7fa1dead" + ("7fa1dead" if kind.size == 8 else "") + "u" + ("ll" if kind.size == 8 else "")
        offset = leaf_offsets(s.array.type.element)[comp]
        self.fail(f"kc_word<{word}>((const int64_t*)({pointer} + {offset})) == {pattern}", 5, s,
                  *self.index_words(s), **_about(s.array))  # fmt: skip

    def log(self, s: ir.Store | ir.Atomic, pointer: str) -> None:
        if s.logged:
            for comp in s.comps:
                size, offset = leaves(s.array.type.element)[comp].size, leaf_offsets(s.array.type.element)[comp]
                self.put(f"kc_undo_log(ctx, {pointer} + {offset}, {size});")

    def emit_Store(self, s: ir.Store) -> None:
        self.check_nan(s)
        pointer = self.element(s)
        self.log(s, pointer)
        guard = f"if (!special{s.array.position}) " if self.is_taken(s) else ""
        for value, comp in zip(s.values, s.comps, strict=True):
            self.put(f"{guard}{self.leaf(s, pointer, comp)} = {self.name(value)};")

    def is_taken(self, s: ir.Store | ir.Atomic) -> bool:
        """Whether the launch may only read this gradient: it is not ours to clear (runtime/reverse.py)."""
        return s.array.role == "grad" and s.array.position in self.taken

    def is_first(self, s: ir.Store | ir.Atomic) -> bool:
        """Whether the launch may be the first to add to this gradient, and writes it then (runtime/reverse.py)."""
        return s.array.role == "grad" and s.array.position in self.first and isinstance(s, ir.Atomic)

    def check_nan(self, s: ir.Store | ir.Atomic) -> None:
        if self.debug:
            for value in s.values:
                if value.type.is_float and not isinstance(value, ir.Const):
                    v = self.name(value)
                    self.fail(f"{v} != {v}", 3, s, *self.index_words(s), **_about(s.array))

    def emit_Atomic(self, s: ir.Atomic) -> None:
        self.check_nan(s)
        pointer = self.element(s)
        self.log(s, pointer)
        for k, (value, comp) in enumerate(zip(s.values, s.comps, strict=True)):
            place, v = self.leaf(s, pointer, comp), self.name(value)
            if self.debug and s.array.role == "value":
                self.uninitialised(s, pointer, comp)
            if s.outs:
                self.define(s.outs[k], self.held(s, comp, place))
            self.put(self.changed(s, k, place, v))

    def changed(self, s: ir.Atomic, k: int, place: str, v: str) -> str:
        """The statement that changes a leaf. Threads run one after the other where they meet: no atomic is needed."""
        before = self.held(s, s.comps[k], place)
        if self.is_first(s):
            before = f"(special{s.array.position} ? 0 : {before})"
        if s.kind in SIGNS:
            return f"{place} = {before} {SIGNS[s.kind]} {v};"
        if s.kind == "exchange":
            return f"{place} = {v};"
        if s.kind == "cas":
            return f"if ({before} == {self.name(s.expected[k])}) {place} = {v};"
        return f"{place} = kc_{s.kind}({before}, {v});"

    # -- control
    def emit_If(self, s: ir.If) -> None:
        for out in s.outs:
            self.put(f"{self.kind(out)} {self.name(out)};")
        self.put(f"if ({self.name(s.cond)}) {{")
        self.branch(s.then, s.outs)
        if s.orelse.body or s.outs:
            self.put("} else {")
            self.branch(s.orelse, s.outs)
        self.put("}")

    def branch(self, block: ir.Block, outs: Sequence[ir.Value]) -> None:
        self.depth += 1
        self.block(block)
        for out, value in zip(outs, block.yields, strict=True):
            self.put(f"{self.name(out)} = {self.name(value)};")
        self.depth -= 1

    def emit_Loop(self, s: ir.Loop) -> None:
        for out, init in zip(s.outs, s.inits, strict=True):
            self.put(f"{self.kind(out)} {self.name(out)} = {self.name(init)};")
        counter = s.body.params[0]
        k, kind = self.name(counter), self.kind(counter)
        below = f"{k} < {self.name(s.trips)}" if s.trips is not None else ""
        if s.down:
            assert s.trips is not None
            self.put(f"for ({kind} {k} = {self.name(s.trips)} - 1; {k} >= 0; --{k}) {{")
        else:
            self.put(f"for ({kind} {k} = 0; {below}; ++{k}) {{")
        self.depth += 1
        for param, out in zip(s.body.params[1:], s.outs, strict=True):
            self.define(param, self.name(out))
        self.block(s.body)
        for out, value in zip(s.outs, s.body.yields, strict=True):
            self.put(f"{self.name(out)} = {self.name(value)};")
        if s.stop is not None:
            self.put(f"if ({self.name(s.stop)}) break;")
        self.poll(s)
        self.depth -= 1
        self.put("}")
        if any(isinstance(x, ir.Push) for x in s.body.body):
            self.put("if (KC_UNLIKELY(ctx->failed)) return;")

    def poll(self, s: ir.Loop) -> None:
        """At the end of an iteration: where the user pressed Ctrl-C, leave. Short loops end by themselves."""
        if polls(s):
            self.put(f"KC_POLL({self.name(s.body.params[0])});")

    # -- calls
    def emit_Call(self, s: ir.Call) -> None:
        name = self.functions.get(s.function) or self.function(s.function)
        for out in s.outs:
            self.put(f"{self.kind(out)} {self.name(out)};")
        args = [self.name(a) for a in s.args] + [f"&{self.name(o)}" for o in s.outs]
        self.put(f"{name}({', '.join([*args, 'ctx'])});")
        if self.debug or may_leave(s.function.body):
            self.put("if (KC_UNLIKELY(ctx->failed)) return;")

    def function(self, custom: ir.Custom) -> str:
        """Emit a function with a rule of its own, once, before the kernel."""
        name = f"{self.entry}_{re.sub(r'[^0-9A-Za-z_]', '_', custom.name)}_{len(self.functions)}"
        self.functions[custom] = name
        saved, self.lines, depth, self.depth = self.lines, [], self.depth, 1
        self.line = None
        params = [f"const {self.kind(p)} {self.name(p)}" for p in custom.body.params]
        results = [f"{self.kind(y)}* out{k}" for k, y in enumerate(custom.body.yields)]
        self.block(custom.body)
        for k, y in enumerate(custom.body.yields):
            self.put(f"*out{k} = {self.name(y)};")
        text = [f"{self.FUNCTION} {name}({', '.join([*params, *results, 'kc_context* ctx'])}) {{", "    (void)ctx;",
                *self.lines, "}"]  # fmt: skip
        self.function_text.extend(text)
        self.lines, self.depth, self.line = saved, depth, None
        return name

    # -- reports
    def emit_Check(self, s: ir.Check) -> None:
        payload = [f"(int64_t){self.name(v)}" for v in s.payload] + ["0", "0"]
        what = "array" if s.code == 2 else "message"
        self.fail(f"!{self.name(s.cond)}", s.code, s, payload[0], payload[1], **{what: s.message})

    def emit_Print(self, s: ir.Print) -> None:
        site = self.site(s, parts=s.parts, kinds=tuple(v.type.name for v in s.values))
        words: list[str] = []
        for v in s.values:
            # A double holds 53 bits: longer integers go in two halves.
            halves = [f"(double)({self.name(v)} >> 32)", f"(double)(uint32_t){self.name(v)}"]
            words += halves if v.type in (INT64, UINT64) else [f"(double){self.name(v)}"]
        values = ", ".join(words) or "0.0"
        said = self.call_core("print", site, len(words), "values")
        self.put(f"{{ const double values[] = {{ {values} }}; {said}; }}")

    # -- loop tape, undo log, record
    def frame(self, values: Sequence[ir.Value]) -> list[tuple[ir.Value, int]]:
        """Offsets in a tape frame, large values first, so that all are aligned as frames are multiples of 8 bytes."""
        placed, at = [], 0
        for v in sorted(values, key=lambda v: -v.type.size):
            placed.append((v, at))
            at += v.type.size
        return placed

    def frame_size(self, values: Sequence[ir.Value]) -> int:
        return (sum(v.type.size for v in values) + 7) // 8 * 8

    def emit_Push(self, s: ir.Push) -> None:
        self.put(f"{{ char* const frame = kc_reserve(ctx, {self.frame_size(s.values)});")
        for v, at in self.frame(s.values):
            self.put(f"  *({self.kind(v)}*)(frame + {at}) = {self.name(v)};")
        self.put("}")

    def emit_Pop(self, s: ir.Pop) -> None:
        frame = self.fresh("f")
        self.put(f"const char* const {frame} = kc_release(ctx, {self.frame_size(s.outs)});")
        for v, at in self.frame(s.outs):
            self.define(v, f"*(const {self.kind(v)}*)({frame} + {at})")

    def emit_Mark(self, s: ir.Mark) -> None:
        self.define(s.out, "kc_undo_mark(ctx)")

    def emit_Undo(self, s: ir.Undo) -> None:
        self.put(f"kc_undo_to(ctx, {self.name(s.mark)});")

    def emit_Claim(self, s: ir.Claim) -> None:
        # Threads run in order, and whoever takes an adjoint leaves zero.
        self.define(s.out, self.name(s.cond))

    def emit_Record(self, s: ir.Record) -> None:
        self.put(f"if (block[4]) ctx->record_put((void*)block[4], thread, {self.name(s.sequence)}, "
                 f"(int64_t){self.name(s.value)});")  # fmt: skip

    def emit_Recall(self, s: ir.Recall) -> None:
        self.define(s.out, f"({self.kind(s.out)})ctx->record_get((void*)block[4], thread, {self.name(s.sequence)})")


def polls(s: ir.Loop) -> bool:
    """Whether a loop may be so long that it looks for a Ctrl-C."""
    return not (isinstance(s.trips, ir.Const) and s.trips.value <= _SHORT)


def may_leave(block: ir.Block) -> bool:
    """Whether a function may return before its end."""
    return any(isinstance(s, (ir.Check, ir.Push)) or (isinstance(s, ir.Loop) and polls(s)) for s in block.walk())


_SHORT = 256
