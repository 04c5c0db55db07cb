"""Statements → IR: assignment to names, components and elements; assert, print; what stands on a line."""

from __future__ import annotations

import ast
import builtins as python
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import types as t
from ..errors import MaybeUnassigned, SourceError, TypeChange, TypeMismatch, Unsupported
from ..ir import Atomic, Block, Check, Print, Store, Value, const
from . import intrinsics
from .calls import Calls
from .convert import holds
from .fence import REFUSED
from .values import (
    Agg,
    ArrayVal,
    Known,
    Maybe,
    ShapeVal,
    TupleVal,
    Weak,
    describe,
    flatten,
    is_number,
    length_of,
    of_type,
    part_of,
    rebuild,
    type_name,
    type_of,
)


@dataclass(frozen=True)
class Place:
    """Where an assignment goes: a name or an array element, and which leaves of it.

    `dynamic`: a component chosen at run time inside the range [first, first + its leaves).
    """

    kind: t.Type
    first: int
    name: str = ""
    array: ArrayVal | None = None
    index: tuple[Value, ...] = ()
    dynamic: tuple[Value, ...] = ()


class Statements(Calls):
    """Lowers simple statements."""

    def stmt(self, node: ast.stmt) -> None:
        method = getattr(self, f"stmt_{type(node).__name__}", None)
        if method is None:
            raise self.refuse(node)
        self.at(node)
        method(node)

    def refuse(self, node: ast.AST) -> Exception:
        sentence, advice = REFUSED.get(type(node), (f"{type(node).__name__} is not part of the kernel language", ""))
        return self.fail(Unsupported, sentence, node, advice=advice)

    def stmt_Pass(self, node: ast.Pass) -> None:
        pass

    def stmt_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant):
            return  # a docstring
        if isinstance(value, ast.Call):
            callee = self.expr(value.func)
            if isinstance(callee, Known) and callee.object is python.print:
                self.print(value)
                return
            if isinstance(callee, Known) and isinstance(callee.object, intrinsics.Intrinsic):
                name = callee.object.name
                if name.startswith("atomic_") and not value.keywords:
                    args = [self.expr(a) for a in value.args]
                    self.at(node)
                    self.atomic(name.removeprefix("atomic_"), args, value, used=False)
                    return
        self.expr(value)

    # -- assignment
    def stmt_Assign(self, node: ast.Assign) -> None:
        value = self.right_side(node)
        for target in node.targets:
            self.at(node)
            self.assign(target, value, node)

    def right_side(self, node: ast.Assign) -> Any:
        """The assigned value; `i, j = kc.tid()` is where the number of axes is known."""
        target, value = node.targets[0], node.value
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, ast.Call) and not value.args:
            callee = self.expr(value.func)
            if isinstance(callee, Known) and callee.object is intrinsics.tid:
                return self.call_tid([], value, len(target.elts))
        return self.expr(value)

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.fail(Unsupported, "a declaration without a value has no meaning in a kernel", node)
        hint = self.expr(node.annotation)
        try:
            kind = self.resolved(hint.object if isinstance(hint, Known) else hint)
        except TypeError as error:
            raise self.fail(TypeMismatch, str(error), node.annotation) from None
        self.assign(node.target, self.convert(self.expr(node.value), kind, node), node)

    def assign(self, target: ast.expr, value: Any, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value, node)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            self.write(self.place(target), value, node)
        else:
            raise self.refuse(target)

    def assign_name(self, name: str, value: Any, node: ast.AST) -> None:
        if value is None:
            raise self.fail(TypeMismatch, f"{name!r} gets no value: the function on the right returns nothing", node)
        known = self.frame.types.get(name)
        if known is not None and isinstance(value, Weak) and isinstance(known, t.Scalar):
            value = self.adapt_literal(name, known, value, node)
        value = self.strengthen(value)
        kind = type_of(value)
        if kind is not None:
            if known is not None and known != kind:
                raise self.type_change(name, known, kind, node)
            self.frame.types[name] = kind
        if isinstance(value, Value) and not value.name:
            value.name = name
        elif isinstance(value, Agg):
            for leaf, (leaf_name, _) in zip(value.leaves, t.leaf_items(value.type, name), strict=True):
                leaf.name = leaf.name or leaf_name
        self.frame.env[name] = value

    def adapt_literal(self, name: str, known: t.Scalar, value: Weak, node: ast.AST) -> Any:
        """A literal takes the type that the name has, as long as it can hold it."""
        number = value.value
        if isinstance(number, bool):
            fits = known is t.BOOL
        elif isinstance(number, int):
            fits = known.is_float or holds(known, number)
        else:
            fits = known.is_float
        return const(known, number) if fits else value

    def type_change(self, name: str, known: t.Type, kind: t.Type, node: ast.AST) -> SourceError:
        advice = ""
        if known is t.INT32 and isinstance(kind, t.Scalar) and kind.is_float:
            advice = f"start {name!r} as a real, for instance with 0.0 instead of 0"
        return self.fail(TypeChange, f"{name!r} is {type_name(known)}, and would become {type_name(kind)} here", node,
                         advice=advice)  # fmt: skip

    def unpack(self, target: ast.Tuple | ast.List, value: Any, node: ast.AST) -> None:
        kind = type_of(value)
        if isinstance(value, TupleVal):
            items = list(value.items)
        elif isinstance(value, ShapeVal):
            items = [self.b.query("shape", axis, value.array) for axis in range(value.array.type.ndim)]
        elif isinstance(value, Agg) and (n := length_of(kind)) is not None:
            items = [self.component(value, [Weak(k)], node) for k in range(n)]
        else:
            raise self.fail(TypeMismatch, f"{describe(value)} cannot be unpacked", node)
        if len(items) != len(target.elts):
            raise self.fail(TypeMismatch, f"{len(items)} values for {len(target.elts)} names", node)
        # Python computes the whole right side before it assigns: the items are values already.
        for item_target, item in zip(target.elts, items, strict=True):
            self.assign(item_target, item, node)

    # -- places
    def place(self, node: ast.expr) -> Place:
        """Resolve the target of an assignment; indices are computed once."""
        if isinstance(node, ast.Name):
            value = self.expr(node)
            kind = type_of(value)
            if isinstance(value, (ArrayVal, TupleVal)) or kind is None:
                raise self.fail(TypeMismatch, f"{describe(value)} has no parts that can be assigned", node)
            return Place(kind, 0, name=node.id)
        if isinstance(node, ast.Attribute):
            return self.part(self.place(node.value), node.attr, node)
        if isinstance(node, ast.Subscript):
            base = self.expr(node.value) if isinstance(node.value, ast.Name) else None
            if isinstance(base, ArrayVal):
                index = tuple(self.array_index(base, self.indices(node), node))
                return Place(base.array.type.element, 0, array=base, index=index)
            outer = self.place(node.value)
            return self.indexed(outer, self.indices(node), node)
        raise self.fail(Unsupported, "this cannot be assigned to", node)

    def part(self, outer: Place, key: Any, node: ast.AST) -> Place:
        found = part_of(outer.kind, key)
        if found is None or outer.dynamic:
            raise self.fail(TypeMismatch, f"{type_name(outer.kind)} has no component {key!r} that can be assigned",
                            node)  # fmt: skip
        kind, first = found
        return Place(kind, outer.first + first, outer.name, outer.array, outer.index)

    def indexed(self, outer: Place, keys: list[Any], node: ast.AST) -> Place:
        key = self.static_key(keys)
        if key is not None:
            return self.part(outer, key, node)
        if outer.dynamic:
            raise self.fail(Unsupported, "one run-time index per assignment", node, advice="assign the row as a whole")
        index = tuple(self.as_index(k, node) for k in keys)
        return Place(outer.kind, outer.first, outer.name, outer.array, outer.index, index)

    def read(self, place: Place, node: ast.AST) -> Any:
        whole = self.read_static(place, node)
        if not place.dynamic:
            return whole
        return self.component(whole, list(place.dynamic), node)

    def read_static(self, place: Place, node: ast.AST) -> Any:
        types = t.leaves(place.kind)
        if place.array is not None:
            comps = range(place.first, place.first + len(types))
            return of_type(place.kind, self.b.load(place.array.array, place.index, comps, types))
        value = self.frame.env[place.name]
        if isinstance(value, Maybe):
            raise self.fail(MaybeUnassigned, f"{place.name!r} may have no value here", node)
        leaves = flatten(value) or []
        return of_type(place.kind, leaves[place.first : place.first + len(types)])

    def write(self, place: Place, value: Any, node: ast.AST) -> None:
        if place.dynamic:
            whole = self.read_static(place, node)
            value = self.insert(whole, list(place.dynamic), value, node)
        what = f"the value for {place.array.array.name if place.array else place.name}"
        leaves = flatten(self.convert(value, place.kind, node, what)) or []
        if place.array is not None:
            comps = range(place.first, place.first + len(leaves))
            self.b.emit(Store(place.array.array, place.index, comps, leaves, self.b.span))
            return
        old = self.frame.env[place.name]
        full = flatten(old) or []
        full[place.first : place.first + len(leaves)] = leaves
        self.frame.env[place.name] = rebuild(old, full)

    def insert(self, whole: Agg, keys: list[Any], value: Any, node: ast.AST) -> Any:
        """`whole` with the component at a run-time index replaced: each component selects old or new."""
        n = length_of(whole.type)
        if n is None or (len(keys) == 2 and not isinstance(whole.type, t.Mat)) or len(keys) > 2:
            raise self.bad_component(whole, keys, node)
        index = self.as_index(keys[0], node)
        self.check_bounds(index, n)
        leaves: list[Value] = []
        for k in range(n):
            old = self.component(whole, [Weak(k)], node)
            new = self.insert(old, keys[1:], value, node) if len(keys) == 2 else self.convert(value, _type(old), node)
            hit = self.b.op("eq", index, const(index.type, k))
            leaves.extend(flatten(self.select(hit, new, old)) or [])
        return Agg(whole.type, tuple(leaves))

    def stmt_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            old = self.expr(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            right = self.expr(node.value)
            self.at(node)
            self.assign_name(node.target.id, self.binary(type(node.op), old, right, node), node)
            return
        place = self.place(node.target)
        if place.array is not None and isinstance(node.op, (ast.Add, ast.Sub)) and not place.dynamic:
            before = len(self.b.block.body)
            right = self.expr(node.value)
            self.at(node)
            self.check_undisturbed(place.array, before, node)
            leaves = flatten(self.convert(right, place.kind, node, f"the value for {place.array.array.name}")) or []
            comps = range(place.first, place.first + len(leaves))
            kind = "add" if isinstance(node.op, ast.Add) else "sub"
            self.emit_atomic(kind, place.array, list(place.index), comps, leaves, node, used=False)
            return
        # Python reads the target before it computes the right side.
        old = self.read(place, node)
        right = self.expr(node.value)
        self.at(node)
        self.write(place, self.binary(type(node.op), old, right, node), node)

    def check_undisturbed(self, array: ArrayVal, before: int, node: ast.AST) -> None:
        """`a[i] += v` is one atomic step: what computes v must not write to `a` itself."""
        fresh = Block([], self.b.block.body[before:])
        if any(isinstance(s, (Store, Atomic)) and s.array is array.array for s in fresh.walk()):
            raise self.fail(Unsupported, f"the right side writes to {array.array.name}, which this line updates", node,
                            advice="compute the value on a line of its own first")  # fmt: skip

    # -- assert and print
    def stmt_Assert(self, node: ast.Assert) -> None:
        cond = self.truth(self.expr(node.test), node.test)
        message = ""
        if node.msg is not None:
            if not (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)):
                raise self.fail(Unsupported, "the message of an assert is a plain string", node.msg)
            message = node.msg.value
        value = const(t.BOOL, cond.value) if isinstance(cond, Weak) else cond
        self.at(node)
        self.b.emit(Check(value, 1, message or ast.unparse(node.test), (), self.b.span))

    def print(self, node: ast.Call) -> None:
        if node.keywords:
            raise self.fail(Unsupported, "print(...) takes no keyword arguments in a kernel", node)
        parts: list[str | None] = []
        values: list[Value] = []
        for k, arg in enumerate(node.args):
            if k:
                parts.append(" ")
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                parts.append(arg.value)
                continue
            self.print_value(self.strengthen(self.expr(arg)), parts, values, arg)
        self.at(node)
        self.b.emit(Print(parts, values, self.b.span))

    def print_value(self, value: Any, parts: list[str | None], values: list[Value], node: ast.AST) -> None:
        leaves: Sequence[Value] | None = flatten(value)
        if leaves is None:
            raise self.fail(TypeMismatch, f"{describe(value)} cannot be printed", node)
        if is_number(value):
            parts.append(None)
        else:
            parts.append("(")
            for k in range(len(leaves)):
                parts.extend((None,) if k == 0 else (", ", None))
            parts.append(")")
        values.extend(leaves)


def _type(value: Any) -> t.Type:
    kind = type_of(value)
    assert kind is not None
    return kind
