"""Every operator and scalar built-in on every pair of scalar types, on the values that matter.

For each pair of types one kernel, which writes each result that the language allows to a column of its own.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kernelc as kc
from kernelc.builtins import TABLE, ScalarRow
from kernelc.runtime.kernels import Kernel

BIG, LEAST, NAN, INF = 2**31 - 1, -(2**31), float("nan"), float("inf")
REALS = [0.0, -0.0, 1.0, -1.5, 0.3, 0.5, 7.0, 3e9, -40.0, INF, -INF, NAN]
TYPES: dict[str, tuple[Any, list[Any]]] = {
    "bool": (np.uint8, [0, 1, 255, 2]),
    "int": (np.int32, [0, 1, -1, 2, -7, 31, 33, BIG, LEAST]),
    "kc.int64": (np.int64, [0, 1, -1, 3, -8, 63, 2**40 + 1, 2**63 - 1, -(2**63)]),
    "kc.uint32": (np.uint32, [0, 1, 2, 7, 32, 2**31, 2**32 - 1]),
    "kc.float32": (np.float32, [*REALS, 1e-40, 3e38]),
    "kc.float64": (np.float64, [*REALS, 1e-310, 1e308]),
}
"""The type of an array, how it lies in memory, and the values that matter; a bool may be any byte."""
ROWS = [r for r in TABLE.rows.values() if isinstance(r, ScalarRow) and r.public and len(r.params) < 3]
FUNCTIONS = {row.kind: [f"kc.{r.name}({', '.join('ab'[: len(r.params)])})" for r in ROWS if r.kind == row.kind]
             for row in ROWS}  # fmt: skip
INFIX = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>", "and", "or"]
OTHERS = ["-a", "+a", "~a", "not a", "bool(a)", "int(a)", "float(a)", "kc.int64(a)", "kc.uint32(a)", "kc.float32(a)",
          "kc.float64(a)", "round(a)", "a // 8", "a % 8", "a << 3", "a >> 3", "a ** 2", "a ** 3", "a < True", "a >= 1",
          "a if b else -a", "a if a < b else b", "a < b < a", "a == b != a", "(a < b) <= (b < a)", "(a < b) + (b < a)",
          "(a < b) > (a == b)", "(a < b) ^ (b < a)", "-(a < b)", "min(a < b, a == b)", "kc.clamp(a, b, b)",
          "kc.clamp(a, a, b)"]  # fmt: skip
_ROUNDED = "|".join(row.name for row in ROWS if row.cpp.startswith("kc_") and row.kind == "real")
INEXACT = re.compile(rf"\*\* b|kc\.({_ROUNDED})\(")
"""What is rounded otherwise by NumPy than by the C library."""


@dataclass
class Table:
    """The kernel of a pair of types; the expressions in its columns, and whether each gives a real."""

    kernel: Kernel
    columns: list[tuple[str, bool]]
    a: np.ndarray
    b: np.ndarray
    wide: bool
    """Whether numbers of 64 bits take part."""

    def arguments(self) -> list[np.ndarray]:
        shape, kinds = (len(self.a), len(self.columns)), _KEPT[self.wide][0]
        return [self.a, self.b, *(np.zeros(shape, kind) for kind in kinds)]

    def run(self, device: str = "cpu") -> list[np.ndarray]:
        """What a device computes, by column."""
        args = self.arguments()
        kc.launch(self.kernel, len(self.a), args, device=device)
        return [args[3 if real else 2][:, k] for k, (_, real) in enumerate(self.columns)]

    def job(self) -> Any:
        plan, _ = self.kernel.plan(self.arguments())
        return plan.variant, "forward", frozenset(), plan.contiguous


_KEPT = {False: ((np.int32, np.float32), ("int", "kc.float32")),
         True: ((np.int64, np.float64), ("kc.int64", "kc.float64"))}  # fmt: skip
"""Results of integers and of reals: how they lie in memory, and as they are written."""


def is_wide(*types: str) -> bool:
    return any("64" in t for t in types)


def make_tables(folder: Path) -> dict[tuple[str, str], Table]:
    """One for each pair of types; for types that differ, of the operators between them."""
    probes, about = [], []
    for left, right in itertools.product(TYPES, TYPES):
        for e in [f"a {sign} b" for sign in INFIX] + (OTHERS + _functions(left) if left == right else []):
            about.append((left, right, e))
            probes += [_source(f"{k}_{len(about) - 1}", left, right, [_store(k, 0, e, left, right)]) for k in "ir"]
    module = _load(folder, "probes", "".join(probes))
    columns: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    for n, (left, right, e) in enumerate(about):
        # A store takes integers for reals, but not the other way round.
        for real in (False, True):
            if _is_allowed(getattr(module, f"{'ir'[real]}_{n}"), kc.float64 if is_wide(left, right) else kc.float32):
                columns.setdefault((left, right), []).append((e, real))
                break
    texts = []
    for n, (pair, found) in enumerate(columns.items()):
        lines = [_store("ir"[real], k, e, *pair) for k, (e, real) in enumerate(found)]
        texts.append(_source(f"table_{n}", *pair, lines))
    module = _load(folder, "tables_of_operators", "".join(texts))
    return {
        p: Table(getattr(module, f"table_{n}"), found, *_rows(*p), is_wide(*p))
        for n, (p, found) in enumerate(columns.items())
    }


def _functions(kind: str) -> list[str]:
    """Those of reals convert integers first: that is not tried for each of them."""
    every = "float" in kind
    return [e for which, found in FUNCTIONS.items() for e in (found if every or which != "real" else found[:3])]


def _store(kind: str, column: int, expression: str, left: str, right: str) -> str:
    value = expression if kind == "i" else f"{_KEPT[is_wide(left, right)][1][1]}({expression})"
    return f"to_{kind}[i, {column}] = {value}"


def _rows(left: str, right: str) -> list[np.ndarray]:
    """All pairs of values, twice the widest group at least, and no multiple of it."""
    pairs = list(itertools.product(TYPES[left][1], TYPES[right][1]))
    pairs = (pairs * (35 // len(pairs) + 1))[: len(pairs) * (35 // len(pairs) + 1) // 2 * 2 + 1]
    pairs += pairs[: 1 - len(pairs) % 2]
    made = [np.array(column, TYPES[t][0]) for t, column in zip((left, right), zip(*pairs, strict=True), strict=True)]
    return [m.view(bool) if t == "bool" else m for t, m in zip((left, right), made, strict=True)]


def _source(name: str, left: str, right: str, lines: list[str]) -> str:
    whole, real = _KEPT[is_wide(left, right)][1]
    head = [
        f"@kc.kernel\ndef {name}(x: kc.Array[{left}], y: kc.Array[{right}], to_i: kc.Array[{whole}, 2],",
        f"{' ' * len(f'def {name}(')}to_r: kc.Array[{real}, 2]):", "    i = kc.tid()", "    a = x[i]", "    b = y[i]",
    ]  # fmt: skip
    return "\n".join([*head, *(f"    {line}" for line in lines)]) + "\n\n\n"


def _load(folder: Path, name: str, text: str) -> Any:
    """Kernels need source files."""
    path = folder / f"{name}.py"
    path.write_text("import kernelc as kc\n\n\n" + text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_allowed(kernel: Kernel, real: Any) -> bool:
    try:
        kernel.variant(real)
    except kc.KernelError:
        return False
    return True
