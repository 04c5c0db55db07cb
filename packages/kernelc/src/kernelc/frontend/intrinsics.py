"""Functions of the kernel language that are no plain functions: they know the launch, memory or the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..builtins import random
from ..errors import WrongUse, public
from ..records import entity


@entity
class Intrinsic:
    """A name of the kernel language; the front end has a method for each (`Calls.call_<name>`).

    python: what it means in a function of kernels that is called from Python; most mean nothing there.
    """

    name: str
    doc: str
    python: Callable[..., Any] | None = None

    def __get__(self, instance: Any, owner: Any = None) -> Intrinsic:
        # It makes this a routine to `help` and `inspect`.
        return self

    @property
    def __name__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return _intrinsic, (self.name,)

    @public
    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.python is not None:
            return self.python(*args, **named)
        raise WrongUse(f"kc.{self.name}() is for use inside kernels",
                       advice="call it in a @kc.kernel, and run that with kc.launch(...)")  # fmt: skip


tid = Intrinsic("tid", "index of this thread in the launch grid: `i = kc.tid()`, `i, j = kc.tid()`")
load = Intrinsic("load", "load(a, i): the same as a[i]", lambda a, *i: a[i])
store = Intrinsic("store", "store(a, i, v): the same as a[i] = v", lambda a, *rest: a.__setitem__(rest[:-1], rest[-1]))
atomic_add = Intrinsic("atomic_add", "atomic_add(a, i, …, v): add v to an element; returns the old content")
atomic_sub = Intrinsic("atomic_sub", "atomic_sub(a, i, …, v): subtract v from an element; returns the old content")
atomic_min = Intrinsic("atomic_min", "atomic_min(a, i, …, v): take the minimum; returns the old content")
atomic_max = Intrinsic("atomic_max", "atomic_max(a, i, …, v): take the maximum; returns the old content")
atomic_and = Intrinsic("atomic_and", "atomic_and(a, i, …, v): a[i] & v of integers; returns the old content")
atomic_or = Intrinsic("atomic_or", "atomic_or(a, i, …, v): a[i] | v of integers; returns the old content")
atomic_xor = Intrinsic("atomic_xor", "atomic_xor(a, i, …, v): a[i] ^ v of integers; returns the old content")
atomic_exchange = Intrinsic("atomic_exchange", "atomic_exchange(a, i, …, v): store an integer; returns the old content")
atomic_cas = Intrinsic(
    "atomic_cas",
    "atomic_cas(a, i, …, expected, new): store an integer where the content is `expected`; returns the old content",
)
where = Intrinsic(
    "where", "where(c, a, b): a if c else b; the other side is never formed", lambda c, a, b: a if c else b
)
static = Intrinsic("static", "static(expr): the value of a Python expression, computed while compiling", lambda x: x)
stop_grad = Intrinsic("stop_grad", "stop_grad(x): x without its gradient", lambda x: x)
grad = Intrinsic("grad", "grad(f)(a, …): partial derivatives of a scalar function by its real arguments")
rng = Intrinsic("rng", "rng(seed, i): a generator of random numbers, a local value that draws advance", random.rng)
randf = Intrinsic("randf", "randf(state): uniform in [0, 1); advances the state, a name", random.randf)

_ATOMICS = (
    atomic_add, atomic_sub, atomic_min, atomic_max, atomic_and, atomic_or, atomic_xor, atomic_exchange, atomic_cas,
)  # fmt: skip
ALL = {i.name: i for i in (tid, load, store, *_ATOMICS, where, static, stop_grad, grad, rng, randf)}
for _each in ALL.values():
    _each.__dict__.update(__doc__=_each.doc, __module__="kernelc")


def _intrinsic(name: str) -> Intrinsic:
    """What the pickle of an intrinsic means."""
    return ALL[name]
