"""IR → C++ that runs a group of threads at a time, one per SIMD lane.

Uniform values stay scalars, varying ones are vectors. Where threads part ways, a mask says which lanes are active:
both sides of a branch run under their masks, a loop runs until no lane is left in it. Loads are safe for inactive
lanes (their index is replaced), effects happen for active lanes only, in the order of the threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .. import ir
from ..builtins import TABLE
from ..types import BOOL, FLOAT32, FLOAT64, Scalar, Type, element_size, leaf_offsets, leaves
from .cpp import _TYPES, Code, _Emitter, _literal
from .ownership import thread_indices
from .uniform import is_divergent, varying_values
from .windows import find_windows, window_code

_VECTORS = {"bool": "vb", "int32": "vi", "int64": "vl", "uint32": "vu", "float32": "vf", "float64": "vd"}
_INFIX = frozenset(("add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne", "bitand", "bitor", "bitxor"))


# What lanes.h leaves out unless it is asked for: reading all of it takes as long as compiling a small kernel.
_PARTS = {
    "KC_WITH_FLOAT64": re.compile(r"\(double\*\)|_float64\(|\bvd\b"),
    "KC_WITH_INT64": re.compile(r"\(int64_t\*\)|_int64\("),
    "KC_WITH_UINT32": re.compile(r"\(uint32_t\*\)|_uint32\(|\bvu\b"),
    "KC_WITH_MATH": re.compile(r"\b(a?(sin|cos|tan)h?|atan2|exp|expm1|log|log1p|log2|log10|cbrt|erf|pow|hypot)f?\(|"
                               r"kc_(sigmoid|softplus)\("),
}  # fmt: skip


def lanes_header(texts: Sequence[str], widths: Sequence[int], libmvec: bool) -> str:
    """What a translation unit with these kernels, of these widths, includes."""
    lines = ["#define KC_LIBMVEC 1"] if libmvec else []
    lines += [f"#define {part} 1" for part, use in _PARTS.items() if any(map(use.search, texts))]
    for width in sorted(set(widths)):
        lines += [f"#define KC_LANES {width}", '#include "kernelc/lanes.h"']
    return "\n".join(lines) + "\n" if lines else ""


def emit_lanes(kernel: ir.Kernel, name: str, width: int, *, contiguous: frozenset[int] = frozenset()) -> Code:
    """C++ for a kernel that runs `width` threads at a time."""
    return _LaneEmitter(kernel, name, contiguous, width).run()


class _LaneEmitter(_Emitter):
    def __init__(self, kernel: ir.Kernel, name: str, contiguous: frozenset[int], width: int):
        super().__init__(kernel, name, contiguous, debug=False)
        self.width = width
        self.varying = varying_values(kernel)
        self.axes = thread_indices(kernel)
        self.mask, self.full = "active", "full"
        self.divergent = False
        self.masks = 0
        self.sums: list[tuple[ir.ArrayRef, str, ir.Value, tuple[str, int]]] = []
        self.rows = self.row_widths()
        self.windows = find_windows(kernel, self.varying, self.is_own_access, self.is_whole)

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
        loop = [
            f"    for (int64_t thread = begin; thread < end; thread += {w}) {{",
            "        const int32_t left = (int32_t)(end - thread);",
            # Launches of blocks are cut between blocks, and a block fills its groups.
            f"        const bool full = {'true' if self.kernel.block else f'left >= {w}'};",
            "        const vb active = full ? kc_splat(true) : kc_mask(kc_iota() < left);",
            "        const vi lane = full ? kc_iota() : kc_min(kc_iota(), kc_splat(left - 1));",
            "        ctx->thread = thread; (void)active; (void)lane;",
        ]
        if self.first:
            own.append(f"    alignas(64) static const char kc_zeros[{3 * 8 * w}] = {{}};")
        before, opened, closed = window_code(kernel=self.kernel, windows=self.windows, width=w)
        text = [*self.function_text, *head, *head_lines, *own, *before, *loop, *opened, *body, *closed, "    }", "}"]
        return Code(self.entry, "\n".join(text) + "\n", self.sites, self.kernel.name)

    def in_window(self, s: ir.Load | ir.Store | ir.Atomic) -> bool:
        return (s.array.position, s.array.role) in self.windows and self.is_own_access(s) and not self.divergent

    def own_place(self, s: ir.Load | ir.Store | ir.Atomic) -> str:
        """A pointer to the first leaf of the element of the group's first thread."""
        first = leaves(s.array.type.element)
        if self.in_window(s):
            return f"({_TYPES[first[0].name]}*)w{s.array.position}_{s.array.role}"
        place = "thread"
        if self.kernel.block:
            names = [*[f"(int64_t){self.name(v)}" for v in s.index[:-1]], f"thread % {self.kernel.block}"]
            place = names[0]
            for axis in range(1, s.array.type.ndim):
                place = f"({place} * a{s.array.position}_n{axis} + {names[axis]})"
        return f"{self.pointer(s.array, 0)} + {place} * {len(first)}"

    def own_arrays(self) -> set[int]:
        return {s.array.position for s in self.kernel.body.walk()
                if isinstance(s, (ir.Load, ir.Store, ir.Atomic)) and self.is_own_access(s)}  # fmt: skip

    def own_condition(self, p: int) -> str:
        """An element of its own lies at the linear index of the thread, if the array has the shape of the grid."""
        if self.kernel.block:
            return "true"
        inner = [f"a{p}_n{axis} == dim{axis}" for axis in range(1, self.kernel.dims)]
        return " && ".join(inner) or "true"

    def is_own_access(self, s: ir.Load | ir.Store | ir.Atomic) -> bool:
        """Whether the elements of a group lie side by side, in the order of its lanes."""
        if self.kernel.block:
            first, last = s.index[:-1], s.index[-1]
            is_run = self.axes.get(last) == self.kernel.dims - 1 and not any(v in self.varying for v in first)
            return is_run and self.is_dense(s.array)
        order = [self.axes.get(v, -1) for v in s.index]
        return order == list(range(self.kernel.dims)) and self.is_dense(s.array)

    def is_dense(self, array: ir.ArrayRef) -> bool:
        """Whether elements follow each other without gaps, all leaves of one type."""
        if array.role in ("value", "grad") and array.position not in self.contiguous:
            return False
        return len(set(leaves(array.type.element))) == 1 and leaves(array.type.element)[0] is not BOOL

    def row_widths(self) -> dict[int, int]:
        """Arrays of two dimensions of which each thread reads its own row at literal places: how long rows may be."""
        found: dict[int, int] = {}
        for s in self.kernel.body.walk():
            if isinstance(s, ir.Load) and self.is_row_access(s):
                last = s.index[1]
                assert isinstance(last, ir.Const)
                found[s.array.position] = max(found.get(s.array.position, 0), int(last.value) + 1)
        return {p: n for p, n in found.items() if n in (2, 3, 4)}

    def is_row_access(self, s: ir.Load) -> bool:
        return (
            self.kernel.dims == 1
            and s.array.type.ndim == 2
            and self.axes.get(s.index[0]) == 0
            and isinstance(s.index[1], ir.Const)
            and self.is_dense(s.array)
            and len(leaves(s.array.type.element)) == 1
        )

    # -- values
    def is_varying(self, value: ir.Value) -> bool:
        return value in self.varying

    def kind(self, value: ir.Value) -> str:
        return _VECTORS[value.type.name] if value in self.varying else _TYPES[value.type.name]

    def vector(self, value: ir.Value) -> str:
        """A value as a vector, whatever it is."""
        name = self.name(value)
        if value in self.varying:
            return name
        if isinstance(value, ir.Const):
            return f"kc_splat(({_TYPES[value.type.name]}){_literal(value)})"
        return f"kc_splat({name})"

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
        template = row.cpp_int if row.cpp_int and kind.is_int else row.cpp
        if s.op == "frac":
            template = "({0} - floor{f}({0}))"
        text = template.format(*args, f="f" if kind is FLOAT32 else "")
        return f"kc_mask{text}" if row.kind == "compare" else text

    def lane_cast(self, target: Scalar, value: ir.Value) -> str:
        x, source = self.vector(value), value.type
        if source is BOOL:
            return f"__builtin_convertvector(-{x}, {_VECTORS[target.name]})"
        if source.is_float and not target.is_float:
            return f"kc_to_{target.name}({x})"
        return f"__builtin_convertvector({x}, {_VECTORS[target.name]})"

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

    # -- memory
    def pointer(self, array: ir.ArrayRef, comp: int) -> str:
        kind, offset = leaves(array.type.element)[comp], leaf_offsets(array.type.element)[comp]
        return f"({_TYPES[kind.name]}*)(a{array.position}_{array.role} + {offset})"

    def safe_index(self, s: ir.Load | ir.Store | ir.Atomic) -> list[str]:
        """Index vectors whose inactive lanes point at the first element."""
        found = []
        for v in s.index:
            x = self.vector(v)
            if self.divergent and v in self.varying:
                zero = "(vi){}" if v.type.size == 4 else "(vl){}"
                x = f"kc_select({self.mask}, {x}, {zero})" if v.type is not BOOL else x
            found.append(x)
        return found

    def offsets(self, s: ir.Load | ir.Store | ir.Atomic) -> str:
        """A variable with the place of each lane's element: counted in leaves where they lie densely, else in bytes."""
        array, p = s.array, s.array.position
        index = self.safe_index(s)
        if self.is_dense(array):
            names = [self.narrow(v, x) for v, x in zip(s.index, index, strict=True)]
            text = names[0]
            for axis in range(1, array.type.ndim):
                text = f"({text} * (int32_t)a{p}_n{axis} + {names[axis]})"
            count = len(leaves(array.type.element))
            return self.temporary("vi", f"{text} * {count}" if count > 1 else text)
        wide = [f"__builtin_convertvector({x}, vl)" for x in index]
        if array.role in ("value", "grad") and p not in self.contiguous:
            step = "s" if array.role == "value" else "g"
            text = " + ".join(f"{x} * a{p}_{step}{axis}" for axis, x in enumerate(wide))
        else:
            text = wide[0]
            for axis in range(1, array.type.ndim):
                text = f"({text} * a{p}_n{axis} + {wide[axis]})"
            text = f"{text} * (int64_t){element_size(array.type.element)}"
        return self.temporary("vl", text)

    def narrow(self, value: ir.Value, text: str) -> str:
        return text if value.type.name == "int32" else f"__builtin_convertvector({text}, vi)"

    def temporary(self, kind: str, text: str) -> str:
        name = f"m{len(self.names)}"
        self.names[ir.Value(BOOL)] = name
        self.put(f"const {kind} {name} = {text};")
        return name

    def is_uniform_access(self, s: ir.Load | ir.Store | ir.Atomic) -> bool:
        return not any(v in self.varying for v in s.index)

    def emit_Load(self, s: ir.Load) -> None:
        if self.is_uniform_access(s) and not any(v in self.varying for v in s.outs):
            super().emit_Load(s)
            return
        if self.in_window(s):
            for out, text in zip(s.outs, self.own_load(s), strict=True):
                self.define(out, text)
        elif self.is_own_access(s):
            for out in s.outs:
                self.put(f"{self.kind(out)} {self.name(out)};")
            self.put(f"if ({self.full} && own{s.array.position}) {{")
            for out, text in zip(s.outs, self.own_load(s), strict=True):
                self.put(f"    {self.name(out)} = {text};")
            self.put("} else {")
            self.depth += 1
            self.gather(s, declare=False)
            self.depth -= 1
            self.put("}")
        elif self.is_row_access(s) and s.array.position in self.rows:
            self.row_load(s, self.rows[s.array.position])
        else:
            self.gather(s, declare=True)

    def row_load(self, s: ir.Load, n: int) -> None:
        (out,), last = s.outs, s.index[1]
        assert isinstance(last, ir.Const)
        self.put(f"{self.kind(out)} {self.name(out)};")
        self.put(f"if ({self.full} && a{s.array.position}_n1 == {n})")
        base = f"{self.pointer(s.array, 0)} + thread * {n}"
        self.put(f"    {self.name(out)} = kc_load_own<{n}>({base}, {last.value});")
        self.put("else {")
        self.depth += 1
        self.gather(s, declare=False)
        self.depth -= 1
        self.put("}")

    def own_load(self, s: ir.Load) -> list[str]:
        count, base = len(leaves(s.array.type.element)), self.own_place(s)
        return [f"kc_load_own<{count}>({base}, {comp})" for comp in s.comps]

    def gather(self, s: ir.Load, *, declare: bool) -> None:
        at = self.offsets(s)
        for out, comp in zip(s.outs, s.comps, strict=True):
            kind, offset = leaves(s.array.type.element)[comp], leaf_offsets(s.array.type.element)[comp]
            if self.is_dense(s.array):
                text = f"kc_gather({self.pointer(s.array, comp)}, {at})"
            elif kind is BOOL:
                text = f"kc_gather_bytes((const bool*)(a{s.array.position}_{s.array.role} + {offset}), {at})"
            else:
                text = f"kc_gather_{kind.name}(a{s.array.position}_{s.array.role} + {offset}, {at})"
            if declare:
                self.define(out, text)
            else:
                self.put(f"{self.name(out)} = {text};")

    def emit_Store(self, s: ir.Store) -> None:
        if self.is_taken(s):
            self.put(f"if (!special{s.array.position}) {{")
        self.scatter(s, lambda place, value: f"{place} = {value};")
        if self.is_taken(s):
            self.put("}")

    def emit_Atomic(self, s: ir.Atomic) -> None:
        if self.is_sum(s):
            self.reduce(s)
        elif self.is_first(s):
            special = f"special{s.array.position}"
            self.scatter(s, lambda place, value: f"{place} = ({special} ? 0 : {place}) + {value};")
        else:
            self.scatter(s, lambda place, value: f"{place} += {value};")

    # -- sums of all lanes
    def block(self, block: ir.Block) -> None:
        outer, self.sums = self.sums, []
        for stmt in block.body:
            if self.sums and not self.may_wait(stmt):
                self.put_sums()
            self.statement(stmt)
        self.put_sums()
        self.sums = outer

    def may_wait(self, stmt: ir.Stmt) -> bool:
        """Whether sums that come before a statement may be added to memory after it."""
        if isinstance(stmt, ir.Atomic):
            return self.is_sum(stmt)
        if isinstance(stmt, ir.Load):
            return stmt.array.role == "value" and all(w[0] is not stmt.array for w in self.sums)
        return isinstance(stmt, (ir.Op, ir.Query))

    def is_sum(self, s: ir.Atomic) -> bool:
        return self.is_uniform_access(s) and not any(v.type is BOOL for v in s.values)

    def reduce(self, s: ir.Atomic) -> None:
        """All lanes add to one element: they are summed first. Four numbers are summed as fast as one, so they wait."""
        pointer = self.element(s)
        offsets = leaf_offsets(s.array.type.element)
        self.sums += [
            (s.array, self.leaf(s, pointer, c), v, (pointer, offsets[c]))
            for c, v in zip(s.comps, s.values, strict=True)
        ]

    def put_sums(self) -> None:
        waiting, self.sums = self.sums, []
        while waiting:
            kind = waiting[0][2].type
            part = waiting[: 4 if self.width >= 4 else 1]
            part = part[: next((k for k, w in enumerate(part) if w[2].type is not kind), len(part))]
            waiting = waiting[len(part) :]
            mask, values = f"{self.full}, {self.mask}", [self.vector(w[2]) for w in part]
            if len(part) == 1:
                self.put(f"{part[0][1]} += kc_sum({mask}, {values[0]});")
                continue
            vector = _VECTORS[kind.name]
            values += [f"{vector}{{}}"] * (4 - len(part))
            sums = self.temporary(vector, f"kc_sum4({mask}, {', '.join(values)})")
            first, offset = part[0][3]
            if [w[3] for w in part] == [(first, offset + k * kind.size) for k in range(4)]:
                self.put(f"kc_add4(({_TYPES[kind.name]}*)({first} + {offset}), {sums});")
                continue
            for k, (_, place, _, _) in enumerate(part):
                self.put(f"{place} += {sums}[{k}];")

    def scatter(self, s: ir.Store | ir.Atomic, write: Callable[[str, str], str]) -> None:
        """Write the active lanes in thread order; a group that owns its elements writes them together."""
        if self.in_window(s):
            self.own_write(s)
        elif self.is_own_access(s) and self.is_whole(s):
            self.put(f"if ({self.full} && own{s.array.position}) {{")
            self.own_write(s)
            self.put("} else {")
            self.depth += 1
            self.each_lane(s, write, partial=self.own_condition(s.array.position) == "true")
            self.depth -= 1
            self.put("}")
        else:
            self.each_lane(s, write)

    def is_whole(self, s: ir.Store | ir.Atomic) -> bool:
        count = len(leaves(s.array.type.element))
        return count == 1 or (len(s.comps) == count and count <= 3)

    def own_write(self, s: ir.Store | ir.Atomic) -> None:
        count, base = len(leaves(s.array.type.element)), self.own_place(s)
        values = [self.vector(s.values[s.comps.index(c)]) for c in range(count)]
        if self.is_first(s):
            # Zeros are read instead of asking: the compiler would read both.
            kind = _TYPES[s.values[0].type.name]
            base = self.temporary("auto", base)
            old = self.temporary("auto", f"special{s.array.position} ? ({kind}*)kc_zeros : {base}")
            values = [f"kc_load_own<{count}>({old}, {c}) + {v}" for c, v in enumerate(values)]
        elif isinstance(s, ir.Atomic):
            values = [f"kc_load_own<{count}>({base}, {c}) + {v}" for c, v in enumerate(values)]
        self.put(f"    kc_store_own({base}, {', '.join(values)});")

    def each_lane(self, s: ir.Store | ir.Atomic, write: Callable[[str, str], str], *, partial: bool = False) -> None:
        """Write lane by lane; `partial`: the group is known not to be full."""
        at = self.offsets(s)
        buffers = [self.temporary(_VECTORS[v.type.name], self.vector(v)) for v in s.values]
        if not partial:
            self.put(f"if ({self.full}) {{")
            self.put(f"    for (int l = 0; l < {self.width}; ++l) {{")
            self.one_lane(s, at, buffers, write)
            self.put("    }")
            self.put("} else {")
        bits = f"b{len(self.names)}"
        self.names[ir.Value(BOOL)] = bits
        self.put(f"    for (uint32_t {bits} = kc_bits({self.mask}); {bits}; {bits} &= {bits} - 1) {{")
        self.put(f"        const int l = __builtin_ctz({bits});")
        self.one_lane(s, at, buffers, write)
        self.put("    }")
        if not partial:
            self.put("}")

    def one_lane(self, s: ir.Store | ir.Atomic, at: str, buffers: list[str], write: Callable[[str, str], str]) -> None:
        element: Type = s.array.type.element
        unit = f" * {leaves(element)[0].size}" if self.is_dense(s.array) else ""
        self.put(f"        char* const e = a{s.array.position}_{s.array.role} + (int64_t){at}[l]{unit};")
        for value, buffer, comp in zip(s.values, buffers, s.comps, strict=True):
            kind, offset = _TYPES[leaves(element)[comp].name], leaf_offsets(element)[comp]
            item = f"({buffer}[l] != 0)" if value.type is BOOL else f"{buffer}[l]"
            self.put("        " + write(f"*({kind}*)(e + {offset})", item))

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
        params = [f"const {ns}{_VECTORS[p.type.name]} {self.name(p)}" for p in custom.body.params]
        results = [f"{ns}{_VECTORS[y.type.name]}* out{k}" for k, y in enumerate(custom.body.yields)]
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
        return {"bool": "mi", "int32": "mi", "int64": "ml", "uint32": "mu", "float32": "mf", "float64": "md"}[
            value.type.name
        ]

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
