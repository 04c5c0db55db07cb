"""From a kernel's source to machine code: lowering, adjoint, C++, the tool chain (or what the kernel's package brings),
the entry address. All cached."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .. import _native, ir
from ..adjoint import (
    AdjointKernel,
    TangentKernel,
    adjoint,
    expand_gradients,
    pattern,
    promote,
    second,
    split_loops,
    tangent,
)
from ..builtins import TABLE
from ..codegen import (
    Code,
    Layout,
    counted_for,
    emit,
    emit_cuda,
    emit_lanes,
    first_arrays,
    header,
    is_parallel,
    is_parallel_by_rows,
    lanes_refused,
    layout,
    strip_arrays,
    taken_arrays,
    watched_arrays,
)
from ..config import config
from ..errors import CompilerFailed, NotDifferentiable, ToolchainError
from ..frontend import Lowered, Source, lower
from ..frontend.source import Capture, StaticCapture
from ..records import record
from ..toolchain import Shipped, build_many, libmvec, shipped_with, simd
from ..types import Scalar, leaves


@record
class Options:
    """What a kernel's decorator may set."""

    loop_tape: str = "all"
    lanes: int | None = None
    """How many threads run side by side, where the setting of the process is not to hold."""
    block: int = 0
    """The length of the last axis of every launch; 0 if it may be any."""
    curvature: bool = True
    """Whether its gradients may be differentiated again."""


@dataclass
class Binary:
    """A compiled kernel: where it is, and what its launches need."""

    kernel: ir.Kernel
    layout: Layout
    code: Code
    entry: int
    parallel: bool
    width: int
    strips: list[ir.ArrayRef]
    """Arrays to which threads add together, if that is all that keeps a launch in order (strips.py)."""
    rows: bool = False
    """Whether it runs in parallel by rows only: threads that differ in the first index do not touch each other's."""
    first: frozenset[int] = frozenset()
    """Arrays whose gradient it may write instead of adding to it."""
    taken: frozenset[int] = frozenset()
    """Arrays whose gradient it may leave as it is instead of setting it to zero."""

    def __post_init__(self) -> None:
        self.prints = any(s.parts for s in self.code.sites)


class Variant:
    """A kernel in one precision, with its adjoints and binaries made on demand."""

    def __init__(self, source: Source, real: Scalar, boxed: Sequence[str], options: Options, lacks: Sequence[str] = ()):
        self.source, self.real, self.boxed, self.options, self.lacks = source, real, tuple(boxed), options, tuple(lacks)
        self.singular = config.singular
        self.lowered: Lowered = lower(source, real, boxed, lacks)
        self.lowered.kernel.block = options.block
        kernel = ir.prune(expand_gradients(self.lowered.kernel, singular=self.singular))
        if not config.debug:
            # Debug mode looks at every access.
            kernel = ir.prune(promote(kernel))
        self._settle(ir.verify(ir.fuse(kernel)))
        self._watched = [_watch(c) for c in self.lowered.captures if not _is_ours(c.holder)]

    def _settle(self, kernel: ir.Kernel) -> None:
        """Note what follows from the kernel."""
        self.kernel = kernel
        self.layout = layout(self.kernel)
        self._adjoints: dict[frozenset[int], AdjointKernel] = {}
        self._tangents: dict[tuple[str, frozenset[int]], TangentKernel] = {}
        self._binaries: dict[Any, Binary] = {}
        self._on_gpu: dict[Any, Any] = {}
        """Kernels compiled for the GPU (cuda/launching.py)."""
        self.reads: dict[frozenset[int], tuple[frozenset[int], frozenset[int], frozenset[int]]] = {}
        """What adjoint_reads has found."""
        self._widths: dict[tuple[str, frozenset[int], int], int] = {}
        self._served: dict[Any, frozenset[int]] = {}
        walk = list(self.kernel.body.walk())
        self.written = sorted({s.array.position for s in walk if isinstance(s, (ir.Store, ir.Atomic))})
        self.read = sorted({s.array.position for s in walk if isinstance(s, ir.Load)})
        self.touched = frozenset(self.written).union(self.read)
        """The arrays that it works on; bundles may bring others along, which ask for no adjoint."""
        self.records = any(isinstance(s, ir.Record) for s in walk)
        self.extrema = sorted({s.array.position for s in walk if isinstance(s, ir.Atomic) and s.kind != "add"})
        self.watched = watched_arrays(self.kernel)
        casts = (s for s in walk if isinstance(s, ir.Op) and s.op == "cast")
        self.indexes_by_reals = any(s.args[0].type.is_float and s.out.type.is_int for s in casts)

    def changed(self) -> bool:
        """Whether a name that the kernel captured means something else by now."""
        # Looked at in every launch: a loop, and most names mean the very same object.
        for get, name, value, capture in self._watched:  # noqa: SIM110
            if get(name) is not value and capture.changed():
                return True
        return False

    def adjoint(self, seeds: Iterable[int]) -> AdjointKernel:
        """The adjoint for a set of arrays that carry gradients."""
        key = frozenset(seeds)
        if key not in self._adjoints:
            self._adjoints[key] = adjoint(self.primal, key, singular=self.singular)
        return self._adjoints[key]

    @cached_property
    def primal(self) -> ir.Kernel:
        """The kernel that the adjoint is made of: the same with its loops split, if they are."""
        return split_loops(self.kernel) if self.options.loop_tape == "sqrt" else self.kernel

    def adjoint_reads(self, seeds: frozenset[int]) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """The arrays that carry a gradient through an adjoint; those whose values it reads; whose final values."""
        if seeds not in self.reads:
            made = self.adjoint(seeds)
            loads = [s.array for s in made.kernel.body.walk() if isinstance(s, ir.Load)]
            value, final = (frozenset(a.position for a in loads if a.role == role) for role in ("value", "final"))
            self.reads[seeds] = frozenset(made.activity.arrays), value, final
        return self.reads[seeds]

    def tangent(self, which: str, seeds: frozenset[int]) -> TangentKernel:
        """The kernel that pushes tangents: "tangent" one, "tangent4" four at a time.

        Of `seeds`, ~i stands for an array that carries a gradient, but has no tangent. "tangent of 0 2" is the tangent
        of the adjoint for the arrays 0 and 2: there ~i is the adjoint of an array, which has a tangent.
        """
        key = (which, seeds)
        if key not in self._tangents:
            width = int(which.removeprefix("tangent").partition(" of ")[0] or 1)
            if " of " in which:
                self.check_curvature()
                carried = map(int, which.partition(" of ")[2].split())
                self._tangents[key] = second(self.adjoint(carried).kernel, seeds, width=width, singular=self.singular)
            else:
                self._tangents[key] = tangent(self.kernel, [i for i in seeds if i >= 0], width=width,
                                              carried=[~i for i in seeds if i < 0], singular=self.singular)  # fmt: skip
        return self._tangents[key]

    def check_curvature(self) -> None:
        """Refuse second derivatives of a kernel that says it has none."""
        if not self.options.curvature:
            raise NotDifferentiable(f"{self.kernel.name} has a first derivative only", self.kernel.span,
                                    advice="take differences of the gradient")  # fmt: skip

    def pattern(self, which: str, seeds: frozenset[int]) -> TangentKernel | None:
        """The kernel that pushes sets of inputs, "tangent4 pattern" four words of them; None if there is none."""
        if (which, seeds) not in self._tangents:
            made = pattern(self.kernel, seeds, width=int(which.removeprefix("tangent").partition(" ")[0] or 1))
            if made is None:
                return None
            self._tangents[which, seeds] = made
        return self._tangents[which, seeds]

    @cached_property
    def has_ties(self) -> bool:
        """Whether it depends on who carries a gradient how a tangent is shared."""
        ops = (s for s in self.kernel.body.walk() if isinstance(s, ir.Op) and s.op not in ("select", "cast"))
        return any("tie" in p.names() for s in ops for p in TABLE.scalar(s.op).partials if p is not None)

    def ir_of(self, which: str, seeds: frozenset[int]) -> ir.Kernel:
        if which in ("forward", "watched"):
            return self.kernel
        return self.adjoint(seeds).kernel if which == "adjoint" else self.tangent(which, seeds).kernel

    def dense(self, which: str, seeds: frozenset[int], contiguous: frozenset[int]) -> frozenset[int]:
        """The parameters that lie densely, if these arrays do: tangents as what they are tangents of."""
        return self.tangent(which, seeds).spread(contiguous) if which.startswith("tangent") else contiguous

    def layout_of(self, kernel: ir.Kernel) -> Layout:
        return self.layout if len(kernel.params) == len(self.kernel.params) else layout(kernel)

    def width(self, which: str, seeds: frozenset[int]) -> int:
        """How many threads of this kernel run side by side in lanes; 0 if it runs thread by thread."""
        key = (which, seeds, config._generation)
        if key not in self._widths:
            self._widths[key] = self._find_width(which, seeds)
        return self._widths[key]

    def _find_width(self, which: str, seeds: frozenset[int]) -> int:
        wanted = config.lanes if self.options.lanes is None else self.options.lanes
        if which == "watched" or config.debug or not wanted or lanes_refused(self.ir_of(which, seeds)):
            return 0
        return simd().bytes // self.real.size if wanted == "auto" else int(wanted)

    def code(
        self, which: str, seeds: frozenset[int], contiguous: frozenset[int], width: int = 0, suffix: str = ""
    ) -> Code:
        """C++ of the forward, adjoint or tangent kernel, or of the forward kernel that watches the arrays `seeds`."""
        kernel = self.ir_of(which, seeds)
        contiguous = self.dense(which, seeds, contiguous)
        name = _symbol(kernel.name) + suffix
        if which == "watched":
            return emit(kernel, f"{name}_watched", contiguous=contiguous, races=seeds)
        if width:
            return emit_lanes(kernel, name, width, contiguous=contiguous)
        return emit(kernel, name, contiguous=contiguous, debug=config.debug)

    def device_ir(self, which: str, seeds: frozenset[int]) -> ir.Kernel:
        """The kernel that runs on a GPU: "counted" is the forward kernel that measures what its adjoint will keep."""
        return self.primal if which == "counted" else self.ir_of(which, seeds)

    def device_code(
        self, which: str, seeds: frozenset[int], contiguous: frozenset[int], shared: bool = False, suffix: str = ""
    ) -> Code:
        """CUDA of the forward, adjoint or tangent kernel, or of the forward kernel that counts."""
        kernel = self.device_ir(which, seeds)
        counted = counted_for(kernel, self.adjoint(seeds).kernel) if which == "counted" else None
        contiguous = self.dense(which, seeds, contiguous)
        name = _symbol(kernel.name) + ("_counted" if which == "counted" else "") + suffix
        return emit_cuda(kernel, name, contiguous=contiguous, debug=config.debug, shared=shared, counted=counted)

    def binaries(
        self, wanted: Sequence[tuple[str, frozenset[int]]], contiguous: frozenset[int], total: int = 1
    ) -> list[Binary]:
        """Machine code for several kernels of this variant, for launches of `total` threads."""
        keys = [self.key(which, seeds, contiguous, total) for which, seeds in wanted]
        missing = [k for k in dict.fromkeys(keys) if k not in self._binaries]
        if missing:
            codes = {k: self.code(k[0], k[1], contiguous, k[4]) for k in missing}
            absent = {k: code for k, code in codes.items() if not self._take_shipped(k, code)}
            if absent:
                self._build(absent)
        return [self._binaries[k] for k in keys]

    def _build(self, codes: Mapping[Any, Code]) -> None:
        units = _units(codes)
        try:
            libraries = build_many({
                name: unit([codes[k].text for k in group], [k[4] for k in group]) for name, group in units.items()
            })  # fmt: skip
        except CompilerFailed:
            raise
        except ToolchainError as error:
            for k in codes:
                if not self._take_stand_in(k):
                    raise self._without_compiler(error, k) from None
            return
        for name, group in units.items():
            for k in group:
                self._binaries[k] = self._open(k, codes[k], str(libraries[name]), codes[k].name)

    def key(self, which: str, seeds: frozenset[int], contiguous: frozenset[int], total: int) -> Any:
        """What machine code depends on. Launches too small to fill a group run thread by thread."""
        width = self.width(which, seeds)
        return (which, seeds, contiguous, config.debug, width if total >= width else 0)

    # -- machine code that the kernel's package brings
    @cached_property
    def shipped(self) -> Shipped | None:
        return shipped_with(self.source.function.__module__ or "")

    @cached_property
    def all_reals(self) -> frozenset[int]:
        """The arrays that could carry a gradient."""
        arrays = [(i, p.array) for i, p in enumerate(self.kernel.params) if p.array is not None and i in self.touched]
        return frozenset(i for i, a in arrays if any(s.is_float for s in leaves(a.type.element)))

    def served(self, seeds: frozenset[int], contiguous: frozenset[int], total: int) -> frozenset[int]:
        """For which arrays the adjoint is made that runs where one for `seeds` is asked for: for those; or for all, if
        nothing can be built here and the package brings only that one."""
        if self.shipped is None or seeds == self.all_reals:
            return seeds
        key = self.key("adjoint", seeds, contiguous, total)
        if key not in self._served:
            self._served[key] = self._find_served(key, total)
        return self._served[key]

    def _find_served(self, key: Any, total: int) -> frozenset[int]:
        seeds: frozenset[int] = key[1]
        if not self.adjoint_reads(seeds)[0]:
            return seeds  # nothing will run
        try:
            self.binaries([("adjoint", seeds)], key[2], total)
        except CompilerFailed:
            raise
        except ToolchainError as error:
            try:
                self.binaries([("adjoint", self.all_reals)], key[2], total)
            except ToolchainError:
                raise error from None
            return self.all_reals
        return seeds

    def _take_shipped(self, key: Any, code: Code, width: int | None = None) -> bool:
        """Use the package's own machine code, if it has it."""
        if self.shipped is None:
            return False
        found = self.shipped.find(code.name, unit([code.text], [key[4] if width is None else width]))
        if found is None:
            return False
        try:
            self._binaries[key] = self._open(key, code, str(found[0]), found[1])
        except OSError:
            return False  # made for another C library: as if it were not there
        return True

    def _take_stand_in(self, key: Any) -> bool:
        """Where nothing can be built: the package's code for launches thread by thread serves those in lanes."""
        return bool(key[4]) and self._take_shipped(key, self.code(key[0], key[1], key[2], 0), 0)

    def _without_compiler(self, error: ToolchainError, key: Any) -> ToolchainError:
        """The error, and what came with the package."""
        if self.shipped is None:
            return error
        if self.shipped.fault:
            return type(error)(f"{error.message}\nthe machine code of {self.shipped.package} cannot be used here: "
                               f"{self.shipped.fault}", advice=error.advice)  # fmt: skip
        names = [p.name for p in self.kernel.params]
        what = f"its {key[0]}" + (f" by {', '.join(names[max(i, ~i)] for i in sorted(key[1]))}" if key[1] else "")
        loose = [names[i] for i, p in enumerate(self.kernel.params) if p.array is not None and i not in key[2]]
        apart = f", with elements of {', '.join(loose)} that do not lie side by side" if loose else ""
        plain = [p.name for p in self.kernel.params if p.leaves]
        numbers = f", with {', '.join(plain)} as plain numbers" if plain else ""
        boxed = f", with {', '.join(self.boxed)} as arrays of one element" if self.boxed else ""
        lacks = f", without {', '.join(self.lacks)}" if self.lacks else ""
        debug = ", in debug mode" if config.debug else ""
        return type(error)(
            f"{error.message}\n{self.shipped.package} brings machine code, but none for {self.source.name} as it is "
            f"asked for here: {what} in {self.real}{numbers}{boxed}{lacks}{apart}{debug}",
            advice=error.advice)  # fmt: skip

    def _open(self, key: Any, code: Code, path: str, symbol: str) -> Binary:
        kernel = self.ir_of(key[0], key[1])
        try:
            # As bytes: the letters of a path need not be those of the locale.
            entry = _native.symbol(_native.open_library(os.fsencode(path)), symbol)
        except OSError as error:  # its sums were right: the system does not let it run
            raise ToolchainError(f"the machine code of {self.source.name} cannot be opened: {error}",
                                 advice="if its folder is on a file system without programs (mount option noexec), "
                                 "set KERNELC_CACHE_DIR to one with them") from None  # fmt: skip
        parallel = is_parallel(kernel) and not config.debug
        rows = is_parallel_by_rows(kernel) and not parallel and not config.debug
        strips = [] if config.debug or parallel or rows else strip_arrays(kernel)
        dense = self.dense(key[0], key[1], key[2])
        if not all(a.position in dense for a in strips):
            strips = []
        special = (first_arrays(kernel), taken_arrays(kernel)) if not config.debug else ()
        return Binary(kernel, self.layout_of(kernel), code, entry, parallel, key[4], strips, rows, *special)


def tangent_name(width: int, of: Iterable[int] | None = None, *, pattern: bool = False) -> str:
    """What the kernel is called that pushes so many tangents, or those of the adjoint for the arrays `of`, or sets."""
    base = ("tangent" if width == 1 else f"tangent{width}") + (" pattern" if pattern else "")
    return base if of is None else f"{base} of {' '.join(map(str, sorted(of)))}"


def _is_ours(holder: Any) -> bool:
    """Whether names are looked up in kernelc's own library, where they stay what they are."""
    names = holder if isinstance(holder, dict) else getattr(getattr(holder, "source", None), "globals", {})
    return str(names.get("__name__", "")).startswith("kernelc.lib.")


def _watch(capture: Capture | StaticCapture) -> tuple[Callable[[str], Any], str, Any, Capture | StaticCapture]:
    if isinstance(capture, StaticCapture) or isinstance(capture.value, (list, tuple)):
        return lambda name: None, capture.name, capture, capture  # its content may have changed
    get = capture.holder.get if isinstance(capture.holder, dict) else lambda name: capture.current()
    return get, capture.name, capture.value, capture


_SMALL = 30_000
"""Characters of C++ that take as long to compile as a compiler takes to start."""


def _units(codes: Mapping[Any, Code]) -> dict[str, list[Any]]:
    """What is compiled together, under the name of the first: all that is small. Large kernels build side by side."""
    if sum(len(c.text) for c in codes.values()) <= _SMALL:
        return {next(iter(codes.values())).name: list(codes)}
    return {c.name: [k] for k, c in codes.items()}


def unit(texts: Sequence[str], widths: Sequence[int]) -> str:
    """A translation unit of several kernels."""
    return header(texts, [w for w in widths if w], libmvec()) + "".join(texts)


def _symbol(name: str) -> str:
    """A C name; the text is hashed elsewhere, so it only has to be legal and readable."""
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    return f"kc_{plain}" if plain == name else f"kc_{plain}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def prebuild(jobs: Sequence[tuple[Variant, str, frozenset[int], frozenset[int]]], total: int = 1) -> None:
    """Build many kernels as one module: what tests and ahead-of-time users do to wait once."""
    pending: list[tuple[Variant, Any, Code]] = []
    for n, (variant, which, seeds, contiguous) in enumerate(jobs):
        key = variant.key(which, seeds, contiguous, total)
        if key not in variant._binaries:
            pending.append((variant, key, variant.code(which, seeds, contiguous, key[4], f"_{n}")))
    if pending:
        text = unit([code.text for _, _, code in pending], [key[4] for _, key, _ in pending])
        (library,) = build_many({"batch": text}).values()
        for variant, key, code in pending:
            variant._binaries[key] = variant._open(key, code, str(library), code.name)
