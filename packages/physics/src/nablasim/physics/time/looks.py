"""Looks at robots: launches that were recorded once, with the state as leaves, and the derivatives of what is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import kernelc as kc
from nablasim.physics.model import Array, Arrays, Model, Real, State, is_kernelc, is_torch, needs_gradient, plain
from nablasim.physics.time.integrators import named
from nablasim.physics.time.leaves import Leaves, directed
from nablasim.physics.time.program import Program
from nablasim.physics.time.programs import program_of

Values = dict[str, Array]
Record = Callable[[Arrays, Values], Values]
"""Launches, from the leaves to what there is to see."""
Start = Mapping[str, tuple[str, tuple[int, ...]]]
"""Leaves that are columns of a state, in some shape."""
PASSES = 8
"""How many recorded passes a program keeps."""


def look(
    name: str, model: Model, record: Record, given: Mapping[str, Any], state: State | None = None,
    start: Start | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What is recorded of `given` leaves and of the `start` in a state; by default in that of the model, by whose
    parameters there are gradients then. Tensors, wherever there is torch.
    """
    tensors = {key: v for key, v in {**model.foreign, **given}.items() if is_torch(v)}
    op = _Look(name, model, record, given, state, start or {})
    if tensors:
        from kernelc.torch import follow, followed

        if any(map(followed, tensors.values())):
            asked = {key: v for key, v in tensors.items() if followed(v) or needs_gradient(v)}
            op.by, op.leaves = [key for key in asked if key not in given], [key for key in asked if key in given]
            found = follow(op, [asked[key] for key in (*op.by, *op.leaves)])
            return dict(zip(op.names, found))
    return op.now()


def push(model: Model, record: Record, values: Mapping[str, Real], ways: Mapping[str, Real],
         moved: Mapping[str, Real]) -> dict[str, Real]:  # fmt: skip
    """How what is recorded moves, k in front, where given columns and leaves do, (k, …) each."""
    layout = model.layout
    grads = frozenset(name for name in ways if layout.columns[name].role == "given")
    made = _pass_of(program_of(Leaves(model, None, 0), named("semi_implicit"), grads), record, values)
    return made.push(model.columns, values, {name: ways[name] for name in grads}, moved)


class _Pass:
    """Launches on a tape, with the state and what else is given as leaves."""

    def __init__(self, program: Program, record: Record, values: Mapping[str, Any]):
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

    def push(self, columns: Mapping[str, Real], values: Mapping[str, Real], ways: Mapping[str, Real],
             moved: Mapping[str, Real]) -> dict[str, Real]:  # fmt: skip
        """How what is seen moves, k in front, where given columns and leaves do."""
        program = self.program
        with program.lock:
            self._load(columns, values)
            given = program.tangents(ways) | {self.leaves[name]: way for name, way in moved.items()}
            known = {a: way for a, way in given.items() if a in self.tape}
            found = self.tape.jvp(known, outputs=list(self.out.values())) if known else {}
            k = len(next(iter({**ways, **moved}.values())))
            return {name: found[a].numpy() if a in found else np.zeros((k, *a.numpy().shape), a.numpy().dtype)
                    for name, a in self.out.items()}  # fmt: skip

    def _load(self, columns: Mapping[str, Real], values: Mapping[str, Real]) -> None:
        self.program.load(None, columns, 0.0)
        for name, value in values.items():
            self.leaves[name].numpy()[...] = value
        self.tape.replay()


def _pass_of(program: Program, record: Record, values: Mapping[str, Any]) -> _Pass:
    shapes = tuple((name, tuple(v.shape)) for name, v in values.items())
    kept = program.studies
    if (record, shapes) not in kept:
        if len(kept) >= PASSES:
            del kept[next(iter(kept))]
        kept[record, shapes] = _Pass(program, record, values)
    made: _Pass = kept[record, shapes]
    return made


class _Look:
    """One look, and as a function of parameters `by` and of `leaves`, in this order: see `kernelc.torch.Followed`."""

    def __init__(self, name: str, model: Model, record: Record, given: Mapping[str, Any], state: State | None,
                 start: Start):  # fmt: skip
        self.name, self.model, self.record, self.given, self.start = name, model, record, given, start
        self.columns = None if state is None else state.columns
        """Where the start is, if not in the model."""
        self.by: list[str] = []
        self.leaves: list[str] = []
        self.names: list[str] = []
        """What is seen, in the order of results; known once something was."""

    def now(self) -> dict[str, Any]:
        """With the values that there are, and gradients where tensors ask for them."""
        leaves = Leaves(self.model, None, 0)
        if any(is_kernelc(v) for v in leaves.asking):
            raise TypeError("robots are looked at with torch tensors or numbers: an array of kernelc asks for a "
                            "gradient")  # fmt: skip
        values = self._values(self.model, self.given)
        made = self._made(self.model, leaves, values)
        columns = self.model.columns
        if find_spec("torch") is None:
            return dict(made.forward(columns, values))
        from nablasim.physics.time.autograd import operation

        asking = {name: v for name, v in self.given.items() if needs_gradient(v)}

        def pull(seeds: dict[str, Real]) -> list[Real]:
            return self._gradients(leaves, *made.backward(columns, values, seeds), list(asking))

        run = lambda: made.forward(columns, values)  # noqa: E731  (the lock is taken when torch asks)
        return operation(run, list(made.out), pull, [*leaves.asking, *asking.values()])

    # -- as a function
    def run(self, values: list[Real]) -> list[Real]:
        model, _, made, numbers = self._at(values)
        found = made.forward(model.columns, numbers)
        self.names = list(found)
        return list(found.values())

    def pull(self, values: list[Real], seeds: Sequence[Any]) -> list[Real]:
        model, leaves, made, numbers = self._at(values)
        given = {name: g for name, g in zip(made.out, seeds) if g is not None}
        return self._gradients(leaves, *made.backward(model.columns, numbers, given), self.leaves)

    def push(self, values: list[Real], ways: Sequence[Any]) -> list[Real]:
        model, leaves, made, numbers = self._at(values)
        count = len(next(way for way in ways if way is not None))
        of = {name: np.asarray(way) for name, way in zip((*self.by, *self.leaves), ways) if way is not None}
        columns, _ = directed(leaves, {name: of[name] for name in self.by if name in of}, count)
        moved = {name: of[name].reshape(count, *numbers[name].shape) for name in self.leaves if name in of}
        if self.columns is None:
            moved |= {name: columns.pop(column).reshape(count, *numbers[name].shape)
                      for name, (column, _) in self.start.items() if column in columns}  # fmt: skip
        return list(made.push(model.columns, numbers, columns, moved).values())

    def bend(self, *given: Any) -> tuple[list[Real], list[Real]]:
        raise TypeError(f"{self.name} has a first derivative only: take differences of the gradient, or of the "
                        f"tangents")  # fmt: skip

    # -- inside
    def _at(self, values: Sequence[Real]) -> tuple[Model, Leaves, _Pass, dict[str, Real]]:
        model = self.model.with_numbers(dict(zip(self.by, values))) if self.by else self.model
        numbers = self._values(model, {**self.given, **dict(zip(self.leaves, values[len(self.by) :]))})
        leaves = Leaves(model, None, 0, by=self.by)
        return model, leaves, self._made(model, leaves, numbers), numbers

    def _made(self, model: Model, leaves: Leaves, values: Mapping[str, Real]) -> _Pass:
        asked = leaves.columns(name for name, _, _ in leaves.wanted)
        return _pass_of(program_of(leaves, named("semi_implicit"), asked), self.record, values)

    def _values(self, model: Model, given: Mapping[str, Any]) -> dict[str, Real]:
        columns = model.columns if self.columns is None else self.columns
        starts = {name: columns[column].reshape(shape) for name, (column, shape) in self.start.items()}
        return {name: np.asarray(plain(v), model.real) for name, v in {**starts, **given}.items()}

    def _gradients(self, leaves: Leaves, by_column: dict[str, Real], by_leaf: Mapping[str, Real],
                   asked: Sequence[str]) -> list[Real]:  # fmt: skip
        layout = self.model.layout
        for column in (c.name for c in layout.columns.values() if c.role == "state"):
            by_column[column] = np.zeros((layout.worlds, layout.count.get(column.partition(".")[0], 0),
                                          *layout.columns[column].shape))  # fmt: skip
        for name, (column, _) in self.start.items() if self.columns is None else ():
            by_column[column] = by_leaf[name].reshape(by_column[column].shape)
        return [*leaves.gradients(by_column, {}), *(by_leaf[name] for name in asked)]
