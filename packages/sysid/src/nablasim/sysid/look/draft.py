"""A first scene file from a track: what the clip says is filled in, what nobody can see is a guess and marked as one.

Last step of `look`. The camera is drawn as if it were far away (`scale`), because a track alone does not tell its
field of view; metres come from gravity where something flies, and from a guessed size where nothing does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nablasim.sysid.look.clip import CannotLook
from nablasim.sysid.look.events import events_of
from nablasim.sysid.names import nearest

if TYPE_CHECKING:
    from nablasim.sysid.look.looking import Look

KINDS = ("throw", "bounce", "slide", "roll", "swing")
G = 9.81
GUESSED = 0.1
"""m: the size of something that does not fly."""
STRAIGHT = 0.03
"""Of its length: how far a straight way may bend."""


def kind_of(look: Look) -> str:
    """What a track looks like: throw, bounce, slide (or roll, which looks the same) or swing."""
    if look.swings:
        return "swing"
    places = look.steady
    middle = places - places.mean(axis=0)
    spread = np.linalg.svd(middle, compute_uv=False)
    falls = _acceleration(look)[1] > 0.5 * float(np.hypot(*_acceleration(look)))
    steep = abs(places[:, 1].max() - places[:, 1].min()) > abs(places[:, 0].max() - places[:, 0].min())
    if spread[1] < STRAIGHT * spread[0] and not (falls and steep):
        return "slide"
    return "bounce" if look.impacts else "throw"


def _acceleration(look: Look) -> tuple[float, float]:
    """Pixels per s² of the longest piece."""
    pieces = events_of(np.asarray(look.track.time), look.steady, float(np.median(look.track.width))).pieces
    if not pieces:
        return 0.0, 0.0
    x, y = max(pieces, key=len).acceleration
    return float(x), float(y)


def draft(look: Look, kind: str | None = None) -> str:
    """The text of a scene file."""
    kind = kind or kind_of(look)
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}: {nearest(kind, KINDS)}")
    if kind == "swing":
        raise CannotLook(
            "a swing has no draft: scene files know no pendulum yet. `nablasim identify CLIP --as swing --estimate "
            "bob.length` needs no scene file"
        )
    height, width = look.size
    size = float(np.nanmedian(look.across)) if np.isfinite(look.across).any() else float(np.median(look.track.width))
    per_metre, ruler = _ruler(look, kind, size)
    x, y = look.steady[0]
    velocity = _first_velocity(look) / per_metre
    floor = _floor(look, kind, size, per_metre)
    name = "block" if kind == "slide" else "ball"
    shape = _box(look, per_metre) if kind == "slide" else f"{{sphere: {_m(size / 2 / per_metre)}}}"
    duration = float(look.track.time[-1] - look.track.time[0])
    lines = [
        f"# A draft from {look.path.name}, made by `nablasim look` as a {kind}. Correct the lines with (guess).",
        f"# {ruler}",
        "video:",
        f"  fps: {look.rate:.6g} fps",
        f"  start: {float(look.track.time[0]):.6g} s      # frame {look.release}: it is let go",
        f"  duration: {duration:.6g} s",
        "  background: median",
        "camera:                  # as if from far away",
        "  eye: [0, 0, 10]",
        "  target: [0, 0, 0]      # the middle of the picture",
        f"  scale: {_m(height / 2 / per_metre)}",
        "objects:",
        f"  {name}:",
        f"    shape: {shape}",
        "    mass: 0.05 kg        # (guess)",
        f"    position: [{_m((x - (width - 1) / 2) / per_metre)}, {_m(((height - 1) / 2 - y) / per_metre)}, 0]",
        f"    velocity: [{velocity[0]:.4g} m/s, {-velocity[1]:.4g} m/s, 0]",
        *floor,
        "parameters:",
        *_parameters(name, bool(floor), velocity),
    ]
    return "\n".join(lines) + "\n"


def _m(value: float) -> str:
    return f"{value:.4g} m"


def _ruler(look: Look, kind: str, size: float) -> tuple[float, str]:
    """Pixels per metre, and how they are known."""
    falls = _acceleration(look)[1]
    if kind in ("throw", "bounce") and falls > 0:
        return falls / G, f"Metres are such that it falls with {G} m/s²."
    return size / GUESSED, f"Metres are such that it is {GUESSED:g} m across (guess)."


def _first_velocity(look: Look) -> np.ndarray:
    n = min(len(look.track), 8)
    t = np.asarray(look.track.time[:n] - look.track.time[0])
    terms = np.polynomial.polynomial.polyfit(t, look.steady[:n], 2 if n > 4 else 1)
    return np.asarray(terms[1])


def _box(look: Look, per_metre: float) -> str:
    width, height = float(np.median(look.track.width)) / per_metre, float(np.median(look.track.height)) / per_metre
    return f"{{box: [{_m(width)}, {_m(height)}, {_m(width)}]}}    # (guess: as deep as wide)"


def _floor(look: Look, kind: str, size: float, per_metre: float) -> list[str]:
    if kind == "throw":
        return []
    if kind == "bounce" and look.contacts:
        lowest = float(np.interp(look.contacts[0], look.track.time, look.steady[:, 1])) + size / 2
    else:
        lowest = float(look.steady[:, 1].max()) + float(np.median(look.track.height)) / 2
    height = ((look.size[0] - 1) / 2 - lowest) / per_metre
    return [
        "floor:",
        f"  height: {_m(height)}",
        "  restitution: 0.5       # (guess)",
        "  friction: 0.3          # (guess)",
    ]


def _parameters(name: str, floor: bool, velocity: np.ndarray) -> list[str]:
    fast = max(1.0, 2 * float(np.hypot(*velocity)))
    lines = [f"  {name}.velocity: {{range: [{-fast:.4g}, {fast:.4g}]}}"]
    if floor:
        lines += ["  floor.restitution: {range: [5 %, 95 %]}", "  floor.friction: {range: [0.01, 1.5]}"]
    return lines
