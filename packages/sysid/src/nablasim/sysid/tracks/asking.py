"""From a clip and what is known about it to the number that was asked for, without a scene file.

`ask` refuses what a clip cannot tell before anything is fitted, and says what would help.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nablasim.sysid.look import Look
from nablasim.sysid.tracks import flight as fl
from nablasim.sysid.tracks.answers import Answer, CannotTell
from nablasim.sysid.tracks.clocks import timed
from nablasim.sysid.tracks.least_squares import Vector
from nablasim.sysid.tracks.questions import Known, check, names_of
from nablasim.sysid.tracks.roundness import is_round, is_string
from nablasim.sysid.tracks.rulers import DISAGREE, Ruler, quarrels, rulers
from nablasim.sysid.tracks.sliding import Slid, fit_slide, width_of
from nablasim.sysid.tracks.swing import OMEGA, RADIUS, fit_swing

TILTED = 0.015
"""By which part a way that is seen at a slant is shortened."""
TELLING = 0.5
"""Of the value: an interval that is wider says nothing."""
ROUND = (0.09, 0.4)
"""Of its size, and pixels: by how much the size of a ball may scatter about what its distance makes of it."""
TOWARDS = 0.25
"""By which part something may grow on its way: more than people's cameras are turned."""
ROD = 0.01
"""By which part a string with some weight, or a hook, makes a pendulum another one: a rod of 6 % of the bob's mass."""
A_LENGTH = 'a length in the picture (--length x,y,x,y,"1 m")'
UNEVEN = 0.25
"""A half that differs by more from the other is another motion."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Answers, and what to show beside them."""

    kind: str
    look: Look
    answers: tuple[Answer, ...]
    notes: tuple[str, ...]
    times: Vector
    residuals: dict[str, Vector] = field(default_factory=dict)
    """Pixels, by what was measured, at `times`."""


def ask(look: Look, kind: str, wanted: list[str], known: Known) -> Asked:
    """The numbers that were asked for, from the track alone."""
    names = names_of(kind, wanted)
    check(kind, names, known)
    tell: Callable[[Look, str, list[str], Known], Asked]
    tell = {"throw": _fly, "bounce": _fly, "slide": _slide, "roll": _roll, "swing": _swing}[kind]
    asked = tell(look, kind, names, known)
    # A clock that contradicts itself makes every speed wrong, and no ratio of speeds.
    slow = [w for w in look.warnings if "slow motion" in w]
    answers = [a if a.name == "floor.restitution" else a.against(*slow) for a in asked.answers]
    vague = f"the interval would be wider than {TELLING:.0%} of the value: film larger, for longer, or with more frames"
    answers = [a.against(vague) if a.high - a.low > TELLING * abs(a.value) else a for a in answers]
    return Asked(kind, look, tuple(answers), (*look.warnings, *asked.notes), asked.times, asked.residuals)


# -- flights
def _fly(look: Look, kind: str, names: list[str], known: Known) -> Asked:
    if kind == "bounce" and "floor.restitution" in names and not look.contacts:
        raise CannotTell(f"{look.path.name} shows no impact: --as throw, or film until it has bounced")
    seen = fl.observed_of(look, known.view)
    if kind == "bounce" and "floor.restitution" in names and not seen.hits:
        raise CannotTell("the flight after the impact is too short: film for longer, or with more frames per second")
    found = fl.fit_flight(seen, look.noise)
    fit, n = found.fitted, len(seen.times)
    width = float(np.median(seen.across))
    notes, why = [], [*fl.contradictions(found)]
    if fit.u[fl.DRAG] > 3 * fit.std(fl.DRAG):
        notes.append("air drag is seen, and was taken into account")
    if fit.noise[0] > 0.06 * width + 0.5:
        why.append(
            f"the track is {fit.noise[0]:.1f} pixels off a free flight: it is not one, or another thing was followed"
        )
    # What is no ball, or is seen by a lens that stretches, has another size in each frame.
    odd: tuple[str, ...] = ()
    if fit.noise[1] > ROUND[0] * width + ROUND[1]:
        odd = (f"its size changes by {fit.noise[1] / width:.0%} from frame to frame: it is no ball, or not sharp",)
    elif not is_round(look):
        odd = ("its silhouette is not round: it is no ball, or the lens stretches it",)
    apart, doubt = fl.early_and_late(found)
    std = fit.std(fl.G)
    if abs(apart) > 3 * doubt:
        std = float(np.hypot(std, abs(apart) / 2))
        notes.append(f"early and late frames differ by {abs(apart):.0%}: the interval is wider for it")
        if abs(apart) > UNEVEN:
            why.append(f"early and late frames differ by {abs(apart):.0%}: this is not one free flight")
    per = np.exp(found.log_g)  # g in diameters per s²
    measured = _rulers_of(look, known, found)
    diameter, relative, said = _diameter(known, found, measured, std)
    metric = (*why, *quarrels(measured))
    answers = []
    for name in names:
        if name == "floor.restitution":
            answers.append(_restitution(found, tuple(why)))
        elif name == "ball.diameter":
            value = known.g / per
            told = (known.said_gravity, "it is a ball")
            answer = Answer(name, value, value * std, "m", (*metric, *odd), told)
            if diameter is not None and abs(np.log(value / diameter)) > DISAGREE * relative:
                answer = answer.against(_disagree(value / diameter, known))
            answers.append(timed(answer, look, checked=None if diameter is None else relative, ruler=A_LENGTH))
        else:
            assert diameter is not None
            value = per * diameter
            told = (said, *(("it is a ball",) if known.diameter is not None else ()))
            answer = Answer(
                name, value, value * relative, "m/s²", (*metric, *(odd if known.diameter is not None else ())), told
            )
            if not answer.low <= known.g <= answer.high:
                answer = answer.against(
                    f"this is not {known.named_gravity}: the frame rate or the ruler is probably wrong"
                )
            answers.append(answer)
    residuals = {"x": fit.residuals[:n], "y": fit.residuals[n : 2 * n], "size": fit.residuals[2 * n :]}
    return Asked(kind, look, tuple(answers), tuple(notes), seen.times, residuals)


def _disagree(ratio: float, known: Known) -> str:
    return (
        f"by the length in the picture the ball would be {1 / ratio:.2f} times as large, if {known.said_gravity}: "
        "the frame rate, the length or gravity is wrong"
    )


def _rulers_of(look: Look, known: Known, found: fl.Flight) -> list[Ruler]:
    fit, width = found.fitted, float(np.median(found.observed.across))
    off = float(np.hypot(fl.TOO_WIDE[0] / width, fl.TOO_WIDE[1]))
    return rulers(look, known, fl.pixels_across(found), off, (float(fit.u[fl.FOCAL]), fit.std(fl.FOCAL)))


def _diameter(known: Known, found: fl.Flight, measured: list[Ruler], std: float) -> tuple[float | None, float, str]:
    """m, the relative deviation of a gravity that is measured with it, and how it is known."""
    if known.diameter is not None:
        return known.diameter, float(np.hypot(std, known.diameter_unsure)), f"the ball is {known.diameter:g} m across"
    if not measured:
        return None, std, ""
    fit, ruler = found.fitted, measured[0]
    across = fl.pixels_across(found)
    # With another ruler the ball's own width cancels: only what is left of the fit without it counts.
    rest = float(np.sqrt(max(std**2 - fit.std(fl.WIDE) ** 2, 0.0)))
    return across / ruler.per_metre, float(np.hypot(rest, ruler.unsure)), ruler.said


def _restitution(found: fl.Flight, why: tuple[str, ...]) -> Answer:
    each = [fl.derived(found, "restitution", k) for k in range(len(found.before))]
    values, stds = (np.array(c) for c in zip(*each))
    # The last of many hops are a few pixels high, and tell nothing.
    told = stds < max(0.05, 3 * float(stds.min()))
    values, stds = values[told], stds[told]
    weights = 1 / np.maximum(stds, 0.005) ** 2
    mean = float(weights @ values / weights.sum())
    std = float(np.sqrt(1 / weights.sum()))
    if len(values) > 1:
        # Restitution that changes with speed is a property of the ball, not noise: the interval holds the impacts'
        # values.
        std = float(np.hypot(std, np.std(values, ddof=1) / (1 if len(values) < 4 else 2)))
    if not 0 <= mean <= 1.05:
        why = (*why, f"{mean:.2f} is not possible: the impact is not one with a floor")
    return Answer("floor.restitution", mean, std, "", why,
                  (f"{len(values)} impact{'s' if len(values) > 1 else ''}", "the floor is level"))  # fmt: skip


# -- along a line
def _even(slid: Slid, std: float) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
    """The relative deviation with what does not fit, what to note, and what stands against an interval."""
    notes, why = [], []
    if abs(slid.uneven) > 3 * slid.doubt:
        std = float(np.hypot(std, abs(slid.uneven) / 2))
        notes.append(f"the acceleration changes by {abs(slid.uneven):.0%} on the way: the interval is wider for it")
        if abs(slid.uneven) > 2 * UNEVEN:
            why.append(
                f"the acceleration changes by {abs(slid.uneven):.0%} on the way: it is not constant friction or slope"
            )
    if abs(slid.grows) > TOWARDS:
        why.append(
            f"its size changes by {abs(slid.grows):.0%}: it moves towards the camera or away. Film from the side"
        )
    return std, tuple(notes), tuple(why)


def _slide(look: Look, kind: str, names: list[str], known: Known) -> Asked:
    slid = fit_slide(look)
    angle = known.angle or 0.0
    width, off = width_of(look, slid)
    measured = rulers(look, known, width, off)
    scale, unsure, said = measured[0].per_metre, measured[0].unsure, measured[0].said
    relative = slid.std / max(abs(slid.against), 1e-9)
    relative, notes, why = _even(slid, float(np.hypot(np.hypot(relative, unsure), TILTED)))
    slope = np.sign(slid.way[1]) * np.tan(angle)  # Rows count downwards: a way with growing rows goes down.
    by_pull = slid.against / scale / (known.g * np.cos(angle))
    value = by_pull + slope
    unsure_angle = known.angle_unsure / np.cos(angle) ** 2 if known.angle is not None else np.radians(0.5)
    std = float(np.hypot(by_pull * relative, unsure_angle))
    level = (
        f"the slope is {np.degrees(angle):g} degrees"
        if known.angle is not None
        else "the floor is level, to half a degree"
    )
    why = (*why, *quarrels(measured))
    answer = Answer("floor.friction", float(value), std, "", why, (said, known.said_gravity, level))
    if value <= 0:
        answer = answer.against("it is not slowed down as friction would: check --angle, and that nothing pushes it")
    return _line(kind, look, timed(answer, look), notes, slid)


def _roll(look: Look, kind: str, names: list[str], known: Known) -> Asked:
    slid = fit_slide(look)
    assert known.angle is not None
    across = float(np.nanmedian(look.across))
    unsure_width = float(np.hypot(fl.TOO_WIDE[0] / across, fl.TOO_WIDE[1]))
    relative = slid.std / max(abs(slid.against), 1e-9)
    part = 5 / 7 * np.sin(known.angle)
    angle = known.angle_unsure / np.tan(known.angle)
    assumed = (f"the slope is {np.degrees(known.angle):g} degrees", "the ball is solid and rolls without slipping")
    answers = []
    for name in names:
        if name == "gravity":
            ruler = rulers(look, known, across, unsure_width)[0]
            unsure, said_more, unit = ruler.unsure, ruler.said, "m/s²"
            value = abs(slid.against) / ruler.per_metre / part
        else:
            unsure, said_more, unit = unsure_width, known.said_gravity, "m"
            value = known.g * part / max(abs(slid.against), 1e-9) * across
        std, notes, why = _even(slid, float(np.sqrt(relative**2 + unsure**2 + angle**2 + TILTED**2)))
        answer = Answer(name, float(value), float(value * std), unit, why, (said_more, *assumed))
        if name == "gravity" and not answer.low <= known.g <= answer.high:
            answer = answer.against(
                f"this is not {known.named_gravity}: the frame rate, the angle or the ruler is "
                "probably wrong, or the ball is hollow or slips"
            )
        answers.append(timed(answer, look) if name == "ball.diameter" else answer)
    asked = _line(kind, look, answers[0], notes, slid)
    return Asked(kind, look, tuple(answers), asked.notes, asked.times, asked.residuals)


def _line(kind: str, look: Look, answer: Answer, notes: tuple[str, ...], slid: Slid) -> Asked:
    times = np.asarray(look.track.time)[: len(slid.fitted.residuals)]
    return Asked(kind, look, (answer,), notes, times, {"along": slid.fitted.residuals})


# -- swings
def _swing(look: Look, kind: str, names: list[str], known: Known) -> Asked:
    swung = fit_swing(look)
    fit, n = swung.fitted, len(look.track)
    across = float(np.nanmedian(look.across))
    # The bob is no point: its own turning slows the swing by 0.4 (r / L)², if it turns with the string.
    bob = 0.4 * (across / 2 / swung.radius) ** 2
    why: tuple[str, ...] = ()
    if fit.noise[0] > 0.04 * swung.radius * np.sin(min(swung.widest, 1.5)) + 0.5:
        why = (
            f"the track is {fit.noise[0]:.1f} pixels off a pendulum's: it is not one, or another thing was followed",
        )
    relative = float(np.sqrt(fit.std(OMEGA) ** 2 + ROD**2 + bob**2))
    answers = []
    for name in names:
        if name == "bob.length":
            value = known.g / swung.omega_squared
            answer = Answer(name, value, value * relative, "m", why, (known.said_gravity, "all its mass is in the bob"))
            ruled = _ruled(look, known, across, swung.radius, fit.std(RADIUS))
            if ruled is not None and abs(np.log(value / ruled[0])) > DISAGREE * np.hypot(relative, ruled[1]):
                answer = answer.against(
                    f"by the ruler in the picture it is {ruled[0]:.3g} m long: frame rate, ruler or gravity is wrong"
                )
            checked = None if ruled is None else float(np.hypot(relative, ruled[1]))
            answers.append(timed(answer, look, checked=checked, ruler=A_LENGTH))
        else:
            ruled = _ruled(look, known, across, swung.radius, fit.std(RADIUS))
            assert ruled is not None
            value, std = swung.omega_squared * ruled[0], float(np.hypot(relative, ruled[1]))
            answer = Answer(name, value, value * std, "m/s²", why, (ruled[2], "all its mass is in the bob"))
            if is_string(look):
                answer = answer.against(
                    "the string was followed with the bob, so that the middle of what swings is not the bob's: say "
                    "where the bob swings by --region x,y,w,h, or film a thinner string"
                )
            if not answer.low <= known.g <= answer.high:
                answer = answer.against(
                    f"this is not {known.named_gravity}: the frame rate or the ruler is probably wrong"
                )
            answers.append(answer)
    residuals = {"x": fit.residuals[:n], "y": fit.residuals[n:]}
    return Asked(kind, look, tuple(answers), (), np.asarray(look.track.time), residuals)


def _ruled(look: Look, known: Known, across: float, radius: float, std: float) -> tuple[float, float, str] | None:
    """The pendulum's length by the ruler (m), its relative deviation, and the ruler."""
    wide = float(np.hypot(fl.TOO_WIDE[0] / across, fl.TOO_WIDE[1]))
    measured = rulers(look, known, across, wide)
    if not measured:
        return None
    best = measured[0]
    return radius / best.per_metre, float(np.sqrt(best.unsure**2 + std**2 + TILTED**2)), best.said
