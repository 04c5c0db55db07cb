"""What is searched for: named, bounded quantities, and the space in which steps of an optimiser make sense.

A `Param` is written by the user; `Space` lays several of them out as one vector u. Positive quantities are searched by
their logarithm (a factor of two is the same step everywhere), orientations and directions by a rotation of the value
that the model has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.sysid.names import nearest

Vector = NDArray[np.float64]
TRANSFORMS = ("log", "linear", "sphere")


@dataclass(frozen=True, eq=False)
class Param:
    """A quantity to find: `Param("cube.density", (1, 50))`.

    name: a parameter of the model, as `model.parameters()` lists them
    bounds: the lowest and highest value that can be; blind starts are drawn from the whole range
    transform: "log", "linear" or "sphere" (unit vectors and quaternions); "log" where both bounds are positive
    start: a guess, instead of blind ones for the first start
    each: one value per row (particle, element) of the object, instead of one for all
    smooth: with `each`, weight of the prior that neighbouring rows are alike
    of: the parameter of the model, if the name is another one
    into: what the value means, as a function to a dictionary of parameters of the model; the name is then free
    given: parameters of the model that `into` takes as well, in a dictionary; found ones, or as they are
    unit: for tables, where the model does not know it
    """

    name: str
    bounds: tuple[float, float] | None = None
    transform: str | None = None
    start: ArrayLike | None = None
    each: bool = False
    smooth: float = 0.0
    of: str | None = None
    into: Callable[..., Mapping[str, Any]] | None = None
    given: tuple[str, ...] = ()
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.transform is not None and self.transform not in TRANSFORMS:
            raise ValueError(f"{self.name}: transform is one of {', '.join(TRANSFORMS)}, not {self.transform!r}")
        if self.transform == "sphere":
            return
        if self.bounds is None:
            raise ValueError(f"{self.name}: give bounds, such as Param({self.name!r}, (0.1, 10))")
        low, high = (float(b) for b in self.bounds)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(f"{self.name}: bounds are two finite numbers, the lower first, not {self.bounds}")
        if self.transform == "log" and low <= 0:
            raise ValueError(f'{self.name}: "log" needs positive bounds, not {self.bounds}; use transform="linear"')
        if self.start is not None:
            value = np.asarray(self.start, np.float64)
            if not ((value >= low) & (value <= high)).all():
                raise ValueError(f"{self.name}: the guess {self.start} is outside of the bounds ({low:g}, {high:g})")

    @property
    def target(self) -> str:
        """The parameter of the model that it stands for, unless `into` says."""
        return self.of or self.name

    @property
    def kind(self) -> str:
        """The transform in force."""
        if self.transform is not None or self.bounds is None:
            return self.transform or "sphere"
        return "log" if self.bounds[0] > 0 else "linear"


@dataclass(frozen=True, eq=False)
class Axis:
    """One param in the vector: where it stands, and the shape of its value."""

    param: Param
    shape: tuple[int, ...]
    at: slice
    base: Vector
    """The value of the model, which a rotation turns."""
    basis: Vector | None = None
    """Of a sphere: the directions in which the base can be turned, (n - 1, n)."""
    unit: str = ""

    @property
    def names(self) -> list[str]:
        """One for each number of the value."""
        if self.shape == ():
            return [self.param.name]
        if self.shape in ((3,), (4,)):
            return [f"{self.param.name}.{letter}" for letter in "xyzw"[: self.shape[0]]]
        return [f"{self.param.name}[{', '.join(map(str, index))}]" for index in np.ndindex(*self.shape)]

    def value(self, u: Any) -> Any:
        """From coordinates (..., n) to values (..., *shape), as NumPy arrays or tensors."""
        lead = tuple(u.shape[:-1])
        if self.param.kind == "sphere":
            return _turned(u, self.base, self.basis).reshape((*lead, *self.shape))
        made = _exp(u) if self.param.kind == "log" else u
        return made.reshape((*lead, *self.shape))

    def slope(self, u: Vector) -> Vector:
        """∂ value / ∂ u, (numbers of the value, n)."""
        if self.param.kind == "log":
            return np.diag(np.exp(u))
        if self.param.kind == "linear":
            return np.eye(len(u))
        h = 1e-6
        return np.stack([(self.value(u + h * e) - self.value(u - h * e)).ravel() / (2 * h) for e in np.eye(len(u))], 1)

    def coordinates(self, value: ArrayLike) -> Vector:
        """The inverse of `value`."""
        wide = np.broadcast_to(np.asarray(value, np.float64), self.shape).ravel()
        if self.param.kind == "log":
            return np.log(wide)
        return wide.copy() if self.param.kind == "linear" else _angles(wide, self.base, self.basis)

    @property
    def bounds(self) -> tuple[Vector, Vector]:
        """In coordinates."""
        n = self.at.stop - self.at.start
        if self.param.kind == "sphere":
            # Quaternions q and -q are the same rotation: a quarter turn on the sphere reaches all of them.
            reach = np.pi / 2 if self.shape == (4,) else np.pi
            return np.full(n, -reach), np.full(n, reach)
        assert self.param.bounds is not None
        low, high = (np.full(n, float(b)) for b in self.param.bounds)
        return (np.log(low), np.log(high)) if self.param.kind == "log" else (low, high)


class Space:
    """Several params as one vector u: `values(u)` are those of the params, `draw` makes a blind guess."""

    def __init__(self, params: Sequence[Param], known: Mapping[str, Any]):
        """`known` has what the model says of each parameter: an object with `value`, `full` and `unit`."""
        names = [p.name for p in params]
        if not params:
            raise ValueError('there is nothing to find: give params=[sysid.Param("cube.density", (1, 50)), ...]')
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is among the params twice")
        self.params = tuple(params)
        self.axes = []
        at = 0
        for param in params:
            axis = _axis(param, known.get(param.target), at)
            self.axes.append(axis)
            at = axis.at.stop
        self.size = at
        self._as_they_are = {name: _plain(known[name].value) for p in params for name in p.given}
        self.low, self.high = (np.concatenate([a.bounds[i] for a in self.axes]) for i in (0, 1))

    @property
    def names(self) -> list[str]:
        """Of each number that is found, such as "cube.density" or "cube.vel.x"."""
        return [name for axis in self.axes for name in axis.names]

    @property
    def units(self) -> list[str]:
        return [axis.unit for axis in self.axes for _ in axis.names]

    def values(self, u: Any) -> dict[str, Any]:
        """What the model is given, by name: NumPy arrays or tensors with the leading axes of u (..., size)."""
        made: dict[str, Any] = {}
        by: dict[str, str] = {}
        # Those that depend on others come last.
        for axis in sorted(self.axes, key=lambda a: bool(a.param.given)):
            value, param = axis.value(u[..., axis.at]), axis.param
            if param.into is None:
                found: Mapping[str, Any] = {param.target: value}
            elif param.given:
                found = param.into(value, {name: made.get(name, self._as_they_are[name]) for name in param.given})
            else:
                found = param.into(value)
            for name, content in found.items():
                # What is given its own parameter changes it: one rod of two.
                if name in made and name not in param.given:
                    both = f"{by[name]!r} and {param.name!r}"
                    raise ValueError(f"{both} both decide {name!r} of the model: search for one of them")
                made[name], by[name] = content, param.name
        return made

    def push(self, u: Vector) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """The values, and how each moves along every coordinate: (size, *shape).

        One copy of u for each coordinate is pushed along it, all at once: what makes values of copies makes them here.
        """
        import torch
        from torch.autograd import forward_ad

        one = torch.tensor(u, dtype=torch.float64)
        with forward_ad.dual_level():
            copies = forward_ad.make_dual(one.expand(self.size, -1).clone(), torch.eye(self.size, dtype=one.dtype))
            pushed = {name: forward_ad.unpack_dual(value).tangent for name, value in self.values(copies).items()}
        values = {name: value.detach().numpy() for name, value in self.values(one).items()}
        still = {name: np.zeros((self.size, *value.shape)) for name, value in values.items()}
        return values, {name: still[name] if way is None else way.numpy() for name, way in pushed.items()}

    def numbers(self, u: Vector) -> Vector:
        """The numbers of all values in a row, as `names` names them."""
        return np.concatenate([np.ravel(axis.value(u[axis.at])) for axis in self.axes])

    def slope(self, u: Vector) -> Vector:
        """∂ numbers / ∂ u."""
        blocks = [axis.slope(u[axis.at]) for axis in self.axes]
        made = np.zeros((sum(len(b) for b in blocks), self.size))
        row = 0
        for axis, block in zip(self.axes, blocks):
            made[row : row + len(block), axis.at] = block
            row += len(block)
        return made

    def vector(self, values: Mapping[str, ArrayLike]) -> Vector:
        """The coordinates of these values of all params."""
        names = [axis.param.name for axis in self.axes]
        for name in values:
            if name not in names:
                raise KeyError(f"{name!r} is not searched for: {nearest(name, names)}")
        for name in names:
            if name not in values:
                raise KeyError(f"there is no value of {name!r}: give one for each of the params")
        return np.concatenate([axis.coordinates(values[axis.param.name]) for axis in self.axes])

    def clip(self, u: Vector) -> Vector:
        return np.clip(u, self.low, self.high)

    def draw(self, rng: np.random.Generator) -> Vector:
        """A blind guess: uniform in the coordinates, over the whole range. Rows of a field are alike."""
        made = rng.uniform(self.low, self.high)
        for axis in self.axes:
            if axis.param.kind == "sphere":
                made[axis.at] = _angles(_unit(rng.normal(size=axis.base.size)), axis.base, axis.basis)
            elif axis.param.each:
                made[axis.at] = made[axis.at.start]
        return made

    def first(self) -> Vector | None:
        """The start that the params give, if all of them do."""
        if any(p.start is None for p in self.params):
            return None
        return self.vector({p.name: p.start for p in self.params if p.start is not None})


def _axis(param: Param, known: Any, at: int) -> Axis:
    unit = param.unit if param.unit is not None else getattr(known, "unit", "")
    if known is None:
        shape: tuple[int, ...] = () if param.start is None else np.shape(param.start)
        base = np.ones(shape)
    else:
        value = _plain(known.value)
        shape = tuple(known.full) if param.each else value.shape
        base = np.broadcast_to(np.asarray(value, np.float64), shape)
    base = np.array(base, np.float64).ravel()
    if param.kind != "sphere":
        return Axis(param, shape, slice(at, at + base.size), base, None, unit)
    if len(shape) != 1 or not 2 <= shape[0] <= 4:
        raise ValueError(f'{param.name}: "sphere" is for directions and quaternions, not for shape {shape}')
    base = _unit(base)
    basis = np.linalg.svd(base[None])[2][1:]
    return Axis(param, shape, slice(at, at + base.size - 1), base, basis, unit)


def _plain(value: Any) -> Vector:
    return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value, np.float64)


def _unit(v: Vector) -> Vector:
    return v / np.linalg.norm(v)


def _exp(u: Any) -> Any:
    return np.exp(u) if isinstance(u, np.ndarray) else u.exp()


def _turned(u: Any, base: Any, basis: Any) -> Any:
    """cos|u| base + sin|u| (u/|u|) basis: the exponential map of the sphere."""
    if isinstance(u, np.ndarray):
        angle = np.linalg.norm(u, axis=-1, keepdims=True)
        return np.cos(angle) * base + np.sinc(angle / np.pi) * (u @ basis)
    base, basis = u.new_tensor(base), u.new_tensor(basis)
    # The root is taken off zero, where it has no slope.
    angle = ((u * u).sum(-1, keepdim=True) + 1e-30).sqrt()
    return angle.cos() * base + (angle / np.pi).sinc() * (u @ basis)


def _angles(value: Vector, base: Vector, basis: Vector | None) -> Vector:
    """The inverse of `_turned`, on the near side for quaternions."""
    assert basis is not None
    value = _unit(value)
    if len(value) == 4 and value @ base < 0:
        value = -value
    side = basis @ value
    return np.arctan2(np.linalg.norm(side), value @ base) * side / max(float(np.linalg.norm(side)), 1e-300)
