"""A model as launches that were recorded once: a set-up, and segments of steps, which then only run again.

A `Program` owns arrays for one layout and precision, and belongs to the layout: hundreds of rollouts with other
parameter values use the same tapes. `runs.py` drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

import kernelc as kc
from nablasim.physics.laws import Bounds, Limit, System, in_use
from nablasim.physics.model import Array, Arrays, Column, Layout, Real, Step, of_real

Values = Mapping[str, Real]
"""The content of columns by name."""


class Program:
    """Arrays and tapes for one layout, precision, choice of gradients and of optional columns."""

    def __init__(self, layout: Layout, real: str, *, grads: frozenset[str], present: frozenset[str],
                 varied: frozenset[str], integrator: Any):  # fmt: skip
        self.layout, self.real, self.varied, self.integrator = layout, real, varied, integrator
        self.differentiable = bool(grads)
        self.lock = RLock()
        self.owner: Any = None
        """Whose parameters and states the arrays hold now."""
        self.systems: list[System] = in_use(layout.count)
        self.given: dict[str, Array] = {
            c.name: self.empty(c, requires_grad=c.name in grads) for c in self._columns("given")
        }
        self.dt, self.first = kc.zeros(1, **of_real(float, real)), kc.zeros(1, dtype=int)
        indices: dict[str, Array] = {name: kc.array(layout.tiled(name)) for name in layout.kinds}
        made = {c.name: self.empty(c) for c in self._columns("derived")}
        self._set_up = self._record_set_up(Arrays(layout, real, {**self.given, **made, **indices}, present))
        # The same memory, once as a result of the set-up, and once as a leaf of the steps.
        self._results = {name: a for name, a in made.items() if self.differentiable and a.grad is not None}
        self.derived: dict[str, Array] = {n: self._same(n, a, n in self._results) for n, a in made.items()}
        self.arrays = Arrays(layout, real, {**self.given, **self.derived, **indices}, present)
        plain = {name: self._same(name, a) for name, a in (self.given | self.derived).items()}
        self.plain = Arrays(layout, real, {**plain, **indices}, present)
        """The same memory without gradients, for what only looks at it."""
        self._segments: dict[tuple[int, frozenset[int] | None], Segment] = {}
        self.studies: dict[Any, Any] = {}
        """Launches that were recorded to look at states: `robots.py`."""
        self._loaded: dict[str, Real] = {}
        self._limits: list[Limit] = []
        self.slack = 1.0
        """How far the limit of the step was above its rough bound when it was last computed."""

    def _columns(self, role: str) -> list[Column]:
        return [c for c in self.layout.columns.values() if c.role == role]

    @cached_property
    def sum_columns(self) -> list[Column]:
        """The sums that anything adds to."""
        return [c for c in self._columns("sum") if self.layout.rows(c.table) and self.arrays.has(c)]

    @cached_property
    def state_columns(self) -> list[Column]:
        """The state columns that have rows."""
        return [c for c in self._columns("state") if self.layout.rows(c.table)]

    @cached_property
    def state_bytes(self) -> int:
        """Memory of one state."""
        return self._bytes(self.state_columns)

    @cached_property
    def step_bytes(self) -> int:
        """Memory of a recorded step: a state and varied columns of its own, the adjoint of each, and perhaps a copy of
        its sums."""
        varied = [self.layout.columns[name] for name in self.varied]
        beside = sum(system.step_bytes(self.layout) for system in self.systems)
        return 2 * self._bytes([*self.state_columns, *varied]) + self._bytes(self.sum_columns) + beside

    def _bytes(self, columns: list[Column]) -> int:
        size = np.dtype(self.real).itemsize
        return sum(self.layout.rows(c.table) * int(np.prod(c.shape, dtype=int)) * size for c in columns)

    def empty(self, column: Column, requires_grad: bool = False) -> Array:
        return kc.zeros(self.layout.rows(column.table), dtype=column.element, requires_grad=requires_grad,
                        **of_real(column.element, self.real))  # fmt: skip

    def _same(self, name: str, a: Array, requires_grad: bool = False) -> Array:
        """An array on the memory of another."""
        return kc.array(a.numpy(), dtype=self.layout.columns[name].element, requires_grad=requires_grad)

    def _record_set_up(self, arrays: Arrays) -> kc.Tape:
        with kc.Tape() as tape:
            for system in self.systems:
                system.setup(arrays)
            for system in self.systems:
                system.finish(arrays)
        return tape

    # -- parameters
    def load(self, owner: Any, columns: Values, dt: float) -> None:
        """Take over given columns, (worlds, rows, *element), and compute the derived ones.

        Columns that are the same objects as last time are there already: models share what was not replaced.
        """
        self.owner = owner
        self.dt.numpy()[0] = dt
        changed = [name for name in self.given if self._loaded.get(name) is not columns[name]]
        for name in changed:
            a = self.given[name].numpy()
            a[...] = columns[name].reshape(a.shape)
            self._loaded[name] = columns[name]
        if changed:
            self._set_up.replay()
            self._limits = []

    def tangents(self, columns: Values) -> dict[Array, Real]:
        """How all that steps begin with moves, where given columns move by (k, rows, *element); with what is loaded."""
        given = {self.given[name]: values for name, values in columns.items() if name in self.given}
        moving = {a: values for a, values in given.items() if a in self._set_up}
        if moving and self._results:
            made = self._set_up.jvp(moving, outputs=list(self._results.values()))
            given |= {self.derived[name]: made[a].numpy() for name, a in self._results.items()}
        return given

    def bend_gradients(self, columns: Values, bends: Mapping[str, Real]) -> dict[str, Real]:
        """How the gradients by given columns move, where these do along `columns`, (1, rows, *element), and gradients
        by given and derived columns that steps left behind by `bends`."""
        given, derived = self._gradients
        made = {name: bends.get(name, np.zeros_like(memory)) for name, memory in given.items()}
        ways = {self.given[n]: columns.get(n, np.zeros_like(a)[None]) for n, a in made.items()
                if self.given[n] in self._set_up}  # fmt: skip
        if self._results and ways:
            weights = {a: derived[name] for name, a in self._results.items()}
            turns = {a: bends[name][None] for name, a in self._results.items() if name in bends}
            found = self._set_up.hvp(tangents=ways, grads=weights, turns=turns)
            for name, a in self.given.items():
                if a in found:
                    made[name] = made[name] + found[a].numpy()[0]
        return made

    def limits(self) -> list[Limit]:
        """What limits an explicit step, with the parameters that are loaded."""
        if not self._limits:
            more = [limit for system in self.systems for limit in system.limits(self.plain)]
            self._limits = [*self._bounds.limits(), *more]
        return self._limits

    @cached_property
    def _bounds(self) -> Bounds:
        return Bounds(self.systems, self.plain)

    @cached_property
    def _gradients(self) -> tuple[dict[str, Real], dict[str, Real]]:
        """The memory of the gradients by given columns, and by derived ones."""
        given, derived = ({name: a.grad.numpy() for name, a in arrays.items() if a.requires_grad}
                          for arrays in (self.given, self.derived))  # fmt: skip
        return given, derived

    def clear_gradients(self) -> None:
        for arrays in self._gradients:
            for memory in arrays.values():
                memory.fill(0)

    def finish_gradients(self) -> dict[str, Real]:
        """Carry the gradients of derived columns to the given ones: (worlds, rows, *element) by name."""
        given, derived = self._gradients
        if self._results:
            self._set_up.backward(grads={a: derived[name] for name, a in self._results.items()})
        return {name: self.worlds(name, memory) for name, memory in given.items()}

    def worlds(self, column: str, values: Real) -> Real:
        """A column by copies: (worlds, rows, *element)."""
        return values.reshape(self._shapes[column])

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        layout = self.layout
        return {n: (layout.worlds, layout.count.get(c.table, 0), *c.shape) for n, c in layout.columns.items()}

    # -- steps
    def look_for_alarms(self) -> None:
        """Raise what steps have found since they began."""
        for system in self.systems:
            alarm = self.arrays.alarms.get(system.name)
            if alarm is not None and alarm.numpy()[:, 0].any():
                row = int(alarm.numpy()[:, 0].argmax())
                raise system.alarmed(self.plain, row, alarm.numpy()[row].tolist(), float(self.dt.numpy()[0]))

    def segment(self, length: int, seen: frozenset[int] | None = None) -> Segment:
        """The tape of this many steps; see `Segment`. Only a few are kept: each has its own memory."""
        key = (length, seen)
        if key not in self._segments:
            if len(self._segments) >= 4:
                del self._segments[next(iter(self._segments))]
            self._segments[key] = Segment(self, length, seen)
        return self._segments[key]

    def look(self, state: Values, look: Callable[[Step], Any]) -> Any:
        """Show a state to a function, as the step that would start there, without gradients."""
        before = {c.name: kc.array(state[c.name].astype(self.real).reshape(self.layout.rows(c.table), *c.shape),
                                   dtype=c.element) for c in self.state_columns}  # fmt: skip
        own = {c.name: self.empty(c) for c in self.sum_columns}
        return look(Step(self.plain, before, None, own, self.dt, self.first, 0, None))


class Segment:
    """A stretch of steps on one tape. Every step has a state of its own, so nothing is copied and all can be seen.

    seen: the states that will be looked at, beside the first and the last; the others take turns in two places. None
        is all of them. What needs little memory stays in the caches.

    The sums of explicit steps share memory, too: hardly an adjoint asks for them, and the tape keeps a copy where one
    does.
    """

    def __init__(self, program: Program, length: int, seen: frozenset[int] | None = None):
        self.program, self.length, self.seen = program, length, seen
        leaf = program.differentiable
        columns = program.state_columns
        spare = [{c.name: program.empty(c) for c in columns} for _ in range(0 if seen is None else 2)]
        self.states = [
            {c.name: program.empty(c, requires_grad=leaf and k == 0) for c in columns}
            if k == 0 or seen is None or k in seen else spare[k % 2]
            for k in range(length + 1)
        ]  # fmt: skip
        start = {name: p.value for name, p in program.layout.parameters.items()}
        for c in columns:
            # Recording runs the steps once: from a state in which nothing divides by zero.
            self.states[0][c.name].numpy()[...] = program.layout.fill(c.name, start, program.real).reshape(
                self.states[0][c.name].numpy().shape)  # fmt: skip
        varied = [program.layout.columns[name] for name in sorted(program.varied)]
        self.varied = [
            {c.name: program.empty(c, requires_grad=program.given[c.name].requires_grad) for c in varied}
            for _ in range(length)
        ]
        self._seen: list[dict[str, Real]] = [{name: a.numpy() for name, a in s.items()} for s in self.states]
        sums = self._sums()
        with kc.Tape() as self.tape:
            for k in range(length):
                self._record(k, sums if program.integrator.explicit else self._sums())

    def _sums(self) -> dict[str, Array]:
        return {c.name: self.program.empty(c) for c in self.program.sum_columns}

    def _record(self, k: int, sums: Mapping[str, Array]) -> None:
        program = self.program
        for total in sums.values():
            total.zero_()  # On the tape: a replay has to start from zero again, the launches only add.
        own = {**sums, **self.varied[k]}
        step = Step(program.arrays, self.states[k], self.states[k + 1], own, program.dt, program.first, k,
                    self.tape)  # fmt: skip
        program.integrator.record(program.systems, step)

    def start(self, state: Values, first: int) -> None:
        """Where the segment begins: a state, and the number of its first step."""
        for name, values in self._seen[0].items():
            values[...] = state[name]
        self.program.first.numpy()[0] = first
        for alarm in self.program.arrays.alarms.values():
            alarm.numpy()[...] = 0

    def state(self, k: int) -> dict[str, Real]:
        """The state after k steps, one that is seen; shared memory."""
        return self._seen[k]

    def jvp(self, moving: Mapping[Array, Real], start: Values, seen: Iterable[int]) -> dict[int, dict[str, Real]]:
        """How states after some numbers of steps move, (k, rows, *element), where the start and other arrays move."""
        given = {**moving, **{self.states[0][name]: values for name, values in start.items()}}
        outputs = {(k, name): a for k in seen for name, a in self.states[k].items()}
        found = self.tape.jvp({a: values for a, values in given.items() if a in self.tape},
                              outputs=[a for a in outputs.values() if a in self.tape])  # fmt: skip
        moved: dict[int, dict[str, Real]] = {}
        for (k, name), a in outputs.items():
            moved.setdefault(k, {})[name] = found[a].numpy() if a in found else start[name]
        return moved

    def backward(self, seeds: Mapping[int, Values], start: Values | None) -> dict[str, Real]:
        """Go back through the steps: the adjoint of the start from those of states 1 ... length.

        `start` is what the loss adds to the adjoint of the start itself. Gradients of parameters are added up.
        """
        first, last = self._ends
        for name, grad in first.items():
            grad[...] = 0 if start is None or name not in start else start[name]
        for name, g in seeds[self.length].items():
            last[name][...] = g  # The same memory each time: the sweep knows it already.
        seeds = {**seeds, self.length: last}
        self.tape.backward(grads={self.states[k][name]: g for k, part in seeds.items() for name, g in part.items()})
        return {name: grad.copy() for name, grad in first.items()}

    def bend(
        self, moving: Mapping[Array, Real], start: Values, seeds: Mapping[int, Values], turns: Mapping[int, Values]
    ) -> dict[Array, Real]:
        """How gradients of Σ seeds·states by the start and other arrays move where these do, (1, rows, *element), and
        seeds by `turns`."""
        given = {**moving, **{self.states[0][name]: values for name, values in start.items()}}
        weights = {self.states[k][name]: g for k, part in seeds.items() for name, g in part.items()}
        moved = {self.states[k][name]: g[None] for k, part in turns.items() for name, g in part.items()}
        for a in moved:
            weights.setdefault(a, np.zeros_like(a.numpy()))
        found = self.tape.hvp(tangents={a: v for a, v in given.items() if a in self.tape}, grads=weights, turns=moved)
        return {a: values.numpy()[0] for a, values in found.items()}

    @cached_property
    def _ends(self) -> tuple[dict[str, Real], dict[str, Real]]:
        """The adjoint of the first state, and memory for that of the last one."""
        return ({name: a.grad.numpy() for name, a in self.states[0].items()},
                {name: np.zeros_like(values) for name, values in self._seen[-1].items()})  # fmt: skip



