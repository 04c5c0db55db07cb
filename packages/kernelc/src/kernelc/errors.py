"""Everything that can go wrong, as exceptions with a stable code, a place and a next step.

Errors that point at source subclass `SyntaxError`, so that Python, IPython and pytest print the excerpt and the
carets by themselves; the advice is attached as a note.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, TypeVar

from .records import record


@record
class Span:
    """A range of the user's source; lines and columns as in `ast`: lines from 1, columns from 0."""

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0

    @property
    def text(self) -> str:
        """The source line that the span starts on."""
        return linecache.getline(self.file, self.line)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class KernelError(Exception):
    """Base of every exception of kernelc. `code` is stable; `advice` says what to do next."""

    code = "KC000"
    hint = ""

    def __init__(self, message: str, *, advice: str = ""):
        self.message, self.advice = message, advice or self.hint
        super().__init__(self._headline())
        self._attach_advice()

    def _headline(self) -> str:
        return f"[{self.code}] {self.message}"

    def _attach_advice(self) -> None:
        # Exceptions have notes from Python 3.11 on; before, the advice is only an attribute.
        if self.advice and hasattr(self, "add_note"):
            self.add_note(f"help: {self.advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        # By content: what a worker process raises arrives as it was, place and advice included.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[KernelError], args: tuple[Any, ...], state: dict[str, Any]) -> KernelError:
    error = kind.__new__(kind)
    base: Any = SyntaxError if issubclass(kind, SyntaxError) else Exception
    base.__init__(error, *args)
    error.__dict__.update(state)
    if isinstance(error, SourceError) and error.span is not None:
        place, error.span = error.span, None
        error.locate(place)
    return error


class SourceError(KernelError, SyntaxError):
    """An error that points at a line of a kernel or of a function that it calls. Base of the 1xx and 3xx."""

    code = "KC100"
    span: Span | None

    def __init__(self, message: str, span: Span | None = None, *, advice: str = ""):
        self.message, self.advice, self.span = message, advice or self.hint, None
        SyntaxError.__init__(self, self._headline())
        if span is not None:
            self.locate(span)
        self._attach_advice()

    def locate(self, span: Span) -> None:
        """Point at a place, unless the error does so already."""
        if self.span is None:
            self.span = span
            end_line = span.end_line or span.line
            self.filename, self.lineno, self.offset = span.file, span.line, span.column + 1
            self.text, self.end_lineno = span.text or None, span.line
            self.end_offset = span.end_column + 1 if end_line == span.line else len(span.text.rstrip()) + 1

    def __str__(self) -> str:
        if self.span is None:
            return str(self.msg)
        return f"{self.msg} ({self.span})"


_OURS = (str(Path(__file__).parent), str(Path(linecache.__file__).parent) + "/functools.py")
Function = TypeVar("Function", bound=Callable[..., Any])


def shorn(error: KernelError) -> None:
    """Take our own frames out of a traceback: it leads to the user's lines alone."""
    frames, kept = error.__traceback__, []
    while frames is not None:
        if not frames.tb_frame.f_code.co_filename.startswith(_OURS):
            kept.append(frames)
        frames = frames.tb_next
    chain: TracebackType | None = None
    for one in reversed(kept):
        chain = TracebackType(chain, one.tb_frame, one.tb_lasti, one.tb_lineno)
    error.__traceback__ = chain


Place = tuple[CodeType, int] | None
"""Some code and an instruction of it: a span that costs nothing to note. Counting its lines would."""


def caller_place(ours: int = 0) -> Place:
    """The place in the user's code that led here. ours: so many frames, from the caller's on, are not the user's."""
    frame: Any = sys._getframe(1 + ours)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code, frame.f_lasti) if frame is not None else None


def line_of(place: Place) -> tuple[str, int] | None:
    """The file and line of a place."""
    if place is None:
        return None
    code, at = place
    lines = [line for begin, end, line in code.co_lines() if begin <= at < end and line is not None]
    return code.co_filename, lines[0] if lines else code.co_firstlineno


@cache
def _is_ours(filename: str) -> bool:
    return filename.startswith(_OURS)


def caller() -> Span | None:
    """The line of the user that led here."""
    place = line_of(caller_place())
    return Span(*place) if place is not None else None


def public(function: Function) -> Function:
    """Decorator of what users call: errors leave it without our frames."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except KernelError as error:
            # A bare `raise` adds no frame: the traceback ends at the user's line.
            shorn(error)
            raise

    return call  # type: ignore[return-value]


# 1xx: the program is refused when it is compiled.
class UnknownName(SourceError):
    """A name, an attribute or a component that does not exist."""

    code = "KC101"
    hint = "define it before this line, pass it as an argument, or make it a module constant"


class MaybeUnassigned(SourceError):
    """A name is read that has no value on some path: it is set on one branch, or inside a loop, only."""

    code = "KC102"
    hint = "give it a value on every path, for instance before the branch or the loop"


class TypeChange(SourceError):
    """A name, or the result of a function, would change its type."""

    code = "KC103"
    hint = "a name keeps one type: use another name, or convert with float(...) or int(...)"


class MixedPrecision(SourceError):
    """A float32 and a float64 meet in one expression."""

    code = "KC104"
    hint = "convert one side with kc.float32(...) or kc.float64(...)"


class Unsupported(SourceError):
    """Python that is not part of the kernel language.

    Each construct has its own advice; the page about the language lists them all.
    """

    code = "KC105"


class Recursion(SourceError):
    """A function calls itself, directly or through others. The message shows the cycle."""

    code = "KC106"
    hint = "kernels have no call stack: write the recursion as a loop"


class NoOverload(SourceError):
    """An operator or a function does not take arguments of these types.

    Compare the types in the message with the candidates that it lists.
    """

    code = "KC107"


class MissingAnnotation(SourceError):
    """A parameter of a kernel has no type, or one that the language does not know."""

    code = "KC108"
    hint = "annotate every parameter of a kernel, for example `x: kc.Array[float]` or `n: int`"


class WrongIndexCount(SourceError):
    """An array or a value is indexed by too few or too many indices, or by a literal out of range.

    Index every dimension: a[i, j]. Arrays are not counted from the end.
    """

    code = "KC109"


class MissingReturn(SourceError):
    """A function returns a value on some paths and not on others."""

    code = "KC110"
    hint = "every path through the function must return a value"


class TypeMismatch(SourceError):
    """A value of one type stands where another is needed.

    Convert it: float(...), int(...), or build the type that the message names.
    """

    code = "KC111"


class NotDifferentiable(SourceError):
    """A gradient would go through something that has none."""

    code = "KC112"
    hint = "acknowledge the cut with kc.stop_grad(...), or give the function its own rule with @f.adjoint"


class NoSource(SourceError):
    """The source of a kernel, or of a function that it calls, cannot be read."""

    code = "KC113"
    hint = "define the kernel in a file or a notebook cell, so that its source can be read"


class CompilerBug(SourceError):
    """The compiler itself went wrong while it translated this line."""

    code = "KC114"
    hint = "this is a mistake of kernelc, not of your kernel: please report it, with the kernel"


# 2xx: a launch does not fit its kernel.
class LaunchError(SourceError):
    """A launch does not fit its kernel. Base of the codes 201 to 209."""

    code = "KC200"


class WrongArity(LaunchError):
    """The launch has too few or too many arguments."""

    code = "KC201"
    hint = "inputs and outputs together are the arguments, in the order of the parameters"


class WrongDtype(LaunchError):
    """An argument has another element type than the kernel declares."""

    code = "KC202"
    hint = "convert the data, or change the annotation of the parameter"


class WrongRank(LaunchError):
    """An array has another number of dimensions than the kernel declares."""

    code = "KC203"
    hint = "reshape the data, or annotate the parameter with kc.Array[T, ndim]"


class WrongDevice(LaunchError):
    """A device that does not exist, or a tensor that lies on another one."""

    code = "KC204"
    hint = 'use device="cpu" or "python"; move tensors with .cpu()'


class Overlap(LaunchError):
    """An array that is written shares memory with another argument, or its elements with each other."""

    code = "KC205"
    hint = "pass a copy of one of them, or write to an array of its own"


class ReadOnly(LaunchError):
    """An array that the launch writes has memory that cannot be written."""

    code = "KC206"
    hint = "pass a writable copy: kc.array(data.copy())"


class WrongDim(LaunchError):
    """dim is no grid, or has another number of axes than kc.tid() unpacks."""

    code = "KC207"
    hint = "launch with dim=n for `i = kc.tid()`, with dim=(n, m) for `i, j = kc.tid()`"


class MixedLaunch(LaunchError):
    """Arrays of both precisions stand for the polymorphic real of one launch. The message names two of them."""

    code = "KC208"
    hint = "make all real arrays of a launch float32, or all float64 (real=kc.float64 at creation)"


class WrongShape(LaunchError):
    """The shape of data, of a seed or of a tangent does not fit."""

    code = "KC209"
    hint = "compare the shapes in the message, and reshape the data"


# 3xx: a kernel failed while it ran.
class RunError(SourceError):
    """A kernel failed while it ran. Base of the codes 301 to 309. `kernel` and `thread` say where; `array` and `index`
    which element, if it is about one."""

    code = "KC300"
    array: str = ""
    index: tuple[int, ...] = ()

    def __init__(self, message: str, span: Span | None = None, *, advice: str = "", kernel: str = "", thread: int = -1):
        self.kernel, self.thread = kernel, thread
        super().__init__(message, span, advice=advice)


class AssertFailed(RunError):
    """An `assert` of the kernel does not hold."""

    code = "KC301"
    hint = "print(...) on the line before shows the values; the lowest thread that failed is reported"


class OutOfBounds(RunError):
    """An index is outside of its array. Found in debug mode and on device="python" only."""

    code = "KC302"
    hint = "test the index before it is used; a run-time index is not counted from the end"


class NotANumber(RunError):
    """An operation made a NaN out of numbers, or a NaN is stored. Found in debug mode only."""

    code = "KC303"
    hint = "look at the arguments of the operation on this line"


class DivisionByZero(RunError):
    """A divisor is zero. Found in debug mode only."""

    code = "KC304"
    hint = "guard the division: `a / b if b != 0.0 else 0.0`"


class Uninitialised(RunError):
    """An element of kc.empty(...) is read before it was written. Found in debug mode only."""

    code = "KC305"
    hint = "write it first, or make the array with kc.zeros(...)"


class StoreRace(RunError):
    """Two threads touch one number, and one of them changes it, not both by atomics. Found in debug mode only."""

    code = "KC306"
    hint = "use kc.atomic_add, or let each thread write elements of its own"


class TapeFull(RunError):
    """The loop tape or the undo log of one worker would take more than kc.config.tape_limit bytes."""

    code = "KC307"
    hint = 'raise kc.config.tape_limit, or use @kc.kernel(loop_tape="sqrt")'


class SingularDerivative(RunError):
    """A derivative is needed where it does not exist, and kc.config.singular is "raise"."""

    code = "KC308"
    hint = 'kc.config.singular = "zero" takes the documented subgradient there'


class ZeroStep(RunError):
    """range() got a step of zero at run time."""

    code = "KC309"
    hint = "test the step before the loop"


# 4xx: the reverse sweep cannot be right, so it does not run.
class TapeError(SourceError):
    """The tape cannot do what it is asked. Base of the codes 401 to 404.

    The message says what, for instance to leave the `with` block first.
    """

    code = "KC400"


class Overwritten(TapeError):
    """What the reverse sweep needs was overwritten."""

    code = "KC401"
    hint = "call tape.replay() after changing arrays from Python; write with .assign() while the tape records"


class CutGradient(TapeError):
    """No array that requires a gradient leads to the loss; or a tensor that requires one would be a constant."""

    code = "KC402"
    hint = "mark the leaves with requires_grad=True; kc.explain(kernel) shows where gradients end"


class NonScalarLoss(TapeError):
    """backward(loss) got an array of more than one element."""

    code = "KC403"
    hint = "seed it yourself: tape.backward(grads={array: weights})"


class NotRecorded(TapeError):
    """The loss was not written by a launch that the tape recorded."""

    code = "KC404"
    hint = "launch inside `with kc.Tape() as tape:`"


# 5xx: the machine.
class ToolchainError(KernelError):
    """The machine cannot build or load a kernel. Base of the codes 501 to 505."""

    code = "KC500"


class NoCompiler(ToolchainError):
    """No C++17 compiler was found, or the one found does not work."""

    code = "KC501"
    hint = "install a C++17 compiler (Debian: apt-get install g++; conda: conda install gxx), or set CXX to one"


class CompilerFailed(SourceError, ToolchainError):
    """Generated text was refused: `output` is all that the compiler said, `source` is where the text is kept."""

    code = "KC502"
    hint = "this is a mistake of kernelc, not of your kernel: please report it, with the source named above"

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        advice: str = "",
        output: str = "",
        source: Path | None = None,
    ):
        self.output, self.source = output, source
        super().__init__(message, span, advice=advice)


class CacheNotWritable(ToolchainError):
    """The folder of compiled kernels cannot be written, is full, or belongs to someone else."""

    code = "KC503"
    hint = "set KERNELC_CACHE_DIR to a folder of your own that can be written"


class NoCuda(ToolchainError):
    """CUDA is asked for and not available.

    Launch on the CPU: device="cpu".
    """

    code = "KC504"


class CudaError(ToolchainError):
    """The CUDA driver refused a call, or a kernel did something that the GPU cannot. `status` is the driver's number.

    The message has the driver's own words. After an illegal address the GPU is lost to this process.
    """

    code = "KC505"
    hint = "kc.config.debug = True finds indices that are out of bounds"

    def __init__(self, message: str, *, advice: str = "", status: int = 0):
        self.status = status
        super().__init__(message, advice=advice)


# 7xx: a name of kernelc is used in a way that it does not have.
class WrongUse(KernelError, TypeError):
    """A function of kernels is called from Python, a kernel is called instead of launched, or an argument is of a kind
    that the function does not take."""

    code = "KC701"


class WrongType(KernelError, TypeError):
    """A type that the kernel language does not have, or that cannot stand here."""

    code = "KC702"
    hint = "types are float, int, bool, kc.float3, kc.mat33, kc.quat, a @kc.struct, … and kc.Array[T, ndim] of them"


class WrongChoice(KernelError, ValueError):
    """An option got a value that is not among its choices."""

    code = "KC703"


class UnknownSetting(KernelError, AttributeError):
    """`kc.config` has no setting of this name."""

    code = "KC704"


class WrongIndex(KernelError, IndexError):
    """An array was indexed from Python out of its bounds."""

    code = "KC705"
    hint = "the shape of the array is in the message; negative indices count from the end"


FAILURES: dict[int, type[RunError]] = {
    1: AssertFailed,
    2: OutOfBounds,
    3: NotANumber,
    4: DivisionByZero,
    5: Uninitialised,
    6: StoreRace,
    7: TapeFull,
    8: SingularDerivative,
    9: ZeroStep,
}
"""What a failure code of the native core means (include/kernelc/context.h)."""
