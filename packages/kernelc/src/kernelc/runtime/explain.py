"""What the compiler did: `kc.inspect` shows a kernel as text, `kc.explain` what its gradient costs, where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import ir
from .. import types as t
from ..codegen import DEVICE_HEADER, HEADER, is_parallel, is_parallel_by_rows, lanes_refused, strip_arrays
from ..config import config
from ..errors import Span, WrongChoice, WrongUse, public
from ..ir import Const, kernel_text
from ..records import record
from .compile import Variant
from .kernels import Kernel


@public
def inspect(kernel: Kernel, what: str = "ir", *, real: t.Scalar = t.FLOAT32, absent: Sequence[str] = ()) -> str:
    """The kernel as text: "ir", "adjoint" (its reverse, as IR), "tangent", "cpp" or "cuda" (both kernels).

    absent: the optional members that it is launched without, as "bodies.wind".
    """
    variant = _kernel(kernel).variant(real, lacks=_lacks(kernel, absent))
    seeds = variant.all_reals
    if what == "ir":
        return kernel_text(variant.kernel)
    if what in ("adjoint", "tangent"):
        return kernel_text(variant.ir_of(what, seeds))
    if what in ("cpp", "cuda"):
        dense = frozenset(i for i, p in enumerate(variant.kernel.params) if p.array is not None)
        make = variant.code if what == "cpp" else variant.device_code
        parts = [make(which, seeds, dense).text for which in ("forward", "adjoint")]
        return (HEADER if what == "cpp" else DEVICE_HEADER) + _readable("\n".join(parts))
    choices = '"ir", "adjoint", "tangent", "cpp", "cuda"'
    raise WrongChoice(f"kc.inspect cannot show {what!r}", advice=f"choose one of {choices}")


def _readable(text: str) -> str:
    """C++ without the line numbers that repeat the one before."""
    kept, last = [], ""
    for line in text.splitlines():
        number = line.split()[1] if line.startswith("#line") else ""
        if not number or number != last:
            kept.append(line)
        last = number or last
    return "\n".join(kept) + "\n"


def _kernel(kernel: Kernel) -> Kernel:
    if not isinstance(kernel, Kernel):
        raise WrongUse(f"{kernel!r} is no kernel", advice="decorate the function with @kc.kernel")
    return kernel


def _lacks(kernel: Kernel, absent: Sequence[str]) -> list[str]:
    unknown = [name for name in absent if name not in kernel.optional]
    if unknown:
        known = ", ".join(kernel.optional) or "none"
        raise WrongChoice(f"{kernel.name} has no optional member {unknown[0]!r}", advice=f"it has {known}")
    return [name for name in kernel.optional if name in absent]


@record
class Taped:
    """A value that the reverse sweep keeps once per iteration of a loop."""

    variable: str
    bytes: int
    span: Span | None


@record
class Cut:
    """A place where a gradient ends."""

    operation: str
    span: Span | None
    acknowledged: bool


@dataclass
class Explanation:
    """What `kc.explain` found. Printing it gives the readable report."""

    kernel: str
    taped: list[Taped] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    order: str = ""
    """How the threads of the forward kernel run on several cores, and of its adjoint."""
    order_adjoint: str = ""
    lanes: str = ""
    """Why the forward kernel runs thread by thread instead of in SIMD lanes; empty if it runs in lanes."""
    lanes_adjoint: str = ""

    def __str__(self) -> str:
        lines = [
            f"kernel {self.kernel}: reads {', '.join(self.reads) or 'nothing'}; "
            f"writes {', '.join(self.writes) or 'nothing'}"
        ]
        lines.append(f"  forward runs {self.order}, adjoint {self.order_adjoint}")
        for word, reason in (("forward", self.lanes), ("adjoint", self.lanes_adjoint)):
            lines.append(f"  {word} in SIMD lanes" if not reason else f"  {word} thread by thread: {reason}")
        if not self.taped:
            lines.append("  taped: nothing")
        for item in self.taped:
            lines.append(
                f"  taped: {item.variable}, {item.bytes} bytes per thread and iteration of the loop at {item.span}"
            )
        for name in self.copied:
            lines.append(f"  copied before a launch that is recorded: {name} (read and overwritten)")
        for cut in self.cuts:
            word = (
                "gradient stopped by kc.stop_grad"
                if cut.acknowledged
                else f"{cut.operation} is not differentiable: zero gradient"
            )
            lines.append(f"  {word} at {cut.span}")
        return "\n".join(lines)


def _order(kernel: ir.Kernel) -> str:
    if is_parallel(kernel):
        return "in parallel"
    if is_parallel_by_rows(kernel):
        return "in parallel by rows (sums over elements of a row)"
    if strip_arrays(kernel):
        return "in strips (sums over shared elements)"
    return "in thread order"


@public
def explain(kernel: Kernel, *, real: t.Scalar = t.FLOAT32, absent: Sequence[str] = ()) -> Explanation:
    """What is taped (variable, bytes per thread), what is not differentiable and where, what runs in parallel.

    absent: the optional members that it is launched without, as "bodies.wind".
    """
    variant: Variant = _kernel(kernel).variant(real, lacks=_lacks(kernel, absent))
    adjoint = variant.adjoint(variant.all_reals)
    names = list(kernel.params)
    found = Explanation(kernel.name)
    found.reads, found.writes = [names[i] for i in variant.read], [names[i] for i in variant.written]
    found.order, found.order_adjoint = _order(variant.kernel), _order(adjoint.kernel)
    wanted = config.lanes if kernel.options.lanes is None else kernel.options.lanes
    off = "" if wanted else "lanes are switched off"
    found.lanes, found.lanes_adjoint = (lanes_refused(k) or off for k in (variant.kernel, adjoint.kernel))
    for tape, values in adjoint.tapes.items():
        for v in values:
            if not isinstance(v, Const):
                found.taped.append(Taped(v.name or "a value", v.type.size, tape.span))
    for span, operation in adjoint.activity.cuts:
        found.cuts.append(Cut(operation, span, operation == "stop_grad"))
    from ..ir import Load

    needed = {s.array.position for s in adjoint.kernel.body.walk() if isinstance(s, Load) and s.array.role == "value"}
    found.copied = [names[i] for i in sorted(needed & set(variant.written))]
    return found
