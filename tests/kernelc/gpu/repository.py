"""Every kernel of the repository: those of kernelc's library, of physics and render, and of the benchmarks."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass

import kernelc as kc
from kernelc import types as t
from kernelc.codegen import Code, counted_for
from kernelc.runtime.explain import real_arrays
from kernelc.runtime.kernels import Kernel

PACKAGES = ("kernelc.lib", "kernelc.runtime.cuda", "nablasim.physics", "nablasim.render", "benchmarks.cases")


@dataclass(frozen=True)
class Found:
    """A kernel, and where it is defined."""

    module: str
    kernel: Kernel

    @property
    def name(self) -> str:
        return f"{self.module.removeprefix('nablasim.')}.{self.kernel.name}"

    def codes(self, real: t.Scalar, number: int) -> dict[str, Code]:
        """Its CUDA: forward, adjoint if it has one, and what counts for it where that is needed."""
        dense = frozenset(i for i, k in enumerate(self.kernel.params.values()) if isinstance(k, t.ArrayType))
        seeds, variant = real_arrays(self.kernel), self.kernel.variant(real)
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
    found: dict[int, Found] = {}
    for package in PACKAGES:
        for module in _modules(package):
            for thing in list(vars(module).values()):
                if isinstance(thing, Kernel) and thing.source.function.__module__ == module.__name__:
                    found.setdefault(id(thing), Found(module.__name__, thing))
    return sorted(found.values(), key=lambda f: f.name)


def _modules(name: str) -> Iterator[object]:
    package = importlib.import_module(name)
    yield package
    for entry in pkgutil.walk_packages(package.__path__, f"{name}."):
        # Beside ours, the benchmarks have contestants that may not be installed.
        if name != "benchmarks.cases" or entry.ispkg or entry.name.endswith(".kernelc"):
            yield importlib.import_module(entry.name)
