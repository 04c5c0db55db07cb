"""Everything that can go wrong, as exceptions with a stable code, a place and a next step.

Errors that point at source subclass `SyntaxError`, so that Python, IPython and pytest print the excerpt and the
carets by themselves; the advice is attached as a note.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
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
        self.advice = advice or self.hint
        super().__init__(f"[{self.code}] {message}")
        self._attach_advice()

    def _attach_advice(self) -> None:
        # Exceptions have notes from Python 3.11 on; before, the advice is only an attribute.
        if self.advice and hasattr(self, "add_note"):
            self.add_note(f"help: {self.advice}")


class SourceError(KernelError, SyntaxError):
    """An error that points at a line of a kernel or of a function that it calls."""

    def __init__(self, message: str, span: Span | None = None, *, advice: str = ""):
        self.advice = advice or self.hint
        self.span = span
        text = f"[{self.code}] {message}"
        if span is None:
            SyntaxError.__init__(self, text)
        else:
            end_line = span.end_line or span.line
            end_column = span.end_column + 1 if end_line == span.line else len(span.text.rstrip("\n")) + 1
            place = (span.file, span.line, span.column + 1, span.text, span.line, end_column)
            SyntaxError.__init__(self, text, place)
        self._attach_advice()

    def __str__(self) -> str:
        if self.span is None:
            return str(self.msg)
        return f"{self.msg} ({self.span})"


# 1xx: the program is refused when it is compiled.
class UnknownName(SourceError):
    code = "KC101"
    hint = "define it before this line, pass it as an argument, or make it a module constant"


class MaybeUnassigned(SourceError):
    code = "KC102"
    hint = "give it a value on every path, for instance before the branch or the loop"


class TypeChange(SourceError):
    code = "KC103"
    hint = "a name keeps one type: use another name, or convert with float(...) or int(...)"


class MixedPrecision(SourceError):
    code = "KC104"
    hint = "convert one side with kc.float32(...) or kc.float64(...)"


class Unsupported(SourceError):
    code = "KC105"


class Recursion(SourceError):
    code = "KC106"
    hint = "kernels have no call stack: write the recursion as a loop"


class NoOverload(SourceError):
    code = "KC107"


class MissingAnnotation(SourceError):
    code = "KC108"
    hint = "annotate every parameter of a kernel, for example `x: kc.Array[float]` or `n: int`"


class WrongIndexCount(SourceError):
    code = "KC109"


class MissingReturn(SourceError):
    code = "KC110"
    hint = "every path through the function must return a value"


class TypeMismatch(SourceError):
    code = "KC111"


class NotDifferentiable(SourceError):
    code = "KC112"
    hint = "acknowledge the cut with kc.stop_grad(...), or give the function its own rule with @f.adjoint"


class NoSource(SourceError):
    code = "KC113"
    hint = "define the kernel in a file or a notebook cell, so that its source can be read"


# 2xx: a launch does not fit its kernel.
class LaunchError(KernelError):
    code = "KC200"


class WrongArity(LaunchError):
    code = "KC201"


class WrongDtype(LaunchError):
    code = "KC202"


class WrongRank(LaunchError):
    code = "KC203"


class WrongDevice(LaunchError):
    code = "KC204"


class Overlap(LaunchError):
    code = "KC205"
    hint = "pass a copy of one of them, or write to an array of its own"


class ReadOnly(LaunchError):
    code = "KC206"
    hint = "pass a writable copy: kc.array(data.copy())"


class WrongDim(LaunchError):
    code = "KC207"


class MixedLaunch(LaunchError):
    code = "KC208"
    hint = "make all real arrays of a launch float32, or all float64 (real=kc.float64 at creation)"


class WrongShape(LaunchError):
    code = "KC209"


# 3xx: a kernel failed while it ran.
class RunError(SourceError):
    code = "KC300"

    def __init__(self, message: str, span: Span | None = None, *, advice: str = "", kernel: str = "", thread: int = -1):
        self.kernel, self.thread = kernel, thread
        super().__init__(message, span, advice=advice)


class AssertFailed(RunError):
    code = "KC301"


class OutOfBounds(RunError):
    code = "KC302"


class NotANumber(RunError):
    code = "KC303"


class DivisionByZero(RunError):
    code = "KC304"


class Uninitialised(RunError):
    code = "KC305"


class StoreRace(RunError):
    code = "KC306"
    hint = "use kc.atomic_add, or let each thread write elements of its own"


class TapeFull(RunError):
    code = "KC307"
    hint = 'raise kc.config.tape_limit, or use @kc.kernel(loop_tape="sqrt")'


class SingularDerivative(RunError):
    code = "KC308"
    hint = 'kc.config.singular = "zero" takes the documented subgradient there'


class ZeroStep(RunError):
    code = "KC309"


# 4xx: the reverse sweep cannot be right, so it does not run.
class TapeError(KernelError):
    code = "KC400"


class Overwritten(TapeError):
    code = "KC401"


class CutGradient(TapeError):
    code = "KC402"


class NonScalarLoss(TapeError):
    code = "KC403"
    hint = "seed it yourself: tape.backward(grads={array: weights})"


class NotRecorded(TapeError):
    code = "KC404"


# 5xx: the machine.
class ToolchainError(KernelError):
    code = "KC500"


class NoCompiler(ToolchainError):
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
    code = "KC503"
    hint = "set KERNELC_CACHE_DIR to a folder of your own that can be written"


class NoCuda(ToolchainError):
    code = "KC504"


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
