"""The table of built-ins. A row is the only place where a built-in exists: documentation, type stubs, property
tests, the compiler and the Python meaning all read it here.

Two kinds of rows. A *scalar* row is an operation of the intermediate representation, with a C++ form and a
derivative rule. A *compound* row is written in the kernel language itself (kernelc/lib), and differentiated by the
compiler like anything a user writes.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..records import entity
from .algebra import Sym, leaf

Range = tuple[float, float]


@entity
class Row:
    """What all rows have. `domain` gives, for each parameter, the range that tests draw its numbers from."""

    name: str
    doc: str
    python: Callable[..., Any]
    params: tuple[str, ...]
    domain: tuple[Range, ...]
    public: bool = True

    def __get__(self, instance: Any, owner: Any = None) -> Row:
        # It makes a row a routine to `help` and `inspect`, which then show its parameters and its documentation.
        return self

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in self.params])

    def __reduce__(self) -> Any:
        return _row, (self.name,)

    def __call__(self, *args: Any) -> Any:
        """Outside a kernel a built-in has its Python (NumPy) meaning.

        After `from kernelc import *`, min, max, abs, round and pow still do what Python's do: min([3, 1]) is 1.
        """
        if len(args) != len(self.params) and hasattr(builtins, self.name):
            return getattr(builtins, self.name)(*args)
        return self.python(*args)


@entity
class ScalarRow(Row):
    """An operation on scalars.

    kind      "real": reals in, real out; "number": any numbers of one type in, the same out; "int": integers only;
              "compare": numbers in, bool out; "test": reals in, bool out; "logic": bools in, bool out
    cpp       C++ for reals and ints, `{0}`, `{1}` the arguments, `{f}` the suffix of C math functions ("f" or "")
    cpp_int   C++ for integers, where it differs
    partials  derivative by each parameter (None: the result does not depend on it smoothly, "a cut")
    pull      the products of the adjoint `g` of the result with each partial, where that is cheaper written out
    regular   where the partials hold; elsewhere they are zero (kc.config.singular decides)
    guard     a zero adjoint must not meet an infinite partial
    """

    kind: str = "real"
    cpp: str = ""
    cpp_int: str = ""
    partials: tuple[Sym | None, ...] = ()
    pull: tuple[Sym, ...] = ()
    regular: Sym | None = None
    guard: bool = False
    singular: tuple[tuple[float, ...], ...] = ()

    @property
    def cuts(self) -> bool:
        """Whether a gradient that goes in here ends here."""
        return self.kind in ("real", "number") and all(p is None for p in self.partials)

    def slopes(self, *point: float) -> list[float | None]:
        """The partial derivatives at a point in NumPy, by the convention for singular points."""
        with np.errstate(all="ignore"):
            names = dict(zip(self.params, point, strict=True)) | {"y": float(self.python(*point)), "tie": 0.5}
            regular = self.regular is None or _evaluate(self.regular, names)
            return [None if p is None else float(_evaluate(p, names)) if regular else 0.0 for p in self.partials]


@entity
class CompoundRow(Row):
    """A function written in the kernel language: `body` is "module:function" below kernelc.lib; with several names,
    "module:one two", one for each signature.

    signatures   one string per overload, for instance "vec n, vec n -> real" (see signatures.py)
    make         make(rng, types): how tests draw arguments when ranges alone do not do (a matrix that can be inverted)
    invariant    invariant(args, results): what tests compare when the results are not unique (signs of eigenvectors)
    smooth       False where the derivative is not compared with differences (results that are indices or flags)
    """

    body: str = ""
    signatures: tuple[str, ...] = ()
    make: Callable[..., Any] | None = None
    invariant: Callable[..., Any] | None = None
    smooth: bool = True
    singular: tuple[Any, ...] = ()

    def load(self, signature: int = 0) -> Any:
        """The `@kc.func` behind this row. Loaded late: the library is written in the language that it extends."""
        module, names = self.body.split(":")
        functions = names.split()
        return getattr(importlib.import_module(f"kernelc.lib.{module}"), functions[min(signature, len(functions) - 1)])


@dataclass
class Table:
    """All rows by name."""

    rows: dict[str, Row] = field(default_factory=dict)

    def add(self, row: Row) -> Row:
        if row.name in self.rows:
            raise ValueError(f"built-in {row.name} has two rows")
        if len(row.domain) != len(row.params):
            raise ValueError(f"built-in {row.name}: one range per parameter {row.params}, got {row.domain}")
        self.rows[row.name] = row
        forms = [f"{row.name}: {form}" for form in getattr(row, "signatures", ())]
        row.__dict__.update(__doc__="\n".join([row.doc, *([""] if forms else []), *forms]), __module__="kernelc")
        return row

    def scalar(self, name: str) -> ScalarRow:
        row = self.rows[name]
        assert isinstance(row, ScalarRow), name
        return row


TABLE = Table()


def _row(name: str) -> Row:
    """What the pickle of a row means."""
    return TABLE.rows[name]


def _evaluate(rule: Any, names: dict[str, float]) -> Any:
    """The value of a derivative rule. Both sides of a `where` are formed, as in a kernel."""
    if not isinstance(rule, Sym):
        return rule
    if rule.op == "leaf":
        return names.get(rule.args[0], rule.args[0])
    args = [_evaluate(a, names) for a in rule.args]
    return (args[1] if args[0] else args[2]) if rule.op == "select" else TABLE.scalar(rule.op).python(*args)


def scalar(
    name: str,
    doc: str,
    python: Callable[..., Any],
    *,
    params: str,
    cpp: str,
    domain: Range | tuple[Range, ...] = (-2.0, 2.0),
    d: Callable[..., tuple[Sym | float | None, ...]] | None = None,
    regular: Callable[..., Sym] | None = None,
    pull: Callable[..., tuple[Sym, ...]] | None = None,
    **options: Any,
) -> None:
    """Add a scalar row. `d` and `regular` are functions of the parameters and, last, of the result `y`."""
    names = tuple(params.split())
    ranges = domain if isinstance(domain[0], tuple) else (domain,) * len(names)
    partials: tuple[Sym | None, ...] = (None,) * len(names)
    if d is not None:
        rules = _apply(d, names)
        partials = tuple(Sym("leaf", (float(p),)) if isinstance(p, (int, float)) else p for p in rules)
        if len(partials) != len(names):
            raise ValueError(f"built-in {name}: {len(names)} parameters, {len(partials)} partials")
    condition = _apply(regular, names) if regular else None
    products = pull(*(leaf(n) for n in names), leaf("y"), leaf("g")) if pull else ()
    TABLE.add(
        ScalarRow(
            name, doc, python, names, ranges, cpp=cpp, partials=partials, pull=products, regular=condition, **options
        )
    )


def _apply(rule: Callable[..., Any], names: tuple[str, ...]) -> Any:
    wanted = len(inspect.signature(rule).parameters)
    leaves = [leaf(n) for n in names] + [leaf("y")]
    return rule(*leaves[:wanted])


def compound(
    name: str,
    doc: str,
    python: Callable[..., Any],
    *,
    body: str,
    params: str,
    signatures: tuple[str, ...],
    domain: Range | tuple[Range, ...] = (-2.0, 2.0),
    **options: Any,
) -> None:
    """Add a compound row."""
    names = tuple(params.split())
    ranges = domain if isinstance(domain[0], tuple) else (domain,) * len(names)
    TABLE.add(CompoundRow(name, doc, python, names, ranges, body=body, signatures=signatures, **options))
