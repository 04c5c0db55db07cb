"""Lights and materials: plain descriptions, and how they are packed for the kernels.

Every number may be a tensor that requires a gradient. `to_light` points from the surface to the light.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nablasim.render.checks import colour, shaped
from nablasim.render.either import flattened, is_tensor, plain

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


def pack(lights: Sequence[Light], material: Material, *, shines: bool) -> Lighting:
    """Check lights and put them into arrays; tensors among them make all of them tensors."""
    check_lights(lights, material)
    ambient: Any = np.zeros(3)
    waves: Any = np.zeros((9, 3))
    harmonics = False
    rows = []
    for light in lights:
        if isinstance(light, Ambient):
            ambient = _add(ambient, colour("color of a light", light.color))
        elif isinstance(light, SphericalHarmonics):
            waves, harmonics = _add(waves, shaped("coefficients of a light", light.coefficients, (9, 3))), True
        else:
            rows.append(_packed(light))
    names = ("ka", "kd", "ks", "shininess")
    numbers = flattened([shaped(f"{n} of a material", getattr(material, n), ()) for n in names])
    table = flattened(rows).reshape(1, len(rows), 10) if rows else np.zeros((1, 0, 10))
    return Lighting(flattened([ambient, waves]).reshape(1, 30), numbers.reshape(1, 4), table, shines, harmonics)


def _packed(light: Directional | Point) -> Any:
    """One row of the table of lights."""
    diffuse = colour("color of a light", light.color)
    specular = diffuse if light.specular is None else colour("specular of a light", light.specular)
    if isinstance(light, Point):
        return flattened([1.0, shaped("position of a light", light.position, (3,)), diffuse, specular])
    to_light = shaped("to_light of a light", light.to_light, (3,))
    if not plain(to_light).any():
        raise ValueError("to_light of a light is (0, 0, 0), which is no direction: it points from the surface to it")
    return flattened([0.0, to_light, diffuse, specular])


def _add(a: Any, b: Any) -> Any:
    if is_tensor(b) and not is_tensor(a):
        return b + b.new_tensor(a)
    return a + a.new_tensor(b) if is_tensor(a) and not is_tensor(b) else a + b
