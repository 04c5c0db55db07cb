"""Models that stand beside the scene, such as pendula and smoke: named values, replaced by name, and a rollout.

They follow the conventions of `Scene` and `Model`: `parameters()` lists what can be optimised, `replace` makes another
model, a rollout with torch tensors is one autograd operation, and one with kernelc arrays runs on the open tape.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.checks import check_numbers, nearest
from nablasim.physics.model.draft import shown
from nablasim.physics.model.values import is_kernelc, is_torch, plain

M = TypeVar("M", bound="Standalone")


@dataclass(frozen=True, eq=False)
class Quantity:
    """A value that can be replaced and optimised, by name: its unit, and bounds that make sense (None: no bound)."""

    name: str
    value: Any
    unit: str
    bounds: tuple[float | None, float | None]
    full: tuple[int, ...]
    about: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.value)) if not hasattr(self.value, "shape") else tuple(self.value.shape)

    def __repr__(self) -> str:
        return f"Quantity({self.name!r}, shape={self.shape}, unit={self.unit!r}{shown(self.bounds)})"


class Frames:
    """What a rollout gives: `times` (s), and each quantity as an attribute with one row per frame, the start first."""

    def __init__(self, times: NDArray[np.float64], values: Mapping[str, Any]) -> None:
        self.times, self._values = times, dict(values)

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(f"the frames have no {name!r}: {nearest(name, self._values)}")
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"the frames have no {name!r}: they hold {', '.join(self._values)}")
        return self._values[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def numpy(self) -> Frames:
        """The same as NumPy arrays, without gradients."""
        return Frames(self.times, {name: plain(value) for name, value in self._values.items()})


class Standalone(ABC):
    """Named values in one precision. Models are values: `replace` makes another one."""

    quantities: Mapping[str, Quantity]
    real: str

    def _set_up(self, quantities: Mapping[str, Quantity], real: str) -> None:
        if real not in ("float32", "float64"):
            raise ValueError(f'real is "float32" or "float64", not {real!r}')
        self.real = real
        self.quantities = {name: self._checked(q, q.value) for name, q in quantities.items()}

    @abstractmethod
    def rollout(self, *, dt: float, steps: int, **options: Any) -> Frames:
        """Run for `steps` steps of `dt` seconds."""

    def parameters(self) -> list[Quantity]:
        """Every quantity that can be optimised: name, shape, unit, bounds and the value that it has now."""
        return list(self.quantities.values())

    def names(self) -> list[str]:
        return list(self.quantities)

    def __iter__(self) -> Iterator[str]:
        return iter(self.quantities)

    def __contains__(self, name: object) -> bool:
        return name in self.quantities

    def __getitem__(self, name: str) -> Any:
        return self._known(name).value

    def replace(self: M, values: Mapping[str, Any] | None = None, /, **more: Any) -> M:
        """The same model with other values of some parameters: numbers, NumPy arrays, torch tensors, kernelc arrays.

        One number stands for all entries, and its gradient is the sum.
        """
        other = copy(self)
        given = {**(values or {}), **more}
        changed = {name: self._checked(self._known(name), value) for name, value in given.items()}
        other.quantities = {**self.quantities, **changed}
        return other

    def _known(self, name: str) -> Quantity:
        if name not in self.quantities:
            raise KeyError(f"there is no parameter {name!r}: {nearest(name, self.quantities)}")
        return self.quantities[name]

    def _checked(self, quantity: Quantity, value: Any) -> Quantity:
        check_numbers(quantity.name, value)
        if not is_torch(value) and not is_kernelc(value):
            found = np.asarray(value)
            check_numbers(quantity.name, found)
            value = found.astype(self.real)
        shape, full = tuple(plain(value).shape), quantity.full
        if shape not in ((), (1,), full) and not fits(shape, full):
            raise ValueError(f"{quantity.name} has shape {shape}; expected one value, or shape {full}")
        numbers = plain(value)
        if not np.isfinite(numbers).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
            raise ValueError(f"{quantity.name} has an entry that is not finite, at {at}")
        low = quantity.bounds[0]
        if low is not None and (numbers < low).any():
            raise ValueError(f"{quantity.name} must not be below {low:g}, and is {numbers.min():g}")
        return Quantity(quantity.name, value, quantity.unit, quantity.bounds, full, quantity.about)

    # ------------------------------------------------------------------------------------------------------- running
    def _inner(self, quantity: Quantity) -> tuple[int, ...]:
        """The shape in which kernels get a quantity."""
        return quantity.full

    def _run(self, work: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Call `work` with every quantity as a kernelc array, and give back the arrays that it returns.

        With torch tensors among the quantities the call is one operation of autograd, and the results are tensors.
        With kernelc arrays among them they stay kernelc arrays, on the tape that is open. Without either they are
        tensors if torch is there, NumPy arrays otherwise.
        """
        tensors = {name: q.value for name, q in self.quantities.items() if is_torch(q.value)}
        if any(is_kernelc(q.value) for q in self.quantities.values()):
            if tensors:
                raise TypeError(f"{next(iter(tensors))} is a torch tensor, others are kernelc arrays: use one of them")
            return work(self._arrays({}))
        if not tensors:
            return {name: _given_back(array) for name, array in work(self._arrays({})).items()}
        import torch

        names: list[str] = []

        def call(*arrays: Any) -> tuple[Any, ...]:
            results = work(self._arrays(dict(zip(tensors, arrays))))
            names[:] = results
            return tuple(results.values())

        real = getattr(torch, self.real)
        wide = [
            t.to(real).expand(self.quantities[n].full).reshape(self._inner(self.quantities[n]))
            for n, t in tensors.items()
        ]
        return dict(zip(names, kc.torch.function(call)(*wide)))

    def _arrays(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: given[name] if name in given else self._array(q) for name, q in self.quantities.items()}

    def _array(self, quantity: Quantity) -> Any:
        inner, value = self._inner(quantity), quantity.value
        if not is_kernelc(value):
            wide = np.broadcast_to(value, quantity.full).reshape(inner)
            return kc.array(np.array(wide, dtype=self.real, order="C"))
        numbers = value.numpy()
        if numbers.shape != inner or numbers.dtype != self.real:
            raise ValueError(
                f"{quantity.name} is a kernelc array of {numbers.dtype} in shape {numbers.shape}; expected {self.real} "
                f"in shape {inner}"
            )
        return value


def fits(shape: tuple[int, ...], full: tuple[int, ...]) -> bool:
    """Whether a value of this shape can be broadcast to the full one."""
    try:
        return np.broadcast_shapes(shape, full) == full
    except ValueError:
        return False


def _given_back(array: Any) -> Any:
    if find_spec("torch") is None:
        return array.numpy()
    import torch

    return torch.from_numpy(array.numpy())
