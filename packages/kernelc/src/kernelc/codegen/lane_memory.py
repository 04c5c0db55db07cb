"""Memory in lanes: gathers, elements of a group's own, sums of all lanes, writes in the order of the threads.

The lower half of lanes.py, which emits everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import ir
from ..types import BOOL, FLOAT32, FLOAT64, element_size, leaf_offsets, leaves
from .cpp import _TYPES, SIGNS, _Emitter, _literal
from .ownership import thread_indices
from .uniform import varying_values
from .windows import find_windows

_APART = (1, 2, 3, 4, 9)
"""Elements of so many leaves are taken apart by shuffles of whole vectors (kc_load_own)."""
VECTORS = {"bool": "vb", "int32": "vi", "int64": "vl", "uint32": "vu", "uint64": "vq", "float32": "vf",
           "float64": "vd"}  # fmt: skip


@dataclass
class Scatter:
    """A write whose elements lie anywhere: their places and values, one of each per lane."""

    stmt: ir.Store | ir.Atomic
    at: str
    parts: list[tuple[int, str, str]]
    """What lane l writes: the first leaf, the type of what goes there, the values: of a leaf, or of four together."""
    write: Callable[[str, str], str]


Sum = tuple[ir.ArrayRef, str, ir.Value, tuple[str, int]]
"""Values of all lanes that go to one number: the array, the number, the values, and its element and offset there."""


class LaneMemory(_Emitter):
    """What a group of lanes knows of its values, and how it reads and writes arrays."""

    def __init__(self, kernel: ir.Kernel, name: str, contiguous: frozenset[int], width: int):
        super().__init__(kernel, name, contiguous, debug=False)
        self.width = width
        self.varying = varying_values(kernel)
        self.axes = thread_indices(kernel)
        self.mask, self.full = "active", "full"
        self.divergent = False
        self.masks = 0
        self.sums: list[Sum] = []
        self.scatters: list[Scatter] = []
        self.scattered = {(s.array.position, s.array.role) for s in kernel.body.walk()
                          if isinstance(s, ir.Atomic) and not self.is_own_access(s) and not self.is_sum(s)}  # fmt: skip
        self.rows = self.row_widths()
        self.windows = find_windows(kernel, self.varying, self.is_own_access, self.is_whole)

    # -- values
    def is_varying(self, value: ir.Value) -> bool:
        return value in self.varying

    def kind(self, value: ir.Value) -> str:
        return VECTORS[value.type.name] if value in self.varying else _TYPES[value.type.name]

    def vector(self, value: ir.Value) -> str:
        """A value as a vector, whatever it is."""
        name = self.name(value)
        if value in self.varying:
            return name
        if isinstance(value, ir.Const):
            return f"kc_splat(({_TYPES[value.type.name]}){_literal(value)})"
        return f"kc_splat({name})"

    # -- which elements are whose
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
        """Whether elements follow each other without gaps, all leaves of one type, and 32 bits count them."""
        if array.position not in self.contiguous:
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

    # -- memory
    def pointer(self, array: ir.ArrayRef, comp: int) -> str:
        kind, offset = leaves(array.type.element)[comp], leaf_offsets(array.type.element)[comp]
        return f"({_TYPES[kind.name]}*)(a{array.position}_{array.role} + {offset})"

    def safe_index(self, s: ir.Load | ir.Store | ir.Atomic) -> list[str]:
        """Index vectors whose inactive lanes point at the first element.

        The index of a thread is valid in every lane of a group that is not full; what a window holds there is not.
        """
        found = []
        for v in s.index:
            x = self.vector(v)
            if v in self.varying and v.type is not BOOL and (self.divergent or (self.windows and v not in self.axes)):
                x = f"kc_select({self.mask}, {x}, ({self.kind(v)}){{}})"
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
        elif self.is_own_access(s) and self.kernel.block:
            # All lanes of a group are there: those that are not active may read theirs, too.
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
        self.put(f"    {self.name(out)} = {self.widened(s, out, f'kc_load_own<{n}>({base}, {last.value})')};")
        self.put("else {")
        self.depth += 1
        self.gather(s, declare=False)
        self.depth -= 1
        self.put("}")

    def own_load(self, s: ir.Load) -> list[str]:
        """What a group finds in its own elements; four leaves of long ones come together."""
        count, base = len(leaves(s.array.type.element)), self.own_place(s)
        loads = [f"kc_load_own<{count}>({base}, {comp})" for comp in s.comps]
        loads = [self.widened(s, out, text) for out, text in zip(s.outs, loads, strict=True)]
        for n in [] if count in _APART else self.quads(s.array, s.comps):
            loads[n : n + 4] = self.load_quad(s.outs[n], f"kc_load4_own<{count}>({base} + {s.comps[n]}, ")
        return loads

    def quads(self, array: ir.ArrayRef, comps: Sequence[int]) -> list[int]:
        """Where four leaves begin, in a list of them, that lie side by side and move together."""
        kinds, offsets = leaves(array.type.element), leaf_offsets(array.type.element)
        found, n = [], 0
        while n + 4 <= len(comps):
            four = comps[n : n + 4]
            apart = [offsets[c] - offsets[four[0]] for c in four]
            same = {kinds[c] for c in four} in ({FLOAT32}, {FLOAT64})
            if same and apart == [k * kinds[four[0]].size for k in range(4)]:
                found.append(n)
                n += 4
            else:
                n += 1
        return found

    def load_quad(self, like: ir.Value, call: str) -> list[str]:
        """Four variables, loaded by a function that takes them at the end of its arguments."""
        names = [self.fresh("m") for _ in range(4)]
        self.put(f"{VECTORS[like.type.name]} {', '.join(names)};")
        self.put(f"{call}{', '.join(names)});")
        return names

    def widened(self, s: ir.Load | ir.Store | ir.Atomic, value: ir.Value, text: str) -> str:
        """Halves come as float; a launch in double precision computes with doubles."""
        if value.type is FLOAT64 and any(leaf.is_half for leaf in leaves(s.array.type.element)):
            return f"__builtin_convertvector({text}, vd)"
        return text

    def gather(self, s: ir.Load, *, declare: bool) -> None:
        at = self.offsets(s)
        together: dict[ir.Value, str] = {}
        for n in self.quads(s.array, s.comps):
            comp, kind = s.comps[n], leaves(s.array.type.element)[s.comps[n]]
            where = f"({self.pointer(s.array, comp)}, {at}, "
            if not self.is_dense(s.array):
                offset = leaf_offsets(s.array.type.element)[comp]
                where = f"_{kind.name}(a{s.array.position}_{s.array.role} + {offset}, {at}, "
            together.update(zip(s.outs[n : n + 4], self.load_quad(s.outs[n], f"kc_load4{where}"), strict=True))
        for out, comp in zip(s.outs, s.comps, strict=True):
            kind, offset = leaves(s.array.type.element)[comp], leaf_offsets(s.array.type.element)[comp]
            if self.is_dense(s.array):
                text = f"kc_gather({self.pointer(s.array, comp)}, {at})"
            elif kind is BOOL:
                text = f"kc_gather_bytes((const uint8_t*)(a{s.array.position}_{s.array.role} + {offset}), {at})"
            else:
                text = f"kc_gather_{kind.name}(a{s.array.position}_{s.array.role} + {offset}, {at})"
            if kind.is_half:
                text = self.widened(s, out, text)
            text = together.get(out, text)
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
        elif s.kind != "add":
            # At once: it does not commute with additions that wait.
            self.each_lane([self.prepare(s, lambda place, value: f"{place} {SIGNS[s.kind]}= {value};")])
        else:
            self.scatter(s, lambda place, value: f"{place} += {value};")

    # -- additions that wait
    def block(self, block: ir.Block) -> None:
        outer, self.sums, self.scatters = (self.sums, self.scatters), [], []
        for stmt in block.body:
            if not self.may_wait(stmt):
                self.put_waiting()
            self.statement(stmt)
        self.put_waiting()
        self.sums, self.scatters = outer

    def may_wait(self, stmt: ir.Stmt) -> bool:
        """Whether additions that come before a statement may reach memory after it."""
        if isinstance(stmt, ir.Atomic):
            return stmt.kind == "add" and not (self.scatters if self.is_sum(stmt) else self.sums)
        if isinstance(stmt, ir.Load):
            waiting = [w[0] for w in self.sums] + [w.stmt.array for w in self.scatters]
            return stmt.array.role == "value" and all(array is not stmt.array for array in waiting)
        return isinstance(stmt, (ir.Op, ir.Query))

    def put_waiting(self) -> None:
        self.put_sums()
        self.put_scatters()

    # -- sums of all lanes

    def is_sum(self, s: ir.Atomic) -> bool:
        """Whether the lanes are summed before they are added. What is rounded when it is stored is added one by one."""
        kinds = leaves(s.array.type.element)
        plain = not any(v.type is BOOL for v in s.values) and not any(kind.is_stored for kind in kinds)
        return s.kind == "add" and self.is_uniform_access(s) and plain

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
            mask = f"{self.full}, {self.mask}"
            if len(part) == 1:
                self.put(f"{part[0][1]} += kc_sum({mask}, {self.vector(part[0][2])});")
                continue
            part, together = _side_by_side(part, kind.size)
            values = [self.vector(w[2]) for w in part] + [f"{VECTORS[kind.name]}{{}}"] * (4 - len(part))
            sums = self.temporary("auto", f"kc_sum4({mask}, {', '.join(values)})")
            if together:
                first, offset = part[0][3]
                self.put(f"kc_add{together}(({_TYPES[kind.name]}*)({first} + {offset}), {sums});")
            for k in range(together, len(part)):
                self.put(f"{part[k][1]} += {sums}[{k}];")

    def scatter(self, s: ir.Store | ir.Atomic, write: Callable[[str, str], str]) -> None:
        """Write the active lanes in thread order; a group that owns its elements writes them together."""
        if self.in_window(s) or self.is_blended(s):
            self.own_write(s)
        elif self.is_own_access(s) and self.is_whole(s) and not self.is_mixed(s):
            self.put(f"if ({self.full} && own{s.array.position}) {{")
            self.own_write(s)
            self.put("} else {")
            self.depth += 1
            self.each_lane([self.prepare(s, write)], partial=self.own_condition(s.array.position) == "true")
            self.depth -= 1
            self.put("}")
        elif isinstance(s, ir.Atomic):
            self.scatters.append(self.prepare(s, write))
        else:
            self.each_lane([self.prepare(s, write)])

    def is_blended(self, s: ir.Store | ir.Atomic) -> bool:
        """Whether the elements of a group are its own whichever lanes are active: those that are not may write theirs
        back as they were. Nobody else writes to them at that time: they are in a row of the group's own."""
        if not self.kernel.block or not self.is_own_access(s) or not self.is_whole(s):
            return False
        rows = not self.divergent or self.kernel.dims == 1 or self.axes.get(s.index[0]) == 0
        return rows and not self.is_mixed(s) and not self.is_first(s) and not self.is_taken(s)

    def is_mixed(self, s: ir.Store | ir.Atomic) -> bool:
        """Whether a group adds to its own elements and to elements of others: it must add in the order of threads."""
        return isinstance(s, ir.Atomic) and (s.array.position, s.array.role) in self.scattered

    def prepare(self, s: ir.Store | ir.Atomic, write: Callable[[str, str], str]) -> Scatter:
        at, kinds = self.offsets(s), leaves(s.array.type.element)
        together = [] if self.is_first(s) or getattr(s, "kind", "add") != "add" else self.quads(s.array, s.comps)
        parts: list[tuple[int, str, str]] = []
        n = 0
        while n < len(s.comps):
            comp = s.comps[n]
            if n in together:
                kind, buffer = f"{kinds[comp].name}_quad", self.fresh("m")
                values = ", ".join(self.vector(v) for v in s.values[n : n + 4])
                self.put(f"{kind} {buffer}[{self.width}]; kc_quads({buffer}, {values});")
                parts.append((comp, kind, f"{buffer}[l]"))
                n += 4
            else:
                v = s.values[n]
                buffer = self.temporary(VECTORS[v.type.name], self.vector(v))
                item = f"({buffer}[l] != 0)" if v.type is BOOL else f"{buffer}[l]"
                parts.append((comp, _TYPES[kinds[comp].name], item))
                n += 1
        return Scatter(s, at, parts, write)

    def put_scatters(self) -> None:
        """Thread by thread, each all its additions: so sums do not depend on which threads form a group."""
        waiting, self.scatters = self.scatters, []
        if waiting:
            self.each_lane(waiting)

    def is_whole(self, s: ir.Store | ir.Atomic) -> bool:
        count = len(leaves(s.array.type.element))
        if count == 1 or len(s.comps) < count:
            return count == 1
        return count <= 3 or (count % 4 == 0 and len(self.quads(s.array, sorted(s.comps))) == count // 4)

    def own_write(self, s: ir.Store | ir.Atomic) -> None:
        count, base = len(leaves(s.array.type.element)), self.own_place(s)
        values = [self.vector(s.values[s.comps.index(c)]) for c in range(count)]
        if self.is_first(s):
            # Zeros are read instead of asking: the compiler would read both.
            kind = _TYPES[s.values[0].type.name]
            base = self.temporary("auto", base)
            old = self.temporary("auto", f"special{s.array.position} ? ({kind}*)kc_zeros : {base}")
            values = [f"{before} + {v}" for before, v in zip(self.own_leaves(s, old), values, strict=True)]
        elif isinstance(s, ir.Atomic):
            values = [f"{before} + {v}" for before, v in zip(self.own_leaves(s, base), values, strict=True)]
        if self.divergent and self.is_blended(s):
            values = [f"kc_select({self.mask}, {v}, {before})"
                      for before, v in zip(self.own_leaves(s, base), values, strict=True)]  # fmt: skip
        if count <= 3:
            self.put(f"    kc_store_own({base}, {', '.join(values)});")
        for n in range(0, count if count > 3 else 0, 4):
            self.put(f"    kc_store4_own<{count}>({base} + {n}, {', '.join(values[n : n + 4])});")

    def own_leaves(self, s: ir.Store | ir.Atomic, base: str) -> list[str]:
        """What is in all leaves of a group's own elements."""
        count = len(leaves(s.array.type.element))
        if count <= 4:
            return [self.widened(s, s.values[0], f"kc_load_own<{count}>({base}, {c})") for c in range(count)]
        starts = [f"kc_load4_own<{count}>({base} + {n}, " for n in range(0, count, 4)]
        return [name for call in starts for name in self.load_quad(s.values[0], call)]

    def each_lane(self, writes: Sequence[Scatter], *, partial: bool = False) -> None:
        """Write lane by lane; `partial`: the group is known not to be full."""
        if not partial:
            self.put(f"if ({self.full}) {{")
            self.put(f"    for (int l = 0; l < {self.width}; ++l) {{")
            self.one_lane(writes)
            self.put("    }")
            self.put("} else {")
        bits = f"b{len(self.names)}"
        self.names[ir.Value(BOOL)] = bits
        self.put(f"    for (uint32_t {bits} = kc_bits({self.mask}); {bits}; {bits} &= {bits} - 1) {{")
        self.put(f"        const int l = __builtin_ctz({bits});")
        self.one_lane(writes)
        self.put("    }")
        if not partial:
            self.put("}")

    def one_lane(self, writes: Sequence[Scatter]) -> None:
        for k, w in enumerate(writes):
            array, element = w.stmt.array, w.stmt.array.type.element
            unit = f" * {leaves(element)[0].size}" if self.is_dense(array) else ""
            self.put(f"        char* const e{k} = a{array.position}_{array.role} + (int64_t){w.at}[l]{unit};")
            for comp, kind, item in w.parts:
                self.put("        " + w.write(f"*({kind}*)(e{k} + {leaf_offsets(element)[comp]})", item))


def _side_by_side(part: Sequence[Sum], size: int) -> tuple[list[Sum], int]:
    """The sums of which three or four go to numbers side by side, these first; and how many they are."""
    for count in (4, 3):
        for start in range(len(part) - count + 1):
            first, offset = part[start][3]
            run = list(part[start : start + count])
            if [w[3] for w in run] == [(first, offset + k * size) for k in range(count)]:
                return run + [w for w in part if w not in run], count
    return list(part), 0
