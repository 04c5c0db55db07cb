"""Lights and materials: plain descriptions, and how they are packed for the kernels.

Every number may be a tensor that requires a gradient. `to_light` points from the surface to the light.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nablasim.render.camera import _is_tensor, _library

Color = Any
"""Three numbers, one for grey, or a tensor of them."""


@dataclass(frozen=True, eq=False)
class Ambient:
    """Light from everywhere: ka La albedo."""

    color: Color = 1.0


@dataclass(frozen=True, eq=False)
class Directional:
    """Light from far away, like the sun's."""

    to_light: Any
    """The direction to the light, of any length."""
    color: Color = 1.0
    specular: Color | None = None
    """The colour of highlights; that of the light if not given."""


@dataclass(frozen=True, eq=False)
class Point:
    """Light from a point, without falloff."""

    position: Any
    color: Color = 1.0
    specular: Color | None = None


@dataclass(frozen=True, eq=False)
class SphericalHarmonics:
    """Light that depends on the normal alone: real spherical harmonics up to order 2, not below zero."""

    coefficients: Any
    """(9, 3): in the order 1; y, z, x; xy, yz, 3z² - 1, xz, x² - y²."""


@dataclass(frozen=True, eq=False)
class Material:
    """c = (ka La + kd Ld max(n·l, 0)) albedo + ks Ls [n·l > 0] max(r·v, 0)^shininess, over all lights."""

    ka: Any = 1.0
    kd: Any = 1.0
    ks: Any = 0.0
    shininess: Any = 32.0


Light = Ambient | Directional | Point | SphericalHarmonics


@dataclass(frozen=True)
class Lighting:
    """Lights and a material as numbers: what the kernels read."""

    sky: Any
    """(1, 30): ambient light, then nine coefficients of each channel."""
    material: Any
    """(1, 4)."""
    lights: Any
    """(1, n, 10): 1 for a point, its position or direction, colour, colour of highlights."""
    shines: bool
    harmonics: bool


def pack(lights: Sequence[Light], material: Material, *, shines: bool) -> Lighting:
    """Check lights and put them into arrays; tensors among them make all of them tensors."""
    for light in lights:
        if not isinstance(light, (Ambient, Directional, Point, SphericalHarmonics)):
            raise TypeError(
                f"a light is render.Ambient, Directional, Point or SphericalHarmonics, not {type(light).__name__}"
            )
    ambient: Any = np.zeros(3)
    waves: Any = np.zeros((9, 3))
    harmonics = False
    rows = []
    for light in lights:
        if isinstance(light, Ambient):
            ambient = _add(ambient, _three("color", light.color))
        elif isinstance(light, SphericalHarmonics):
            waves, harmonics = _add(waves, _shaped("coefficients", light.coefficients, (9, 3))), True
        else:
            is_point = isinstance(light, Point)
            where = light.position if isinstance(light, Point) else light.to_light
            color = _three("color", light.color)
            specular = color if light.specular is None else _three("specular", light.specular)
            name = "position" if is_point else "to_light"
            rows.append(_join([np.array([float(is_point)]), _shaped(name, where, (3,)), color, specular]))
    numbers = [material.ka, material.kd, material.ks, material.shininess]
    packed = _join([_shaped(n, v, ()).reshape(1) for n, v in zip(("ka", "kd", "ks", "shininess"), numbers)])
    table = _join(rows).reshape(1, len(rows), 10) if rows else np.zeros((1, 0, 10))
    return Lighting(_join([ambient, waves.reshape(27)]).reshape(1, 30), packed.reshape(1, 4), table, shines, harmonics)


def _add(a: Any, b: Any) -> Any:
    if _is_tensor(b) and not _is_tensor(a):
        return b + b.new_tensor(a)
    return a + a.new_tensor(b) if _is_tensor(a) and not _is_tensor(b) else a + b


def _three(name: str, value: Any) -> Any:
    """A colour: one number stands for grey."""
    if np.shape(value) in ((), (1,)):
        return value.reshape(1).expand(3) if _is_tensor(value) else np.full(3, float(value))
    return _shaped(name, value, (3,))


def _shaped(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    if not _is_tensor(value):
        value = np.asarray(value, float)
    if shape == () and value.size == 1 if not _is_tensor(value) else shape == () and value.numel() == 1:
        return value.reshape(())
    if tuple(value.shape) != shape:
        raise ValueError(f"{name} of a light has shape {tuple(value.shape)}, but must have {shape}")
    return value


def _join(parts: Sequence[Any]) -> Any:
    xp = _library(*parts)
    if xp is np:
        return np.concatenate([np.ravel(p) for p in parts])
    like = next(p for p in parts if _is_tensor(p))
    flat = [(p.to(like) if _is_tensor(p) else like.new_tensor(np.asarray(p))).reshape(-1) for p in parts]
    return xp.cat(flat)
