"""What happens in a foreign clip: bodies, the ground and how they begin, in words that both engines understand.

z is up and x runs along the picture. Each kind draws its numbers from a seed; the engines of `engines` move them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

EARTH = 9.81
COLOURS = ((0.75, 0.12, 0.1), (0.1, 0.45, 0.15), (0.1, 0.2, 0.65), (0.8, 0.45, 0.05), (0.12, 0.12, 0.14))

Rng = np.random.Generator
Vector = NDArray[np.float64]
Frames = NDArray[np.float64]
Three = tuple[float, float, float]


@dataclass(frozen=True)
class Body:
    """A ball (`size` is its radius, three times) or a box (`size` is half of its sides)."""

    ball: bool
    size: Three
    mass: float
    place: Three
    velocity: Three = (0.0, 0.0, 0.0)
    spin: Three = (0.0, 0.0, 0.0)
    turned: float = 0.0
    """rad, around y, at the beginning"""
    color: Three = COLOURS[0]
    patched: bool = False
    """Of two colours, so that it is seen to spin."""
    hollow: bool = False

    @property
    def inertia(self) -> Three:
        """kg m², about its middle."""
        x, y, z = self.size
        if self.ball:
            part = (2 / 3 if self.hollow else 2 / 5) * self.mass * x**2
            return part, part, part
        return tuple(self.mass / 3 * s for s in (y**2 + z**2, x**2 + z**2, x**2 + y**2))  # type: ignore[return-value]


@dataclass(frozen=True)
class String:
    """A bob on a rod from `pivot`: `angle` (rad) from straight down, and the rod's share of the bob's mass."""

    pivot: Three
    length: float
    angle: float
    rod: float = 0.0


@dataclass(frozen=True)
class World:
    """All of it. `bounce` and `friction` are what engines are told; what they make of it is measured."""

    bodies: tuple[Body, ...]
    seconds: float
    ground: bool = True
    slope: float = 0.0
    """rad, by which the ground falls towards larger x"""
    bounce: float = 0.0
    friction: float = 0.5
    air: float = 0.0
    """kg/m³: its drag"""
    string: String | None = None
    gravity: float = EARTH


@dataclass(frozen=True)
class Question:
    """What is asked of a clip: the motion, the name, and which rulers are known."""

    kind: str
    name: str
    ruler: str = ""
    """diameter or length"""
    angle: bool = False


@dataclass(frozen=True)
class Kind:
    """A kind of clip."""

    make: Callable[[Rng], World]
    asks: tuple[Question, ...]


def on(low: float, high: float, rng: Rng) -> float:
    return float(rng.uniform(low, high))


def _color(rng: Rng) -> Three:
    return COLOURS[int(rng.integers(len(COLOURS)))]


def _ball(rng: Rng, place: Three, velocity: Three, **more: object) -> Body:
    r = on(0.02, 0.06, rng)
    mass = float(np.exp(rng.uniform(np.log(0.01), np.log(1.0))))
    return Body(True, (r, r, r), mass, place, velocity, color=_color(rng), **more)  # type: ignore[arg-type]


def _either(rng: Rng) -> float:
    return 1.0 if rng.random() < 0.5 else -1.0


# -- kinds
def bounce(rng: Rng) -> World:
    """Dropped or tossed on the floor, two or three hops."""
    ball = _ball(rng, (0.0, 0.0, on(0.7, 1.2, rng)), (_either(rng) * on(0.1, 0.7, rng), on(-0.15, 0.15, rng), 0.0))
    return World((ball,), on(1.3, 1.7, rng), bounce=on(0.5, 0.85, rng), friction=on(0.1, 0.5, rng))


def throw(rng: Rng) -> World:
    """In the air from the first frame to the last."""
    up = on(2.0, 3.5, rng)
    ball = _ball(rng, (0.0, 0.0, 1.5), (_either(rng) * on(0.3, 1.5, rng), on(-0.3, 0.3, rng), up))
    return World((ball,), 2 * up / EARTH * on(0.9, 1.2, rng), ground=False)


def spin(rng: Rng) -> World:
    """A throw of a ball in two colours that spins."""
    world = throw(rng)
    turning: Three = tuple(float(v) for v in rng.normal(scale=12.0, size=3))  # type: ignore[assignment]
    return replace(world, bodies=(replace(world.bodies[0], spin=turning, patched=True),))


def two(rng: Rng) -> World:
    """Two balls in the air, in two colours."""
    world = throw(rng)
    first = replace(world.bodies[0], color=COLOURS[0])
    x, y, z = first.place
    other = replace(_ball(rng, (x + 0.5, y + 0.15, z), first.velocity), color=COLOURS[2])
    vx, vy, vz = first.velocity
    return replace(world, bodies=(first, replace(other, velocity=(vx * 0.8, vy, vz * on(0.7, 1.0, rng)))))


def tumble(rng: Rng) -> World:
    """A box that is thrown and turns."""
    world = throw(rng)
    size: Three = tuple(float(v) for v in rng.uniform(0.03, 0.06, size=3))  # type: ignore[assignment]
    turning: Three = tuple(float(v) for v in rng.normal(scale=6.0, size=3))  # type: ignore[assignment]
    box = Body(False, size, 0.2, world.bodies[0].place, world.bodies[0].velocity, turning, color=_color(rng))
    return replace(world, bodies=(box,))


def slide(rng: Rng) -> World:
    """A block that slides to rest on a level floor."""
    size, friction = (on(0.03, 0.06, rng), on(0.02, 0.05, rng), on(0.015, 0.03, rng)), on(0.15, 0.45, rng)
    speed = (2 * friction * EARTH * on(0.6, 1.0, rng)) ** 0.5
    box = Body(False, size, on(0.05, 0.5, rng), (0.0, 0.0, size[2]), (_either(rng) * speed, 0.0, 0.0),
               color=_color(rng))  # fmt: skip
    return World((box,), speed / friction / EARTH + 0.15, friction=friction)


def slope(rng: Rng) -> World:
    """A block that slides down a slope."""
    angle = float(np.radians(on(15, 28, rng)))
    friction = float(np.tan(angle)) * on(0.25, 0.7, rng)
    size = (on(0.03, 0.06, rng), on(0.02, 0.05, rng), on(0.015, 0.03, rng))
    pull = EARTH * (np.sin(angle) - friction * np.cos(angle))
    box = Body(False, size, on(0.05, 0.5, rng), (size[2] * np.sin(angle), 0.0, size[2] * np.cos(angle)), turned=angle,
               color=_color(rng))  # fmt: skip
    return World((box,), float((2 * on(0.8, 1.1, rng) / pull) ** 0.5), slope=angle, friction=friction)


def roll(rng: Rng) -> World:
    """A ball that rolls down a slope."""
    angle, r = float(np.radians(on(6, 16, rng))), on(0.025, 0.06, rng)
    ball = Body(True, (r, r, r), on(0.05, 0.5, rng), (r * np.sin(angle), 0.0, r * np.cos(angle)), color=_color(rng),
                patched=bool(rng.random() < 0.5))  # fmt: skip
    pull = 5 / 7 * EARTH * np.sin(angle)
    return World((ball,), float((2 * on(0.8, 1.1, rng) / pull) ** 0.5), slope=angle, friction=0.9)


def swing(rng: Rng) -> World:
    """A bob on a string, for one and a half periods or more."""
    length, r = on(0.3, 0.9, rng), on(0.015, 0.03, rng)
    bob = Body(True, (r, r, r), 0.2, (0.0, 0.0, 0.0), color=_color(rng))
    period = 2 * np.pi * (length / EARTH) ** 0.5
    return World((bob,), float(period * on(1.4, 1.9, rng)), ground=False,
                 string=String((0.0, 0.0, 1.2), length, float(_either(rng) * np.radians(on(15, 55, rng)))))  # fmt: skip


KINDS: dict[str, Kind] = {
    "bounce": Kind(bounce, (Question("bounce", "floor.restitution"), Question("bounce", "ball.diameter"))),
    "throw": Kind(throw, (Question("throw", "ball.diameter"), Question("throw", "gravity", "diameter"))),
    "spinning throw": Kind(spin, (Question("throw", "ball.diameter"), Question("throw", "gravity", "length"))),
    "two balls": Kind(two, (Question("throw", "ball.diameter"),)),
    "tumble": Kind(tumble, (Question("throw", "gravity", "length"),)),
    "slide": Kind(slide, (Question("slide", "floor.friction", "diameter"),)),
    "slope": Kind(slope, (Question("slide", "floor.friction", "length", angle=True),)),
    "roll": Kind(roll, (Question("roll", "ball.diameter", angle=True),)),
    "pendulum": Kind(swing, (Question("swing", "bob.length"), Question("swing", "gravity", "length"))),
}


# -- what is not as it is said
@dataclass(frozen=True)
class Twist:
    """Something that is wrong on purpose: with the world, with what the user says, or with the camera."""

    kind: str
    ask: Question
    world: Callable[[World], World] = lambda world: world
    fps: float = 1.0
    """By which the user's frame rate is wrong."""
    slowed: float = 1.0
    """By which the file's is, while the user says nothing: slow motion that nobody noted."""
    ruler: float = 1.0
    """By which the ruler is wrong."""
    fov: float | None = None
    """Degrees, of the camera: no phone has that."""
    cut: float = 0.0
    """Of the picture: what somebody cut off on the left."""
    picture: Callable[[Frames], Frames] = lambda frames: frames
    """What was done to the frames (time, height, width, 3) afterwards."""
    needs_mujoco: bool = False
    """PyBullet has no drag, and rods without mass only."""


def _boxed(world: World) -> World:
    ball = world.bodies[0]
    r = ball.size[0]
    return replace(world, bodies=(replace(ball, ball=False, size=(1.5 * r, r, 0.8 * r), spin=(3.0, 5.0, 2.0)),))


def _heavy(world: World) -> World:
    assert world.string is not None
    return replace(world, string=replace(world.string, rod=1.5))


def _hollow(world: World) -> World:
    return replace(world, bodies=(replace(world.bodies[0], hollow=True),))


def _on_its_side(frames: Frames) -> Frames:
    return np.rot90(frames, axes=(1, 2))


def _widened(frames: Frames) -> Frames:
    """Every fifth column twice."""
    columns = np.arange(frames.shape[2] * 6 // 5) * 5 // 6
    return frames[:, :, columns]


def _light(world: World) -> World:
    """A ball of celluloid: air takes a third of its weight at 5 m/s."""
    ball = world.bodies[0]
    return replace(world, air=1.2, bodies=(replace(ball, mass=84.0 * ball.size[0] ** 3 * 4.19),))


TWISTS: dict[str, Twist] = {
    "half the frame rate": Twist("bounce", Question("bounce", "gravity", "diameter"), fps=0.5),
    "frame rate a quarter too high": Twist("throw", Question("throw", "gravity", "diameter"), fps=1.25),
    "frame rate, of a swing": Twist("pendulum", Question("swing", "gravity", "length"), fps=2.0),
    "frame rate, restitution": Twist("bounce", Question("bounce", "floor.restitution"), fps=0.5),
    "half the frame rate, a size": Twist("throw", Question("throw", "ball.diameter"), fps=0.5),
    "twice the frame rate, a size": Twist("throw", Question("throw", "ball.diameter"), fps=2.0),
    "twice the frame rate, a length": Twist("pendulum", Question("swing", "bob.length"), fps=2.0),
    "twice the frame rate, friction": Twist("slide", Question("slide", "floor.friction", "diameter"), fps=2.0),
    "a file in slow motion, a size": Twist("throw", Question("throw", "ball.diameter"), slowed=4.0),
    "a file in slow motion, a roll": Twist("roll", Question("roll", "ball.diameter", angle=True), slowed=2.0),
    "a file in slow motion, friction": Twist("slide", Question("slide", "floor.friction", "diameter"), slowed=2.0),
    "frame rate a quarter too high, a length": Twist("pendulum", Question("swing", "bob.length"), fps=1.25),
    "ruler a third too long": Twist("throw", Question("throw", "gravity", "length"), ruler=1.33),
    "a picture on its side": Twist("throw", Question("throw", "ball.diameter"), picture=_on_its_side),
    "a picture on its side, gravity": Twist("bounce", Question("bounce", "gravity", "diameter"), picture=_on_its_side),
    "played backwards": Twist("bounce", Question("bounce", "floor.restitution"), picture=lambda frames: frames[::-1]),
    "a picture that is a fifth too wide": Twist("throw", Question("throw", "ball.diameter"), picture=_widened),
    "a picture that is a fifth too wide, gravity": Twist(
        "throw", Question("throw", "gravity", "diameter"), picture=_widened
    ),
    "lens of 105 degrees": Twist("throw", Question("throw", "ball.diameter"), fov=105.0),
    "lens of 12 degrees": Twist("bounce", Question("bounce", "ball.diameter"), fov=12.0),
    "cut on one side": Twist("throw", Question("throw", "ball.diameter"), cut=0.25),
    "a box as a ball": Twist("throw", Question("throw", "ball.diameter"), _boxed),
    "a box as a ball, gravity": Twist("throw", Question("throw", "gravity", "diameter"), _boxed),
    "a heavy rod": Twist("pendulum", Question("swing", "bob.length", "length"), _heavy, needs_mujoco=True),
    "a hollow ball": Twist("roll", Question("roll", "gravity", "diameter", angle=True), _hollow),
    "much drag": Twist("bounce", Question("bounce", "ball.diameter"), _light, needs_mujoco=True),
    "much drag, gravity": Twist("throw", Question("throw", "gravity", "diameter"), _light, needs_mujoco=True),
}


def drawn(kind: str, rng: Rng) -> World:
    return KINDS[kind].make(rng)
