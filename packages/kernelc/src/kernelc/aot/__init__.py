"""`kernelc.aot`: which kernels a package brings as machine code, so that its users need no compiler.

    from kernelc import aot
    from mypackage.kernels import cloth, springs

    AHEAD = [*aot.kernels(cloth, springs), *aot.kernels(springs.stiffness, adjoint=False)]

The CMake function `kernelc_add_kernels` reads that list when the wheel is built (docs/kernelc/ahead.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ..errors import WrongUse, public
from ..runtime.kernels import Kernel
from ..toolchain import shipped_with
from ..types import FLOAT32, FLOAT64, Scalar

__all__ = ["Ahead", "brings", "kernels"]


@dataclass(frozen=True)
class Ahead:
    """A kernel to be compiled ahead of time."""

    kernel: Kernel
    adjoint: bool = True
    """With its adjoint for all arrays, which serves for any of them."""
    lanes: bool = True
    """With code that runs threads side by side; else launches of any size run thread by thread, which is slower."""
    reals: tuple[Scalar, ...] = (FLOAT32, FLOAT64)
    boxed: tuple[str, ...] = ()
    """The parameters, other than arrays, that launches give as arrays of one element."""

    absent: tuple[str, ...] = ()
    """The optional members that launches leave out, as "bodies.wind"."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Those of `absent` that the kernel has, in its order."""
        return tuple(name for name in self.kernel.optional if name in self.absent)

    @property
    def given_as_arrays(self) -> tuple[str, ...]:
        """Those of `boxed` that the kernel has, in its order."""
        return tuple(name for name in self.kernel.params if name in self.kernel.values and name in self.boxed)


@public
def kernels(
    *what: Any, adjoint: bool = True, lanes: bool = True, reals: tuple[Any, ...] = (), boxed: tuple[str, ...] = (),
    absent: tuple[str, ...] = (),
) -> list[Ahead]:  # fmt: skip
    """Declare kernels, or all kernels that are defined in modules.

    boxed: the names of numbers that launches give as arrays of one element, where a kernel has them.
    absent: the optional members of bundles that launches leave out, as "bodies.wind", where a kernel has them.
    Of two declarations of one kernel, with the same numbers as arrays and the same members, the later one holds.
    """
    found = [kernel for one in what for kernel in _kernels_of(one)]
    return [Ahead(kernel, adjoint, lanes, reals or Ahead.reals, boxed, absent) for kernel in found]


def brings(package: str) -> bool:
    """Whether an imported package brings machine code for this machine."""
    found = shipped_with(package)
    return found is not None and not found.fault


def _kernels_of(one: Any) -> Iterator[Kernel]:
    if isinstance(one, Kernel):
        yield one
    elif isinstance(one, ModuleType):
        for value in vars(one).values():
            if isinstance(value, Kernel) and value.source.function.__module__ == one.__name__:
                yield value
    else:
        raise WrongUse(f"kernelc.aot.kernels takes kernels and modules, not {one!r}",
                       advice="a kernel that a function makes: call that function")  # fmt: skip
