"""Lights and materials: plain descriptions, and how they are packed for the kernels.

Every number may be a tensor that requires a gradient. `to_light` points from the surface to the light. What a light is
made of may have one more dimension in front, for the frames of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nablasim.render.checks import colours, shaped, shaped_rows
from nablasim.render.either import concatenated, flattened, is_tensor, plain

Color = Any
"""Three numbers, one for grey, or a tensor of them."""


@dataclass(frozen=True, eq=False)
class Ambient:
    """Ambient light: ka La albedo."""

    color: Color = 1.0


@dataclass(frozen=True, eq=False)
class Directional:
    """Directional light, like the sun's."""

    to_light: Any
    """The direction to the light, of any length."""
    color: Color = 1.0
    specular: Color | None = None
    """The colour of highlights; that of the light if not given."""


@dataclass(frozen=True, eq=False)
class Point:
    """Point light, without falloff."""

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
    """(1, 30), or (frames, 30): ambient light, then nine coefficients of each channel."""
    material: Any
    """(1, materials, 4): that of faces without one first."""
    lights: Any
    """(1 or frames, n, 10): 1 for a point, its position or direction, colour, highlights' colour. Directions first."""
    directions: int
    shines: bool
    harmonics: bool


def check_lights(lights: Any, material: Any) -> None:
    """Say what is no light, and what is no material."""
    if isinstance(lights, Light):
        raise TypeError(f"lights are a list, even where there is one: [render.{type(lights).__name__}(…)]")
    for light in lights or ():
        if not isinstance(light, Light):
            raise TypeError(
                f"a light is render.Ambient, Directional, Point or SphericalHarmonics, not {type(light).__name__}"
            )
    if not isinstance(material, Material):
        raise TypeError(f"the material is a render.Material, not {type(material).__name__}")


def pack(lights: Sequence[Light], materials: Sequence[Material], *, shines: bool) -> Lighting:
    """Check lights and put them into arrays; tensors among them make all of them tensors."""
    for material in materials:
        check_lights(lights, material)
    ambient: Any = np.zeros((1, 3))
    waves: Any = np.zeros((1, 9, 3))
    harmonics = False
    rows: list[tuple[bool, Any]] = []
    for light in lights:
        if isinstance(light, Ambient):
            ambient = _add(ambient, colours("color of a light", light.color))
        elif isinstance(light, SphericalHarmonics):
            more = shaped_rows("coefficients of a light", light.coefficients, (9, 3))
            waves, harmonics = _add(waves, more), True
        else:
            rows.append((isinstance(light, Point), _packed(light)))
    names = ("ka", "kd", "ks", "shininess")
    numbers = flattened([shaped(f"{n} of a material", getattr(m, n), ()) for m in materials for n in names])
    lamps = [row[:, None] for is_point in (False, True) for kind, row in rows if kind is is_point]
    table = _beside(lamps, 1) if lamps else np.zeros((1, 0, 10))
    return Lighting(
        _beside([ambient, waves.reshape(-1, 27)], 1), numbers.reshape(1, len(materials), 4), table,
        sum(not is_point for is_point, _ in rows), shines, harmonics,
    )  # fmt: skip


def _packed(light: Directional | Point) -> Any:
    """One row of the table of lights, or one for each frame: (n, 10)."""
    diffuse = colours("color of a light", light.color)
    specular = diffuse if light.specular is None else colours("specular of a light", light.specular)
    if isinstance(light, Point):
        position = shaped_rows("position of a light", light.position, (3,))
        return _beside([np.ones((1, 1)), position, diffuse, specular], 1)
    to_light = shaped_rows("to_light of a light", light.to_light, (3,))
    if not plain(to_light).any(-1).all():
        raise ValueError("to_light of a light is (0, 0, 0), which is no direction: it points from the surface to it")
    return _beside([np.zeros((1, 1)), to_light, diffuse, specular], 1)


def _beside(parts: Sequence[Any], axis: int) -> Any:
    """Rows of several parts side by side, where each has one for all frames, or one for each."""
    frames = max(p.shape[0] for p in parts)
    for p in parts:
        if p.shape[0] not in (1, frames):
            raise ValueError(f"lights are given for {p.shape[0]} frames and for {frames}: they must agree, or be one")
    return concatenated([_repeated(p, frames) for p in parts], axis)


def _repeated(rows: Any, frames: int) -> Any:
    if rows.shape[0] == frames:
        return rows
    return rows.expand(frames, *rows.shape[1:]) if is_tensor(rows) else np.repeat(rows, frames, 0)


def _add(a: Any, b: Any) -> Any:
    if is_tensor(b) and not is_tensor(a):
        return b + b.new_tensor(a)
    return a + a.new_tensor(b) if is_tensor(a) and not is_tensor(b) else a + b
