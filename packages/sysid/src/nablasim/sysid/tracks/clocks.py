"""Whether seconds can be believed: what gravity alone tells is wrong by the square of a frame rate that is wrong.

Nothing in a picture shows how long a second is. Two must say the same of it (the user, the file, the phone's note), or
a ruler beside gravity must agree with it. A file alone is believed where what it tells is of an everyday size, and
would be of none if it were slow motion; otherwise an interval is given on the condition that the rate is right.
"""

from __future__ import annotations

from dataclasses import replace

from nablasim.sysid.look import Look
from nablasim.sysid.tracks.answers import Answer

SHARP = 0.15
"""Relative deviation of a ruler that shows a frame rate which is wrong by a factor of 1.5: a length by 2.25."""
SLOW = 4.0
"""Slow motion as phones make it, at least: 120 frames per second, shown as 30."""
EVERYDAY = {"ball.diameter": (0.015, 0.4), "bob.length": (0.08, 4.0), "floor.friction": (0.03, 1.5)}
"""What people throw, swing and push, in m."""


def timed(answer: Answer, look: Look, *, checked: float | None = None, ruler: str = "") -> Answer:
    """The answer, or the same on a condition. `checked`: how sharply another ruler agrees with it, if one does.

    ruler: what to give, so that one could
    """
    if look.vouched or (checked is not None and checked < SHARP):
        return answer
    if look.alone and _is_everyday(answer.name, answer.value):
        unit = f" {answer.unit}" if answer.unit else ""
        slow = f"it is no slow motion, in which it would be {_slowed(answer.name, answer.value):.2g}{unit} or odder"
        return replace(answer, assumed=(*answer.assumed, slow))
    name, rate = look.path.name, f"{look.rate:.4g}"
    if not look.told:
        given = f"{name} was filmed with {rate} frames per second, as only the file says"
        more = f", or give {ruler}" if ruler else ""
        helps = f"If it is no slow motion, say so: --fps {rate}{more}"
    else:
        given = f"{name} was filmed with {rate} frames per second, where the file says {look.own:.4g}"
        helps = f"To show that it was, {f'give {ruler}, or ' if ruler else ''}use the phone's own file, which notes it"
    return replace(answer, given=given, helps=helps)


def _is_everyday(name: str, value: float) -> bool:
    """Whether there are such things, and there would be none if the clip were slow motion."""
    low, high = EVERYDAY[name]
    return low <= value <= high and not low <= _slowed(name, value) <= high


def _slowed(name: str, value: float) -> float:
    """What it is if the clip is slow motion: lengths are shorter, decelerations larger, by the square."""
    return value * SLOW**2 if name == "floor.friction" else value / SLOW**2
