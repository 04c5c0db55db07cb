"""From a video and a scene file to what was searched for: what `nablasim identify` does, in Python.

case = sysid.prepare("bounce.mp4", "scene.yaml", ["density", "restitution"])
fit = case.fit()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nablasim.sysid.fit import Fit
from nablasim.sysid.look import CannotLook, look
from nablasim.sysid.names import nearest
from nablasim.sysid.problem import FAILURES, Problem
from nablasim.sysid.report import estimates_table
from nablasim.sysid.scenes import BadScene, Script, Stage, params, read_scene, settled, watch
from nablasim.sysid.tracks import Asked, CannotTell, story_of, tell, write_answers
from nablasim.sysid.trust import Estimate
from nablasim.sysid.video import Video

ALIKE = 0.5
"""The part that two silhouettes of the first frame have in common, at least, if scene and video are the same."""


@dataclass(frozen=True, eq=False)
class Case:
    """A video and the problem that it poses. `warnings` are what to look at before the numbers are used."""

    stage: Stage
    video: Video
    """As it is compared."""
    recording: Video
    """As it was filmed, scaled."""
    problem: Problem
    warnings: list[str] = field(default_factory=list)

    def report(self, fit: Fit, folder: str | Path, **options: Any) -> Path:
        """Write the report of a fit, with the video and the scene."""
        return fit.report(folder, recording=self.recording.frames, scene=self.stage.script.text, **options)

    def fit(self, **options: Any) -> Fit:
        """See `sysid.fit.fit`. What is kept belongs to this scene file."""
        return self.problem.fit(**{"starts": 4, "mark": self.stage.script.text, **options})


@dataclass(frozen=True, eq=False)
class TrackCase:
    """A video whose camera or initial state is unknown, and the answers of its track."""

    script: Script
    asked: Asked

    @property
    def warnings(self) -> list[str]:
        return list(self.asked.notes)

    def fit(self, **_: Any) -> TrackFit:
        """There is nothing to search for: the track's least squares are done. Options of other fits are for them."""
        return TrackFit(self.asked)

    def report(self, fit: TrackFit, folder: str | Path, *, title: str | None = None) -> Path:
        return fit.report(folder, title=title)


@dataclass(frozen=True, eq=False)
class TrackFit:
    """The answers of a track, in the form of a `Fit`: `fit["gravity"]` is an answer with its interval."""

    asked: Asked

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(
            Estimate(a.name, a.value, a.std, a.low, a.high, a.level, a.unit, a.reasons) for a in self.asked.answers
        )

    @property
    def warnings(self) -> list[str]:
        return [f"{e.name}: {why}" for e in self.estimates for why in e.why]

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if name in (estimate.name, estimate.name.rpartition(".")[2]):
                return estimate
        raise KeyError(f"{name!r} was not searched for: {nearest(name, [e.name for e in self.estimates])}")

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def table(self) -> Any:
        return estimates_table(self.estimates)

    def report(self, folder: str | Path = "out", *, title: str | None = None) -> Path:
        """Write `report.html` and `track.csv` in a folder."""
        said = title or f"{self.asked.look.path.name}: {', '.join(e.name for e in self.estimates)}"
        return write_answers(self.asked, Path(folder), said)


def prepare(
    video: str | Path, scene: str | Path | Script, estimate: Sequence[str], *, fps: float | None = None
) -> Case | TrackCase:
    """Read and check everything. Raises `BadScene`, `BadVideo` or KeyError with what to do; writes nothing.

    Where the camera or the beginning is not known, the track tells as much as it can by itself.
    """
    script = scene if isinstance(scene, Script) else read_scene(scene)
    story = story_of(script, estimate)
    if story is not None:
        try:
            return TrackCase(script, tell(script, story, video, fps))
        except (CannotLook, CannotTell) as error:
            if script.entries.camera.open or any(e.unknown for e in script.entries.objects.values()):
                raise BadScene(f"{video}: {error}") from error
            # All of it is known but what is asked for: the pixels can tell.
    script, unknown, said = settled(script, video, fps, look)
    stage = Stage(script)
    wanted = params(stage, estimate)
    asked, nuisances = {p.name for p in wanted}, {p.name for p in unknown}
    # What the track says of it is where its search begins.
    wanted = [
        replace(p, start=np.asarray(stage.model[p.target])) if f"{p.name}_off" in nuisances else p for p in wanted
    ]
    # What is asked for is no nuisance beside itself: `ball.velocity` is what `ball.velocity_off` moves.
    found = [*wanted, *(p for p in unknown if p.name.removesuffix("_off") not in asked)]
    watched = watch(stage, video, fps=fps)
    problem = Problem(stage.model, target=watched.seen, observe=stage.observe(), dt=watched.dt, params=found)
    return Case(stage, watched.seen, watched.whole, problem, [*watched.notes, *said, *_warnings(problem, stage)])


def _warnings(problem: Problem, stage: Stage) -> list[str]:
    """Whether the first frame shows what the scene says, and whether the object is seen at all."""
    if stage.entries.video.compare != "silhouette":
        return []
    said, target = [], np.asarray(problem.target.frames)
    empty = [k for k, frame in enumerate(target) if frame.max() < 0.5]
    if empty:
        said.append(f"nothing is seen in {len(empty)} of {len(target)} frames (the first is number {empty[0]}): the "
                    "object has left the picture, or is part of the background")  # fmt: skip
    if stage.entries.pendula:
        return said  # Their beginning may be a range, and a blind guess of it shows nothing.
    try:
        drawn = problem.bound.pictures(problem.seen(problem.space.draw(np.random.default_rng(0)), 2), [0])
    except FAILURES:
        return said  # The fit says more about it.
    first, wanted = np.asarray(drawn[0, 0].detach()), target[0]
    common = float(np.minimum(first, wanted).sum() / max(float(np.maximum(first, wanted).sum()), 1e-9))
    if common < ALIKE:
        said.append(f"in the first frame, the scene and the video have only {common:.0%} of the silhouette in common: "
                    "check the camera, the position and size of the object, and the background")  # fmt: skip
    return said
