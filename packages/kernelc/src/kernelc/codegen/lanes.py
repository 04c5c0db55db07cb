"""IR → C++ that runs a group of threads at a time, one per SIMD lane.

Uniform values stay scalars, varying ones are vectors. Where threads part ways, a mask says which lanes are active:
both sides of a branch run under their masks, a loop runs until no lane is left in it. Loads are safe for inactive
lanes (their index is replaced), effects happen for active lanes only, in the order of the threads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .. import ir
from ..builtins import TABLE
from ..types import BOOL, FLOAT32, FLOAT64, STORED, Scalar, leaves
from .cpp import _TYPES, HEADER, Code, may_leave
from .lane_memory import VECTORS, LaneMemory
from .uniform import is_divergent
from .windows import window_code

_INFIX = frozenset(("add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne", "bitand", "bitor", "bitxor"))


_STORED = [_TYPES[s.name] for s in STORED]
# What lanes.h and the files in lanes/ leave out unless one of these words asks for it: reading all of it takes longer
# than compiling a small kernel.
_PARTS = {
    "FLOAT32": {"(float*)", "kc_gather_float32", "kc_load4_float32", "float32_quad"},
    "FLOAT64": {"(double*)", "kc_gather_float64", "kc_load4_float64", "float64_quad", "vd"},
    "INT32": {"(int32_t*)", "kc_gather_int32"},
    "INT64": {"(int64_t*)", "kc_gather_int64", "vl"},
    "UINT32": {"(uint32_t*)", "kc_gather_uint32", "vu"},
    "UINT64": {"(uint64_t*)", "kc_gather_uint64", "vq"},
    "STORED": {f"({c}*)" for c in _STORED} | {f"kc_gather_{s.name}" for s in STORED},
    "LOADS": {"kc_load_own"},
    "STORES": {"kc_store_own"},
    "GATHERS": {"kc_gather", "kc_gather_bytes", "kc_gather_float32", "kc_gather_float64", "kc_gather_int32",
                "kc_gather_int64", "kc_gather_uint32", "kc_gather_uint64"},
    "QUADS": {"kc_load4", "kc_load4_float32", "kc_load4_float64", "kc_load4_own", "kc_store4_own", "kc_quads"},
    "SUMS": {"kc_sum", "kc_sum4", "kc_add3", "kc_add4"},
    "HIGHEST": {"kc_highest"},
    "DIVISION": {"kc_floordiv", "kc_mod"},
    "SHIFTS": {"kc_shl", "kc_shr"},
    "ROUNDING": {f"{name}{f}" for name in ("floor", "ceil", "trunc", "rint") for f in ("", "f")},
    "SIGNS": {"kc_abs", "kc_sign", "kc_copysign", "kc_step", "kc_isfinite", "kc_sigmoid", "kc_softplus"},
    "ORDER": {"kc_min", "kc_max", "kc_clamp"},
    "CASTS": {"kc_to_int32", "kc_to_int64", "kc_to_uint32", "kc_to_uint64"},
    "SIGMOID": {"kc_sigmoid"},
    "SOFTPLUS": {"kc_softplus"},
}  # fmt: skip
LARGE = 400_000
"""Characters of a kernel beyond which -O2 takes GCC minutes; without fused products -O1 gives the same bits."""
_WORD = re.compile(r"\(\w+\*\)|\w+")
# Functions of functions.h by how many arguments they take, and those that others are made of.
_MATH = dict.fromkeys(
    ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "expm1",
     "log", "log1p", "log2", "log10", "cbrt", "erf"), 1) | {"atan2": 2, "hypot": 2, "pow": 2}  # fmt: skip
_WITHIN = {"kc_sigmoid": {"kc_exp"}, "kc_softplus": {"kc_exp", "kc_log1p"}}


def header(texts: Sequence[str], widths: Sequence[int], libmvec: bool) -> str:
    """What a translation unit with these kernels includes; those that run in lanes, in groups of these widths."""
    words = {word for text in texts for word in _WORD.findall(text)}
    lines = [] if widths or max(map(len, texts)) < LARGE else ['#pragma GCC optimize("O1")']
    lines += ["#define KC_LIBMVEC 1"] if libmvec else []
    lines += ["#define KC_MATH " + " ".join(f"KC_MATH{_MATH[name]}({name})" for name in math_in(words)), HEADER.strip()]
    if words & {form.format(c) for c in ("float16", "bfloat16") for form in ("kc_{}", "(kc_{}*)", "kc_gather_{}")}:
        lines.append('#include "kernelc/stored.h"')
    if widths:
        lines += [f"#define KC_WITH_{part} 1" for part, names in _PARTS.items() if not names.isdisjoint(words)]
    for width in sorted(set(widths)):
        lines += [f"#define KC_LANES {width}", '#include "kernelc/lanes.h"']
    return "\n".join(lines) + "\n"


def uses_math(text: str) -> bool:
    """Whether a kernel calls functions that the C library may have for vectors."""
    return bool(math_in(set(_WORD.findall(text))))


def math_in(words: set[str]) -> list[str]:
    within = set[str]().union(*(names for name, names in _WITHIN.items() if name in words))
    return [name for name in _MATH if f"kc_{name}" in words | within]


def emit_lanes(kernel: ir.Kernel, name: str, width: int, *, contiguous: frozenset[int] = frozenset()) -> Code:
    """C++ for a kernel that runs `width` threads at a time."""
    return _LaneEmitter(kernel, name, contiguous, width).run()


class _LaneEmitter(LaneMemory):
    # -- the whole
    def run(self) -> Code:
        self.unpack()
        head_lines = self.lines
        self.lines, self.depth = [], 2
        self.block(self.kernel.body)
        body = self.lines
        w = self.width
        own = [
            f"    const bool own{p} = {self.own_condition(p)};" for p in sorted(self.own_arrays())
        ]  # fmt: skip
        head = [
            f'extern "C" __attribute__((visibility("default"))) void {self.entry}'
            "(const int64_t* block, int64_t begin, int64_t end, kc_context* ctx) {",
            f"    using namespace kc_lanes_{w};",
        ]
        windows = window_code(self.kernel, self.windows, w, self.layout, self.entry)
        loop = [
            f"    for (int64_t thread = begin; thread < {windows.last}; thread += {w}) {{",
            f"        const int32_t left = end - thread < {w} ? (int32_t)(end - thread) : {w};",
            # Launches of blocks are cut between blocks, and a block fills its groups.
            f"        const bool full = {'true' if self.kernel.block else f'left >= {w}'};",
        ]
        # What is not used would be thrown away, but reading it takes time.
        used = "\n".join(body)
        if re.search(r"\bactive\b", used):
            loop.append("        const vb active = full ? kc_splat(true) : kc_mask(kc_iota() < left);")
        if re.search(r"\blane\b", used):
            loop.append("        const vi lane = full ? kc_iota() : kc_min(kc_iota(), kc_splat(left - 1));")
        if "ctx" in used:
            loop.append("        ctx->thread = thread;")
        if self.first:
            longest = max(len(leaves(a.type.element)) for a in self.kernel.arrays() if a.position in self.first)
            own.append(f"    alignas(64) static const char kc_zeros[{max(longest, 3) * 8 * w}] = {{}};")
        top = [*self.function_text, *head, *head_lines, *own, *windows.before]
        text = [*top, *loop, *windows.opened, *body, "    }", *windows.after, "}"]
        return Code(self.entry, "\n".join(text) + "\n", self.sites, self.kernel.name)

    # -- operations
    def emit_Op(self, s: ir.Op) -> None:
        if s.out not in self.varying:
            super().emit_Op(s)
        elif s.op == "select":
            cond, a, b = s.args
            if cond not in self.varying:
                self.define(s.out, f"{self.name(cond)} ? {self.vector(a)} : {self.vector(b)}")
            else:
                self.define(s.out, f"kc_select({', '.join(self.vector(v) for v in s.args)})")
        elif s.op == "cast":
            self.define(s.out, self.lane_cast(s.out.type, s.args[0]))
        else:
            self.define(s.out, self.lane_op(s))

    def lane_op(self, s: ir.Op) -> str:
        row = TABLE.scalar(s.op)
        kind = s.args[0].type
        if s.op == "not":
            return f"~{self.vector(s.args[0])}"
        if s.op == "isnan":
            x = self.vector(s.args[0])
            return f"kc_mask({x} != {x})"
        args = [self.vector(a) for a in s.args]
        bits = _power_of_two(s.args[1]) if s.op in ("floordiv", "mod") and kind.is_int else None
        if bits is not None:
            # Rounded down, as in Python: so it is for negative numbers, too.
            return f"({args[0]} >> {bits})" if s.op == "floordiv" else f"({args[0]} & {2**bits - 1})"
        if s.op in _INFIX:
            # One side may stay a scalar: the compiler spreads it.
            args = [
                self.name(a) if isinstance(a, ir.Const) and kind.is_float else v
                for a, v in zip(s.args, args, strict=True)
            ]
        if row.kind == "compare" and kind is BOOL:
            args.reverse()  # true is -1 in lanes
        template = row.cpp_int if row.cpp_int and kind.is_int else row.cpp
        if s.op == "frac":
            template = "({0} - floor{f}({0}))"
        text = template.format(*args, f="f" if kind is FLOAT32 else "")
        return f"kc_mask{text}" if row.kind == "compare" else text

    def lane_cast(self, target: Scalar, value: ir.Value) -> str:
        x, source = self.vector(value), value.type
        if source is BOOL:
            return f"__builtin_convertvector(-{x}, {VECTORS[target.name]})"
        if source.is_float and not target.is_float:
            return f"kc_to_{target.name}({x})"
        return f"__builtin_convertvector({x}, {VECTORS[target.name]})"

    def emit_Query(self, s: ir.Query) -> None:
        if s.what != "tid":
            super().emit_Query(s)
            return
        dims = self.kernel.dims
        if s.out not in self.varying:
            super().emit_Query(s)
            return
        if dims == 1:
            self.define(s.out, "(int32_t)thread + lane")
            return
        if self.kernel.block:
            self.define(s.out, f"(int32_t)(thread % {self.kernel.block}) + lane")
            return
        # One division for the first lane; the others follow it.
        if s.axis == 0:
            names = [f"x{axis}" for axis in range(dims)]
            self.put(f"vi {', '.join(names)};")
            self.put("{ int64_t at = thread;")
            for axis in range(dims - 1, 0, -1):
                self.put(f"  int32_t b{axis} = (int32_t)(at % dim{axis}); at /= dim{axis};")
            self.put("  int32_t b0 = (int32_t)at;")
            self.put(f"  for (int l = 0; l < {self.width}; ++l) {{")
            for axis in range(dims):
                self.put(f"    x{axis}[l] = b{axis};")
            self.put("    if (l + 1 >= left) continue;")
            step = f"++b{dims - 1};"
            for axis in range(dims - 1, 0, -1):
                step += f" if (b{axis} == dim{axis}) {{ b{axis} = 0; ++b{axis - 1}; }}"
            self.put(f"    {step}")
            self.put("  } }")
        self.define(s.out, f"x{s.axis}")

    # -- control
    def new_mask(self, text: str) -> str:
        self.masks += 1
        name = f"mask{self.masks}"
        self.put(f"const vb {name} = {text};")
        return name

    def under(self, mask: str, full: str) -> tuple[str, str, bool]:
        saved = (self.mask, self.full, self.divergent)
        self.mask, self.full, self.divergent = mask, full, True
        return saved

    def emit_If(self, s: ir.If) -> None:
        if s.cond not in self.varying:
            for out in s.outs:
                self.put(f"{self.kind(out)} {self.name(out)};")
            self.put(f"if ({self.name(s.cond)}) {{")
            self.uniform_side(s.then, s.outs)
            self.put("} else {")
            self.uniform_side(s.orelse, s.outs)
            self.put("}")
            return
        for out in s.outs:
            self.put(f"{self.kind(out)} {self.name(out)} = {{}};")
        cond = self.name(s.cond)
        sides = [(s.then, f"{self.mask} & {cond}"), (s.orelse, f"{self.mask} & ~{cond}")]
        for block, text in sides:
            if block.body or s.outs:
                self.masked_side(block, s.outs, text)

    def uniform_side(self, block: ir.Block, outs: Sequence[ir.Value]) -> None:
        self.depth += 1
        self.block(block)
        for out, value in zip(outs, block.yields, strict=True):
            self.put(f"{self.name(out)} = {self.vector(value) if out in self.varying else self.name(value)};")
        self.depth -= 1

    def masked_side(self, block: ir.Block, outs: Sequence[ir.Value], text: str) -> None:
        mask = self.new_mask(text)
        needs_branch = any(not isinstance(x, ir.Op) for x in block.walk())
        self.put(f"if (kc_any({mask})) {{" if needs_branch else "{")
        self.depth += 1
        if any(isinstance(x, (ir.Load, ir.Store, ir.Atomic)) for x in block.walk()):
            self.put(f"const bool full_{mask} = kc_all({mask}); (void)full_{mask};")
        saved = self.under(mask, f"full_{mask}")
        self.block(block)
        for out, value in zip(outs, block.yields, strict=True):
            self.put(f"{self.name(out)} = kc_select({mask}, {self.vector(value)}, {self.name(out)});")
        self.mask, self.full, self.divergent = saved
        self.depth -= 1
        self.put("}")

    def emit_Loop(self, s: ir.Loop) -> None:
        for out, init in zip(s.outs, s.inits, strict=True):
            value = self.vector(init) if out in self.varying else self.name(init)
            self.put(f"{self.kind(out)} {self.name(out)} = {value};")
        if is_divergent(s, self.varying):
            self.divergent_loop(s)
        else:
            self.uniform_loop(s)
        if any(isinstance(x, ir.Push) for x in s.body.body):
            self.put("if (KC_UNLIKELY(ctx->failed)) return;")

    def counter(self, s: ir.Loop) -> tuple[str, str]:
        k = s.body.params[0]
        return self.name(k), _TYPES[k.type.name]

    def uniform_loop(self, s: ir.Loop) -> None:
        k, kind = self.counter(s)
        trips = self.name(s.trips) if s.trips is not None else ""
        if s.down:
            self.put(f"for ({kind} {k} = {trips} - 1; {k} >= 0; --{k}) {{")
        else:
            self.put(f"for ({kind} {k} = 0; {f'{k} < {trips}' if trips else ''}; ++{k}) {{")
        self.depth += 1
        for param, out in zip(s.body.params[1:], s.outs, strict=True):
            self.define(param, self.name(out))
        self.block(s.body)
        for out, value in zip(s.outs, s.body.yields, strict=True):
            self.put(f"{self.name(out)} = {self.vector(value) if out in self.varying else self.name(value)};")
        if s.stop is not None:
            self.put(f"if ({self.name(s.stop)}) break;")
        self.poll(s)
        self.depth -= 1
        self.put("}")

    def divergent_loop(self, s: ir.Loop) -> None:
        """Run until every lane has left; a loop down waits for the lanes with fewer iterations."""
        k, kind = self.counter(s)
        self.masks += 1
        mask = f"mask{self.masks}"
        trips = self.vector(s.trips) if s.trips is not None else ""
        self.put(f"vb {mask} = {self.mask};")
        if s.down:
            self.put(f"for ({kind} {k} = kc_highest({self.mask}, {trips}) - 1; {k} >= 0; --{k}) {{")
        else:
            self.put(f"for ({kind} {k} = 0;; ++{k}) {{")
        self.depth += 1
        if trips:
            base = self.mask if s.down else mask
            self.put(f"{mask} = {base} & kc_mask({k} < {trips});")
            if not s.down:
                self.put(f"if (!kc_any({mask})) break;")
        self.put(f"const bool full_{mask} = kc_all({mask}); (void)full_{mask};")
        saved = self.under(mask, f"full_{mask}")
        for param, out in zip(s.body.params[1:], s.outs, strict=True):
            self.define(param, self.name(out))
        self.block(s.body)
        for out, value in zip(s.outs, s.body.yields, strict=True):
            self.put(f"{self.name(out)} = kc_select({mask}, {self.vector(value)}, {self.name(out)});")
        if s.stop is not None:
            self.put(f"{mask} &= ~{self.vector(s.stop)};")
            self.put(f"if (!kc_any({mask})) break;")
        self.poll(s)
        self.mask, self.full, self.divergent = saved
        self.depth -= 1
        self.put("}")

    # -- calls
    def emit_Call(self, s: ir.Call) -> None:
        name = self.functions.get(s.function) or self.function(s.function)
        for out in s.outs:
            self.put(f"{self.kind(out)} {self.name(out)};")
        args = [self.vector(a) for a in s.args] + [f"&{self.name(o)}" for o in s.outs]
        self.put(f"{name}({', '.join([*args, self.mask, 'ctx'])});")
        if may_leave(s.function.body):
            self.put("if (KC_UNLIKELY(ctx->failed)) return;")

    def function(self, custom: ir.Custom) -> str:
        name = f"{self.entry}_f{len(self.functions)}"
        self.functions[custom] = name
        saved = (self.lines, self.depth, self.mask, self.full, self.divergent)
        self.lines, self.depth, self.line = [], 1, None
        self.mask, self.full, self.divergent = "active", "full", True
        shell = ir.Kernel(name, [], custom.body, self.kernel.real, self.kernel.span, 0)
        self.varying.update(custom.body.params)
        while True:
            before = len(self.varying)
            self.varying |= _with_params(shell, self.varying)
            if len(self.varying) == before:
                break
        ns = f"kc_lanes_{self.width}::"
        params = [f"const {ns}{VECTORS[p.type.name]} {self.name(p)}" for p in custom.body.params]
        results = [f"{ns}{VECTORS[y.type.name]}* out{k}" for k, y in enumerate(custom.body.yields)]
        self.block(custom.body)
        for k, y in enumerate(custom.body.yields):
            self.put(f"*out{k} = {self.vector(y)};")
        text = [
            f"static void {name}({', '.join([*params, *results, f'const {ns}vb active', 'kc_context* ctx'])}) {{",
            f"    using namespace kc_lanes_{self.width};", "    (void)ctx; (void)active;", *self.lines, "}",
        ]  # fmt: skip
        self.function_text.extend(text)
        self.lines, self.depth, self.mask, self.full, self.divergent = saved
        self.line = None
        return name

    # -- reports and tapes
    def emit_Check(self, s: ir.Check) -> None:
        site = self.site(s, message=s.message)
        bad = self.temporary("vb", f"{self.mask} & ~{self.vector(s.cond)}")
        self.put(f"if (KC_UNLIKELY(kc_any({bad}))) {{ ctx->thread += __builtin_ctz(kc_bits({bad})); "
                 f"ctx->fail(ctx, {s.code}, {site}, 0, 0); return; }}")  # fmt: skip

    def size_of(self, value: ir.Value) -> int:
        if value not in self.varying:
            return value.type.size
        return (4 if value.type is BOOL else value.type.size) * self.width

    def frame(self, values: Sequence[ir.Value]) -> list[tuple[ir.Value, int]]:
        placed, at = [], 0
        for v in sorted(values, key=lambda v: -self.size_of(v)):
            placed.append((v, at))
            at += self.size_of(v)
        return placed

    def frame_size(self, values: Sequence[ir.Value]) -> int:
        return (sum(self.size_of(v) for v in values) + 7) // 8 * 8

    def memory_kind(self, value: ir.Value) -> str:
        if value not in self.varying:
            return _TYPES[value.type.name]
        return f"m{'i' if value.type is BOOL else VECTORS[value.type.name][1]}"

    def emit_Push(self, s: ir.Push) -> None:
        self.put(f"{{ char* const frame = kc_reserve(ctx, {self.frame_size(s.values)});")
        for v, at in self.frame(s.values):
            kind = self.memory_kind(v)
            self.put(f"  *({kind}*)(frame + {at}) = ({kind}){self.name(v)};")
        self.put("}")

    def emit_Pop(self, s: ir.Pop) -> None:
        frame = f"f{len(self.names)}"
        self.names[ir.Value(FLOAT64)] = frame
        self.put(f"const char* const {frame} = kc_release(ctx, {self.frame_size(s.outs)});")
        for v, at in self.frame(s.outs):
            kind = self.memory_kind(v)
            text = f"*(const {kind}*)({frame} + {at})"
            self.define(v, f"({self.kind(v)}){text}" if v in self.varying else text)


def _power_of_two(value: ir.Value) -> int | None:
    """The exponent of a literal that is a power of two."""
    n = int(value.value) if isinstance(value, ir.Const) else 0
    return n.bit_length() - 1 if n > 0 and n & (n - 1) == 0 else None


def _with_params(shell: ir.Kernel, varying: set[ir.Value]) -> set[ir.Value]:
    from .uniform import _block

    found = set(varying)
    _block(shell.body, found, {})
    return found
