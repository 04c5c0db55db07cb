"""What can be asked of a track, what is known beside it, and what must be known for a question."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians

from nablasim.sysid.names import nearest
from nablasim.sysid.tracks.answers import CannotTell

EARTH = 9.81
NAMES = {
    "throw": ("ball.diameter", "gravity"),
    "bounce": ("floor.restitution", "ball.diameter", "gravity"),
    "slide": ("floor.friction",),
    "roll": ("gravity", "ball.diameter"),
    "swing": ("bob.length", "gravity"),
}
RULER = 'give the ball\'s diameter (--diameter "4 cm"), or a length in the picture (--length x,y,x,y,"1 m")'


@dataclass(frozen=True)
class View:
    """What is known of the camera, as (value, standard deviation): nothing, unless a scene file says something.

    focal: logarithm of the focal length in pixels; tilt: rad, upwards; roll: rad; distance: logarithm of metres
    """

    focal: tuple[float, float] | None = None
    tilt: tuple[float, float] | None = None
    roll: tuple[float, float] | None = None
    distance: tuple[float, float] | None = None


@dataclass(frozen=True)
class Known:
    """What the user says: metres, radians, m/s². `length`: two places in the picture and the metres between them."""

    diameter: float | None = None
    length: tuple[float, float, float, float, float] | None = None
    gravity: float | None = None
    angle: float | None = None
    view: View = View()
    diameter_unsure: float = 0.0
    """Relative standard deviation."""
    angle_unsure: float = radians(0.25)
    """rad: how well an angle is known that was given"""

    @property
    def ruled(self) -> bool:
        """Whether something tells metres, gravity apart."""
        return self.diameter is not None or self.length is not None or self.view.distance is not None

    @property
    def g(self) -> float:
        return EARTH if self.gravity is None else self.gravity

    @property
    def named_gravity(self) -> str:
        return f"{self.g:g} m/s²" + ("" if self.gravity is not None else " (the Earth's)")

    @property
    def said_gravity(self) -> str:
        return f"gravity is {self.named_gravity}"


def names_of(kind: str, wanted: list[str]) -> list[str]:
    """Full names: `restitution` is `floor.restitution`."""
    if kind not in NAMES:
        raise CannotTell(f"unknown motion {kind!r}: {nearest(kind, NAMES)}")
    found = []
    for name in wanted:
        full = next((n for n in NAMES[kind] if name in (n, n.rpartition(".")[2])), None)
        if full is None:
            raise CannotTell(_no_such(kind, name))
        found.append(full)
    return found


def _no_such(kind: str, name: str) -> str:
    there = f"--as {kind} tells {', '.join(NAMES[kind])}"
    last = name.rpartition(".")[2]
    if last in ("mass", "density"):
        return f"a clip does not tell {name}: heavy and light things move alike. {there}"
    elsewhere = [k for k, names in NAMES.items() if any(last == n.rpartition(".")[2] for n in names)]
    return f"{there}, and not {name}" + (f"; --as {' or '.join(elsewhere)} does" if elsewhere else "")


def check(kind: str, names: list[str], known: Known) -> None:
    """Refuse what cannot be told with what is known, before anything is looked at."""
    ruler = known.ruled
    if kind in ("throw", "bounce", "roll") and "gravity" in names and not ruler:
        raise CannotTell(f"gravity in m/s² needs a length: {RULER}")
    if kind == "slide" and not ruler:
        raise CannotTell(
            "friction is the deceleration over gravity, and needs a length: give the block's width "
            '(--diameter "8 cm"), or a length in the picture (--length x,y,x,y,"1 m")'
        )
    if kind == "roll" and known.angle is None:
        raise CannotTell('how fast a ball gets on a slope depends on the angle: give --angle "9 deg"')
    if kind == "swing" and "gravity" in names and not ruler:
        raise CannotTell(
            "gravity from a swing needs the pendulum's length: give a length in the picture, such as that from the "
            'pivot to the bob (--length x,y,x,y,"45 cm"), or the diameter of the bob (--diameter "4 cm")'
        )
    if "ball.diameter" in names and known.diameter is not None:
        raise CannotTell("the diameter is given and asked for: leave one of them out")
