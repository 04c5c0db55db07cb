"""Clips as somebody would film them, drawn with NumPy: motion blur, an arm that lets go, shadows, noise, a lamp that
flickers, a camera that shakes; written as H.264. Nothing of the package draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nablasim import render

Way = Callable[[float], tuple[float, float]]


@dataclass
class Film:
    """A ball of `radius` pixels on its `way` (x, y of t in s), seen in `frames` pictures."""

    way: Way
    frames: int
    fps: float = 60.0
    radius: float | Callable[[float], float] = 9.0
    size: tuple[int, int] = (240, 200)
    color: tuple[float, float, float] = (0.75, 0.12, 0.1)
    box: tuple[float, float] | None = None
    """Half width and half height, of a block instead of a ball."""
    exposure: float = 0.5
    """Of the time between frames."""
    noise: float = 0.01
    shadow: tuple[float, float] | None = None
    """Where the shadow falls, from the ball."""
    flicker: float = 0.0
    shake: float = 0.0
    """Pixels."""
    arm: Way | None = None
    """Where the hand is; its arm comes from the left edge."""
    seed: int = 0
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def picture(self, t: float) -> np.ndarray:
        """Light, not yet as a picture stores it."""
        height, width = self.size
        shift = self.shake * np.array([np.sin(7.1 * t), np.cos(5.3 * t)])
        y, x = np.mgrid[0:height, 0:width].astype(float)
        x, y = x - shift[0], y - shift[1]
        wall = 0.55 + 0.1 * y / height
        tiles = 0.05 * (((x // 37) + (y // 29)) % 2)
        light = np.stack([wall + tiles, wall + tiles, 0.96 * wall + tiles], axis=-1)
        bx, by = self.way(t)
        radius = self.radius(t) if callable(self.radius) else self.radius
        if self.shadow is not None:
            cover = self._cover(x - self.shadow[0], y - self.shadow[1], bx, by, radius)
            light *= 1 - 0.35 * cover[..., None]
        if self.arm is not None:
            hx, hy = self.arm(t)
            along = np.clip((x + 20) / (hx + 20), 0, 1)
            off = np.abs(y - (height * 0.9 + (hy - height * 0.9) * along))
            skin = np.clip(11 - off + 0.5, 0, 1) * (x < hx) + np.clip(15 - np.hypot(x - hx, y - hy) + 0.5, 0, 1)
            skin = np.clip(skin, 0, 1)[..., None]
            light = light * (1 - skin) + skin * np.array([0.62, 0.40, 0.32])
        cover = self._cover(x, y, bx, by, radius)[..., None]
        shade = 1 - 0.15 * np.clip(((x - bx) + (y - by)) / (2 * radius), -1, 1)[..., None]
        return light * (1 - cover) + cover * shade * np.array(self.color)

    def _cover(self, x: np.ndarray, y: np.ndarray, bx: float, by: float, radius: float) -> np.ndarray:
        if self.box is not None:
            return np.clip(self.box[0] - np.abs(x - bx) + 0.5, 0, 1) * np.clip(self.box[1] - np.abs(y - by) + 0.5, 0, 1)
        return np.clip(radius - np.hypot(x - bx, y - by) + 0.5, 0, 1)

    def write(self, path: Path) -> Path:
        made = []
        for k in range(self.frames):
            moments = (k + self.exposure * (np.arange(5) - 2) / 5) / self.fps
            light = np.mean([self.picture(t) for t in moments], axis=0)
            light = light * (1 + self.flicker * np.sin(2.3 * k))
            made.append(np.clip(light, 0, 1) ** (1 / 2.2) + self.rng.normal(scale=self.noise, size=light.shape))
        return render.write_video(path, np.clip(made, 0, 1), fps=self.fps)

    def places(self) -> np.ndarray:
        """(frames, 2) where the ball is."""
        shift = np.array([self.shake * np.array([np.sin(7.1 * k / self.fps), np.cos(5.3 * k / self.fps)])
                          for k in range(self.frames)])  # fmt: skip
        return np.array([self.way(k / self.fps) for k in range(self.frames)]) + shift


def dropped(t0: float, *, x: float = 90.0, y: float = 50.0, g: float = 900.0) -> Way:
    """Held until t0, then falling from rest."""
    return lambda t: (x, y + (0.5 * g * (t - t0) ** 2 if t > t0 else 0.0))


def thrown(x: float, y: float, vx: float, vy: float, g: float) -> Way:
    return lambda t: (x + vx * t, y + vy * t + 0.5 * g * t**2)


def bouncing(
    x: float, y: float, vx: float, floor: float, g: float, e: float, *, slower: float = 1.0
) -> tuple[Way, list[float]]:
    """Dropped on a floor (the lowest place of the middle); and the times of its impacts. `slower`: vx after each."""
    at = np.sqrt(2 * (floor - y) / g)
    hits, speed = [at], e * g * at
    while speed > 20 and len(hits) < 30:
        hits.append(hits[-1] + 2 * speed / g)
        speed *= e

    def way(t: float) -> tuple[float, float]:
        n = int(np.searchsorted(hits, t))
        along = x + vx * min(t, hits[0])
        for k in range(1, n + 1):
            along += vx * slower**k * (min(t, hits[k] if k < len(hits) else np.inf) - hits[k - 1])
        if n == 0:
            return along, y + 0.5 * g * t**2
        if n > len(hits) - 1:
            return along, floor
        s, v = t - hits[n - 1], e**n * g * at
        return along, floor - v * s + 0.5 * g * s**2

    return way, hits
