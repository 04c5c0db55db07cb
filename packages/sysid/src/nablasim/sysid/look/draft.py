"""A first scene file from a track: what the clip says is filled in, what nobody can see is a guess and marked as one.

Last step of `look`. The camera is drawn as if it were far away (`scale`), because a track alone does not tell its
field of view; metres come from gravity where something flies, and from a guessed size where nothing does. What would be
certified with a guess in it is a range or `unknown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nablasim.sysid.look.events import events_of
from nablasim.sysid.names import nearest

if TYPE_CHECKING:
    from nablasim.sysid.look.looking import Look

ASKED = {"throw": "ball.diameter", "bounce": "restitution", "slide": "friction", "roll": "ball.diameter",
         "swing": "bob.length"}  # fmt: skip
KINDS = tuple(ASKED)
UNSURE = 2.0
"""By which factor a guessed width may be wrong."""
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
    height = look.size[0]
    duration = float(look.track.time[-1] - look.track.time[0])
    size = float(np.nanmedian(look.across)) if np.isfinite(look.across).any() else float(np.median(look.track.width))
    per_metre, ruler = _ruler(look, kind, size)
    lines = [
        f"# A draft from {look.path.name}, made by `nablasim look` as a {kind}: guesses are marked, or ranges.",
        f"# nablasim identify {look.path.name} --scene scene.yaml --estimate {ASKED[kind]}",
        f"# {ruler}",
        "video:",
        f"  fps: {look.rate:.6g} fps",
        *_doubted(look),
        f"  start: {float(look.track.time[0]):.6g} s      # frame {look.release}: it is let go",
        f"  duration: {duration:.6g} s",
        "  background: median",
        "camera:                  # as if from far away; `fov: [40 deg, 75 deg], distance: unknown` says less",
        "  eye: [0, 0, 10]",
        "  target: [0, 0, 0]      # the middle of the picture",
        f"  scale: {_m(height / 2 / per_metre)}",
        "plane: 2d",
        "objects:",
        *_object(look, kind, per_metre),
        *_floor(look, kind, size, per_metre),
    ]
    return "\n".join(lines) + "\n"


def _object(look: Look, kind: str, per_metre: float) -> list[str]:
    if kind == "swing":
        return [
            "  bob:",
            "    kind: pendulum",
            "    length: unknown      # from the pivot to the middle of the bob",
            "    angle: unknown",
            "    rate: unknown",
            "    radius: unknown      # write it if you know it: it is a ruler",
        ]
    ball = "{sphere: unknown}    # its radius: write it if you know it"
    return [
        f"  {'block' if kind == 'slide' else 'ball'}:",
        f"    shape: {_box(look, per_metre) if kind == 'slide' else ball}",
        "    mass: 0.05 kg        # (guess)",
        "    position: unknown",
        "    velocity: unknown",
        "    spin: unknown",
    ]


def _doubted(look: Look) -> list[str]:
    """A rate that only the file says is left to the user's word: with it, what gravity tells is certified."""
    doubt = "  slow_motion: unknown   # only the file says how fast it was filmed: write none if you know"
    return [] if look.vouched or look.told else [doubt]


def _m(value: float) -> str:
    return f"{value:.4g} m"


def _ruler(look: Look, kind: str, size: float) -> tuple[float, str]:
    """Pixels per metre, and how they are known."""
    falls = _acceleration(look)[1]
    if kind in ("throw", "bounce") and falls > 0:
        return falls / G, f"Metres are such that it falls with {G} m/s²."
    return size / GUESSED, f"Metres are such that it is {GUESSED:g} m across (guess)."


def _box(look: Look, per_metre: float) -> str:
    width, height = float(np.median(look.track.width)) / per_metre, float(np.median(look.track.height)) / per_metre
    span = f"[{_m(width / UNSURE)}, {_m(width * UNSURE)}]"
    return f"{{box: [{span}, {_m(height)}, {_m(width)}]}}    # (guess) Write how wide it is: that is the ruler"


def _floor(look: Look, kind: str, size: float, per_metre: float) -> list[str]:
    if kind in ("throw", "swing"):
        return []
    if kind == "bounce" and look.contacts:
        lowest = float(np.interp(look.contacts[0], look.track.time, look.steady[:, 1])) + size / 2
    else:
        lowest = float(look.steady[:, 1].max()) + float(np.median(look.track.height)) / 2
    height = ((look.size[0] - 1) / 2 - lowest) / per_metre
    slope = ["  angle: [3 deg, 30 deg]  # (guess) Write the slope: by how much it falls"] if kind == "roll" else []
    return [
        "floor:" + ("                   # a slope falls by an `angle`" if kind == "slide" else ""),
        f"  height: {_m(height)}",
        *slope,
        "  restitution: 0.5       # (guess)",
        "  friction: 0.3          # (guess)",
    ]
