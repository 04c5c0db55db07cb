"""A flight as a camera sees it: gravity, air drag and impacts in space, seen through a pinhole.

Lengths are in diameters of the ball, so that its apparent size gives the depth, and one number G = g / diameter (1/s²)
is what the track tells: with the diameter known it gives gravity, with gravity known the diameter. Camera (x right, y
down, z forward): field of view, middle of the picture, pitch and roll are nuisances with a prior; so are drag, the
shutter that runs down the rows, the lens that bends lines, and the share by which masks are too wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.look import Look
from nablasim.sysid.tracks.answers import CannotTell
from nablasim.sysid.tracks.least_squares import Fitted, Vector, fit
from nablasim.sysid.tracks.questions import View

G, PITCH, ROLL, FOCAL, RIGHT, DOWN, DRAG, SHUTTER, WIDE, LENS = range(10)
NUISANCES = 10
STATE = 6
"""Place and velocity, after the nuisances: x, y (pixels), log depth; velocity right, down, away in diameters per s."""
HIT = 4
"""Of each impact: its time, and the velocity after it."""
TOO_WIDE = (0.57, 0.012)
"""Pixels, and part: by how much a mask may be too wide or too narrow, by shading and soft edges."""
BENT = 0.015
"""By which part a lens moves the edge of the picture outwards or inwards: phones correct most of it."""
FEWEST = 7
"""Frames of a flight that can be fitted."""


@dataclass(frozen=True, eq=False)
class Flight:
    """What was fitted: `G` is in `fitted.u[0]` as a logarithm."""

    fitted: Fitted
    observed: Observed
    before: tuple[Vector, ...]
    """Velocities (right, down, away; diameters per s) before each impact, and after it."""
    after: tuple[Vector, ...]

    @property
    def log_g(self) -> float:
        return float(self.fitted.u[G])


@dataclass(frozen=True, eq=False)
class Observed:
    """Frames of the free flight that are used."""

    times: Vector
    x: Vector
    y: Vector
    across: Vector
    hits: tuple[float, ...]
    size: tuple[int, int]
    gap: float
    view: View

    @property
    def part(self) -> NDArray[np.int64]:
        """(n) which flight a frame belongs to."""
        return np.searchsorted(np.array(self.hits), self.times)

    @cached_property
    def aside(self) -> Vector:
        """(n, 2) across its way in the picture, along which its size is measured."""
        ways = np.gradient(np.stack([self.x, self.y], axis=-1), self.times, axis=0)
        ways /= np.maximum(np.linalg.norm(ways, axis=-1, keepdims=True), 1e-9)
        return np.stack([-ways[:, 1], ways[:, 0]], axis=-1)


def observed_of(look: Look, view: View, *, hits: int | None = None) -> Observed:
    """The frames between and around the first impacts; those in which it touches something are left out."""
    t, gap = np.asarray(look.track.time), 1 / look.rate
    contacts = [c for c in look.contacts if c > t[0]]
    kept = contacts if hits is None else contacts[:hits]
    end = np.inf if len(kept) == len(contacts) else contacts[len(kept)]
    good = (t < end - gap) & look.clear & np.isfinite(look.across)
    for c in kept:
        good &= np.abs(t - c) > 1.5 * gap
    # A flight of a few frames tells nothing: before an impact that the clip begins with, or a hop at the end of many.
    while kept and (good & (t < kept[0])).sum() < 4:
        good &= t > kept[0]
        kept = kept[1:]
    part = np.searchsorted(np.array(kept), t)
    while kept and (good & (part == len(kept))).sum() < 4:
        kept = kept[:-1]
        good &= part <= len(kept)
    if (good & (part == 0)).sum() < 4 or good.sum() < FEWEST:
        raise CannotTell(
            f"the object flies freely in {int(good.sum())} frames only: film it for longer, or with more "
            "frames per second"
        )
    return Observed(t[good], look.steady[good, 0], look.steady[good, 1], look.across[good], tuple(kept), look.size, gap,
                    view)  # fmt: skip


# -- the model
def _axes(u: Vector) -> tuple[Vector, Vector]:
    """Where gravity points, and what is away from the camera along the ground: (m, 3) each."""
    theta, rho = u[:, PITCH], u[:, ROLL]
    down = np.stack([np.sin(rho) * np.cos(theta), np.cos(rho) * np.cos(theta), np.sin(theta)], axis=-1)
    away = np.array([0.0, 0.0, 1.0]) - down[:, 2:] * down
    return down, away / np.linalg.norm(away, axis=-1, keepdims=True)


def _velocity(u: Vector, at: int, down: Vector, away: Vector) -> Vector:
    right = np.cross(down, away)
    return np.asarray(u[:, at, None] * right + u[:, at + 1, None] * down + u[:, at + 2, None] * away)


def _step(p: Vector, v: Vector, g: Vector, k: Vector, h: Vector) -> tuple[Vector, Vector]:
    """Runge and Kutta's of fourth order, with drag k |v| v."""

    def pull(w: Vector) -> Vector:
        return g - k * np.linalg.norm(w, axis=-1, keepdims=True) * w

    a1 = pull(v)
    a2 = pull(v + 0.5 * h * a1)
    a3 = pull(v + 0.5 * h * a2)
    a4 = pull(v + h * a3)
    return p + h * v + h**2 / 6 * (a1 + a2 + a3), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def see(u: Vector, seen: Observed) -> tuple[Vector, list[Vector], list[Vector]]:
    """(m, 3 n) x, y and size of the ball in each frame; velocities before and after impacts (m, 3), in world axes."""
    places, before, after = _flown(u, seen)
    f, middle = np.exp(u[:, FOCAL, None]), (u[:, RIGHT, None], u[:, DOWN, None])
    centred, off = _centred(u, places, seen)
    x, y, size = silhouette(centred, seen.aside)
    x, y = f * (x - off[0]), f * (y - off[1])
    far = (max(seen.size) / 2) ** 2
    bent = 1 + u[:, LENS, None] * (x**2 + y**2) / far
    across = bent * f * size * (1 + u[:, WIDE, None])
    return np.concatenate([middle[0] + bent * x, middle[1] + bent * y, across], axis=1), before, after


def _centred(u: Vector, places: Vector, seen: Observed) -> tuple[Vector, tuple[Vector, Vector]]:
    """Places as if the camera looked at the middle of the picture, and how far from there it looks, at unit distance.

    How far that is is known too badly, of a picture that was cut, to stretch balls by it.
    """
    f, z = np.exp(u[:, FOCAL, None]), places[..., 2]
    right, down = ((u[:, at, None] - (n - 1) / 2) / f for at, n in ((RIGHT, seen.size[1]), (DOWN, seen.size[0])))
    return np.stack([places[..., 0] + right * z, places[..., 1] + down * z, z], axis=-1), (right, down)


def silhouette(places: Vector, aside: Vector) -> tuple[Vector, Vector, Vector]:
    """The ellipse that a pinhole at unit distance sees of a ball of diameter 1: its middle, and its size along `aside`.

    Away from the middle of the picture it is longer along the ray from there, and its middle is not the ball's.
    """
    x, y, z = np.moveaxis(places, -1, 0)
    z = np.maximum(z, 0.6)
    near = z**2 - 0.25
    off = np.hypot(x, y)
    ray = (x * aside[:, 0] + y * aside[:, 1]) / np.maximum(off, 1e-9)
    # Half axes: along the ray, and across it. z² - r² is what is left of the distance to where the ball is touched.
    long, short = 0.5 * np.sqrt(off**2 + near) / near, 0.5 / np.sqrt(near)
    return x * z / near, y * z / near, 2 * np.sqrt((long * ray) ** 2 + short**2 * (1 - ray**2))


def _flown(u: Vector, seen: Observed) -> tuple[Vector, list[Vector], list[Vector]]:
    """(m, n, 3) where the ball is from the camera, in its axes; velocities before and after impacts."""
    down, away = _axes(u)
    g, k = np.exp(u[:, G, None]) * down, u[:, DRAG, None]
    f, middle = np.exp(u[:, FOCAL]), np.stack([u[:, RIGHT], u[:, DOWN]], axis=-1)
    s = NUISANCES
    depth = np.exp(u[:, s + 2])
    p = np.concatenate([(u[:, s : s + 2] - middle) * (depth / f)[:, None], depth[:, None]], axis=-1)
    v = _velocity(u, s + 3, down, away)
    now = np.full((len(u), 1), seen.times[0])
    part, at, places, before, after = seen.part, 0, [], [], []
    # Rows of a rolling shutter are read one after the other.
    late = (seen.y - seen.size[0] / 2) / seen.size[0]
    for n, t in enumerate(seen.times):
        while part[n] > at:
            hit = u[:, s + STATE + HIT * at, None]
            p, v = _step(p, v, g, k, hit - now)
            before.append(_in_world(v, down, away))
            v, now = _velocity(u, s + STATE + HIT * at + 1, down, away), hit
            after.append(_in_world(v, down, away))
            at += 1
        when = t + late[n] * u[:, SHUTTER, None]
        p, v = _step(p, v, g, k, when - now)
        now = when
        places.append(p)
    return np.stack(places, axis=1), before, after


def pixels_across(flight: Flight) -> float:
    """The ball's size in pixels at its usual distance, were it in the middle of the picture, without what masks add."""
    u, seen = flight.fitted.u[None], flight.observed
    places, _, _ = _flown(u, seen)
    stretched = silhouette(_centred(u, places, seen)[0], seen.aside)[2][0] * places[0, :, 2]
    return float(np.median(seen.across / stretched)) / (1 + float(u[0, WIDE]))


def _in_world(v: Vector, down: Vector, away: Vector) -> Vector:
    right = np.cross(down, away)
    return np.stack([(v * right).sum(-1), (v * down).sum(-1), (v * away).sum(-1)], axis=-1)


# -- the fit
def fit_flight(seen: Observed, noise: float) -> Flight:
    """Start from a parabola, then all of it."""
    start, mean, std = _start(seen)
    found = _fitted(seen, start, mean, std, (max(noise, 0.1), max(noise, 0.02 * float(np.median(seen.across)))))
    _, before, after = see(found.u[None], seen)
    return Flight(found, seen, tuple(b[0] for b in before), tuple(a[0] for a in after))


def _fitted(seen: Observed, start: Vector, mean: Vector, std: Vector, noise: tuple[float, ...]) -> Fitted:
    observed = np.concatenate([seen.x, seen.y, seen.across])
    groups = np.repeat([0, 0, 1], len(seen.times))
    return fit(lambda u: see(u, seen)[0], observed, groups, start, mean, std, noise, steps=_steps(start, seen))


def _start(seen: Observed) -> tuple[Vector, Vector, Vector]:
    """First guess, and what is known beforehand: mean and standard deviation (inf where nothing is)."""
    height, width = seen.size
    long, w = float(max(seen.size)), float(np.median(seen.across))
    cut = 0.15 if max(seen.size) > 2.2 * min(seen.size) else 0.03
    first = seen.part == 0
    t = seen.times[first] - seen.times[0]
    terms = np.polynomial.polynomial.polyfit(t, np.stack([seen.x[first], seen.y[first]], axis=-1), 2)
    pull = max(2 * float(terms[2, 1]), 1e-3 * long)
    f, wide = 0.95 * long, float(np.hypot(TOO_WIDE[0] / w, TOO_WIDE[1]))
    speed = (np.abs(terms[1]).max() + pull * float(t[-1])) / w
    view, lens = seen.view, seen.view.focal or (np.log(f), 0.3)
    tilt, roll = view.tilt or (0.0, np.radians(12)), view.roll or (0.0, np.radians(6))
    # Pitch, roll: people hold cameras level to some degrees. Drag: k times diameter, 0.005 for a ball of celluloid.
    nuisances = [(np.log(pull / w), np.nan, np.inf), (-tilt[0], -tilt[0], tilt[1]), (roll[0], *roll),
                 (lens[0], *lens), (width / 2, width / 2, cut * long), (height / 2, height / 2, cut * long),
                 (0, 0, 0.004), (0, 0, 0.25 * seen.gap), (0, 0, wide), (0, 0, BENT)]  # fmt: skip
    state = [(terms[0, 0], np.nan, np.inf), (terms[0, 1], np.nan, np.inf), (lens[0] - np.log(w), np.nan, np.inf),
             (terms[1, 0] / w, np.nan, np.inf), (terms[1, 1] / w, np.nan, np.inf), (0, 0, 0.3 * speed)]  # fmt: skip
    rows = [*nuisances, *state]
    for k, hit in enumerate(seen.hits):
        then = seen.part == k + 1
        s = seen.times[then] - hit
        x, y = (
            np.polynomial.polynomial.polyfit(s, c[then] - 0.5 * a * s**2, 1) for c, a in ((seen.x, 0.0), (seen.y, pull))
        )
        rows += [(hit, hit, 2 * seen.gap), (x[1] / w, np.nan, np.inf), (y[1] / w, np.nan, np.inf), (0, 0, 0.3 * speed)]
    table = np.array(rows, np.float64)
    return table[:, 0], np.nan_to_num(table[:, 1]), table[:, 2]


def _steps(start: Vector, seen: Observed) -> Vector:
    """For central differences: small against what a pixel can tell."""
    steps = np.full(len(start), 1e-4)
    steps[[RIGHT, DOWN]] = 0.05
    steps[DRAG], steps[SHUTTER] = 1e-6, 1e-3 * seen.gap
    steps[NUISANCES : NUISANCES + 2] = 0.01
    steps[NUISANCES + 3 : NUISANCES + 6] = 1e-3
    for k in range(len(seen.hits)):
        at = NUISANCES + STATE + HIT * k
        steps[at] = 1e-3 * seen.gap
        steps[at + 1 : at + HIT] = 1e-3
    return steps


def derived(flight: Flight, value: str, hit: int) -> tuple[float, float]:
    """Restitution or slip of an impact, with its standard deviation by the chain rule through the fit."""

    def of(u: Vector) -> Vector:
        _, before, after = see(u, flight.observed)
        down, up = before[hit][:, 1], -after[hit][:, 1]
        if value == "restitution":
            return np.asarray(up / down)
        raise ValueError(value)

    u, steps = flight.fitted.u, _steps(flight.fitted.u, flight.observed)
    n = len(u)
    moved = of(np.concatenate([u + np.diag(steps), u - np.diag(steps)]))
    slope = (moved[:n] - moved[n:]) / (2 * steps)
    return float(of(u[None])[0]), float(np.sqrt(slope @ flight.fitted.covariance @ slope))


CONTRADICTED = 2.5
"""Standard deviations by which a clip may be off what is said of the camera."""


def contradictions(flight: Flight) -> tuple[str, ...]:
    """What a scene says of its camera, and the clip does not; and air that would push."""
    u, mean, std = flight.fitted.u, *_start(flight.observed)[1:]
    view, said = flight.observed.view, []
    if u[DRAG] < -CONTRADICTED * std[DRAG]:
        said.append("it gets faster than gravity makes it: it does not fly freely all the time")
    told = ((FOCAL, "field of view", view.focal), (PITCH, "tilt", view.tilt), (ROLL, "roll", view.roll))
    for at, name, given in told:
        if given is not None and abs(u[at] - mean[at]) > CONTRADICTED * std[at]:
            said.append(f"by the clip the camera's {name} is another one than the scene says")
    return tuple(said)


TIED = 1e-3
"""Of what they were found with: nuisances that two halves share are held there."""


def early_and_late(flight: Flight) -> tuple[float, float]:
    """By how much log G differs between the first and the second half of the frames, and the deviation of that.

    Both halves share camera, drag and depth, as all frames gave them: what is left is what the model does not explain.
    """
    seen, u = flight.observed, flight.fitted.u
    half = float(np.median(seen.times))
    found = []
    for chosen in (seen.times <= half, seen.times > half):
        times = seen.times[chosen]
        hits = tuple(h for h in seen.hits if times[0] < h < times[-1])
        part = Observed(times, seen.x[chosen], seen.y[chosen], seen.across[chosen], hits, seen.size, seen.gap,
                        seen.view)  # fmt: skip
        if len(times) < FEWEST or min(np.bincount(part.part, minlength=len(hits) + 1)) < 4:
            return 0.0, 1.0
        start, mean, std = _start(part)
        for k in range(1, NUISANCES):
            start[k] = mean[k] = u[k]
            std[k] = TIED * std[k]
        found.append(_fitted(part, start, mean, std, tuple(flight.fitted.noise)))
    apart = float(found[1].u[G] - found[0].u[G])
    return apart, float(np.hypot(found[0].std(G), found[1].std(G)))
