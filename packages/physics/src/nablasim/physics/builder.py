"""Makes models and their first state from plain arrays, and says what is wrong with them before anything runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.model import SpringModel
from nablasim.physics.state import State


def build_springs(
    points: ArrayLike,
    pairs: ArrayLike,
    *,
    mass: ArrayLike,
    ke: ArrayLike,
    kd: ArrayLike = 0.0,
    rest: ArrayLike | None = None,
    vel: ArrayLike = (0.0, 0.0, 0.0),
    fixed: ArrayLike = (),
    gravity: ArrayLike = (0.0, -9.81, 0.0),
    real: str = "float32",
) -> tuple[SpringModel, State]:
    """A mass-spring system and its state at time zero.

    `mass` is per particle, `ke`, `kd` and `rest` per spring, `vel` per particle; one value stands for all. `rest` is
    the length between the points given, unless told otherwise. `fixed` lists the particles that are held.
    """
    if real not in ("float32", "float64"):
        raise ValueError(f'real is "float32" or "float64", not {real!r}')
    x = _shaped("points", points, (None, 3), real)
    ij = _checked_pairs(pairs, len(x))
    lengths = np.linalg.norm(x[ij[:, 1]] - x[ij[:, 0]], axis=1)
    free = np.ones(len(x), dtype=np.int32)
    free[_checked_particles("fixed", np.asarray(fixed, dtype=np.int64), len(x))] = 0
    model = SpringModel(
        mass=kc.array(_positive("mass", _filled("mass", mass, (len(x),), real))),
        free=kc.array(free),
        pairs=kc.array(ij),
        rest=kc.array(_filled("rest", lengths if rest is None else rest, (len(ij),), real)),
        ke=kc.array(_filled("ke", ke, (len(ij),), real)),
        kd=kc.array(_filled("kd", kd, (len(ij),), real)),
        gravity=kc.array(_filled("gravity", gravity, (1, 3), real), dtype=kc.float3),
    )
    v = _filled("vel", vel, x.shape, real)
    return model, State(x=kc.array(x, dtype=kc.float3), v=kc.array(v, dtype=kc.float3))


def spring_grid(size: tuple[float, float], cells: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Points and springs of a rectangular cloth in the plane z = 0, from (0, 0, 0) to (*size, 0).

    Particle (i, j) has index j (cells[0] + 1) + i. Springs run along the edges of the cells (stretch) and along both
    of their diagonals (shear).
    """
    nx, ny = cells[0] + 1, cells[1] + 1
    if nx < 2 or ny < 2:
        raise ValueError(f"a grid has at least one cell in each direction, not {cells}")
    xs, ys = np.meshgrid(np.linspace(0, size[0], nx), np.linspace(0, size[1], ny))
    points = np.stack([xs, ys, np.zeros_like(xs)], axis=-1).reshape(-1, 3)
    index = np.arange(nx * ny).reshape(ny, nx)
    ends = [
        (index[:, :-1], index[:, 1:]),
        (index[:-1, :], index[1:, :]),
        (index[:-1, :-1], index[1:, 1:]),
        (index[:-1, 1:], index[1:, :-1]),
    ]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])
    return points, pairs.astype(np.int32)


def _shaped(name: str, value: ArrayLike, shape: tuple[int | None, ...], real: str) -> NDArray:
    # A copy: kernelc shares the memory of what it is given, and the caller's array is the caller's.
    array = np.array(value, dtype=real)
    if array.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, array.shape)):
        wanted = ", ".join("n" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} has shape {array.shape}; expected ({wanted})")
    return _finite(name, array)


def _filled(name: str, value: ArrayLike, shape: tuple[int, ...], real: str) -> NDArray:
    try:
        return _finite(name, np.array(np.broadcast_to(np.asarray(value, dtype=real), shape)))
    except ValueError as error:
        if "broadcast" not in str(error):
            raise
        raise ValueError(f"{name} has shape {np.shape(value)}; expected one value, or shape {shape}") from None


def _finite(name: str, array: NDArray) -> NDArray:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has an entry that is not finite, at {tuple(np.argwhere(~np.isfinite(array))[0])}")
    return array


def _positive(name: str, array: NDArray) -> NDArray:
    if not (array > 0).all():
        i = int(np.argmin(array))
        raise ValueError(f"{name} must be positive, and is {array[i]} at {i}; to hold a particle, list it in `fixed`")
    return array


def _checked_particles(name: str, index: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    if index.size and (index.min() < 0 or index.max() >= count):
        raise ValueError(f"{name} names particle {index.min() if index.min() < 0 else index.max()} of {count}")
    return index


def _checked_pairs(pairs: ArrayLike, count: int) -> NDArray[np.int32]:
    ij = np.array(pairs, dtype=np.int32).reshape(-1, 2) if np.size(pairs) == 0 else np.array(pairs, dtype=np.int32)
    if ij.ndim != 2 or ij.shape[1] != 2:
        raise ValueError(f"pairs has shape {ij.shape}; expected (m, 2)")
    _checked_particles("pairs", ij.astype(np.int64), count)
    if (ij[:, 0] == ij[:, 1]).any():
        raise ValueError(f"spring {int(np.argmax(ij[:, 0] == ij[:, 1]))} joins a particle to itself")
    return ij
