"""A cube that is tossed onto a floor, by this physics and by MuJoCo, behind one door.

    engine.predict(values, tosses, of)    positions (tosses, frames, 3) and quaternions (tosses, frames, 4)

Both get the same starts, masses, floor and gravity; what differs is the contact. `fitted` searches in logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from nablasim import physics as ph
from nablasim.sysid.experiments.toss_data import GRAVITY, Floats, Flown, Started, Toss, misses

MASS = 0.37
DEGREES = 1.3
"""Per cent of the width that count as much as a degree: about the ratio of both errors of a fitted engine."""

FIRSTS = 3
"""Points that the optimiser begins at."""

TOUCH = 1e-4
"""Metres of penetration from which on the damper acts fully: a hard cube on a hard plate."""

Bounds = Mapping[str, tuple[float, float]]
INERTIA: Bounds = {"inertia": (0.9, 5 / 3)}
"""Beside that of a uniform cube: five thirds is all the mass in the faces."""


def moment(values: Mapping[str, float], of: Flown) -> float:
    """The moment of inertia about any axis through the centre."""
    return values["inertia"] * MASS * (2 * of.half_width) ** 2 / 6


class Engine(Protocol):
    """What predicts tosses from their starts, with numbers of the contact."""

    @property
    def name(self) -> str: ...

    @property
    def bounds(self) -> Bounds: ...

    @property
    def defaults(self) -> Mapping[str, float]: ...

    def predict(self, values: Mapping[str, float], tosses: Sequence[Started], of: Flown) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True)
class Ours:
    """Compliant contact at the corners, all tosses of a call in one batch. Friction is that of Coulomb."""

    name: str = "nablasim"
    substeps: int = 12

    @property
    def bounds(self) -> Bounds:
        """mu; the rate of the spring at a corner (1/s), its damper as a part of the critical one, how steeply friction
        sets in (N s/m), and the inertia: nobody says what is inside."""
        return {"friction": (0.1, 0.4), "rate": (60.0, 500.0), "ratio": (0.1, 4.0), "stick": (5.0, 1e3), **INERTIA}

    @property
    def defaults(self) -> Mapping[str, float]:
        return {"friction": 0.5, "rate": 300.0, "ratio": 0.1, "stick": 100.0, "inertia": 1.0}

    def numbers(self, values: Mapping[str, float]) -> dict[str, float]:
        """Stiffness (N/m), damping (N s/m), and friction as the scene takes them."""
        rate, ratio = values["rate"], values["ratio"]
        ke, kd = MASS * rate**2, 2 * ratio * MASS * rate
        return {"ke": ke, "kd": kd, "kf": values["stick"], "mu": values["friction"]}

    def predict(self, values: Mapping[str, float], tosses: Sequence[Started], of: Flown) -> tuple[Floats, Floats]:
        width, frames = 2 * of.half_width, max(len(t.toss.position) for t in tosses)
        scene = ph.Scene(gravity=(0, 0, -GRAVITY))
        scene.add_rigid("cube", ph.Box(width, width, width), mass=MASS, inertia=np.eye(3) * moment(values, of))
        n = self.numbers(values)
        scene.add_plane("floor", normal=(0, 0, 1), touch=TOUCH, ke=n["ke"], kd=n["kd"], kf=n["kf"], mu=n["mu"])
        model = scene.build(batch=len(tosses), real="float64").replace(
            {
                "cube.x": np.stack([t.toss.position[0] for t in tosses]),
                "cube.rot": np.stack([t.toss.turned[0] for t in tosses]),
                "cube.v": np.stack([t.velocity for t in tosses]),
                "cube.omega": np.stack([t.spin for t in tosses]),
            }
        )
        run = ph.rollout(model, dt=1 / of.fps, steps=frames - 1, substeps=self.substeps).numpy()["cube"]
        return run.x, run.rot


@dataclass(frozen=True)
class MuJoCo:
    """A box on a plane with MuJoCo's soft contact (`solref` in its direct form) and its elliptic cone."""

    own_tool: bool = False
    """Fitted by `mujoco.minimize.least_squares` instead of the simplex that this physics is fitted by."""
    substeps: int = 8

    @property
    def name(self) -> str:
        return "MuJoCo, own fit" if self.own_tool else "MuJoCo"

    @property
    def bounds(self) -> Bounds:
        return {"friction": (0.1, 0.4), "rate": (60.0, 500.0), "ratio": (0.1, 4.0), **INERTIA}

    @property
    def defaults(self) -> Mapping[str, float]:
        """`solref` 0.02, 1 and friction 1 are MuJoCo's own."""
        return {"friction": 1.0, "rate": 50.0, "ratio": 1.0, "inertia": 1.0}

    def predict(self, values: Mapping[str, float], tosses: Sequence[Started], of: Flown) -> tuple[Floats, Floats]:
        mujoco = _mujoco()
        model = mujoco.MjModel.from_xml_string(self.scene(values, of))
        data = mujoco.MjData(model)
        frames = max(len(t.toss.position) for t in tosses)
        out = np.zeros((len(tosses), frames, 7))
        for k, start in enumerate(tosses):
            mujoco.mj_resetData(model, data)
            x, y, z, w = start.toss.turned[0]
            data.qpos[:] = (*start.toss.position[0], w, x, y, z)
            data.qvel[:3] = start.velocity
            mujoco.mju_rotVecQuat(data.qvel[3:6], start.spin, np.array([w, -x, -y, -z]))  # its spin is the body's
            out[k, 0] = data.qpos
            for frame in range(1, len(start.toss.position)):
                mujoco.mj_step(model, data, self.substeps)
                out[k, frame] = data.qpos
        return out[:, :, :3], out[:, :, [4, 5, 6, 3]]

    def scene(self, values: Mapping[str, float], of: Flown) -> str:
        rate, ratio, h, own = values["rate"], values["ratio"], of.half_width, moment(values, of)
        return f"""<mujoco><option timestep="{1 / of.fps / self.substeps}" gravity="0 0 {-GRAVITY}" cone="elliptic"/>
            <default><geom friction="{values["friction"]} 0 0" solref="{-(rate**2)} {-2 * ratio * rate}"/></default>
            <worldbody><geom type="plane" size="5 5 1"/>
            <body><freejoint/><inertial pos="0 0 0" mass="{MASS}" diaginertia="{own} {own} {own}"/>
            <geom type="box" size="{h} {h} {h}"/></body></worldbody></mujoco>"""


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise ImportError("MuJoCo is not installed: pip install mujoco") from error
    return mujoco


def restitution(engine: Engine, values: Mapping[str, float], of: Flown, speed: float = 1.0) -> float:
    """Speed after over speed before, of a cube that falls flat onto the floor: what the found contact does."""
    frames = 2 + int(of.fps * 2 * speed / GRAVITY)
    turned = np.tile((0.0, 0.0, 0.0, 1.0), (frames, 1))
    flat = Toss(np.tile((0.0, 0.0, of.half_width), (frames, 1)), turned)
    position, _ = engine.predict(values, [Started(flat, np.array((0.0, 0.0, -speed)), np.zeros(3))], of)
    height = position[0, :, 2] - of.half_width
    top = height[int(height.argmin()) :].max()
    return float(np.sqrt(2 * GRAVITY * max(0.0, float(top))) / speed)


# ---------------------------------------------------------------------------------------------------------------- fits
def errors(engine: Engine, values: Mapping[str, float], tosses: Sequence[Started], of: Flown) -> Floats:
    """Of each toss, position and rotation together."""
    rows = misses(tosses, *engine.predict(values, tosses, of), of.half_width)
    rows = np.where(np.isfinite(rows), rows, 1e3)
    return np.asarray(rows[:, 0] + DEGREES * rows[:, 1], dtype=np.float64)


def loss(engine: Engine, values: Mapping[str, float], tosses: Sequence[Started], of: Flown) -> float:
    """The mean over tosses. The mean, not its square: a toss that falls onto another face than the real one is lost,
    and must not drown the others."""
    return float(errors(engine, values, tosses, of).mean())


def fitted(
    engine: Engine, tosses: Sequence[Started], of: Flown, *, samples: int, steps: int, seed: int = 0
) -> dict[str, float]:
    """The best of a Sobol sequence over the bounds, the engine's optimiser from a few of them, and again from the best.

    From one alone it often stays where it is: tosses are chaotic, and their mean has many small valleys.
    """
    names = list(engine.bounds)
    low, high = np.log([engine.bounds[n] for n in names]).T

    def at(u: Floats) -> Floats:
        return errors(engine, dict(zip(names, np.exp(np.clip(u, low, high)))), tosses, of)

    drawn = qmc.scale(qmc.Sobol(len(names), seed=seed).random(samples), low, high)
    firsts = sorted(drawn, key=lambda u: float(at(u).mean()))[:FIRSTS]
    refine = _least_squares if getattr(engine, "own_tool", False) else _simplex
    ends = [refine(at, u, low, high, steps // 2) for u in firsts]
    best = min(ends, key=lambda u: float(at(u).mean()))
    found = min((best, refine(at, best, low, high, steps)), key=lambda u: float(at(u).mean()))
    return {name: float(value) for name, value in zip(names, np.exp(np.clip(found, low, high)))}


def _simplex(at: Callable[[Floats], Floats], best: Floats, low: Floats, high: Floats, steps: int) -> Floats:
    """That of Nelder and Mead."""
    corners = np.vstack([best, best + 0.15 * np.eye(len(best)) * (high - low)])
    options = {"maxfev": steps, "initial_simplex": corners}
    return np.asarray(minimize(lambda u: float(at(u).mean()), best, method="Nelder-Mead", options=options).x)


def _least_squares(at: Callable[[Floats], Floats], best: Floats, low: Floats, high: Floats, steps: int) -> Floats:
    """MuJoCo's own. Residuals are roots, so that their squares are the same loss; differences are taken over one per
    cent, because a toss is chaotic."""
    _mujoco()
    from mujoco.minimize import Verbosity, least_squares

    def roots(points: Floats) -> Floats:
        return np.sqrt(np.stack([at(u) for u in points.T], axis=1))

    found, _ = least_squares(
        best,
        roots,
        bounds=[low, high],
        eps=0.01,
        max_iter=max(1, steps // (len(best) + 2)),
        verbose=Verbosity.SILENT,
    )
    return np.asarray(found)
