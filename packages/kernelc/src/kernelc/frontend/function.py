"""`@kc.func`: a function that kernels call. It is inlined, generic where unannotated, and may have its own adjoint."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from ..errors import WrongUse, public
from ..homes import pickled
from .source import Source


class Func:
    """A function of the kernel language. Called from Python it runs as plain Python."""

    def __init__(self, function: Callable[..., Any]):
        self.source = Source(function)
        self.rule: Source | None = None
        update_wrapper(self, function)

    @property
    def name(self) -> str:
        return self.source.name

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.source.function(*args, **named)

    @public
    def adjoint(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: `rule(a, b, adj_out) -> adj_a, adj_b` replaces what the compiler would derive."""
        if not inspect.isfunction(rule):
            raise WrongUse(f"an adjoint is a function, not {rule!r}", advice="write @f.adjoint above a `def`")
        self.rule = Source(rule)
        return rule

    def __repr__(self) -> str:
        return f"<kc.func {self.name}>"

    @public
    def __reduce__(self) -> Any:
        return pickled(self, "the func")

    def __copy__(self) -> Func:
        return self

    def __deepcopy__(self, _: Any) -> Func:
        return self


@public
def func(function: Callable[..., Any]) -> Func:
    """Decorator: make a Python function callable from kernels."""
    if not inspect.isfunction(function):
        raise WrongUse(f"@kc.func takes a function, not {function!r}", advice="write it above a `def`")
    return Func(function)
