"""One foreign clip: made, filmed, looked at and asked; what was found beside what is true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nablasim.sysid.experiments.answers import Missing
from nablasim.sysid.experiments.foreign import engines, pictures
from nablasim.sysid.experiments.foreign.worlds import KINDS, TWISTS, Question, Rng, World, drawn, on

GENTLE = 0.04
"""By which part the ruler in the picture is nearer or farther than the motion, at most; nobody films it exactly."""
OBJECTION = "this is not"
"""How an answer begins to say that gravity is not the Earth's: true of those that are right by chance only."""


@dataclass(frozen=True)
class Told:
    """What was found of one question. `low` and `high` also where it is not certified."""

    clip: str
    engine: str
    drawn: str
    name: str
    truth: float
    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    why: str = ""
    """Why it is not certified, or was refused."""
    twist: str = ""

    @property
    def certified(self) -> bool:
        return not self.why

    @property
    def holds(self) -> bool:
        return self.low <= self.truth <= self.high

    @property
    def counts(self) -> bool:
        """Whether its interval is judged. A gravity that is refused for not being the Earth's alone would have been
        certified elsewhere: it counts, or no gravity could ever be wrong."""
        return self.certified or (not self.twist and self.name == "gravity" and self.why.startswith(OBJECTION)
                                  and ";" not in self.why)  # fmt: skip

    @property
    def off(self) -> float:
        """By how many widths of its interval the truth is outside of it."""
        outside = max(self.low - self.truth, self.truth - self.high, 0.0)
        return outside / max(self.high - self.low, 1e-12)


@dataclass(frozen=True)
class Shot:
    """The item of one clip. `twist` names what is wrong on purpose."""

    kind: str
    engine: str
    seed: int
    rows: int = 288
    twist: str = ""

    def run(self) -> tuple[Told, ...] | Missing:
        for needed in {self.engine, "pybullet"}:
            if find_spec(needed) is None:
                return Missing(self.kind, self.seed, f"not run: pip install {needed}")
        with TemporaryDirectory() as folder:
            made = self.write(Path(folder) / "clip.mp4")
            return self.ask(made)

    def write(self, path: Path) -> Made:
        """Simulate and film."""
        from nablasim.render import ffmpeg

        twist = TWISTS.get(self.twist)
        rng = np.random.default_rng([self.seed, sum(map(ord, self.kind)), engines.ENGINES.index(self.engine)])
        world = drawn(self.kind, rng)
        if twist is not None:
            world = twist.world(world)
        shoot = pictures.shooting(rng)
        if twist is not None and twist.fov is not None:
            shoot = replace(shoot, fov=float(np.radians(twist.fov)))
        states = engines.simulate(self.engine, world)
        camera = pictures.camera_of(shoot, world, states, self.rows)
        frames = pictures.film(world, states, shoot, camera, self.engine, rng)
        cut = 0
        if twist is not None and twist.cut:
            seen = camera.see(states.places[:, 0])[:, 0].min() - 12
            cut = int(max(0, min(twist.cut * camera.size[1], seen)))
            frames = frames[:, :, cut:]
        if twist is not None:
            frames = twist.picture(frames)
        rgb = np.rint(255 * frames[:, : frames.shape[1] // 2 * 2, : frames.shape[2] // 2 * 2]).astype(np.uint8)
        slowed = 1.0 if twist is None else twist.slowed
        ffmpeg.encode(path, rgb, shoot.fps / slowed, crf=int(rng.integers(18, 27)))
        return Made(path, world, states, camera, shoot, cut, _ruler(world, states, camera, cut, rng))

    def ask(self, made: Made) -> tuple[Told, ...]:
        """What a user would do with the clip."""
        from nablasim import sysid
        from nablasim.sysid.look import CannotLook
        from nablasim.sysid.tracks import CannotTell, Known, ask

        twist = TWISTS.get(self.twist)
        questions = KINDS[self.kind].asks if twist is None else (twist.ask,)
        fps = None if twist is None or twist.fps == 1 else twist.fps * made.shoot.fps
        given: dict[str, Any] = {"clip": self.kind, "engine": self.engine, "drawn": pictures.drawer(self.engine),
                                 "twist": self.twist}  # fmt: skip
        truths = [truth(q, made.world, made.states) for q in questions]
        try:
            place = made.place if len(made.world.bodies) > 1 else None
            look = sysid.look(made.path, object=place, fps=fps)
        except CannotLook as error:
            return tuple(Told(**given, name=q.name, truth=t, why=str(error)) for q, t in zip(questions, truths))
        told = []
        for q, t in zip(questions, truths):
            scale = 1.0 if twist is None else twist.ruler
            body = made.world.bodies[0]
            wide = 2 * body.size[0] * scale
            line = (*made.line[:4], made.line[4] * scale)
            known = Known(diameter=wide if q.ruler == "diameter" else None,
                          length=line if q.ruler == "length" else None,
                          angle=made.world.slope if q.angle else None)  # fmt: skip
            try:
                a = ask(look, q.kind, [q.name], known).answers[0]
            except CannotTell as error:
                told.append(Told(**given, name=q.name, truth=t, why=str(error)))
                continue
            found = {"value": a.value, "low": a.low, "high": a.high, "why": "; ".join(a.reasons)}
            told.append(Told(**given, name=q.name, truth=t, **found))  # type: ignore[arg-type]
        return tuple(told)


@dataclass(frozen=True, eq=False)
class Made:
    """A clip and all that is true of it."""

    path: Path
    world: World
    states: engines.States
    camera: pictures.Camera
    shoot: pictures.Shoot
    cut: int
    line: tuple[float, float, float, float, float]
    """x, y, x, y and metres: what somebody measured in the picture."""

    @property
    def place(self) -> tuple[float, float]:
        """Where the first body is in the middle of the clip."""
        x, y, _ = self.camera.see(self.states.places[len(self.states.times) // 2, :1])[0]
        return float(x) - self.cut, float(y)


def _ruler(
    world: World, states: engines.States, camera: pictures.Camera, cut: int, rng: Rng
) -> tuple[float, float, float, float, float]:
    """A line in the picture, upright, about as far away as the motion, clicked to a pixel."""
    middle = states.places[:, 0].mean(axis=0)
    metres = 0.7 * float(max(np.ptp(states.places[:, 0], axis=0).max(), 0.2))
    away = camera.axes[2] * on(-GENTLE, GENTLE, rng) * float((middle - camera.eye) @ camera.axes[2])
    ends = np.array([middle + away + np.array([0, 0, s * metres / 2]) for s in (-1, 1)])
    (x0, y0, _), (x1, y1, _) = np.round(camera.see(ends))
    return float(x0) - cut, float(y0), float(x1) - cut, float(y1), metres


def truth(question: Question, world: World, states: engines.States) -> float:
    """What the engine made of it."""
    if question.name == "floor.restitution":
        return engines.restitution(states)
    if question.name == "floor.friction":
        return engines.friction(states, world)
    if question.name == "ball.diameter":
        return 2 * world.bodies[0].size[0]
    if question.name == "bob.length":
        assert world.string is not None
        return world.string.length
    return world.gravity
