"""IR → CUDA C++: the same statements as for the CPU, one thread of the GPU for each thread of the grid.

Where threads of the grid may meet, additions, minima and maxima are native atomics; everything else is as cpp.py has
it. What the text calls is in include/kernelc/device.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from .. import ir
from ..records import record
from ..types import leaf_offsets, leaves
from .cpp import _TYPES, Code, _about, _Emitter
from .ownership import crowded_arrays

DEVICE_HEADER = '#include "kernelc/device.h"\n'


@record
class Counted:
    """What a forward kernel counts, so that there is room for the loop tape of its adjoint.

    frames: the bytes that the adjoint keeps of one iteration, by loop. logged: the arrays whose stores it will log.
    """

    frames: Mapping[ir.Loop, int] = field(default_factory=dict)
    logged: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.frames or self.logged)


def emit_cuda(
    kernel: ir.Kernel, name: str, *, contiguous: frozenset[int] = frozenset(), debug: bool = False,
    shared: bool = False, counted: Counted | None = None,
) -> Code:  # fmt: skip
    """CUDA C++ for a kernel. `shared`: two gradients may be the same memory, so that every addition is atomic."""
    return _CudaEmitter(kernel, name, contiguous, debug, shared, counted or Counted()).run()


def runs_in_order(kernel: ir.Kernel) -> bool:
    """Whether the threads of a launch must run one by one on a GPU, as they do on the CPU.

    They must where no thread has an index, and where what the adjoint takes back was changed by several threads.
    """
    crowded = crowded_arrays(kernel)
    logged = (s for s in kernel.body.walk() if isinstance(s, ir.Atomic) and s.logged)
    return kernel.dims == 0 or any(s.array in crowded for s in logged)


def claims(kernel: ir.Kernel) -> frozenset[int]:
    """Arrays of which a dry launch has to find out who takes their adjoint."""
    return frozenset(s.array.position for s in kernel.body.walk() if isinstance(s, ir.Claim))


def used_values(kernel: ir.Kernel) -> set[ir.Value]:
    """The values that some statement reads, in the functions that are called as well."""
    found: set[ir.Value] = set()
    blocks = [kernel.body]
    while blocks:
        block = blocks.pop()
        found.update(block.yields)
        for s in block.body:
            found.update(s.inputs())
            blocks.extend(s.blocks())
            if isinstance(s, ir.Loop) and s.stop is not None:
                found.add(s.stop)
            if isinstance(s, ir.Call):
                blocks.append(s.function.body)
    return found


class _CudaEmitter(_Emitter):
    FUNCTION = "static __device__ void"

    def __init__(
        self, kernel: ir.Kernel, name: str, contiguous: frozenset[int], debug: bool, shared: bool, counted: Counted
    ):
        super().__init__(kernel, name, contiguous, debug)
        self.strips = []
        self.shared, self.counted = shared, counted
        self.crowded = crowded_arrays(kernel)
        self.claimed = claims(kernel)
        self.region: int | None = None
        self.regions = 0
        self.frame_of_body = 0
        self.used = used_values(kernel)

    # -- the whole
    def run(self) -> Code:
        self.unpack()
        if self.counted:
            self.put("int64_t logged = 0;")
        self.block(self.kernel.body)
        thread = f"{self.entry}_thread"
        words = self.layout.words
        text = [
            *self.function_text,
            f"static __device__ __forceinline__ void {thread}"
            "(const int64_t* const block, const int64_t thread, kc_context* const ctx) {",
            "    (void)thread;",
            *self.lines,
            "}",
            f'extern "C" __global__ void __launch_bounds__(KC_BLOCK) {self.entry}'
            f"(const __grid_constant__ kc_words<{words}> words, const __grid_constant__ kc_launch launch) {{",
            "    kc_context context;",
            "    kc_open(&context, &launch);",
            "    for (int64_t thread = kc_first(); thread < launch.total && !context.failed; thread += kc_slots()) {",
            "        kc_begin(&context, thread);",
            f"        {thread}(words.word, thread, &context);",
            "    }",
            "    kc_end(&context);",
            "}",
            f"KC_ENTRY({self.entry}, {words})",
        ]
        return Code(self.entry, "\n".join(text) + "\n", self.sites, self.kernel.name, self.kernel.span)

    def define(self, value: ir.Value, text: str) -> None:
        # Of an element, all leaves are loaded; nvcc would warn of those that nobody reads.
        unread = f" (void){self.name(value)};" if value not in self.used else ""
        self.put(f"const {self.kind(value)} {self.name(value)} = {text};{unread}")

    def call_core(self, what: str, *args: object) -> str:
        return f"kc_{what}({', '.join(map(str, ('ctx', *args)))})"

    # -- numbers
    def emit_Op(self, s: ir.Op) -> None:
        if s.op in ("add", "sub", "mul", "neg") and s.out.type.name in ("int32", "int64"):
            self.define(s.out, f"kc_wrap_{s.op}({', '.join(self.name(a) for a in s.args)})")
        else:
            super().emit_Op(s)

    def emit_Query(self, s: ir.Query) -> None:
        if s.what != "tid" or self.kernel.dims < 2:
            super().emit_Query(s)
            return
        inner = " * ".join(f"dim{a}" for a in range(s.axis + 1, self.kernel.dims))
        text = f"kc_quotient(thread, {inner})" if inner else "thread"
        self.define(s.out, f"(int32_t)kc_remainder({text}, dim{s.axis})" if s.axis > 0 else f"(int32_t){text}")

    # -- memory
    def effect(self, s: ir.Store | ir.Atomic, text: str) -> str:
        """A change of memory; dry launches make only those that are taken back."""
        return f"if (!ctx->dry) {text}" if self.claimed and not s.logged else text

    def emit_Store(self, s: ir.Store) -> None:
        self.check_nan(s)
        pointer = self.element(s)
        self.log(s, pointer)
        self.count_logged(s)
        guard = f"if (!special{s.array.position}) " if self.is_taken(s) else ""
        for value, comp in zip(s.values, s.comps, strict=True):
            self.put(self.effect(s, f"{guard}{self.leaf(s, pointer, comp)} = {self.name(value)};"))

    def emit_Atomic(self, s: ir.Atomic) -> None:
        self.check_nan(s)
        pointer = self.element(s)
        self.log(s, pointer)
        self.count_logged(s)
        for k, (value, comp) in enumerate(zip(s.values, s.comps, strict=True)):
            if self.debug and s.array.role == "value":
                self.uninitialised(s, pointer, comp)
            place, v = self.leaf(s, pointer, comp), self.name(value)
            if s.array in self.crowded or (self.shared and s.array.role == "grad"):
                offset = leaf_offsets(s.array.type.element)[comp]
                kind = _TYPES[leaves(s.array.type.element)[comp].name]
                given = f"{self.name(s.expected[k])}, {v}" if s.kind == "cas" else v
                change = f"kc_atomic_{s.kind}(({kind}*)({pointer} + {offset}), {given})"
                if s.outs:
                    self.define(s.outs[k], change)
                else:
                    self.put(self.effect(s, f"{change};"))
            else:
                if s.outs:
                    self.define(s.outs[k], self.held(s, comp, place))
                self.put(self.effect(s, self.changed(s, k, place, v)))

    def count_logged(self, s: ir.Store | ir.Atomic) -> None:
        if s.array.position in self.counted.logged and s.array.role == "value":
            self.put(f"logged += {len(s.comps)};")

    def emit_Claim(self, s: ir.Claim) -> None:
        place = f"{self.linear(s.array, s.index)} * {len(leaves(s.array.type.element))} + {s.comp}"
        self.define(s.out, f"kc_claim(ctx, a{s.array.position}_shadow + {place}, {self.name(s.cond)})")

    def race(self, stmt: ir.Load | ir.Store | ir.Atomic) -> None:
        array = stmt.array
        if array.role != "value" or (isinstance(stmt, (ir.Store, ir.Atomic)) and stmt.logged):
            return
        p, count, linear = array.position, len(leaves(array.type.element)), self.linear(array, stmt.index)
        words, short = self.index_words(stmt), array.type.ndim <= 2
        mine, foes = {ir.Store: (0, (0, 1, 2)), ir.Load: (1, (0, 2)), ir.Atomic: (2, (0, 1))}[type(stmt)]
        size = " * ".join(f"a{p}_n{axis}" for axis in range(array.type.ndim))
        self.put(f"if (a{p}_shadow && (uint64_t)({linear}) < (uint64_t)({size})) {{")
        self.depth += 1
        for comp in stmt.comps:
            self.put("{")
            self.put(f"int64_t* const who = a{p}_shadow + 3 * ({linear} * {count} + {comp});")
            self.put(f"kc_touch(who + {mine}, thread);")
            for foe in foes:
                self.put(f"const int64_t foe{foe} = kc_toucher(who + {foe});")
                other = f"(foe{foe} > 0 ? foe{foe} - 1 : -1)"
                said = (other, words[0]) if short else words
                self.fail(f"foe{foe} && foe{foe} != thread + 1", 6, stmt, *said, **_about(array))
            self.put("}")
        self.depth -= 1
        self.put("}")

    # -- loop tape
    def emit_Push(self, s: ir.Push) -> None:
        self.put(f"{{ const int64_t frame = kc_reserve(ctx, {self.frame_size(s.values)});")
        for v, at in self.frame(s.values):
            self.put(f"  *({self.kind(v)}*)kc_tape(ctx, frame + {at}) = {self.name(v)};")
        self.put("}")

    def emit_Pop(self, s: ir.Pop) -> None:
        frame = self.fresh("f")
        self.put(f"const int64_t {frame} = kc_release(ctx, {self.frame_size(s.outs)});")
        for v, at in self.frame(s.outs):
            self.define(v, f"*(const {self.kind(v)}*)kc_tape(ctx, {frame} + {at})")

    def emit_Record(self, s: ir.Record) -> None:
        self.put(f"kc_record_put(ctx, {self.name(s.sequence)}, (int64_t){self.name(s.value)});")

    def emit_Recall(self, s: ir.Recall) -> None:
        self.define(s.out, f"({self.kind(s.out)})kc_record_get(ctx, {self.name(s.sequence)})")

    # -- counting. In the adjoint, the frames of all loops of a block are on the tape together, and above them those of
    # the loop or branch inside that needs most.
    def emit_Loop(self, s: ir.Loop) -> None:
        self.frame_of_body = self.counted.frames.get(s, 0)
        super().emit_Loop(s)

    def poll(self, s: ir.Loop) -> None:
        """Nothing: a GPU hears of no signal."""

    def block(self, block: ir.Block) -> None:
        frame, self.frame_of_body = self.frame_of_body, 0
        outer, top = self.region, self.region is None and block is self.kernel.body
        if frame:
            self.put(f"frames{outer} += {frame};")
        if not self.counted or not (top or self.has_counted(block)):
            super().block(block)
            return
        inner = self.region = self.regions
        self.regions += 1
        self.put(f"int64_t frames{inner} = 0, above{inner} = 0;")
        super().block(block)
        if top:
            self.put(f"kc_count(ctx, frames{inner} + above{inner}, logged);")
        else:
            self.put(f"above{outer} = kc_max(above{outer}, frames{inner} + above{inner});")
        self.region = outer

    def has_counted(self, block: ir.Block) -> bool:
        return any(isinstance(s, ir.Loop) and s in self.counted.frames for s in block.walk())
