"""From a video and a scene file to what was searched for: what `nablasim identify` does, in Python.

case = sysid.prepare("bounce.mp4", "scene.yaml", ["density", "restitution"])
fit = case.fit()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nablasim.sysid.fit import Fit
from nablasim.sysid.look import look
from nablasim.sysid.problem import FAILURES, Problem
from nablasim.sysid.scenes import Script, Stage, params, read_scene, settled, watch
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


def prepare(
    video: str | Path, scene: str | Path | Script, estimate: Sequence[str], *, fps: float | None = None
) -> Case:
    """Read and check everything. Raises `BadScene`, `BadVideo` or KeyError with what to do; writes nothing."""
    script = scene if isinstance(scene, Script) else read_scene(scene)
    script, unknown, said = settled(script, video, fps, look)
    stage = Stage(script)
    found = [*params(stage, estimate), *unknown]
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
