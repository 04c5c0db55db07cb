"""What is looked at in one state, recorded with the set-up on one tape: forces and energies, and how they move.

A `Study` owns arrays like a `Program`, but parameters and state are leaves of one tape: every derivative of what is
seen, by any of them and of second order, is that of the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import kernelc as kc
from nablasim.physics.model import Array, Arrays, Model, Real, Step, of_real, plain
from nablasim.physics.time.integrators import named
from nablasim.physics.time.leaves import Leaves, directed
from nablasim.physics.time.program import Program, Values
from nablasim.physics.time.programs import program_of
from nablasim.physics.time.study_kernels import weigh

Looks = Callable[[Program, Step], dict[str, Array]]
STUDIES = 8
"""How many recorded studies a program keeps."""


class Study:
    """A tape from given columns and a state to what `look` finds, differentiable by the columns in `grads`."""

    def __init__(self, program: Program, columns: Values, grads: frozenset[str], look: Looks):
        self.program = program
        layout, real = program.layout, program.real
        by_role = {role: [c for c in layout.columns.values() if c.role == role] for role in ("given", "derived")}
        self.leaves: dict[str, Array] = {
            c.name: program.empty(c, requires_grad=c.name in grads) for c in [*by_role["given"], *program.state_columns]
        }
        indices: dict[str, Array] = {name: kc.array(layout.tiled(name)) for name in layout.kinds}
        table = {**self.leaves, **{c.name: program.empty(c) for c in by_role["derived"]}, **indices}
        arrays = Arrays(layout, real, table, program.arrays.present)
        state = {c.name: self.leaves[c.name] for c in program.state_columns}
        sums = {c.name: program.empty(c) for c in program.sum_columns}
        self._fill(columns)  # Recording runs all once: not with zeros, by which something might be divided.
        with kc.Tape() as self.tape:
            for system in program.systems:
                system.setup(arrays)
            for system in program.systems:
                system.finish(arrays)
            for total in sums.values():
                total.zero_()
            still = kc.zeros(1, **of_real(float, real))
            step = Step(arrays, state, None, sums, still, kc.zeros(1, dtype=int), 0, self.tape)
            self.out = look(program, step)
            self.weights = {n: kc.zeros_like(a, requires_grad=True) for n, a in self.out.items()}
            self.total = kc.zeros(1, **of_real(float, real))
            self.total.zero_()
            if look is look_at_energies:
                for name, a in self.out.items():
                    kc.launch(weigh, a.shape[0], [a, self.weights[name]], [self.total])

    def _fill(self, columns: Values) -> None:
        for name, a in self.leaves.items():
            memory = a.numpy()
            memory[...] = columns[name].reshape(memory.shape)

    def run(self, columns: Values) -> dict[str, Real]:
        """What there is to see with these columns, in the shape of its arrays."""
        self._fill(columns)
        self.tape.replay()
        return {name: a.numpy().copy() for name, a in self.out.items()}

    def push(self, ways: Values) -> dict[str, Real]:
        """How it moves where columns do: k directions in front of both."""
        k = len(next(iter(ways.values())))
        known = [a for a in self.out.values() if a in self.tape]
        given = {self.leaves[n]: way for n, way in ways.items() if self.leaves[n] in self.tape}
        found = self.tape.jvp(given, outputs=known) if given and known else {}
        return {name: found[a].numpy() if a in found else np.zeros((k, *a.numpy().shape), a.numpy().dtype)
                for name, a in self.out.items()}  # fmt: skip

    def pull(self, seeds: Values) -> dict[str, Real]:
        """Gradients of Σ seeds·seen by the columns, (worlds, rows, *element)."""
        asked = {n: a for n, a in self.leaves.items() if a.requires_grad}
        for a in asked.values():
            a.grad.numpy()[...] = 0
        given = {self.out[n]: g for n, g in seeds.items() if self.out[n].grad is not None}
        if given:
            self.tape.backward(grads=given)
        return {name: self.program.worlds(name, a.grad.numpy().copy()) for name, a in asked.items()}

    def bend(self, weights: Values, ways: Values, turns: Values) -> tuple[dict[str, Real], dict[str, Real]]:
        """How the gradients of Σ weights·energies move, k directions in front; and how energies do where there are
        directions of weights."""
        for name, a in self.weights.items():
            a.numpy()[...] = weights[name]
        self.tape.replay()
        given = {a: way for n, way in ways.items() if (a := self.leaves[n]) in self.tape}
        given |= {self.weights[n]: turn for n, turn in turns.items()}
        found = self.tape.hvp(self.total, given)
        by_column = {n: found[a].numpy() if (a := self.leaves[n]) in found else np.zeros_like(way)
                     for n, way in ways.items()}  # fmt: skip
        return by_column, {n: found[self.weights[n]].numpy() for n in turns}


def look_at_forces(program: Program, step: Step) -> dict[str, Array]:
    """The sums that forces add to."""
    for system in program.systems:
        system.place(step)
    for system in program.systems:
        system.forces(step)
    return {c.name: step[c] for c in program.sum_columns}


def look_at_energies(program: Program, step: Step) -> dict[str, Array]:
    """The energies of rows, by system."""
    for system in program.systems:
        system.place(step)
    found = {system.name: system.energy(step) for system in program.systems}
    return {name: e for name, e in found.items() if e is not None}


class Looking:
    """What is seen of a model, as a function of some of its parameters: see `autograd.Followed`."""

    def __init__(self, name: str, model: Model, by: Sequence[str], look: Looks, show: Show):
        self.name, self.model, self.by, self.look, self.show = name, model, list(by), look, show
        self.names: list[str] = []
        """What is seen, in the order of results; known once something was."""

    def value(self, name: str) -> Real:
        """The number of a parameter now."""
        return np.asarray(plain(self.model[name]), np.float64)

    def _study(self, model: Model) -> tuple[Study, Leaves]:
        leaves = Leaves(model, None, 0)
        grads = leaves.columns(self.by)
        program = program_of(leaves, named("semi_implicit"), grads)
        kept = program.studies
        if (self.look, grads) not in kept:
            if len(kept) >= STUDIES:
                del kept[next(iter(kept))]
            kept[self.look, grads] = Study(program, model.columns, grads, self.look)
        study = kept[self.look, grads]
        self.names = self.show.names(study)
        return study, leaves

    def _at(self, values: Sequence[Real]) -> tuple[Model, Study, Leaves]:
        model = self.model.with_numbers(dict(zip(self.by, values)))
        return model, *self._study(model)

    def run(self, values: list[Real]) -> list[Real]:
        model, study, _ = self._at(values)
        with study.program.lock:
            return list(self.show.seen(study, study.run(model.columns), 0).values())

    def push(self, values: list[Real], ways: Sequence[Any]) -> list[Real]:
        model, study, leaves = self._at(values)
        with study.program.lock:
            study.run(model.columns)
            return list(self.show.seen(study, study.push(self._ways(leaves, ways)), 1).values())

    def _ways(self, leaves: Leaves, ways: Sequence[Any]) -> dict[str, Real]:
        """Directions of parameters, k in front, as those of columns."""
        given = {name: np.asarray(way) for name, way in zip(self.by, ways) if way is not None}
        return directed(leaves, given, len(next(iter(given.values()))))[0]

    def pull(self, values: list[Real], seeds: Sequence[Any]) -> list[Real]:
        model, study, leaves = self._at(values)
        with study.program.lock:
            study.run(model.columns)
            return self._by_value(leaves, values, study.pull(self.show.back(study, seeds)))

    def _by_value(self, leaves: Leaves, values: Sequence[Real], grads: Mapping[str, Real], lead: int = 0) -> list[Real]:
        layout = leaves.model.layout
        front = next(iter(grads.values())).shape[:lead]
        return [layout.read_gradient(grads, layout.parameters[name], (*front, *np.shape(value)), lead=lead)
                for name, value in zip(self.by, values)]  # fmt: skip

    def bend(
        self, values: list[Real], seeds: Sequence[Any], ways: Sequence[Any], turns: Sequence[Any]
    ) -> tuple[list[Real], list[Real]]:
        if self.look is not look_at_energies:
            raise TypeError(f"{self.name} has a first derivative only: differentiate ph.energy twice, take "
                            f"ph.hessian_vector, or differences of this gradient")  # fmt: skip
        zero = [np.zeros((1, *np.shape(v))) if w is None else np.asarray(w)[None] for v, w in zip(values, ways)]
        by_value, moved = self._bent(values, zero, seeds, turns)
        return [g[0] for g in by_value], [a[0] for a in moved]

    def products(self, values: Sequence[Real], ways: Sequence[Real]) -> list[Real]:
        """Products of the Hessian of all energies with k directions in front."""
        return self._bent(values, ways, None, None)[0]

    def _bent(
        self, values: Sequence[Real], ways: Sequence[Real], seeds: Sequence[Any] | None, turns: Sequence[Any] | None
    ) -> tuple[list[Real], list[Real]]:
        model, study, leaves = self._at(values)
        with study.program.lock:
            study.run(model.columns)
            start = np.zeros_like if seeds is not None else np.ones_like
            weights = {n: start(w.numpy()) for n, w in study.weights.items()}
            weights |= self.show.back(study, seeds or [])
            turned: dict[str, Real] = {}
            if turns is not None:
                turned = {n: np.zeros((1, *w.shape), w.dtype) for n, w in weights.items()}
                turned |= {n: t[None] for n, t in self.show.back(study, turns).items()}
            by_column, by_weight = study.bend(weights, self._ways(leaves, ways), turned)
            apart = {n: a.reshape(len(a), *study.program.worlds(n, a[0]).shape) for n, a in by_column.items()}
            moved = list(self.show.seen(study, by_weight, 1).values())
            return self._by_value(leaves, values, apart, lead=1), moved


class Show:
    """From arrays of a study to what users see, with `lead` axes in front of both, and gradients back."""

    def names(self, study: Study) -> list[str]:
        raise AssertionError

    def seen(self, study: Study, found: Values, lead: int) -> dict[str, Real]:
        raise AssertionError

    def back(self, study: Study, seeds: Sequence[Any]) -> dict[str, Real]:
        raise AssertionError


def _flat(study: Study, values: Real, lead: int) -> Real:
    """(…, rows of all copies, *element) by copies: (…, worlds, rows, *element)."""
    worlds, front = study.program.layout.worlds, values.shape[:lead]
    return values.reshape(*front, worlds, values.shape[lead] // worlds, *values.shape[lead + 1 :])


class ShowForces(Show):
    """By column; forces of contacts are forces."""

    def _name(self, name: str) -> str:
        return name.replace(".contact_", ".")

    def names(self, study: Study) -> list[str]:
        return list(dict.fromkeys(map(self._name, study.out)))

    def seen(self, study: Study, found: Values, lead: int) -> dict[str, Real]:
        made: dict[str, Real] = {}
        for name, values in found.items():
            apart, into = _flat(study, values, lead), self._name(name)
            made[into] = made[into] + apart if into in made else apart
        return made

    def back(self, study: Study, seeds: Sequence[Any]) -> dict[str, Real]:
        given = dict(zip(self.names(study), seeds))
        shapes = {n: a.numpy().shape for n, a in study.out.items()}
        return {n: g.reshape(shapes[n]) for n in study.out if (g := given[self._name(n)]) is not None}


class ShowEnergies(Show):
    """By system and copy: sums over rows, in double precision."""

    def names(self, study: Study) -> list[str]:
        return list(study.out)

    def seen(self, study: Study, found: Values, lead: int) -> dict[str, Real]:
        return {n: np.asarray(_flat(study, a, lead), np.float64).sum(axis=-1) for n, a in found.items()}

    def back(self, study: Study, seeds: Sequence[Any]) -> dict[str, Real]:
        made = {}
        for (name, a), g in zip(study.out.items(), seeds):
            if g is not None:
                worlds = study.program.layout.worlds
                rows = np.broadcast_to(np.reshape(g, (worlds, 1)), (worlds, a.shape[0] // worlds))
                made[name] = np.ascontiguousarray(rows, a.numpy().dtype).reshape(-1)
        return made
