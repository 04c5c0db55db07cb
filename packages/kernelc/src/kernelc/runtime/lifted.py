"""Kernels made of kernels. The forward mode of one is launched, taped and lifted again as any other: derivatives of
every order. One with bundles becomes one of their members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import types as t
from ..adjoint import AdjointKernel, Tangents, lift
from ..config import config
from ..errors import WrongUse
from .compile import Variant
from .kernels import Kernel


class Flat(Kernel):
    """A kernel whose parameters are the members of the bundles that `base` takes."""

    def __init__(self, base: Kernel):
        self.base, self.source, self.options = base, base.source, base.options
        self._variants: dict[Any, Variant] = {}
        self._plans: dict[Any, Any] = {}
        self._passed: dict[Any, Any] = {}
        self.bundled = False

    @property
    def declared(self) -> dict[str, t.Type]:
        return self.base.params

    params = declared

    def variant(self, real: t.Scalar, boxed: Sequence[str] = (), lacks: Sequence[str] = ()) -> Variant:
        return self.base.variant(real, boxed, lacks)


class Lifted(Flat):
    """Computes what `base` computes, and its derivative in the direction of the tangents of the arrays at `seeds`.

    The first `inputs` parameters of `base` are its inputs, the others its outputs. Those of the lifted kernel are the
    inputs, tangents of inputs, outputs, tangents of outputs; `shape` says which is which. Values of `base` at `boxed`
    are given as arrays of one element.
    """

    def __init__(self, base: Kernel, seeds: frozenset[int], inputs: int, real: t.Scalar, boxed: Sequence[str] = ()):
        super().__init__(base)
        self.seeds, self.boxed, self.of = seeds, tuple(boxed), inputs
        self.shape = Tangents.of(base.variant(real, boxed).kernel, seeds, inputs)
        self.inputs = sum(i < inputs for i, _ in self.shape.order)
        self.order: int = getattr(base, "order", 0) + 1
        names = list(base.params)
        self.names = [f"{names[i]}.tangent_{self.order}" if dotted else names[i] for i, dotted in self.shape.order]
        kinds = [base.params[names[i]] for i, _ in self.shape.order]
        boxes = [names[i] in self.boxed for i, _ in self.shape.order]
        self.kinds = {n: t.ArrayType(k, 1) if box else k for n, k, box in zip(self.names, kinds, boxes, strict=True)}

    @property
    def declared(self) -> dict[str, t.Type]:
        return self.kinds

    params = declared

    def variant(self, real: t.Scalar, boxed: Sequence[str] = (), lacks: Sequence[str] = ()) -> Variant:
        base = self.base.variant(real, self.boxed)
        key = (real, tuple(boxed), config.singular, config.debug)
        found = self._variants.get(key)
        if found is None or found.changed():
            found = self._variants[key] = _LiftedVariant(self, base)
        return found


class _LiftedVariant(Variant):
    """A lifted kernel in one precision."""

    def __init__(self, kernel: Lifted, base: Variant):
        self.source, self.real, self.boxed, self.options = base.source, base.real, base.boxed, base.options
        self.lacks, self.singular, self.lowered, self._watched = base.lacks, base.singular, base.lowered, base._watched
        if Tangents.of(base.kernel, kernel.seeds, kernel.of) != kernel.shape:
            raise WrongUse(f"{kernel.name} captured a name that now means something else: other arrays have tangents",
                           advice="differentiate anew, or compile anew what was compiled with it")  # fmt: skip
        if isinstance(base, _LiftedVariant):
            self.check_curvature()
        made = lift(base.kernel, kernel.seeds, kernel.names, kernel.shape, singular=self.singular)
        self._settle(made)

    def adjoint(self, seeds: Iterable[int]) -> AdjointKernel:
        self.check_curvature()
        return super().adjoint(seeds)
