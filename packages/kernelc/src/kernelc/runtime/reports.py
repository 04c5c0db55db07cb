"""What a kernel reports, turned into Python: lines that it printed; exceptions with kernel, thread, array, index."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _native
from ..codegen import Code, Site, label
from ..errors import FAILURES, RunError

__all__ = [
    "assert_text", "bounds_text", "error_of", "failed", "label", "nan_text", "printed", "race_text", "report",
    "show_prints", "stored_text", "unwritten_text", "zero_text",
]  # fmt: skip
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**"}


def report(code: Code, failure: Any, name: str) -> None:
    """Print what the kernel printed, then raise what made it fail."""
    show_prints(_native.take_prints(), {-1: code})
    if failure is not None:
        raise error_of(code, failure, name)


# -- failures
def error_of(code: Code, failure: Any, name: str) -> RunError:
    """The exception for a failed launch."""
    if failure.site < 0:
        text = f"the loop tape needs more than {failure.b} bytes"
        return failed(failure.code, text, code.span, name, failure.thread)
    site, a, b, number = code.sites[failure.site], failure.a, failure.b, failure.b
    if failure.code == 6:
        # The other thread and the index; from three dimensions on only the index.
        a, b, number = (b, 0, a) if site.ndim <= 2 else (a, b, -1)
    index = (a,) if failure.code == 2 else _index(site, a, b)
    error = failed(failure.code, _text(failure.code, site, index, number), site.span, name, failure.thread)
    if site.array:
        error.array, error.index = site.array, index
    return error


def _text(code: int, site: Site, index: tuple[int, ...], number: int) -> str:
    if code == 1:
        return assert_text(site.message)
    if code == 2:
        return bounds_text(site.array, site.ndim, site.axis, index[0], number)
    if code == 3:
        return stored_text(site.array, index) if site.array else nan_text(site.message)
    if code == 4:
        return zero_text(site.message)
    if code == 5:
        return unwritten_text(site.array, index)
    return race_text(site.array, index, number) if code == 6 else site.message


def failed(code: int, text: str, span: Any, name: str, thread: int) -> RunError:
    """A failure as an exception; `name` is the kernel, or its adjoint."""
    kernel = name.removesuffix("_adjoint")
    who = kernel if kernel == name else f"the adjoint of {kernel}"
    return FAILURES[code](f"{who}, thread {thread}: {text}", span, kernel=kernel, thread=thread)


def _index(site: Site, a: int, b: int) -> tuple[int, ...]:
    """The index that two words hold (codegen/cpp.py packs it)."""
    if site.ndim == 1:
        return (a,)
    low = 0xFFFFFFFF
    return (a & low, a >> 32, b & low, b >> 32)[: site.ndim]


def assert_text(condition: str) -> str:
    return f"assertion failed: {condition}"


def bounds_text(array: str, ndim: int, axis: int, index: int, size: int) -> str:
    where = f"along axis {axis} of {array}" if ndim > 1 else f"for {array}"
    return f"index {index} is out of bounds {where}, whose size is {size}"


def nan_text(op: str) -> str:
    return f"{_spoken(op)} gave a NaN"


def zero_text(op: str) -> str:
    return f"division by zero in {_spoken(op)}"


def stored_text(array: str, index: Sequence[int]) -> str:
    return f"a NaN is stored in {array}[{', '.join(map(str, index))}]"


def unwritten_text(array: str, index: Sequence[int]) -> str:
    return f"{array}[{', '.join(map(str, index))}] is read before it was written"


def race_text(array: str, index: Sequence[int], other: int) -> str:
    who = f"thread {other}" if other >= 0 else "other threads"
    return f"{array}[{', '.join(map(str, index))}] is touched by {who}, too, and one of them changes it"


def _spoken(op: str) -> str:
    return f"`{_SIGNS[op]}`" if op in _SIGNS else f"{op}()" if op == "int" else f"kc.{op}()"


# -- prints
def show_prints(entries: Sequence[Any], codes: dict[int, Code]) -> None:
    """Write the lines of a launch to sys.stdout, in the order of the threads."""
    for step, site, _thread, values in entries:
        if site < 0:
            print(f"… {int(values[0])} more lines were printed and dropped", file=sys.stdout)
            continue
        found, rest = (codes.get(step) or codes[-1]).sites[site], iter(values)
        kinds = iter(found.kinds)
        print("".join(printed(rest, next(kinds)) if p is None else p for p in found.parts))


def printed(values: Iterator[float], kind: str) -> str:
    """A number as Python would print it. Integers of 64 bits come in two halves: a double holds only 53."""
    value = next(values)
    if kind == "bool":
        return str(bool(value))
    if kind == "float32":
        # The digits that tell it from other float32, in Python's notation.
        return repr(float(str(np.float32(value))))
    if kind in ("int64", "uint64"):
        return str((int(value) << 32) + int(next(values)))
    return str(int(value)) if kind in ("int32", "uint32") else repr(float(value))
