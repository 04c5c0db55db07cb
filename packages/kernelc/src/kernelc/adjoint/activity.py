"""Activity: which values depend smoothly on arrays that carry a gradient. Everything else needs no adjoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .. import ir
from ..builtins import TABLE
from ..errors import NotDifferentiable, Span


@dataclass
class Activity:
    """`varied`: values that depend on active arrays; `arrays`: positions of arrays that carry a gradient, those
    that became active by a store included; `cuts`: places where a gradient ends, with the operation; `slots`: places
    of loop tapes that hold varied values, or None where the reverse of such a tape would be asked for."""

    varied: set[ir.Value] = field(default_factory=set)
    arrays: set[int] = field(default_factory=set)
    cuts: dict[tuple[Span | None, str], str] = field(default_factory=dict)
    slots: dict[ir.Tape, set[int]] | None = None


def key(array: ir.ArrayRef) -> int:
    """Under which an array is among those that are active: its position, or ~position for the adjoint of it."""
    return array.position if array.role == "value" else ~array.position if array.role == "grad" else _NEVER


_NEVER = 1 << 30
"""The final content of an array is only compared with."""


def analyse(kernel: ir.Kernel, seeds: Iterable[int], *, forward: bool = False) -> Activity:
    """Propagate activity from the arrays at positions `seeds` until nothing changes. `forward`: for tangents."""
    found = Activity(arrays=set(seeds), slots={} if forward else None)
    while True:
        before = _size(found)
        _block(kernel.body, found)
        if _size(found) == before:
            return found


def analyse_block(block: ir.Block, varied: Iterable[ir.Value], *, forward: bool = False) -> Activity:
    """The same for a block without arrays, from values that are varied at its start."""
    found = Activity(varied=set(varied), slots={} if forward else None)
    while True:
        before = _size(found)
        _block(block, found)
        if _size(found) == before:
            return found


def _size(a: Activity) -> int:
    return len(a.varied) + len(a.arrays) + sum(map(len, (a.slots or {}).values()))


def _block(block: ir.Block, a: Activity) -> None:
    for stmt in block.body:
        _statement(stmt, a)


def _statement(stmt: ir.Stmt, a: Activity) -> None:
    varied = a.varied
    if isinstance(stmt, ir.Op):
        _operation(stmt, a)
    elif isinstance(stmt, ir.Load):
        if key(stmt.array) in a.arrays:
            varied.update(v for v in stmt.outs if v.type.is_float)
    elif isinstance(stmt, (ir.Store, ir.Atomic)):
        if any(v in varied for v in stmt.values):
            a.arrays.add(key(stmt.array))
    elif isinstance(stmt, ir.Call):
        if any(v in varied for v in stmt.args):
            varied.update(v for v in stmt.outs if v.type.is_float)
    elif isinstance(stmt, ir.If):
        for block in stmt.blocks():
            _block(block, a)
            varied.update(out for out, v in zip(stmt.outs, block.yields, strict=True) if v in varied)
    elif isinstance(stmt, ir.Loop):
        _loop(stmt, a)
    elif isinstance(stmt, ir.Push) and any(v in varied for v in stmt.values):
        if a.slots is None:
            raise NotDifferentiable(
                "the gradient of a loop, taken by kc.grad, cannot be differentiated again", stmt.span
            )
        a.slots.setdefault(stmt.tape, set()).update(i for i, v in enumerate(stmt.values) if v in varied)
    elif isinstance(stmt, ir.Pop) and a.slots:
        varied.update(stmt.outs[i] for i in a.slots.get(stmt.tape, ()))


def _loop(stmt: ir.Loop, a: Activity) -> None:
    params = stmt.body.params[1:]
    a.varied.update(p for p, v in zip(params, stmt.inits, strict=True) if v in a.varied)
    _block(stmt.body, a)
    a.varied.update(p for p, v in zip(params, stmt.body.yields, strict=True) if v in a.varied)
    a.varied.update(out for out, p in zip(stmt.outs, params, strict=True) if p in a.varied)


def _operation(stmt: ir.Op, a: Activity) -> None:
    if stmt.out in a.varied:
        return
    if stmt.op == "cast":
        if stmt.args[0] in a.varied:
            if stmt.out.type.is_float:
                a.varied.add(stmt.out)
            else:
                a.cuts[stmt.span, "int()"] = "int()"
    elif stmt.op == "select":
        if any(v in a.varied for v in stmt.args[1:]):
            a.varied.add(stmt.out)
    elif any(v in a.varied for v in stmt.args):
        row = TABLE.scalar(stmt.op)
        if stmt.out.type.is_float and any(
            v in a.varied and p is not None for v, p in zip(stmt.args, row.partials, strict=True)
        ):
            a.varied.add(stmt.out)
        elif row.cuts:
            a.cuts[stmt.span, stmt.op] = stmt.op
