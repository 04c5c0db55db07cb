"""The closed loop: before every step policies are shown where the model is. One model, or a batch of copies of it.

Policies are written for one model. Of a batch they are asked for all copies at once, by `torch.func.vmap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from nablasim import physics as ph
from nablasim.sysid.control.policies import shown_to

if TYPE_CHECKING:
    from nablasim.sysid.control.task import Task

States = dict[str, torch.Tensor]
"""By quantity, "gear.x"; with the copies in front in a batch."""
TABLES = ("loads", "body_loads")
"""Of forces and impulses that act at certain times."""


def start_of(model: ph.Model) -> States:
    """Where a model begins."""
    return {f"{name}.{what}": torch.tensor(np.asarray(getattr(model.state0[name], what)))
            for name in model.state0 for what in model.state0[name].names}  # fmt: skip


def walked(task: Task, model: ph.Model) -> Any:
    """A whole motion: each step is a rollout of its own, from the state that the one before it came to."""
    check_timeless(model)
    state, frames, said = start_of(model), list[States](), list[States]()
    copies = () if model.batch is None else (model.batch,)
    for time in task.times[:-1]:
        moved, state, actions = stepped(task, model, state, torch.full(copies, float(time), dtype=torch.float64))
        if not frames:
            frames.append({name: values[:1] for name, values in moved.columns.items()})
        frames.append({name: values[-1:] for name, values in moved.columns.items()})
        said.append(actions)
    columns = {name: torch.cat([frame[name] for frame in frames]) for name in frames[0]}
    motion: Any = ph.Trajectory(model.layout, task.times, columns, None, model)
    motion.said = {name: torch.stack([actions[name] for actions in said]) for name in said[0]}
    return motion


def stepped(task: Task, model: ph.Model, state: States, time: torch.Tensor,
            noise: Mapping[str, torch.Tensor] | None = None) -> tuple[Any, States, States]:  # fmt: skip
    """One step from a state: its two frames, the state that it comes to, and what policies said.

    time: of a batch, that of each copy. noise: is added to what policies say.
    """
    here = model.replace(state)
    shown: dict[str, Any] = {"time": time, "state": state}
    if any("picture" in s for s in task.sees.values()):
        shown["picture"] = _picture(task.look, here, state)
    actions = {name: asked(task.policy(name), s, shown, here.batch is not None) for name, s in task.sees.items() if s}
    for name, more in (noise or {}).items():
        actions[name] = actions[name] + more
    moved = ph.rollout(here, dt=task.dt, steps=1, control={n: a[None] for n, a in actions.items()}, **task.options)
    last = (slice(None), -1) if here.batch is not None else (-1,)
    after = {name: getattr(moved[thing], what)[last] for name in state
             for thing, _, what in [name.rpartition(".")]}  # fmt: skip
    return moved, after, actions


def asked(policy: nn.Module, sees: tuple[str, ...], shown: Mapping[str, Any], copies: bool = False) -> torch.Tensor:
    """What a policy says to what it is shown, of each copy in a batch."""
    given = [shown_to(policy, shown[what]) for what in sees]
    if set(sees) <= {"time"}:
        # Open loops are asked for many times at once, which here are those of copies, or one.
        said: torch.Tensor = policy(*(t if t.ndim else t[None] for t in given))
        return said if given[0].ndim else said[0]
    return each(policy, *given) if copies else policy(*given)


def each(function: Any, *given: Any) -> torch.Tensor:
    """A function of one copy, of all copies at once."""
    made: torch.Tensor = torch.func.vmap(function, randomness="different")(*given)
    return made


def check_timeless(model: ph.Model) -> None:
    """Refuse what acts at certain times: every step of a closed loop is a rollout that begins at time zero."""
    columns, indices = model.columns, model.layout.indices
    for table in TABLES:
        if f"{table}.start" not in columns:
            continue
        ends = columns[f"{table}.stop"] < np.finfo(np.float32).max
        if (columns[f"{table}.start"] > 0).any() or ends.any() or np.any(indices[f"{table}.impulse"]):
            raise ValueError(
                "this model has a force or an impulse that acts at a certain time, which a closed loop, whose steps "
                "are rollouts of their own, cannot have: let a policy of `time` drive the force, or change the start"
            )


def _picture(look: Any, model: ph.Model, state: States) -> torch.Tensor:
    """(height, width[, channels]), with the copies in front in a batch."""
    parts, faces, first = [], [], 0
    poses = ph.kinematics(model) if any(s.links for s in model.surfaces.values()) else {}
    for name, surface in model.surfaces.items():
        places = surface.of_links(poses[name]) if surface.links else (state[f"{name}.x"], state.get(f"{name}.rot"))
        parts.append(surface.vertices(*places))
        faces.append(surface.faces + first)
        first += parts[-1].shape[-2]
    picture: torch.Tensor = look(torch.cat(parts, dim=-2).float(), np.concatenate(faces))
    return picture
