"""The intermediate representation: structured, typed, single assignment, one scalar per value.

A kernel is a block of statements. Vectors, matrices and structs are already split into scalars; function calls are
inlined; what was mutable in Python has become block parameters and yields. Control flow is nested:

    If    takes one of two blocks; what they yield are its results
    Loop  runs its block at most `trips` times, with carried values; the block may ask to `stop`

so `break`, `continue`, `return` and `while` need no statements of their own. Arrays are the only memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import Span
from ..types import ArrayType, Scalar, widened


class Value:
    """The result of a statement, or a parameter of a block: one scalar, assigned once. Compared by identity."""

    __slots__ = ("name", "type")

    def __init__(self, type: Scalar, name: str = ""):
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"%{self.name or id(self) % 9973}:{self.type}"


class Const(Value):
    """A constant; it has no statement."""

    __slots__ = ("value",)

    def __init__(self, type: Scalar, value: Any):
        super().__init__(type)
        self.value = value

    def __repr__(self) -> str:
        return f"{self.value!r}:{self.type}"


@dataclass(eq=False)
class ArrayRef:
    """Memory that a kernel refers to: parameter `position` in one of its roles.

    value    the array itself; in an adjoint kernel its content before the launch
    grad     the adjoint of the array
    final    its content after the launch (needed by atomic min and max)
    """

    name: str
    type: ArrayType
    position: int
    role: str = "value"
    partners: dict[str, ArrayRef] = field(default_factory=dict, repr=False)

    def partner(self, role: str) -> ArrayRef:
        """The same parameter in another role."""
        if role == self.role:
            return self
        if role not in self.partners:
            self.partners.setdefault(self.role, self)
            kind = self.partners.get("value", self).type
            if role == "grad":
                kind = ArrayType(widened(kind.element), kind.ndim)
            other = ArrayRef(self.name, kind, self.position, role, self.partners)
            self.partners[role] = other
        return self.partners[role]

    def __repr__(self) -> str:
        return self.name if self.role == "value" else f"{self.role}({self.name})"


class Stmt:
    """Base of statements. `span` is the Python line it stands for."""

    __slots__ = ("span",)
    span: Span | None

    def inputs(self) -> Sequence[Value]:
        """Values read, not counting those read inside nested blocks."""
        return ()

    def outputs(self) -> Sequence[Value]:
        return ()

    def blocks(self) -> Sequence[Block]:
        return ()


class Block:
    """Statements with parameters and yields."""

    __slots__ = ("body", "params", "yields")

    def __init__(
        self, params: Sequence[Value] = (), body: list[Stmt] | None = None, yields: Sequence[Value] = ()
    ) -> None:
        self.params = list(params)
        self.body = body if body is not None else []
        self.yields = list(yields)

    def walk(self) -> Iterator[Stmt]:
        """Every statement, outer before inner."""
        rest = self.body[::-1]
        while rest:
            stmt = rest.pop()
            yield stmt
            for block in reversed(stmt.blocks()):
                rest.extend(reversed(block.body))


class Op(Stmt):
    """A pure scalar operation: a scalar row of the built-in table, or "select", "cast".

    `exact`: a copy of an operation that runs elsewhere as well; it must give the same bits there.
    `guard`: a "select" that is zero where a factor of its second argument is; its derivative is that of the product.
    """

    __slots__ = ("args", "exact", "guard", "op", "out")

    def __init__(
        self, out: Value, op: str, args: Sequence[Value], span: Span | None, exact: bool = False, guard: bool = False
    ):  # fmt: skip
        self.out, self.op, self.args, self.span = out, op, tuple(args), span
        self.exact, self.guard = exact, guard

    def inputs(self) -> Sequence[Value]:
        return self.args

    def outputs(self) -> Sequence[Value]:
        return (self.out,)


class Query(Stmt):
    """What the launch knows: "tid" and "dim" by axis, "shape" of an array by axis.

    In an adjoint "asked": whether somebody asked for the gradient of an array. It always holds, unless the kernel came
    ahead of time, for all arrays, and runs where only some of them carry one.
    """

    __slots__ = ("array", "axis", "out", "what")

    def __init__(self, out: Value, what: str, axis: int, array: ArrayRef | None, span: Span | None):
        self.out, self.what, self.axis, self.array, self.span = out, what, axis, array, span

    def outputs(self) -> Sequence[Value]:
        return (self.out,)


class Load(Stmt):
    """Read leaves `comps` of one array element."""

    __slots__ = ("array", "comps", "index", "outs")

    def __init__(
        self, outs: Sequence[Value], array: ArrayRef, index: Sequence[Value], comps: Sequence[int], span: Span | None
    ):
        self.outs, self.array, self.index, self.comps, self.span = tuple(outs), array, tuple(index), tuple(comps), span

    def inputs(self) -> Sequence[Value]:
        return self.index

    def outputs(self) -> Sequence[Value]:
        return self.outs


class Store(Stmt):
    """Write leaves `comps` of one array element. `logged`: the old content goes to the undo log first."""

    __slots__ = ("array", "comps", "index", "logged", "values")

    def __init__(
        self,
        array: ArrayRef,
        index: Sequence[Value],
        comps: Sequence[int],
        values: Sequence[Value],
        span: Span | None,
        logged: bool = False,
    ):
        self.array, self.index, self.comps, self.values = array, tuple(index), tuple(comps), tuple(values)
        self.span, self.logged = span, logged

    def inputs(self) -> Sequence[Value]:
        return (*self.index, *self.values)


class Atomic(Stmt):
    """Change leaves of one array element in one step. `outs`: the old content, if used.

    kind: "add", "min", "max"; of integers also "and", "or", "xor", "exchange", and "cas", which stores `values` only
    where the old content is `expected`.
    """

    __slots__ = ("array", "comps", "expected", "index", "kind", "logged", "outs", "values")

    def __init__(
        self,
        kind: str,
        array: ArrayRef,
        index: Sequence[Value],
        comps: Sequence[int],
        values: Sequence[Value],
        outs: Sequence[Value],
        span: Span | None,
        logged: bool = False,
        expected: Sequence[Value] = (),
    ):
        self.expected = tuple(expected)
        self.kind, self.array, self.index, self.comps = kind, array, tuple(index), tuple(comps)
        self.values, self.outs, self.span, self.logged = tuple(values), tuple(outs), span, logged

    def inputs(self) -> Sequence[Value]:
        return (*self.index, *self.values, *self.expected)

    def outputs(self) -> Sequence[Value]:
        return self.outs


class If(Stmt):
    """Take `then` or `orelse`; both yield as many values as there are `outs`."""

    __slots__ = ("cond", "orelse", "outs", "then")

    def __init__(self, outs: Sequence[Value], cond: Value, then: Block, orelse: Block, span: Span | None):
        self.outs, self.cond, self.then, self.orelse, self.span = list(outs), cond, then, orelse, span

    def inputs(self) -> Sequence[Value]:
        return (self.cond,)

    def outputs(self) -> Sequence[Value]:
        return self.outs

    def blocks(self) -> Sequence[Block]:
        return (self.then, self.orelse)


class Loop(Stmt):
    """Run `body` for k = 0, 1, … below `trips` (forever where None), until an iteration sets `stop`.

    body.params = [k, carried…], body.yields = the carried values of the next iteration; `outs`: the last ones.
    `stop` is a value of the body, looked at after it. A loop `down` counts from trips - 1 to 0 and has no stop: it
    goes back through the iterations of another loop.
    """

    __slots__ = ("body", "down", "inits", "outs", "stop", "trips")

    def __init__(
        self,
        outs: Sequence[Value],
        trips: Value | None,
        inits: Sequence[Value],
        body: Block,
        stop: Value | None,
        span: Span | None,
        down: bool = False,
    ):
        self.outs, self.trips, self.inits, self.body = list(outs), trips, list(inits), body
        self.stop, self.span, self.down = stop, span, down

    def inputs(self) -> Sequence[Value]:
        return (self.trips, *self.inits) if self.trips is not None else self.inits

    def outputs(self) -> Sequence[Value]:
        return self.outs

    def blocks(self) -> Sequence[Block]:
        return (self.body,)


class Custom:
    """A function with a derivative rule of its own, on scalars: `body` computes, `adjoint` is its reverse.

    body: params → yields.  adjoint: (params, adjoints of the results) → adjoints of the params.
    symmetric: it has a result for each parameter, and its Jacobian is symmetric: the adjoint pushes tangents, too.
    """

    def __init__(self, name: str, body: Block, adjoint: Block, symmetric: bool = False):
        self.name, self.body, self.adjoint, self.symmetric = name, body, adjoint, symmetric


class Call(Stmt):
    """Call of a function with a rule of its own."""

    __slots__ = ("args", "function", "outs")

    def __init__(self, outs: Sequence[Value], function: Custom, args: Sequence[Value], span: Span | None):
        self.outs, self.function, self.args, self.span = tuple(outs), function, tuple(args), span

    def inputs(self) -> Sequence[Value]:
        return self.args

    def outputs(self) -> Sequence[Value]:
        return self.outs


class Gradient(Stmt):
    """Partial derivatives of what `block` yields (one real) by its parameters, at `args`. Expanded by the adjoint."""

    __slots__ = ("args", "block", "outs")

    def __init__(self, outs: Sequence[Value], block: Block, args: Sequence[Value], span: Span | None):
        self.outs, self.block, self.args, self.span = tuple(outs), block, tuple(args), span

    def inputs(self) -> Sequence[Value]:
        return self.args

    def outputs(self) -> Sequence[Value]:
        return self.outs


class Check(Stmt):
    """Stop the thread with failure `code` unless `cond` holds; `payload` goes into the message."""

    __slots__ = ("code", "cond", "message", "payload")

    def __init__(self, cond: Value, code: int, message: str, payload: Sequence[Value], span: Span | None):
        self.cond, self.code, self.message, self.payload, self.span = cond, code, message, tuple(payload), span

    def inputs(self) -> Sequence[Value]:
        return (self.cond, *self.payload)


class Print(Stmt):
    """Print: `parts` are strings, or None where the next value goes."""

    __slots__ = ("parts", "values")

    def __init__(self, parts: Sequence[str | None], values: Sequence[Value], span: Span | None):
        self.parts, self.values, self.span = tuple(parts), tuple(values), span

    def inputs(self) -> Sequence[Value]:
        return self.values


class Tape:
    """Identity of one loop tape: what is pushed in an iteration is popped, newest first, by the reverse loop.

    `loop` is the loop of the primal kernel whose iterations it keeps.
    """

    __slots__ = ("loop", "name", "span")

    def __init__(self, name: str, span: Span | None, loop: Loop | None = None):
        self.name, self.span, self.loop = name, span, loop


class Push(Stmt):
    """Keep the values of one iteration."""

    __slots__ = ("tape", "values")

    def __init__(self, tape: Tape, values: Sequence[Value], span: Span | None):
        self.tape, self.values, self.span = tape, list(values), span

    def inputs(self) -> Sequence[Value]:
        return self.values


class Pop(Stmt):
    """Get the values of the newest iteration back."""

    __slots__ = ("outs", "tape")

    def __init__(self, outs: Sequence[Value], tape: Tape, span: Span | None):
        self.outs, self.tape, self.span = list(outs), tape, span

    def outputs(self) -> Sequence[Value]:
        return self.outs


class Mark(Stmt):
    """The height of the undo log."""

    __slots__ = ("out",)

    def __init__(self, out: Value, span: Span | None):
        self.out, self.span = out, span

    def outputs(self) -> Sequence[Value]:
        return (self.out,)


class Undo(Stmt):
    """Take back the logged stores above `mark`."""

    __slots__ = ("mark",)

    def __init__(self, mark: Value, span: Span | None):
        self.mark, self.span = mark, span

    def inputs(self) -> Sequence[Value]:
        return (self.mark,)


class Record(Stmt):
    """Forward sweep: keep an integer that the reverse sweep cannot compute again (the result of an atomic)."""

    __slots__ = ("sequence", "value")

    def __init__(self, sequence: Value, value: Value, span: Span | None):
        self.sequence, self.value, self.span = sequence, value, span

    def inputs(self) -> Sequence[Value]:
        return (self.sequence, self.value)


class Recall(Stmt):
    """Reverse sweep: the integer that Record kept."""

    __slots__ = ("out", "sequence")

    def __init__(self, out: Value, sequence: Value, span: Span | None):
        self.out, self.sequence, self.span = out, sequence, span

    def inputs(self) -> Sequence[Value]:
        return (self.sequence,)

    def outputs(self) -> Sequence[Value]:
        return (self.out,)


class Claim(Stmt):
    """Reverse sweep of an atomic minimum or maximum: whether this thread takes the adjoint of one leaf.

    `cond` says that the thread holds the winning content. Of several the lowest one takes it: where threads run in
    order that is the first to come, elsewhere the back end has to find it.
    """

    __slots__ = ("array", "comp", "cond", "index", "out")

    def __init__(
        self, out: Value, array: ArrayRef, index: Sequence[Value], comp: int, cond: Value, span: Span | None
    ):  # fmt: skip
        self.out, self.array, self.index, self.comp, self.cond = out, array, tuple(index), comp, cond
        self.span = span

    def inputs(self) -> Sequence[Value]:
        return (*self.index, self.cond)

    def outputs(self) -> Sequence[Value]:
        return (self.out,)


@dataclass(eq=False)
class Param:
    """A kernel parameter after lowering: an array, or the leaves of a value."""

    name: str
    array: ArrayRef | None
    leaves: tuple[Value, ...] = ()


@dataclass(eq=False)
class Kernel:
    """A lowered kernel of one precision. `dims` is how many axes of the grid `tid()` was asked for.

    `block` is the length of the last axis in every launch, 0 if it may be any: threads of one block run side by side.
    `derivative`: it forms slopes that may not be asked for, so debug mode looks only at what it stores.
    """

    name: str
    params: list[Param]
    body: Block
    real: Scalar
    span: Span
    dims: int = 1
    block: int = 0
    derivative: bool = False

    def arrays(self) -> list[ArrayRef]:
        return [p.array for p in self.params if p.array is not None]

    def with_body(self, body: Block, name: str = "") -> Kernel:
        """A kernel with the same parameters and the same grid that does something else."""
        return replace(self, name=name or self.name, body=body)
