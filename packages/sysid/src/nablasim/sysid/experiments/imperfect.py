"""Table 4, left: bodies whose mass is searched for with a model that is wrong somewhere, and what intervals say then.

Boxes, rigid or soft, are pushed and fall on a ground; cloths are pushed and fly. All but the density is known, and in
each row of the table one thing of what is known is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.baselines.pathtracer import masks
from nablasim.sysid.experiments.answers import Missing, number
from nablasim.sysid.experiments.experiment import Chapter, Goal
from nablasim.sysid.problem import Param, Pictures, Problem
from nablasim.sysid.report import Table
from nablasim.sysid.video import Video

DT, EVERY = 1 / 960, 32
DENSITY = {"rigid": (20.0, 120.0), "soft": (20.0, 120.0), "cloth": (0.2, 1.2)}
"""kg/m³, of cloth kg/m²."""
SOFT, STIFF = 3e3, 3e4
"""Young's modulus (Pa) of soft boxes, and of soft ones that stand for rigid ones."""


@dataclass(frozen=True)
class Flaw:
    """A row: what is wrong, with which kinds of body, and the paper's mean error."""

    label: str
    kinds: tuple[str, ...]
    paper: float


FRICTION, ELASTIC = "unmodelled friction", "unmodelled elasticity"
AS_SOFT, AS_RIGID = "rigid as deformable", "deformable as rigid"
REALISTIC, PERFECT = "photorealistic pictures", "perfect model"
FLAWS = (
    Flaw(FRICTION, ("rigid", "soft"), 0.1866),
    Flaw(ELASTIC, ("rigid", "soft"), 0.2281),
    Flaw(AS_SOFT, ("rigid",), 0.3462),
    Flaw(AS_RIGID, ("soft",), 0.4974),
    Flaw(REALISTIC, ("rigid", "soft", "cloth"), 0.1793),
    Flaw(PERFECT, ("rigid", "soft", "cloth"), 0.1071),
)
WRONG = (FRICTION, ELASTIC, AS_SOFT, AS_RIGID)
"""Where the model of the motion is."""


@dataclass(frozen=True)
class Body:
    """One body, drawn from its kind and number."""

    kind: str
    index: int
    frames: int = 30
    size: int = 48

    @cached_property
    def drawn(self) -> dict[str, Any]:
        rng = np.random.default_rng([9, ("rigid", "soft", "cloth").index(self.kind), self.index])
        low, high = np.log(DENSITY[self.kind])
        turn, push = rng.normal(size=4), rng.normal(size=3) * [1.0, 0.3, 0.6]
        d: dict[str, Any] = {
            "density": float(np.exp(rng.uniform(low, high))), "size": rng.uniform(0.45, 0.65, 3),
            "rot": turn / np.linalg.norm(turn), "height": rng.uniform(0.7, 0.9),
            "vel": rng.uniform([-1, -1, -0.5], [1, 0, 0.5]), "omega": rng.uniform(-2, 2, 3),
        }  # fmt: skip
        # The push changes the speed of a body of middle density by one metre per second.
        middle = float(np.exp((low + high) / 2))
        bulk = float(np.prod(d["size"])) if self.kind != "cloth" else float(np.prod(d["size"][:2]))
        return {**d, "push": push / np.linalg.norm(push) * middle * bulk}

    @cached_property
    def mesh(self) -> ph.TetMesh:
        size = self.drawn["size"]
        return ph.TetMesh.box(tuple(size), cells=(2, 2, 2)).moved(pos=tuple(-size / 2))

    def model(self, kind: str, flaw: str = PERFECT) -> ph.Model:
        """As a body of some kind, its density in the middle of what it can be."""
        d, scene = self.drawn, ph.Scene()
        density = float(np.sqrt(DENSITY[kind][0] * DENSITY[kind][1]))
        start = {"pos": (0, d["height"], 0), "rot": d["rot"]}
        if kind == "rigid":
            scene.add_rigid("body", self.mesh.surface, density=density, vel=d["vel"], omega=d["omega"], **start)
        elif kind == "soft":
            E = STIFF if flaw == AS_SOFT else SOFT
            scene.add_soft("body", self.mesh, density=density, material=ph.NeoHookean(E=E, nu=0.3), damping=2.0,
                           vel=self._velocities(self.mesh.vertices), **start)  # fmt: skip
        else:
            mesh = ph.TriMesh.grid(tuple(d["size"][:2]), cells=(5, 5))
            scene.add_cloth("body", mesh, density=density, stretch=40.0, shear=25.0, damping=0.02, bend=1e-3,
                            drag=0.5, lift=0.3, vel=self._velocities(mesh.vertices), **start)  # fmt: skip
        if kind != "cloth":
            kd = 0.0 if flaw == ELASTIC else 8.0
            slips = flaw == FRICTION
            scene.add_ground("ground", ke=1500.0, kd=kd, kf=0.0 if slips else 20.0, mu=0.0 if slips else 0.5)
        scene.add_impulse("body", d["push"], t=0.05)
        return scene.build(real="float64")

    def _velocities(self, points: Any) -> NDArray[np.float64]:
        """Of the points of a body that moves as a rigid one."""
        arms = _turned(np.asarray(points) - np.asarray(points).mean(axis=0), self.drawn["rot"])
        return self.drawn["vel"] + np.cross(self.drawn["omega"], arms)

    @cached_property
    def silhouette(self) -> render.Silhouette:
        camera = render.Camera.look_at(eye=(0.0, 1.2, 3.6), target=(0.0, 0.5, 0.0), fov=45)
        return render.Silhouette(camera, size=(self.size, self.size), sigma_pixels=0.5)

    def film(self, flaw: str) -> Video | str:
        """What was seen of the true motion; or why it cannot be."""
        model = self.model(self.kind).replace({"body.density": self.drawn["density"]})
        motion = ph.rollout(model, dt=DT, steps=(self.frames - 1) * EVERY, every=EVERY)
        corners, faces = motion.vertices("body").float(), model.surfaces["body"].faces
        if flaw == REALISTIC:
            drawn = masks(corners.numpy(), faces, self.silhouette.camera, self.size)
            return drawn if isinstance(drawn, str) else Video(drawn, motion.times).rounded()
        return Video(self.silhouette(corners, faces).numpy(), motion.times).rounded()

    def problem(self, flaw: str, film: Video) -> Problem:
        """The fit of what may be a wrong model."""
        kind = {AS_SOFT: "soft", AS_RIGID: "rigid"}.get(flaw, self.kind)
        see = self.silhouette
        if flaw == REALISTIC:
            # Of sharp pictures: a soft edge is half a pixel too wide for them.
            see = render.Silhouette(see.camera, size=(self.size, self.size), sigma_pixels=0.07, sampling=4)
        params = [Param("body.density", DENSITY[kind])]
        return Problem(self.model(kind, flaw), target=film, observe=Pictures(see), dt=DT, params=params)


@dataclass(frozen=True)
class Judged:
    """The item: a body searched for with a flaw."""

    flaw: str
    body: Body

    def run(self) -> dict[str, Any] | Missing:
        """The error of the mass, whether its interval was certified, and whether that holds the truth."""
        from nablasim.sysid.fit import FitFailed

        film = self.body.film(self.flaw)
        if isinstance(film, str):
            return Missing(self.flaw, self.body.index, film)
        truth, problem = self.body.drawn["density"], self.body.problem(self.flaw, film)
        try:
            fit = problem.fit(starts=3, seed=self.body.index, progress=False)
        except FitFailed as error:
            # Not left out: what is known then is the blind guess.
            guess = float(np.exp(problem.space.draw(np.random.default_rng([self.body.index, 0]))[0]))
            return {"error": abs(guess / truth - 1), "certified": False, "holds": False, "why": str(error)}
        (found,) = fit.estimates
        return {"error": abs(found.value / truth - 1), "certified": found.certified,
                "holds": found.certified and found.low <= truth <= found.high, "why": "; ".join(found.why)}  # fmt: skip


SCALES = {"ci": 1, "desk": 4, "paper": 30}
"""Bodies of each kind."""


@dataclass(frozen=True)
class Imperfect:
    """The experiment."""

    name: str = "table4left"
    title: str = "Table 4, left: imperfect models"

    def items(self, size: str) -> list[Any]:
        small = {"frames": 24, "size": 32} if size == "ci" else {}
        return [Judged(f.label, Body(kind, k, **small)) for f in FLAWS for kind in f.kinds for k in range(SCALES[size])]

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        rows, goals, data = [], [], []
        for flaw in FLAWS:
            given = [(i, r) for i, r in zip(items, results) if i.flaw == flaw.label]
            known = [r for _, r in given if not isinstance(r, Missing)]
            data += [{"flaw": flaw.label, **asdict(i.body), **r} for i, r in given if not isinstance(r, Missing)]
            if not known:
                rows.append((flaw.label, given[0][1].why, "", number(flaw.paper), "", "", ""))
                continue
            errors = [r["error"] for r in known]
            certified, holds = sum(r["certified"] for r in known), sum(r["holds"] for r in known)
            rows.append((flaw.label, number(float(np.mean(errors))), number(float(np.median(errors))),
                         number(flaw.paper), f"{certified} of {len(known)}", str(certified - holds),
                         str(len(known))))  # fmt: skip
            if flaw.label in WRONG:
                wrong = f"{flaw.label}: certified intervals that miss the truth"
                goals.append(Goal(wrong, 0, certified - holds))
        heads = (
            "mean relative error of the mass",
            "here",
            "median",
            "the paper",
            "certified",
            "of them wrong",
            "bodies",
        )
        text = (
            "Boxes, rigid or soft, are thrown, pushed by a known impulse and fall on a ground; cloths are pushed and "
            "fly in air. One second is filmed in silhouettes of 48 × 48 pixels in 8 bits. The density is searched for "
            "from blind guesses by a model with one flaw; perfectly elastic means a ground that damps nothing. The "
            "mass of a body in its video follows from the impulse and from how deep it sinks into the ground.",
            "What is said of intervals is ours: a wrong model may err, and is not to be certified where it does.",
        )
        table = Table(heads, tuple(rows))
        return Chapter(self.name, self.title, text, (table,), () if size == "ci" else tuple(goals), (), {"fits": data})


def _turned(points: NDArray[np.float64], rot: NDArray[np.float64]) -> NDArray[np.float64]:
    """By a quaternion (x, y, z, w)."""
    axis, w = rot[:3], rot[3]
    return points + 2 * np.cross(axis, np.cross(axis, points) + w * points)


TABLE4LEFT = Imperfect()
