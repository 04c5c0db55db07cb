"""Every kernel of the repository: those of kernelc's library, of the packages, of the benchmarks and the examples.

Kernels that functions make are those that wheels bring.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import kernelc as kc
from kernelc import types as t
from kernelc.codegen import Code, counted_for
from kernelc.runtime.cuda import operations
from kernelc.runtime.kernels import Kernel

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("kernelc.lib", "nablasim.physics", "nablasim.render", "nablasim.sysid.kernels", "benchmarks.cases",
            "benchmarks.right.kernelc", "benchmarks.torch_overhead", "benchmarks.gradient_cost", "benchmarks.tangents",
            "benchmarks.cases.start.scripts.ten_kernelc", "hanging.kernels")  # fmt: skip
EXAMPLE = ROOT / "examples/wheel/src"
"""Where the package `hanging` is: it is not installed."""
PARTS = 4
"""Of the repository, that go to nvcc one after the other."""
DECLARATIONS = ("nablasim.physics.ahead", "nablasim.render.kernels.ahead")


@dataclass(frozen=True)
class Found:
    """A kernel, and where it is defined.

    number: of those that one function makes; 0: it is the only one
    """

    kernel: Kernel
    number: int = 0

    @property
    def name(self) -> str:
        module = self.kernel.source.function.__module__.removeprefix("nablasim.")
        return f"{module}.{self.kernel.name}" + (f" #{self.number}" if self.number else "")

    def codes(self, real: t.Scalar, number: int) -> dict[str, Code]:
        """Its CUDA: forward, adjoint if it has one, and what counts for it where that is needed."""
        dense = frozenset(i for i, k in enumerate(self.kernel.params.values()) if isinstance(k, t.ArrayType))
        variant = self.kernel.variant(real)
        seeds = variant.all_reals
        jobs = {"forward": frozenset()}
        with contextlib.suppress(kc.NotDifferentiable):
            jobs["adjoint"] = seeds
            if counted_for(variant.primal, variant.adjoint(seeds).kernel):
                jobs["counted"] = seeds
        suffix = f"_{number}"
        made = {}
        for which, carried in jobs.items():
            with contextlib.suppress(kc.NotDifferentiable):
                made[which] = variant.device_code(which, carried, dense, suffix=suffix)
        return made


def kernels() -> list[Found]:
    """All of them, in the order of their names."""
    distinct = list({id(kernel): kernel for kernel in (*_of_modules(), *_declared(), operations._adder())}.values())
    twins = [[other for other in distinct if other.source.function.__code__ is kernel.source.function.__code__]
             for kernel in distinct]  # fmt: skip
    found = [Found(kernel, same.index(kernel) + 1 if len(same) > 1 else 0) for kernel, same in zip(distinct, twins)]
    return sorted(found, key=lambda f: (f.name.partition("#")[0], f.number))


def codes(found: Sequence[Found], real: t.Scalar) -> list[dict[str, Code]]:
    """The CUDA of kernels, as their number in the repository names it: so the same text is compiled once for all."""
    numbers = {one: n for n, one in enumerate(kernels())}
    return [one.codes(real, numbers[one]) for one in found]


def _of_modules() -> Iterator[Kernel]:
    for package in PACKAGES:
        for module in _modules(package):
            for thing in vars(module).values():
                if isinstance(thing, Kernel) and thing.source.function.__module__ == module.__name__:
                    yield thing


def _declared() -> Iterator[Kernel]:
    for name in DECLARATIONS:
        yield from (one.kernel for one in importlib.import_module(name).AHEAD)


def _modules(name: str) -> Iterator[ModuleType]:
    if str(EXAMPLE) not in sys.path:
        sys.path.append(str(EXAMPLE))
    package = importlib.import_module(name)
    yield package
    for entry in pkgutil.walk_packages(getattr(package, "__path__", []), f"{name}."):
        # Beside ours, the benchmarks have contestants that may not be installed.
        if name != "benchmarks.cases" or entry.ispkg or entry.name.endswith(".kernelc"):
            yield importlib.import_module(entry.name)
