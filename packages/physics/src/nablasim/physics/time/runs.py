"""One rollout: forward through the segments of a program, keeping some states, and back through them.

A `Run` holds all that its gradient needs (parameter values, control, kept states), and nothing that another rollout
of the same program could overwrite: gradients survive whatever happens in between, and whatever the user keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nablasim.physics.model import Array, Real
from nablasim.physics.time.checkpoints import Plan, backward_order
from nablasim.physics.time.program import Program, Segment, Values
from nablasim.physics.time.solvers.backward_euler import Solves
from nablasim.physics.time.stability import can_go_on, check_step, diverged


@dataclass(eq=False)
class Run:
    """A rollout of `program`: `plan.steps` steps of dt, a frame every `frame` of them.

    `columns` are the given columns and the start of the state, `control` the columns that vary in time: one row of
    values per control step, each of `hold` steps. All are (worlds, rows, *element).
    """

    program: Program
    columns: Mapping[str, Real]
    control: Mapping[str, Real]
    dt: float
    plan: Plan
    frame: int
    hold: int
    solves: Solves | None = None
    """How well the equations of the steps were solved, if there are any."""
    kept: dict[int, dict[str, Real]] = field(default_factory=dict)
    starts: list[tuple[Values, Values]] = field(default_factory=list)
    """How segments began, and moved there: of a `push` that keeps them."""
    _reached: Values = field(default_factory=dict)
    """The state that `_advance` came to."""
    _at: int = -1
    """The segment whose states are in memory, if the program is ours."""

    def check(self, explicit: bool) -> None:
        """Refuse masses and steps that cannot work."""
        with self.program.lock:
            self._own()
            for system in self.program.systems:
                system.check(self.program.arrays)
            if explicit:
                check_step(self.program, self.dt, self.hold, self.columns)

    def forward(self, frames: dict[str, Real] | None = None) -> dict[str, Real]:
        """Run all steps: (frames, rows, *element) of each state column, new or in memory that is there."""
        program, plan = self.program, self.plan
        with program.lock:
            self._own()
            program.arrays.solves = self.solves
            state = {c.name: self._flat(c.name, self.columns[c.name]) for c in program.state_columns}
            if frames is None:
                count = plan.steps // self.frame + 1
                frames = {n: np.empty((count, *a.shape), program.real) for n, a in state.items()}
            self._see(frames, 0, state)
            wanted = plan.first_sweep() if program.differentiable else set()
            for segment in range(plan.segments):
                if segment in wanted:
                    # The start is a model's, which never changes; what follows is memory of the program.
                    self.kept[segment] = _copied(state) if segment else state
                tape = self._run(segment, state)
                low, high = plan.bounds(segment)
                for step in self._frames(low, high):
                    self._see(frames, step // self.frame, tape.state(step - low))
                state = tape.state(high - low)
            return frames

    def backward(self, seeds: Values) -> tuple[dict[str, Real], dict[str, Real]]:
        """Gradients of Σ seeds·frames by the columns, (worlds, rows, *element), and by the control."""
        program, plan = self.program, self.plan
        with program.lock:
            self._own()
            program.arrays.solves = self.solves
            program.clear_gradients()
            by_control = {name: np.zeros_like(values) for name, values in self.control.items()}
            adjoint = {c.name: self._seed(seeds, plan.steps, c.name) for c in program.state_columns}
            for segment in backward_order(plan, self._advance, self._keep_reached, self._drop):
                tape = self._restore(segment)
                adjoint = self._back(tape, segment, seeds, adjoint, by_control)
            grads = program.finish_gradients()
            for name, values in by_control.items():
                # Rows that the control does not set have the steady value all the time.
                grads[name] = grads.get(name, 0) + values.sum(axis=0)
            for name, values in adjoint.items():
                grads[name] = program.worlds(name, values)
            return grads, by_control

    def push(self, columns: Values, control: Values, keep: bool = False) -> tuple[dict[str, Real], dict[str, Real]]:
        """Run all steps with tangents: the frames, and how they move, (frames, k, rows, *element).

        `columns` and `control` are how the given columns and the start move, (k, rows, *element), and those that vary
        in time, (k, steps, rows, *element). Nothing is kept but one segment; or, if asked to, how each begins and
        moves.
        """
        program, plan = self.program, self.plan
        with program.lock:
            self._own()
            program.arrays.solves = self.solves
            state = {c.name: self._flat(c.name, self.columns[c.name]) for c in program.state_columns}
            moving = program.tangents({n: v for n, v in columns.items() if n not in state})
            k = len(next(iter({**columns, **control}.values())))
            start = {n: columns.get(n, np.zeros((k, *a.shape), program.real)) for n, a in state.items()}
            count = plan.steps // self.frame + 1
            frames = {n: np.empty((count, *a.shape), program.real) for n, a in state.items()}
            moved = {n: np.empty((count, k, *a.shape), program.real) for n, a in state.items()}
            self._see(frames, 0, state)
            self._see(moved, 0, start)
            for segment in range(plan.segments):
                if keep:
                    self.starts.append((_copied(state), _copied(start)))
                tape = self._run(segment, state)
                low, high = plan.bounds(segment)
                looked = list(self._frames(low, high))
                of = [(low + i) // self.hold for i in range(tape.length)]
                varied = {own[n]: control[n][:, i] for i, own in zip(of, tape.varied) for n in control}
                ends = dict.fromkeys([*(step - low for step in looked), high - low])
                found = tape.jvp(moving | varied, start, ends)
                for step in looked:
                    self._see(frames, step // self.frame, tape.state(step - low))
                    self._see(moved, step // self.frame, found[step - low])
                state, start = tape.state(high - low), found[high - low]
            return frames, moved

    def bend(self, seeds: Values, turns: Values, columns: Values, control: Values
             ) -> tuple[dict[str, Real], dict[str, Real], dict[str, Real]]:  # fmt: skip
        """How the gradients of `backward` move where given columns, the start and the control do, and seeds by `turns`;
        and how the frames do. Directions have an axis of one in front, as for `push`; gradients have none.

        Tangents go along all steps first; each segment then runs once more, and goes back with its own.
        """
        program, plan = self.program, self.plan
        _, moved = self.push(columns, control, keep=True)
        with program.lock:
            program.clear_gradients()
            moving = self._watched(columns)
            bends: dict[str, Real] = {}
            by_control = {name: np.zeros_like(values) for name, values in self.control.items()}
            adjoint, bent = ({c.name: self._seed(given, plan.steps, c.name) for c in program.state_columns}
                             for given in (seeds, turns))  # fmt: skip
            for segment in reversed(range(plan.segments)):
                state, start = self.starts.pop()
                tape, (low, high) = self._run(segment, state), plan.bounds(segment)
                weights, turned = ({step - low: {n: self._seed(given, step, n) for n in given}
                                    for step in self._frames(low, high - 1)} for given in (seeds, turns))  # fmt: skip
                found = tape.bend(moving | self._varied_ways(tape, low, control), start,
                                  {**weights, high - low: adjoint}, {**turned, high - low: bent})  # fmt: skip
                for name, a in (program.given | program.derived).items():
                    if a in found:
                        bends[name] = bends.get(name, 0) + found[a]
                for k, arrays in enumerate(tape.varied):
                    for n in (n for n in self.control if arrays[n] in found):
                        by_control[n][(low + k) // self.hold] += program.worlds(n, found[arrays[n]])
                adjoint = self._back(tape, segment, seeds, adjoint,
                                     {n: np.zeros_like(values) for n, values in by_control.items()})  # fmt: skip
                bent = {n: found.get(tape.states[0][n], np.zeros_like(g)) for n, g in bent.items()}
                if not low % self.frame:
                    bent = {n: g + self._seed(turns, low, n) for n, g in bent.items()}
            grads = {n: program.worlds(n, a) for n, a in program.bend_gradients(columns, bends).items()}
            for name, values in by_control.items():
                grads[name] = grads.get(name, 0) + values.sum(axis=0)
            return grads | {name: program.worlds(name, values) for name, values in bent.items()}, by_control, moved

    def _watched(self, columns: Values) -> dict[Array, Real]:
        """Directions of everything that steps read and that is differentiated by: zero, where it does not move."""
        program = self.program
        arrays = [a for a in (*program.given.values(), *program.derived.values()) if a.requires_grad]
        still = {a: np.zeros_like(a.numpy())[None] for a in arrays}
        return still | program.tangents({n: way for n, way in columns.items() if n in program.given})

    def _varied_ways(self, tape: Segment, low: int, control: Values) -> dict[Array, Real]:
        """The same of what varies in time, in the steps of a segment from `low` on."""
        return {arrays[n]: control[n][:, (low + k) // self.hold] if n in control else np.zeros_like(values)[None]
                for k, arrays in enumerate(tape.varied) for n, values in self._contents(arrays)}  # fmt: skip

    def _contents(self, arrays: Mapping[str, Array]) -> list[tuple[str, Real]]:
        return [(n, arrays[n].numpy()) for n in self.control if arrays[n].requires_grad]

    # -- forward
    def _own(self) -> None:
        """Fill the program's arrays with our parameters, unless they are there."""
        if self.program.owner is not self:
            self.program.load(self, self.columns, self.dt)
            self._at = -1

    def _flat(self, name: str, values: Real) -> Real:
        shape = self.program.layout.columns[name].shape
        return np.ascontiguousarray(values.reshape(-1, *shape), self.program.real)

    def _see(self, frames: Mapping[str, Real], at: int, state: Values) -> None:
        for name, values in state.items():
            frames[name][at] = values

    def _seen(self, low: int, high: int) -> frozenset[int] | None:
        """Which states of a stretch of steps are looked at: all of them, or the frames inside."""
        program, length = self.program, high - low
        same = length % self.frame == 0 or self.frame % length == 0  # Otherwise each pattern were a tape of its own.
        if program.differentiable or not program.integrator.explicit or not same:
            return None
        return frozenset(step - low for step in self._frames(low, high - 1))

    def _frames(self, low: int, high: int) -> range:
        """The steps after `low` up to `high` after which there is a frame."""
        return range(low + self.frame - low % self.frame, high + 1, self.frame)

    def _run(self, segment: int, state: Values) -> Segment:
        low, high = self.plan.bounds(segment)
        tape = self._play(low, high, state, self._seen(low, high))
        if not can_go_on(tape.state(high - low)):
            self._at = -1
            raise diverged(self.program.layout, self._play(low, high, _copied(tape.state(0)), None), low, self.dt)
        self._at = -1
        self.program.look_for_alarms()
        self._at = segment
        return tape

    def _play(self, low: int, high: int, state: Values, seen: frozenset[int] | None) -> Segment:
        tape = self.program.segment(high - low, seen)
        tape.start(state, low)
        for name in self.control:
            for k, arrays in enumerate(tape.varied):
                arrays[name].numpy()[...] = self._flat(name, self.control[name][(low + k) // self.hold])
        tape.tape.replay()
        return tape

    # -- backward
    def _advance(self, low: int, high: int) -> None:
        state: Values = self.kept[low]
        for segment in range(low, high):
            tape = self._run(segment, state)
            state = tape.state(tape.length)
        self._reached = _copied(state)

    def _keep_reached(self, segment: int) -> None:
        self.kept[segment] = dict(self._reached)

    def _drop(self, segment: int) -> None:
        # What the first sweep kept stays: the gradient may be asked for again.
        if segment not in self.plan.first_sweep():
            del self.kept[segment]

    def _restore(self, segment: int) -> Segment:
        """The states of a segment in memory."""
        low, high = self.plan.bounds(segment)
        if self._at == segment:
            return self.program.segment(high - low)
        return self._run(segment, self.kept.get(segment, self._reached))

    def _seed(self, seeds: Values, step: int, name: str) -> Real:
        a = seeds.get(name)
        if a is None or step % self.frame:
            column = self.program.layout.columns[name]
            return np.zeros((self.program.layout.rows(column.table), *column.shape), self.program.real)
        return np.ascontiguousarray(a[step // self.frame], self.program.real)

    def _back(self, tape: Segment, segment: int, seeds: Values, adjoint: Values, by_control: Values) -> dict[str, Real]:
        low, high = self.plan.bounds(segment)
        inner: dict[int, Values] = {high - low: adjoint}
        for step in self._frames(low, high - 1):
            inner[step - low] = {name: self._seed(seeds, step, name) for name in seeds}
        start = None if low % self.frame else {name: self._seed(seeds, low, name) for name in seeds}
        asked = [name for name in self.control if self.program.given[name].requires_grad]
        for name in asked:
            for arrays in tape.varied:
                arrays[name].grad.numpy()[...] = 0
        before = tape.backward(inner, start)
        for name in asked:
            for k in range(tape.length - 1, -1, -1):
                found = self.program.worlds(name, tape.varied[k][name].grad.numpy())
                by_control[name][(low + k) // self.hold] += found
        return before


def _copied(state: Values) -> dict[str, Real]:
    return {name: values.copy() for name, values in state.items()}
