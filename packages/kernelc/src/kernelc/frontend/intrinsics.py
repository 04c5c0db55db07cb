"""Functions of the kernel language that are no plain functions: they know the launch, memory or the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..builtins import random
from ..errors import WrongUse
from ..records import entity


@entity
class Intrinsic:
    """A name of the kernel language; the front end has a method for each (`Calls.call_<name>`).

    python: what it means in a function of kernels that is called from Python; most mean nothing there.
    """

    name: str
    doc: str
    python: Callable[..., Any] | None = None

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
where = Intrinsic(
    "where", "where(c, a, b): a if c else b; the other side is never formed", lambda c, a, b: a if c else b
)
static = Intrinsic("static", "static(expr): the value of a Python expression, computed while compiling", lambda x: x)
stop_grad = Intrinsic("stop_grad", "stop_grad(x): x without its gradient", lambda x: x)
grad = Intrinsic("grad", "grad(f)(a, …): partial derivatives of a scalar function by its real arguments")
rng = Intrinsic("rng", "rng(seed, i): a generator of random numbers, a local value that draws advance", random.rng)
randf = Intrinsic("randf", "randf(state): uniform in [0, 1); advances the state, a name", random.randf)

_ATOMICS = (atomic_add, atomic_sub, atomic_min, atomic_max)
ALL = {i.name: i for i in (tid, load, store, *_ATOMICS, where, static, stop_grad, grad, rng, randf)}
