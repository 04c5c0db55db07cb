"""Scene files whose camera or beginning is not known: what of them the track alone can tell.

`story_of` reads a scene file as one of the everyday motions, with all that it says of the camera; `tell` looks at the
clip and asks. What a track does not tell is left to the pixels, and these need a camera.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nablasim import render
from nablasim.sysid.look import Look, look
from nablasim.sysid.scenes import BadScene, PendulumEntry, Range, RigidEntry, Script
from nablasim.sysid.tracks.answers import Answer, CannotTell
from nablasim.sysid.tracks.asking import Asked, ask
from nablasim.sysid.tracks.questions import EARTH, NAMES, Known, View, check

BELIEVED = {"fov": 0.03, "distance": 0.03, "tilt": 2.0, "roll": 2.0}
"""Standard deviations of what is said of a camera as one number: parts of lengths, degrees of angles."""
SAME = 0.01
"""Frame rates that differ by less than this part are the same."""
SLOWED = 1.5
"""A camera that took so many times more frames than the file says was in slow motion; less is a contradiction."""


@dataclass(frozen=True)
class Story:
    """A scene as an everyday motion: what is asked, by the names of `ask`, and by those of the scene file."""

    kind: str
    object: str
    names: tuple[str, ...]
    """As `ask` calls them."""
    wanted: tuple[str, ...]
    """As the scene calls them."""
    known: Known


def story_of(script: Script, wanted: Sequence[str]) -> Story | None:
    """The story of a scene whose camera or beginning is open; None where pixels have to tell.

    Raises `BadScene` where the camera is open and a track cannot tell what is asked for.
    """
    entries = script.entries
    name, entry = next(iter(entries.objects.items()))
    alone = len(entries.objects) == 1
    if not _hidden(script) or entries.video.compare != "silhouette":
        return _pixels(script, "colours are compared") if entries.camera.open else None
    if not alone:
        return _pixels(script, "there are several objects")
    kind = _kind(script, entry)
    if kind is None:
        return _pixels(script, f"{name} does not fly, bounce, slide, roll or swing as one of --as does")
    full = [_full(name, kind, w) for w in wanted]
    if None in full:
        there = ", ".join(f"{name}{n[n.index('.') :]}" if n.startswith(("ball.", "bob.")) else n for n in NAMES[kind])
        return _pixels(script, f"a track tells {there}, and not {wanted[full.index(None)]}")
    names = tuple(str(n) for n in full)
    said = tuple(w if "." in w or w == "gravity" else f"{_owner(n, name)}.{w}" for n, w in zip(names, wanted))
    known = _known(script, kind, entry, names)
    try:
        check(kind, list(names), known)
    except CannotTell as error:
        raise BadScene(f"{script.name}: {_in_file(str(error))}") from error
    return Story(kind, name, names, said, known)


def _hidden(script: Script) -> bool:
    """Whether something of the camera or of the beginning is not known, or a single pendulum swings by itself."""
    entries = script.entries
    open_shape = any(isinstance(e, RigidEntry) and e.shape.open for e in entries.objects.values())
    swings = len(entries.objects) == 1 and bool(entries.pendula)
    return swings or open_shape or entries.camera.open or any(e.unknown for e in entries.objects.values())


def _pixels(script: Script, why: str) -> Story | None:
    """None: what a track does not tell needs the pixels. These need a camera."""
    if script.entries.camera.open:
        raise script.wrong(
            ("camera",),
            f"it is not known, and then the track has to tell all: {why}. Give eye, target and fov, or ask for less",
        )
    return None


def _in_file(said: str) -> str:
    """Advice for the command line, as advice for a scene file."""
    return (
        said.replace('(--diameter "4 cm")', "(its shape)")
        .replace('(--diameter "8 cm")', "(its shape)")
        .replace('--length x,y,x,y,"1 m"', "`camera: {length: [[x, y], [x, y], 1 m]}`")
        .replace('(--length x,y,x,y,"45 cm")', "(`camera: {length: [[x, y], [x, y], 45 cm]}`)")
        .replace('give --angle "9 deg"', "give `floor: {angle: 9 deg}`")
        .replace("say so: --fps ", "say so: `video: {slow_motion: none}` with fps ")
    )


# -- the motion and the questions
def _kind(script: Script, entry: Any) -> str | None:
    floor = script.entries.floor
    if isinstance(entry, PendulumEntry):
        return "swing" if entry.damping == 0 else None
    if not isinstance(entry, RigidEntry) or entry.pushes or script.entries.walls:
        return None
    if floor is None:
        return "throw"
    if abs(floor.up[2]) > 1e-6:
        return None
    if entry.shape.sphere is not None:
        return "bounce" if abs(floor.up[0]) < 1e-6 else "roll"
    return "slide" if entry.shape.box is not None else None


def _full(name: str, kind: str, wanted: str) -> str | None:
    """The name that `ask` knows: `cube.radius` is `ball.diameter`, `restitution` is `floor.restitution`."""
    owner, _, last = wanted.rpartition(".")
    for known in NAMES[kind]:
        thing, _, what = known.rpartition(".")
        same = last == what or (last == "radius" and what == "diameter")
        if same and owner in ("", name if thing in ("ball", "bob", "block") else thing):
            return known
    return None


def _owner(full: str, name: str) -> str:
    return name if full.startswith(("ball.", "bob.")) else full.partition(".")[0]


# -- what the file knows
def _known(script: Script, kind: str, entry: Any, names: tuple[str, ...]) -> Known:
    entries = script.entries
    pull = float(np.linalg.norm(entries.gravity))
    line = entries.camera.length
    floor = entries.floor
    size = None if "ball.diameter" in names else _across(entry, kind)
    diameter = None if size is None else _even(size, 0.0, lambda v: float(np.log(v)))
    tolerance = Known().angle_unsure
    if floor is not None and isinstance(floor.angle, Range):
        tolerance = float(np.radians(floor.angle.high - floor.angle.low) / 12**0.5)
    return Known(
        diameter=None if diameter is None else float(np.exp(diameter[0])),
        diameter_unsure=0.0 if diameter is None else diameter[1],
        angle_unsure=tolerance,
        length=None if line is None else (*line[0], *line[1], line[2]),
        gravity=None if pull == EARTH else pull,
        angle=None if floor is None or abs(floor.up[0]) < 1e-9 else float(abs(np.arctan2(floor.up[0], floor.up[1]))),
        view=view_of(script, (1, 1)),  # again when the size of the picture is known
    )


def _across(entry: Any, kind: str) -> float | Range | None:
    """m: what of it is seen all along, if it is known."""
    if isinstance(entry, PendulumEntry):
        return _twice(entry.radius)
    radius, box = entry.shape.sphere, entry.shape.box
    if radius is not None:
        return _twice(radius)
    return None if box is None or kind != "slide" or entry.rotation is not None else box[0]


def _twice(radius: float | Range) -> float | Range:
    return Range(2 * radius.low, 2 * radius.high) if isinstance(radius, Range) else 2 * radius


def view_of(script: Script, size: tuple[int, int]) -> View:
    """What the file says of the camera; a number is believed to some per cent, a range is taken as even."""
    camera = script.entries.camera
    tall, fov = size[0], camera.fov if camera.fov is not None or camera.open else 60.0
    distance, tilt, roll = camera.distance, camera.tilt, camera.roll
    if camera.eye is not None and camera.target is not None:
        way = np.subtract(camera.target, camera.eye)
        tilt = float(np.degrees(np.arcsin(way[1] / np.linalg.norm(way)))) if tilt is None else tilt
        in_plane = script.entries.plane == "2d" and abs(camera.target[2]) < 1e-9
        distance = float(np.linalg.norm(way)) if distance is None and in_plane else distance
    if camera.scale is not None:  # Drawn as if from far away: nothing is said of the true one.
        fov, distance, tilt = None, None, None
    return View(
        focal=_even(fov, BELIEVED["fov"], lambda v: float(np.log(tall / 2 / np.tan(np.radians(v) / 2)))),
        tilt=_even(tilt, np.radians(BELIEVED["tilt"]), np.radians),
        roll=_even(roll, np.radians(BELIEVED["roll"]), np.radians),
        distance=_even(distance, BELIEVED["distance"], lambda v: float(np.log(v))),
    )


def _even(given: float | Range | None, believed: float, into: Any) -> tuple[float, float] | None:
    """Middle and standard deviation of what is given, in other words; nothing where nothing is known."""
    if given is None or (isinstance(given, Range) and given.unknown):
        return None
    if not isinstance(given, Range):
        return float(into(given)), float(believed)
    a, b = float(into(given.low)), float(into(given.high))
    return (a + b) / 2, float(np.hypot(abs(b - a) / 12**0.5, believed))


# -- the answer
def tell(script: Script, story: Story, video: str | Path, fps: float | None) -> Asked:
    """Look at the clip, and answer by the names of the scene."""
    entry = script.entries.video
    rate, notes = _rate(script, Path(video), fps)
    source = Path(video) if entry.masks is None else script.folder / entry.masks
    if not source.exists():
        raise script.wrong(("video", "masks"), f"there is no folder {source}: `nablasim look` writes look/masks")
    seen = _part(script, look(source, entry.region, None, rate))
    clocked = entry.slow_motion != "unknown"
    seen = replace(seen, vouched=seen.vouched and clocked, alone=seen.alone and clocked)
    known = replace(story.known, view=view_of(script, seen.size))
    asked = ask(seen, story.kind, list(story.names), known)
    answers = tuple(_renamed(a, story, w) for a, w in zip(asked.answers, story.wanted))
    return replace(asked, answers=answers, notes=(*notes, *asked.notes))


def _renamed(answer: Answer, story: Story, wanted: str) -> Answer:
    half = 0.5 if wanted.endswith(".radius") else 1.0
    return replace(answer, name=wanted, value=half * answer.value, std=half * answer.std, helps=_in_file(answer.helps))


def _rate(script: Script, video: Path, fps: float | None) -> tuple[float | None, tuple[str, ...]]:
    """Frames per second, as `look` takes them: a scene that says more than the file does is about slow motion."""
    entry = script.entries.video
    if fps is not None or entry.fps is None:
        if fps is None and (video.is_dir() or entry.masks is not None):
            if video.is_dir():
                raise BadScene(f"{video} is a folder of pictures, which has no frame rate: write `fps: 30` below "
                               f"`video:` in {script.name}, or pass --fps 30")  # fmt: skip
            return float(render.video_times(video).rate), ()
        return fps, ()
    said = float(entry.fps)
    if video.is_dir():
        return said, ()
    rate = float(render.video_times(video).rate)
    if abs(rate / said - 1) <= SAME:
        return (said if entry.masks is not None else rate), ()
    if said / rate < SLOWED:
        raise script.wrong(
            ("video", "fps"),
            f"the scene is about {said:g} frames per second, and {video} has {rate:.6g}: correct one of them, or "
            "pass --fps if the file does not know",
        )
    return said, (f"{video.name} says {rate:.4g} frames per second, and the scene {said:g}: slow motion",)


def _part(script: Script, seen: Look) -> Look:
    """The part of the motion that the scene is about."""
    entry, t, half = script.entries.video, np.asarray(seen.track.time), 0.5 / seen.rate
    stop = np.inf if entry.duration is None else entry.start + entry.duration
    kept = (t > entry.start - half) & (t < stop + half)
    if kept.all():
        return seen
    if not kept.any():
        raise script.wrong(
            ("video",),
            f"the object moves freely from {t[0]:.3g} s to {t[-1]:.3g} s, and the scene is about another time: correct "
            "start and duration",
        )
    some = tuple(c for c in seen.contacts if t[kept][0] < c < t[kept][-1])
    return replace(seen, track=seen.track[kept], steady=seen.steady[kept], across=seen.across[kept],
                   clear=seen.clear[kept], contacts=some, release=int(seen.track.frame[kept][0]),
                   impacts=tuple(i for i, c in zip(seen.impacts, seen.contacts) if c in some))  # fmt: skip
