"""Fig. 4, 11 and 12: the loss over the mass of a cube, for videos of several lengths, and over a beam's moduli.

The paper shows one smooth minimum. That holds for flights; with bounces there are several, more of them the longer the
video is. The chapter counts them, and draws how a window that grows with the estimate comes down between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.experiments import sampling
from nablasim.sysid.experiments.answers import Missing
from nablasim.sysid.experiments.experiment import Chapter, Plate
from nablasim.sysid.experiments.valleys import Line, Valleys, valleys
from nablasim.sysid.problem import Param, Problem
from nablasim.sysid.report import Table
from nablasim.sysid.video import Video

TRUTH = {"cube.density": 1.0, "floor.ke": 400.0, "floor.mu": 0.4}
SPANS = {"cube.density": (0.1, 5.0), "floor.ke": (40.0, 4000.0), "floor.mu": (0.05, 1.5)}
WORDS = {"cube.density": "mass (kg)", "floor.ke": "ke (N/m)", "floor.mu": "mu"}
SUBSETS = ("every frame", "every fifth", "first and last")


@dataclass(frozen=True)
class Cube:
    """A cube of one kilogram and one metre that is pushed: it flies, or it falls on a floor and bounces."""

    contact: bool
    frames: int = 60
    size: int = 64
    every: int = 64

    @cached_property
    def drawn(self) -> dict[str, Any]:
        """How it starts, and how it is pushed."""
        pos, vel, push = (
            ((-1.2, 1.6, 0), (0.4, 0, 0), (0.9, 1.0, -0.3)) if self.contact else
            ((-0.8, -1, 0), (0, 6, 0), (0.8, 3.5, -0.3))
        )  # fmt: skip
        numbers = {"scale": (1, 1, 1), "pos": pos, "rot": ph.quat((1, 2, 3), 0.7), "vel": vel, "omega": (0.5, -1, 0.8),
                   "push": push, "at": (0.1, 0.1, 0.05)}  # fmt: skip
        made: dict[str, Any] = {name: np.array(value, np.float64) for name, value in numbers.items()}
        ground = {"ground.ke": TRUTH["floor.ke"], "ground.kd": 4.0, "ground.kf": 50.0, "ground.mu": TRUTH["floor.mu"]}
        return {**made, "flies": not self.contact, "truth": ground if self.contact else {}}

    @property
    def mesh(self) -> ph.TriMesh:
        return ph.Box(1, 1, 1).mesh()

    @cached_property
    def model(self) -> ph.Model:
        scene, d = ph.Scene(), self.drawn
        scene.add_rigid("cube", ph.Box(1, 1, 1), density=1.0, **{k: d[k] for k in ("pos", "rot", "vel", "omega")})
        if self.contact:
            scene.add_ground("floor", **{k.removeprefix("ground."): v for k, v in d["truth"].items()})
        scene.add_impulse("cube", d["push"], at=d["at"])
        return scene.build(real="float64")

    @cached_property
    def silhouette(self) -> render.Silhouette:
        eye, target = ((0, 2.5, 8), (0, 1.2, 0)) if self.contact else ((0, 1.5, 12), (0, 1.5, 0))
        camera = render.Camera.look_at(eye=eye, target=target, fov=45)
        return render.Silhouette(camera, size=(self.size, self.size), sigma_pixels=0.5)

    @property
    def dt(self) -> float:
        return 1 / (30 * self.every)

    @cached_property
    def film(self) -> Video:
        """In 8 bits."""
        motion = ph.rollout(self.model, dt=self.dt, steps=(self.frames - 1) * self.every, every=self.every)
        drawn = self.silhouette(motion.vertices("cube").float(), self.model.surfaces["cube"].faces)
        return Video(drawn.numpy(), motion.times).rounded()

    def problem(self, name: str) -> Problem:
        """To find one number, when all others are known."""
        params = [Param(name, SPANS[name])]
        return Problem(self.model, target=self.film, observe=self.silhouette, dt=self.dt, params=params)


@dataclass(frozen=True)
class Scan:
    """The item of one line: the misfit of every frame at many values of one number."""

    cube: Cube
    name: str
    points: int

    def run(self) -> dict[str, Any]:
        problem = self.cube.problem(self.name)
        u = np.linspace(problem.space.low[0], problem.space.high[0], self.points)
        parts = [problem.misfits(part[:, None]) for part in np.array_split(u, max(1, self.points // 24))]
        return {"values": np.exp(u), "misfits": np.concatenate(parts) / problem.bound.target.shape[1]}


@dataclass(frozen=True)
class Descent:
    """The item of one search from a blind guess, on all frames at once or on a growing window."""

    cube: Cube
    name: str
    horizon: str
    seed: int

    def run(self) -> dict[str, Any]:
        fit = self.cube.problem(self.name).fit(horizon=self.horizon, starts=1, seed=self.seed, progress=False)
        (start,) = fit.starts
        path = [(p["frames"], float(np.exp(p["u"][0]))) for p in start.path]
        return {"first": float(np.exp(start.first[0])), "path": path, "found": fit[self.name].value}


@dataclass(frozen=True)
class Plane:
    """The item of Fig. 4 (right) and 11 (left): a hanging beam, whose mu and lambda are both 1000 Pa."""

    points: int
    frames: int
    size: int

    def run(self) -> dict[str, Any]:
        problem = self._problem()
        u = np.linspace(problem.space.low[0], problem.space.high[0], self.points)
        grid = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
        parts = [problem.misfits(part).sum(axis=1) for part in np.array_split(grid, max(1, len(grid) // 50))]
        losses = np.concatenate(parts).reshape(self.points, self.points) / problem.bound.target.size
        fit = problem.fit(starts=1, seed=1, progress=False)
        path = [np.exp(p["u"]).tolist() for p in fit.starts[0].path]
        return {"values": np.exp(u), "losses": losses, "path": [np.exp(fit.starts[0].first).tolist(), *path]}

    def _problem(self) -> Problem:
        scene = ph.Scene()
        mesh = ph.TetMesh.box((1, 0.25, 0.25), (5, 1, 1))
        scene.add_soft("beam", mesh, density=20.0, material=ph.NeoHookean.paper(mu=1e3, lam=1e3), damping=2.0)
        scene.fix("beam", where=lambda x: x[:, 0] < 1e-6)
        model = scene.build(real="float64")
        camera = render.Camera.look_at(eye=(0.5, 0.1, 2.4), target=(0.5, -0.2, 0.1), fov=45)
        silhouette = render.Silhouette(camera, size=(self.size, self.size), sigma_pixels=0.5)
        motion = ph.rollout(model, dt=1 / 960, steps=(self.frames - 1) * 32, every=32)
        drawn = silhouette(motion.vertices("beam").float(), model.surfaces["beam"].faces)
        video = Video(drawn.numpy(), motion.times).rounded()
        params = [Param("beam.mu", (250.0, 4000.0)), Param("beam.lam", (250.0, 4000.0))]
        return Problem(model, target=video, observe=silhouette, dt=1 / 960, params=params)


@dataclass(frozen=True)
class Scale:
    """How large the experiment is."""

    points: int
    plane: int
    starts: int
    lengths: tuple[int, ...]
    size: int
    reinforce: int = 125
    """Steps of REINFORCE."""


SCALES = {
    "ci": Scale(13, 3, 1, (4, 8), 24, reinforce=3),
    "desk": Scale(241, 21, 10, (10, 20, 30, 60), 64),
    "paper": Scale(961, 41, 50, (10, 20, 30, 60), 64),
}


@dataclass(frozen=True)
class Landscapes:
    """The experiment."""

    name: str = "landscapes"
    title: str = "Fig. 4, 11, 12: loss landscapes"

    def items(self, size: str) -> list[Any]:
        scale = SCALES[size]
        flying, bouncing = (Cube(c, frames=scale.lengths[-1], size=scale.size) for c in (False, True))
        made: list[Any] = [Scan(flying, "cube.density", scale.points)]
        made += [Scan(bouncing, name, scale.points) for name in SPANS]
        made += [Descent(bouncing, name, horizon, seed) for name in SPANS for horizon in ("grow", "full")
                 for seed in range(scale.starts)]  # fmt: skip
        made += [Descent(flying, "cube.density", "grow", seed) for seed in range(scale.starts)]
        span = SPANS["cube.density"]
        made += [sampling.Scanned(cube, span, scale.points) for cube in (flying, bouncing)]
        made += [sampling.Sampled(flying, span, seed, scale.reinforce) for seed in range(scale.starts)]
        return [*made, Plane(scale.plane, scale.lengths[-1] // 2, scale.size)]

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        lengths = SCALES[size].lengths
        scans = [(i, r) for i, r in zip(items, results) if isinstance(i, Scan)]
        every = [(i, r) for i, r in zip(items, results) if isinstance(i, Descent)]
        descents = [(i, r) for i, r in every if i.cube.contact]
        theirs = [(i, r) for i, r in zip(items, results) if isinstance(i, sampling.Scanned)]
        plane = results[-1]
        rows: list[tuple[str, ...]] = []
        for scan, result in scans:
            for subset in SUBSETS if scan.name == "cube.density" else SUBSETS[:1]:
                rows += _lines("", scan.cube, scan.name, result, lengths, subset)
        for other, result in theirs:
            if not isinstance(result, Missing):
                rows += _lines(" in PyBullet", other.cube, "cube.density", result, lengths, SUBSETS[0])
        plates = [
            Plate(_draw_lengths(scans, lengths), "The loss for videos of several lengths, all frames compared."),
            Plate(_draw_subsets(scans, lengths[-1]), "As the paper's Fig. 4 and 12: which frames are compared."),
            Plate(_draw_paths(scans, descents), "Growing windows: the loss of each window over the whole range, and "
                  "where the search stood when it was fitted. The truth is the dotted line."),
            Plate(_draw_plane(plane), "The loss over a beam's moduli, and the path of a fit from a blind guess."),
        ]  # fmt: skip
        heads = ("cube", "along", "frames", "compared", "minima", "basin of the truth", "truth")
        ends = {"Levenberg and Marquardt, growing window": [r["found"] for i, r in every if not i.cube.contact]}
        (flight,) = [r for i, r in theirs if not i.cube.contact]
        if not isinstance(flight, Missing):
            ends[sampling.NAME] = [r["found"] for i, r in zip(items, results) if isinstance(i, sampling.Sampled)]
            plates.append(sampling.plate(flight, TRUTH["cube.density"]))
        tables = (
            Table(heads, (*rows, PAPER), "Minima and basins"), _searches(descents), sampling.centres_table(flight),
            sampling.searches_table(ends, TRUTH["cube.density"]),
        )  # fmt: skip
        grid = plane["losses"]
        text = (
            "A cube of 1 kg flies, or bounces; one number is wrong and all others are known. A minimum counts if it is "
            f"deeper than a thousandth of the largest loss; {len(scans[0][1]['values'])} values lie on a line, evenly "
            "in the logarithm. The basin is where every step down leads to the truth.",
            f"Points that are lower than their eight neighbours, of the beam's loss over mu and lambda on a grid of "
            f"{len(grid)} × {len(grid)} from 250 to 4000 Pa: {_plane_minima(grid)}.",
        )
        data = {"minima": rows, "descents": [{**asdict(i), **r} for i, r in every], "flights": ends}
        return Chapter(self.name, self.title, text, tables, (), tuple(plates), data)


PAPER = ("  the paper", "mass; mu, lambda of a beam", "all", "each of these", "1", "all that it shows", "")
"""Its row of the table."""


def loss(result: Mapping[str, Any], frames: int, subset: str) -> Line:
    """Of the first frames of a scan, or some of them."""
    chosen = {"every frame": slice(0, frames), "every fifth": slice(0, frames, 5), "first and last": [0, frames - 1]}
    return np.asarray(result["misfits"][:, chosen[subset]].mean(axis=1))


def _lines(
    where: str, cube: Cube, name: str, result: Mapping[str, Any], lengths: Sequence[int], subset: str
) -> list[tuple[str, ...]]:
    """Rows of the table: minima and basin for each length of the video."""
    rows: list[tuple[str, ...]] = []
    for frames in lengths:
        found = valleys(result["values"], loss(result, frames, subset), TRUTH[name])
        moves = ("bounces" if cube.contact else "flies") + where
        rows.append((moves, WORDS[name], str(frames), subset, str(found.minima), _stretch(found), f"{TRUTH[name]:g}"))
    return rows


def _stretch(found: Valleys) -> str:
    return f"{found.low:.3g} to {found.high:.3g}" if found.low < found.high else "flat: these frames do not tell"


def _plane_minima(grid: Line) -> int:
    """Points of a grid that are lower than all of their eight neighbours."""
    wide = np.pad(grid, 1, constant_values=np.inf)
    n, m = grid.shape
    around = [wide[1 + i : 1 + i + n, 1 + j : 1 + j + m] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    return int(np.logical_and.reduce([grid < other for other in around]).sum())


def _searches(descents: Sequence[tuple[Descent, Any]]) -> Table:
    rows = []
    for name in SPANS:
        cells = []
        for horizon in ("full", "grow"):
            ends = [abs(r["found"] / TRUTH[name] - 1) for i, r in descents if i.name == name and i.horizon == horizon]
            cells.append(f"{sum(e < 0.01 for e in ends)} of {len(ends)}")
        rows.append((WORDS[name], *cells))
    return Table(("bouncing cube: blind starts that find", "on all frames", "on a growing window"), tuple(rows))


# -- drawings
def _draw_lengths(scans: Sequence[tuple[Scan, Any]], lengths: Sequence[int]) -> Figure:
    figure = Figure(figsize=(9, 6), layout="constrained")
    for axes, (scan, result) in zip(figure.subplots(2, 2).ravel(), scans):
        for frames in lengths:
            axes.semilogy(result["values"], loss(result, frames, "every frame"), label=f"{frames} frames", linewidth=1)
        _frame(axes, scan)
    figure.axes[0].legend(fontsize="small")
    return figure


def _draw_subsets(scans: Sequence[tuple[Scan, Any]], frames: int) -> Figure:
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for axes, (scan, result) in zip(figure.subplots(1, 2), [s for s in scans if s[0].name == "cube.density"]):
        for subset in SUBSETS:
            axes.plot(result["values"], loss(result, frames, subset), label=subset, linewidth=1)
        _frame(axes, scan)
    figure.axes[0].legend(fontsize="small")
    return figure


def _draw_paths(scans: Sequence[tuple[Scan, Any]], descents: Sequence[tuple[Descent, Any]]) -> Figure:
    """For each number of the bouncing cube, the longest path of the growing windows."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    bouncing = [s for s in scans if s[0].cube.contact]
    for axes, (scan, result) in zip(figure.subplots(1, len(bouncing)), bouncing):
        paths = [r for i, r in descents if i.name == scan.name and i.horizon == "grow"]
        chosen = max(paths, key=lambda r: len(r["path"]))
        at, shades = chosen["first"], np.linspace(0.75, 0.0, len(chosen["path"]))
        for (frames, value), shade in zip(chosen["path"], shades):
            line = loss(result, frames, "every frame")
            axes.semilogy(result["values"], line, color=str(shade), linewidth=1, label=f"{frames} frames")
            heights = np.interp(np.log([at, value]), np.log(result["values"]), line)
            axes.annotate("", xy=(value, heights[1]), xytext=(at, heights[0]),
                          arrowprops={"arrowstyle": "->", "color": "tab:orange", "linewidth": 1.5})  # fmt: skip
            axes.plot(at, heights[0], "o", color="tab:orange", markersize=3)
            at = value
        _frame(axes, scan)
        axes.legend(fontsize="x-small")
    return figure


def _frame(axes: Any, scan: Scan) -> None:
    axes.axvline(TRUTH[scan.name], color="gray", linestyle=":", linewidth=1)
    axes.set(xscale="log", xlabel=WORDS[scan.name], ylabel="mean of squares",
             title="bounces" if scan.cube.contact else "flies")  # fmt: skip
    axes.grid(True, alpha=0.3)


def _draw_plane(plane: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(4.8, 3.8), layout="constrained")
    axes = figure.subplots()
    values, path = np.asarray(plane["values"]), np.array(plane["path"])
    drawn = axes.contourf(values, values, np.log10(np.maximum(plane["losses"].T, 1e-9)), levels=20)
    figure.colorbar(drawn, label="log10 of the mean of squares")
    axes.plot(path[:, 0], path[:, 1], "o-", color="tab:orange", markersize=3)
    axes.plot(1e3, 1e3, "x", color="white")
    axes.set(xscale="log", yscale="log", xlabel="mu (Pa)", ylabel="lambda (Pa)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([250, 500, 1000, 2000, 4000], ["250", "500", "1000", "2000", "4000"])
        axis.set_ticks([], minor=True)
    return figure


LANDSCAPES = Landscapes()
