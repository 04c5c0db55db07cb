"""Whether seconds can be believed: what gravity alone tells is wrong by the square of a frame rate that is wrong.

Nothing in a picture shows how long a second is. Two must say the same of it (the user, the file, the phone's note), or
a ruler beside gravity must agree with it; otherwise an interval is given on the condition that the rate is right.
"""

from __future__ import annotations

from dataclasses import replace

from nablasim.sysid.look import Look
from nablasim.sysid.tracks.answers import Answer

SHARP = 0.15
"""Relative deviation of a ruler that shows a frame rate which is wrong by a factor of 1.5: a length by 2.25."""


def timed(answer: Answer, look: Look, *, checked: float | None = None, ruler: str = "") -> Answer:
    """The answer, or the same on a condition. `checked`: how sharply another ruler agrees with it, if one does.

    ruler: what to give, so that one could
    """
    if look.vouched or (checked is not None and checked < SHARP):
        return answer
    name, rate = look.path.name, f"{look.rate:.4g}"
    if not look.told:
        given = f"{name} was filmed with {rate} frames per second, as only the file says"
        more = f", or give {ruler}" if ruler else ""
        helps = f"If it is no slow motion, say so: --fps {rate}{more}"
    else:
        given = f"{name} was filmed with {rate} frames per second, where the file says {look.own:.4g}"
        helps = f"To show that it was, {f'give {ruler}, or ' if ruler else ''}use the phone's own file, which notes it"
    return replace(answer, given=given, helps=helps)
