"""Robots for study: where links are, mass matrices, inverse and forward dynamics, differentiable through torch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import kernelc as kc
from nablasim.physics.checks import finite, nearest
from nablasim.physics.laws import articulated
from nablasim.physics.model import Arrays, Model, Real, State, is_kernelc, is_torch, plain
from nablasim.physics.time.looks import Record, Values, look, push

JOINTS = {"q": ("coords.q", (-1,)), "qd": ("dofs.qd", (-1,))}
"""Where coordinates and rates of all robots are in a state."""


class Pose(NamedTuple):
    """Where the frame of a link is: its origin (m), and how it is turned, (x, y, z, w)."""

    x: Any
    rot: Any


def kinematics(model: Model, state: State | None = None) -> dict[str, dict[str, Pose]]:
    """The poses of all links, by robot and link, in a state; by default that of the start.

    In a batch the copies stand in front.
    """
    found = look("ph.kinematics", model, _record_frames, {}, state, start={"q": ("coords.q", (1, -1))})
    return {name: {link: Pose(pose.x[..., 0, :], pose.rot[..., 0, :]) for link, pose in poses.items()}
            for name, poses in _poses(model, found).items()}  # fmt: skip


def kinematics_of_frames(model: Model, q: Any) -> dict[str, dict[str, Pose]]:
    """The same of many frames: q is (frames, coordinates of all copies), a tensor or an array."""
    return _poses(model, look("links", model, _record_frames, {"q": q}))


def kinematics_along(model: Model, q: Real, ways: Mapping[str, Real], dq: Real) -> dict[str, dict[str, Pose]]:
    """How the poses of links move, (k, frames, …), where given columns of a scene do by (k, worlds, rows, *element),
    and q (frames, coordinates) by (frames, k, coordinates)."""
    moved = push(model, _record_frames, {"q": q}, ways, {"q": np.ascontiguousarray(np.moveaxis(dq, 1, 0))})
    made: dict[str, dict[str, Pose]] = {}
    for name, rows in _robots(model).items():
        first = rows["nodes"].start
        made[name] = {link: Pose(moved["x"][:, :, first + k], moved["rot"][:, :, first + k])
                      for link, k in model.layout.things[name].links.items()}  # fmt: skip
    return made


def mass_matrix(model: Model, state: State | None = None) -> dict[str, Any]:
    """The mass matrix of every robot, (dofs, dofs), armature included."""
    rows = look("ph.mass_matrix", model, _record_matrices, {}, state, start=JOINTS)["M"]
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
    return _dynamics("ph.inverse_dynamics", model, state, qdd, _record_inverse, "qdd")


def forward_dynamics(model: Model, state: State | None, torque: Mapping[str, Any]) -> dict[str, Any]:
    """The accelerations of joints that torques (N m or N) lead to in a state, by robot.

    With inertia, gravity, damping and stiffness; without motors, limits, dry friction and contact.
    """
    return _dynamics("ph.forward_dynamics", model, state, torque, _record_forward, "torque")


def _dynamics(
    op: str, model: Model, state: State | None, given: Mapping[str, Any], record: Record, what: str
) -> dict[str, Any]:
    robots = _robots(model)
    for name in given:
        if name not in robots:
            raise KeyError(f"{what}: there is no robot {name!r}: {nearest(name, robots)}")
    torques = _joined(model, robots, given, what)
    one = _by_copy(model, look(op, model, record, {"given": torques}, state, start=JOINTS)["out"])
    return {name: one[..., mine["dofs"].slice] for name, mine in robots.items()}


def _robots(model: Model) -> dict[str, Any]:
    found = {t.name: t.rows for t in model.layout.things.values() if t.kind == "robot"}
    if not found:
        raise ValueError("there is no robot in this scene: scene.add_robot(name, robot)")
    if model.layout.scenes and model.batch is None:
        raise ValueError("this is a batch of different scenes: look at one of model.scenes")
    return found


def _followed(value: Any) -> bool:
    """Whether a value is one that transforms of torch go through."""
    from kernelc.torch import followed

    return is_torch(value) and followed(value)


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
        if torch is None or not _followed(value):  # What torch's transforms push along shows no numbers.
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
