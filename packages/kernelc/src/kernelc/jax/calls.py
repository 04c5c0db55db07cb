"""A kernel on arrays of known shapes: the launch, and its reverse sweep, as operations of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import types as t
from ..errors import NotDifferentiable, WrongDtype, WrongUse
from ..runtime import Array, Kernel, zeros
from ..runtime.launches import apply_settings, check_dims, grid
from ..runtime.lifted import Lifted
from ..runtime.memory import PACKERS
from .bridge import BUFFER, COPY, RESULT, ZEROS, Slot, add_launch, call

ELEMENTS = {np.dtype(s.numpy): s for s in (t.FLOAT32, t.FLOAT64, t.INT32, t.INT64, t.UINT32, t.BOOL)}


class Call:
    """A kernel with everything but the content of its arrays.

    given: for each input the shape and dtype of an array, or a value. `boxed` names the values that come as arrays.
    """

    def __init__(
        self, kernel: Kernel, given: Sequence[Any], boxed: tuple[str, ...], dim: tuple[int, ...],
        outputs: Sequence[tuple[Any, Any]],
    ):  # fmt: skip
        self.kernel, self.given, self.boxed, self.dim, self.asked = kernel, list(given), boxed, dim, list(outputs)
        self.inputs = len(self.given)
        self.arrays = [i for i, a in enumerate(self.given) if isinstance(a, jax.ShapeDtypeStruct)]
        """The positions of the inputs that are arrays."""
        like: list[Any] = [_like(a) if isinstance(a, jax.ShapeDtypeStruct) else a for a in self.given]
        self.real = kernel.precision([*like, *([None] * len(outputs))])
        self.kinds = [t.ArrayType(k, 1) if n in boxed else k for n, k in kernel.params.items()]
        made = [_output(kernel, k, s, d, self.real) for k, (s, d) in zip(self.kinds[self.inputs :], outputs)]
        self.variant = kernel.variant(self.real, boxed)
        if self.variant.records:
            raise NotDifferentiable(f"{kernel.name} uses what an atomic returned, which kc.jax.op does not keep",
                                    kernel.source.head, advice="use kc.launch on a tape")  # fmt: skip
        self.plan, _ = kernel.plan([*like, *made])
        if not self.plan.plain:
            raise WrongUse("kc.jax.op launches on the CPU, and not in debug mode",
                           advice="set kc.config.device = \"cpu\" and kc.config.debug = False")  # fmt: skip
        check_dims(self.plan, dim)
        self.results = [jax.ShapeDtypeStruct(a._data.shape, a._data.dtype) for a in made]
        self.reals = [i for i, a in enumerate(made) if a.real is not None]
        """The outputs that may have a derivative."""
        self.moving = [k for k, i in enumerate(self.arrays) if np.issubdtype(self.given[i].dtype, np.floating)]
        """Which arrays may have a derivative."""
        self.total, self.head = grid(dim, kernel)
        self._keys: dict[Any, Any] = {}

    # -- the argument block
    def shape(self, i: int) -> tuple[int, ...]:
        """The shape of an array, in numbers."""
        if i >= self.inputs:
            return tuple(self.results[i - self.inputs].shape)
        return tuple(self.given[i].shape) or (1,)

    def size(self, i: int) -> int:
        """The bytes of an array."""
        return prod(self.shape(i)) * self._dtype(i).itemsize

    def block(self) -> bytes:
        """The argument block without its pointers."""
        words = [self.head]
        for i, kind in enumerate(self.kinds):
            if not isinstance(kind, t.ArrayType):
                words.append(self.kernel.packer(list(self.kernel.params)[i], t.resolve(kind, self.real))(self.given[i]))
                continue
            strides = _strides(self.shape(i), self._dtype(i).itemsize)[: kind.ndim]
            words.append(PACKERS[kind.ndim](0, 0, 0, 0, 0, *self.shape(i)[: kind.ndim], *strides, *strides))
        return b"".join(words)

    def _dtype(self, i: int) -> np.dtype[Any]:
        found: np.dtype[Any] = np.dtype((self.results[i - self.inputs] if i >= self.inputs else self.given[i]).dtype)
        return found

    def slot(self, i: int, role: str, kind: int, buffer: int = 0) -> Slot:
        return Slot(self.variant.layout.slots[i].role(role), kind, buffer, self.size(i))

    # -- running
    def key(self, which: str, seeds: frozenset[int]) -> Any:
        """The number of a launch of this kernel, or of its adjoint."""
        if (which, seeds) not in self._keys:
            apply_settings()
            self._keys[which, seeds] = self._add_forward() if which == "forward" else self._add_adjoint(seeds)
        return self._keys[which, seeds]

    def _add_forward(self) -> Any:
        (binary,) = self.variant.binaries([("forward", frozenset())], self.plan.contiguous, self.total)
        written = self.variant.written
        slots = [self.slot(i, "value", COPY if i in written else BUFFER, n) for n, i in enumerate(self.arrays)]
        slots += [self.slot(self.inputs + n, "value", RESULT, len(self.arrays) + n) for n in range(len(self.results))]
        ranks = [len(self.given[i].shape) for i in self.arrays] + [len(r.shape) for r in self.results]
        return add_launch(binary, self.kernel.name, self.block(), self.total, slots, ranks)

    def _add_adjoint(self, seeds: frozenset[int]) -> Any:
        """Buffers: arrays, outputs as far as final values are read, weights of real outputs; then the gradients."""
        active, values, _ = self.variant.adjoint_reads(seeds)
        (binary,) = self.variant.binaries([("adjoint", seeds)], self.plan.contiguous, self.total)
        arrays, outputs, after = self.arrays, self.final_outputs(seeds), len(self.arrays)
        written, place = self.variant.written, {i: n for n, i in enumerate(arrays)}
        slots = [self.slot(i, "value", COPY if i in written else BUFFER, place[i]) for i in values if i in place]
        slots += [self.slot(i, "value", ZEROS) for i in values if i >= self.inputs]
        slots += [self.slot(self.inputs + j, "final", BUFFER, after + n) for n, j in enumerate(outputs)]
        after += len(outputs)
        for n, j in enumerate(self.reals):
            if self.inputs + j in active:
                slots.append(self.slot(self.inputs + j, "grad", COPY, after + n))
        after += len(self.reals)
        asked = [i for i in arrays if i in seeds]
        slots += [self.slot(i, "grad", RESULT, after + n) for n, i in enumerate(asked)]
        slots += [self.slot(i, "grad", ZEROS) for i in active if i < self.inputs and i not in seeds]
        shapes = [*(self.given[i].shape for i in arrays), *(self.results[j].shape for j in [*outputs, *self.reals])]
        ranks = [len(s) for s in [*shapes, *(self.given[i].shape for i in asked)]]
        return add_launch(binary, self.kernel.name, self.block(), self.total, slots, ranks)

    def final_outputs(self, seeds: frozenset[int]) -> list[int]:
        """The outputs whose final values the adjoint reads."""
        finals = self.variant.adjoint_reads(seeds)[2]
        if any(i < self.inputs for i in finals):
            raise NotDifferentiable(f"{self.kernel.name} takes an extremum in an input: kc.jax.op keeps none",
                                    self.kernel.source.head, advice="take it in an output")  # fmt: skip
        return sorted(i - self.inputs for i in finals)

    # -- on arrays of JAX; derivatives.py makes primitives of these
    def launch(self, *arrays: Any) -> list[Any]:
        """The launch: arrays to outputs."""
        return call(self.key("forward", frozenset()), list(arrays), self.results)

    def sweep(self, *both: Any) -> list[Any]:
        """The reverse sweep: arrays, then weights of the real outputs, to the gradients of the arrays that may move."""
        n, seeds = len(self.arrays), frozenset(self.arrays[k] for k in self.moving)
        final = self.final_outputs(seeds)
        made = self.launch(*both[:n]) if final else []
        args = [*both[:n], *(made[j] for j in final), *both[n:]]
        return call(self.key("adjoint", seeds), args, self.ways)

    @property
    def ways(self) -> list[Any]:
        """Shape and dtype of the arrays that may move."""
        return [self.given[self.arrays[k]] for k in self.moving]

    @property
    def weights(self) -> list[Any]:
        """Shape and dtype of the outputs that may."""
        return [self.results[j] for j in self.reals]

    @cached_property
    def lifted(self) -> Call:
        """This and its derivative in a direction of the arrays that may move."""
        seeds = frozenset(self.arrays[k] for k in self.moving)
        kernel = Lifted(self.kernel, seeds, self.inputs, self.real, self.boxed)
        given = [self.given[i] for i, _ in kernel.shape.order if i < self.inputs]
        asked = [self.asked[i - self.inputs] for i, _ in kernel.shape.order if i >= self.inputs]
        return Call(kernel, given, (), self.dim, asked)

    def spread(self, arrays: Sequence[Any], ways: Sequence[Any]) -> list[Any]:
        """The arrays of the lifted kernel: arrays, and their directions as far as anything depends on them."""
        assert isinstance(self.lifted.kernel, Lifted)
        by_place = dict(zip((self.arrays[k] for k in self.moving), ways, strict=True))
        place = {i: k for k, i in enumerate(self.arrays)}
        along = [i for i, dotted in self.lifted.kernel.shape.order if dotted and i < self.inputs]
        return [*arrays, *(by_place[i] if i in by_place else jnp.zeros_like(arrays[place[i]]) for i in along)]

    @cached_property
    def later(self) -> list[int]:
        """Which outputs the tangents are of that the lifted kernel writes, in its order."""
        assert isinstance(self.lifted.kernel, Lifted)
        return [i - self.inputs for i, dotted in self.lifted.kernel.shape.order if dotted and i >= self.inputs]


def _like(given: Any) -> Array:
    """A small array that stands for those of a shape and dtype."""
    if np.dtype(given.dtype) not in ELEMENTS:
        raise WrongDtype(f"an array of {given.dtype} cannot be used", advice="convert it: x.astype(jnp.float32)")
    return zeros(tuple(given.shape) or (1,), ELEMENTS[np.dtype(given.dtype)], device="cpu")


def _output(kernel: Kernel, kind: t.Type, shape: Any, dtype: Any, real: t.Scalar) -> Array:
    if not isinstance(kind, t.ArrayType):
        raise WrongDtype(f"{kernel.name}: an output is {kind!r}, not an array")
    if isinstance(kind.element, t.Struct):
        raise WrongDtype(f"{kernel.name} writes an array of {kind.element!r}, which JAX cannot hold",
                         advice="write its fields to arrays of numbers")  # fmt: skip
    return zeros(shape, kind.element if dtype is None else dtype, real=real, device="cpu")


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of memory without gaps, in bytes."""
    return tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
