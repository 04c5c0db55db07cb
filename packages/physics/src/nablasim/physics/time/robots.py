"""Robots for study: where links are, mass matrices, inverse and forward dynamics, differentiable through torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

import kernelc as kc
from nablasim.physics.checks import finite, nearest
from nablasim.physics.laws import articulated
from nablasim.physics.model import Array, Arrays, Model, Real, State, is_kernelc, is_torch, needs_gradient, plain
from nablasim.physics.time.integrators import named
from nablasim.physics.time.leaves import Leaves
from nablasim.physics.time.program import Program
from nablasim.physics.time.programs import program_of

Values = dict[str, Array]


class Pose(NamedTuple):
    """Where the frame of a link is: its origin (m), and how it is turned, (x, y, z, w)."""

    x: Any
    rot: Any


def kinematics(model: Model, state: State | None = None) -> dict[str, dict[str, Pose]]:
    """The poses of all links, by robot and link, in a state; by default that of the start.

    In a batch the copies stand in front.
    """
    columns = model.columns if state is None else state.columns
    q = np.asarray(columns["coords.q"], model.real).reshape(1, -1)
    found = _run(model, _record_frames, {"q": q}, own_state=state is None)
    return {name: {link: Pose(pose.x[..., 0, :], pose.rot[..., 0, :]) for link, pose in poses.items()}
            for name, poses in _poses(model, found).items()}  # fmt: skip


def kinematics_of_frames(model: Model, q: Any) -> dict[str, dict[str, Pose]]:
    """The same of many frames: q is (frames, coordinates of all copies), a tensor or an array."""
    return _poses(model, _run(model, _record_frames, {"q": q}, own_state=False))


def mass_matrix(model: Model, state: State | None = None) -> dict[str, Any]:
    """The mass matrix of every robot, (dofs, dofs), armature included."""
    rows = _run(model, _record_matrices, _state(model, state), own_state=state is None)["M"]
    layout = model.layout
    one = _by_copy(model, rows)
    made = {}
    for name, mine in _robots(model).items():
        above, depth, row = (layout.indices[f"dofs.{q}"][mine["dofs"].slice] for q in ("above", "depth", "row"))
        start, n = mine["dofs"].start, mine["dofs"].count
        at = np.full((n, n), -1)
        for k in range(n):
            j = k
            for e in range(depth[k]):
                at[k, j] = at[j, k] = row[k] + e
                j = above[j] - start
        entries = one[..., np.maximum(at, 0)]
        made[name] = entries * _like(entries, at >= 0)
    return made


def inverse_dynamics(model: Model, state: State | None, qdd: Mapping[str, Any]) -> dict[str, Any]:
    """The torques (N m or N) that accelerations of joints need in a state, by robot.

    Against inertia, gravity, damping and stiffness: the exact inverse of `forward_dynamics`.
    """
    return _dynamics(model, state, qdd, _record_inverse, "qdd")


def forward_dynamics(model: Model, state: State | None, torque: Mapping[str, Any]) -> dict[str, Any]:
    """The accelerations of joints that torques (N m or N) lead to in a state, by robot.

    With inertia, gravity, damping and stiffness; without motors, limits, dry friction and contact.
    """
    return _dynamics(model, state, torque, _record_forward, "torque")


def _dynamics(model: Model, state: State | None, given: Mapping[str, Any], record: Any, what: str) -> dict[str, Any]:
    robots = _robots(model)
    for name in given:
        if name not in robots:
            raise KeyError(f"{what}: there is no robot {name!r}: {nearest(name, robots)}")
    values = _state(model, state) | {"given": _joined(model, robots, given, what)}
    one = _by_copy(model, _run(model, record, values, own_state=state is None)["out"])
    return {name: one[..., mine["dofs"].slice] for name, mine in robots.items()}


def _robots(model: Model) -> dict[str, Any]:
    found = {t.name: t.rows for t in model.layout.things.values() if t.kind == "robot"}
    if not found:
        raise ValueError("there is no robot in this scene: scene.add_robot(name, robot)")
    if model.layout.scenes and model.batch is None:
        raise ValueError("this is a batch of different scenes: look at one of model.scenes")
    return found


def _state(model: Model, state: State | None) -> dict[str, Real]:
    columns = model.columns if state is None else state.columns
    return {key: np.asarray(columns[name], model.real).reshape(-1)
            for key, name in (("q", "coords.q"), ("qd", "dofs.qd"))}  # fmt: skip


def _joined(model: Model, robots: Mapping[str, Any], given: Mapping[str, Any], what: str) -> Any:
    """One value for all robots and copies: those of each robot beside each other."""
    worlds, parts = model.layout.worlds, []
    torch: Any = import_module("torch") if any(is_torch(value) for value in given.values()) else None
    for name, rows in sorted(robots.items(), key=lambda item: item[1]["dofs"].start):
        n = rows["dofs"].count
        value: Any = given.get(name, np.zeros(n))
        if is_kernelc(value):
            raise TypeError(f"{what} of {name}: give a torch tensor or a NumPy array")
        value = value if is_torch(value) else np.asarray(value, np.float64)
        if tuple(value.shape) not in ((n,), (worlds, n)) or (value.ndim == 2 and model.batch is None):
            sizes = f"({n},)" + (f" or ({worlds}, {n})" if model.batch else "")
            raise ValueError(f"{what} of {name} has shape {tuple(value.shape)}; expected {sizes}")
        finite(f"{what} of {name}", plain(value))
        if torch is None:
            parts.append(np.broadcast_to(value, (worlds, n)))
        else:
            value = value if is_torch(value) else torch.as_tensor(value)
            parts.append(value.to(getattr(torch, model.real)).expand(worlds, n))
    return np.concatenate(parts, axis=1).reshape(-1) if torch is None else torch.cat(parts, dim=1).reshape(-1)


# -- launches, recorded once for a program
def _record_frames(a: Arrays, v: Values) -> Values:
    frames = v["q"].shape[0]
    tables = {"x": ("nodes", kc.float3), "rot": ("nodes", kc.quat), "origin": ("robots", kc.float3),
              "turn": ("dofs", kc.float3), "slide": ("dofs", kc.float3)}  # fmt: skip
    out = {name: a.scratch(f"robots.{name}", (frames, a.rows(table)), kind) for name, (table, kind) in tables.items()}
    shape = (frames, a.rows("robots"))
    tree, rig = articulated.tree(a), articulated.rig(a)
    kc.launch(articulated.kernels.poses_of_frames, shape, [tree, rig, v["q"]], list(out.values()))
    return {"x": out["x"], "rot": out["rot"]}


def _placed(a: Arrays, v: Values) -> tuple[Any, Any]:
    p = articulated.memory(a, articulated.Poses)
    kc.launch(articulated.kernels.poses, a.rows("robots"), [articulated.tree(a), articulated.rig(a), v["q"]], [p],
              parts=a.parts)  # fmt: skip
    return p, articulated.now(v["q"], v["qd"])


def _record_matrices(a: Arrays, v: Values) -> Values:
    (p, _), M = _placed(a, v), a.scratch("robots.M", a.rows("couplings"))
    given = [articulated.tree(a), articulated.masses(a), p, articulated.memory(a, articulated.Composite)]
    kc.launch(articulated.kernels.matrices, a.rows("robots"), given, [M], parts=a.parts)
    return {"M": M}


def _record_inverse(a: Arrays, v: Values) -> Values:
    (p, now), tau = _placed(a, v), a.scratch("robots.tau", a.rows("dofs"))
    given = [articulated.tree(a), articulated.masses(a), articulated.drives(a), p,
             articulated.memory(a, articulated.Motion), now, v["given"]]  # fmt: skip
    kc.launch(articulated.kernels.inverse_dynamics, a.rows("robots"), given, [tau], parts=a.parts)
    return {"out": tau}


def _record_forward(a: Arrays, v: Values) -> Values:
    p, now = _placed(a, v)
    L, none, guess, out = (a.scratch(f"robots.{name}", a.rows("couplings" if name == "L" else "dofs"))
                           for name in ("L", "none", "guess", "out"))  # fmt: skip
    t, b, d = articulated.tree(a), articulated.masses(a), articulated.drives(a)
    memory = [articulated.memory(a, kind) for kind in (articulated.Motion, articulated.Composite)]
    still = [t, b, d, p, *memory, now, L, none, v["given"]]
    kc.launch(articulated.kernels.guess_forward, a.rows("robots"), still, [guess], parts=a.parts)
    given = [t, b, d, p, articulated.memory(a, articulated.Motion), now, L, guess, v["given"]]
    kc.launch(articulated.kernels.forward_dynamics, a.rows("robots"), given, [out], parts=a.parts)
    return {"out": out}


class _Pass:
    """Launches on a tape, with the state and what else is given as leaves."""

    def __init__(self, program: Program, record: Callable[[Arrays, Values], Values], values: Mapping[str, Any]):
        self.program = program
        real = kc.float64 if program.real == "float64" else kc.float32
        self.leaves: Values = {n: kc.zeros(tuple(v.shape), real=real, requires_grad=True) for n, v in values.items()}
        for name in ("q", "qd"):
            if name in self.leaves:  # Recording runs the launches once: from a state in which nothing divides by zero.
                self.leaves[name].numpy()[...] = plain(values[name])
        with kc.Tape() as self.tape:
            self.out = record(program.arrays, self.leaves)

    def forward(self, columns: Mapping[str, Real], values: Mapping[str, Real]) -> dict[str, Real]:
        with self.program.lock:
            self._load(columns, values)
            return {name: a.numpy().copy() for name, a in self.out.items()}

    def backward(self, columns: Mapping[str, Real], values: Mapping[str, Real], seeds: Mapping[str, Real]
                 ) -> tuple[dict[str, Real], dict[str, Real]]:  # fmt: skip
        """Gradients by given columns, and by the leaves."""
        program = self.program
        with program.lock:
            self._load(columns, values)
            program.clear_gradients()
            grads: dict[str, Real] = {name: a.grad.numpy() for name, a in self.leaves.items()}
            for grad in grads.values():
                grad[...] = 0
            self.tape.backward(grads={self.out[name]: g for name, g in seeds.items()})
            found = program.finish_gradients() if program.differentiable else {}
            return found, {name: grad.copy() for name, grad in grads.items()}

    def _load(self, columns: Mapping[str, Real], values: Mapping[str, Real]) -> None:
        self.program.load(None, columns, 0.0)
        for name, value in values.items():
            self.leaves[name].numpy()[...] = value
        self.tape.replay()


PASSES = 8
"""How many recorded passes a program keeps."""


def _run(model: Model, record: Any, values: dict[str, Any], *, own_state: bool) -> dict[str, Any]:
    """Run what is recorded. `own_state`: q and qd are those of the model, and gradients go to its parameters."""
    leaves = Leaves(model, None, 0)
    program = program_of(leaves, named("semi_implicit"), leaves.columns(name for name, _, _ in leaves.wanted))
    shapes = tuple((name, tuple(v.shape)) for name, v in values.items())
    kept = program.studies
    if (record, shapes) not in kept:
        if len(kept) >= PASSES:
            del kept[next(iter(kept))]
        kept[record, shapes] = _Pass(program, record, values)
    made, columns = kept[record, shapes], model.columns
    numbers = {name: np.asarray(plain(v), model.real) for name, v in values.items()}
    if any(is_kernelc(v) for v in leaves.asking):
        raise TypeError("robots are looked at with torch tensors or numbers: an array of kernelc asks for a gradient")
    asking = {name: v for name, v in values.items() if needs_gradient(v)}
    if find_spec("torch") is None:
        return dict(made.forward(columns, numbers))
    from nablasim.physics.time.autograd import operation

    def pull(seeds: dict[str, Real]) -> list[Real]:
        by_column, by_leaf = made.backward(columns, numbers, seeds)
        for key, column in (("q", "coords.q"), ("qd", "dofs.qd")):
            zero = np.zeros((model.layout.worlds, model.layout.count[column.partition(".")[0]]))
            by_column[column] = by_leaf[key].reshape(zero.shape) if own_state and key in by_leaf else zero
        return [*leaves.gradients(by_column, {}), *(by_leaf[name] for name in asking)]

    return operation(lambda: made.forward(columns, numbers), list(made.out), pull, [*leaves.asking, *asking.values()])


# -- results by robot
def _by_copy(model: Model, values: Any) -> Any:
    """(rows of all copies) by copies; without them where there is one scene."""
    return values.reshape(model.layout.worlds, -1) if model.batch is not None else values


def _like(values: Any, mask: Any) -> Any:
    if is_torch(values):
        return values.new_tensor(mask, dtype=values.dtype)
    return mask.astype(values.dtype)


def _poses(model: Model, found: Mapping[str, Any]) -> dict[str, dict[str, Pose]]:
    """By robot and link, (frames, 3) and (frames, 4), the copies in front in a batch."""
    layout, made = model.layout, dict[str, dict[str, Pose]]()
    apart = {}
    for name, values in found.items():
        frames, width = values.shape[0], values.shape[-1]
        one = values.reshape(frames, layout.worlds, -1, width)
        apart[name] = one[:, 0] if model.batch is None else one.swapaxes(0, 1)
    for name, rows in _robots(model).items():
        first = rows["nodes"].start
        made[name] = {link: Pose(apart["x"][..., first + k, :], apart["rot"][..., first + k, :])
                      for link, k in layout.things[name].links.items()}  # fmt: skip
    return made
