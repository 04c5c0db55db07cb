"""Statements → IR: assignment to names, components and elements; assert, print; what stands on a line."""

from __future__ import annotations

import ast
import builtins as python
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import types as t
from ..errors import MaybeUnassigned, SourceError, TypeChange, TypeMismatch, UnknownName, Unsupported, WrongIndexCount
from ..ir import Atomic, Block, Check, Print, Store, Value, const
from . import intrinsics
from .calls import Calls
from .convert import holds
from .fence import REFUSED
from .slices import has_slice
from .values import (
    Agg,
    ArrayVal,
    BundleVal,
    Known,
    Maybe,
    ShapeVal,
    TupleVal,
    Weak,
    component_advice,
    describe,
    flatten,
    is_number,
    length_of,
    of_type,
    part_of,
    rebuild,
    static_int,
    type_name,
    type_of,
)


@dataclass(frozen=True)
class Place:
    """Where an assignment goes: the leaves of a name or of an array element from `first` on, which make up `whole`.

    `path` leads on to a part of that, `kind`: it begins with the first index that is known at run time only.
    """

    kind: t.Type
    whole: t.Type
    first: int = 0
    name: str = ""
    array: ArrayVal | None = None
    index: tuple[Value, ...] = ()
    path: tuple[Any, ...] = ()

    @property
    def label(self) -> str:
        return self.array.array.name if self.array is not None else self.name


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
            raise self.fail(Unsupported, "a declaration without a value has no meaning in a kernel", node,
                            advice="give it a value, for instance `= 0.0`")  # fmt: skip
        hint = self.expr(node.annotation)
        kind = self.annotated(hint, node.annotation)
        what = f"the value for {ast.unparse(node.target)}"
        self.assign(node.target, self.convert(self.expr(node.value), kind, node, what), node)

    def assign(self, target: ast.expr, value: Any, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                if isinstance(item, ast.Starred):
                    raise self.refuse(item)
            self.unpack(target, value, node)
        elif isinstance(target, ast.Subscript) and has_slice(target):
            self.write_slice(target, value, node)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            self.write(self.place(target), value, node)
        else:
            raise self.refuse(target)

    def assign_name(self, name: str, value: Any, node: ast.AST) -> None:
        if value is None:
            raise self.fail(TypeMismatch, f"{name!r} gets no value: the function on the right returns nothing", node,
                            advice="return a value from it, or call it on a line of its own")  # fmt: skip
        known = self.frame.types.get(name)
        value = self.strengthen(self.adapt(value, known) if known is not None else value)
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

    def adapt(self, value: Any, known: t.Type) -> Any:
        """Literals take the type that the name has, as long as it can hold them."""
        if isinstance(value, TupleVal) and isinstance(known, t.Tuple) and len(value.items) == len(known.items):
            return TupleVal(tuple(self.adapt(v, k) for v, k in zip(value.items, known.items, strict=True)))
        if not (isinstance(value, Weak) and isinstance(known, t.Scalar)):
            return value
        number = value.value
        if isinstance(number, bool):
            fits = known is t.BOOL
        elif isinstance(number, int):
            fits = known.is_float or holds(known, number)
        else:
            fits = known.is_float
        return const(known, number) if fits else value

    def type_change(self, name: str, known: t.Type, kind: t.Type, node: ast.AST) -> SourceError:
        what, advice = repr(name), ""
        if name == "$retval":
            what, advice = "the result", "return one type everywhere: convert with float(...) or int(...)"
        elif known is t.INT32 and isinstance(kind, t.Scalar) and kind.is_float:
            advice = f"start {what} as a real, for instance with 0.0 instead of 0"
        elif known is t.INT32 and kind is t.INT64:
            advice = f"start {what} as kc.int64(...)"
        return self.fail(TypeChange, f"{what} is {type_name(known)}, and would become {type_name(kind)} here", node,
                         advice=advice)  # fmt: skip

    def unpack(self, target: ast.Tuple | ast.List, value: Any, node: ast.AST) -> None:
        kind = type_of(value)
        if isinstance(value, TupleVal):
            items = list(value.items)
        elif isinstance(value, ShapeVal):
            items = [self.b.query("shape", axis, value.array) for axis in range(value.first, value.array.type.ndim)]
        elif isinstance(value, Agg) and (n := length_of(kind)) is not None:
            items = [self.component(value, [Weak(k)], node) for k in range(n)]
        else:
            raise self.fail(TypeMismatch, f"{describe(value)} cannot be unpacked", node,
                            advice="tuples, vectors, matrices (by rows) and local arrays can")  # fmt: skip
        if len(items) != len(target.elts):
            raise self.fail(TypeMismatch, f"{len(items)} values are unpacked into {len(target.elts)} names", node,
                            advice="give each value one name")  # fmt: skip
        # Python computes the whole right side before it assigns: the items are values already.
        for item_target, item in zip(target.elts, items, strict=True):
            self.assign(item_target, item, node)

    # -- places
    def place(self, node: ast.expr) -> Place:
        """Resolve the target of an assignment; indices are computed once."""
        if isinstance(node, ast.Name):
            value = self.expr(node)
            kind = type_of(value)
            if isinstance(value, (ArrayVal, TupleVal, BundleVal)) or kind is None:
                advice = f"assign its elements: {node.id}[i] = …" if isinstance(value, ArrayVal) else "make a new one"
                if isinstance(value, BundleVal):
                    advice = "its members stay what the launch was given: assign elements of its arrays"
                text = f"{describe(value)} cannot be changed in a kernel"
                raise self.fail(TypeMismatch, text, node, advice=advice)
            return Place(kind, kind, name=node.id)
        if isinstance(node, ast.Attribute):
            return self.part(self.place(node.value), node.attr, node)
        if isinstance(node, ast.Subscript):
            base = self.array_in(node.value)
            if base is not None:
                index = tuple(self.array_index(base, self.indices(node), node))
                element = base.array.type.element
                return Place(element, element, array=base, index=index)
            return self.indexed(self.place(node.value), self.indices(node), node)
        raise self.fail(Unsupported, "this cannot be assigned to", node,
                        advice="names, components, fields and array elements can be")  # fmt: skip

    def array_in(self, node: ast.expr) -> ArrayVal | None:
        """The array that a name, a member of a bundle or a row refers to; None if it is something else."""
        if isinstance(node, ast.Subscript):
            base = self.array_in(node.value)
            count = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
            return self.row(base, self.indices(node), node) if base is not None and count < base.ndim else None
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or (root is not node and not isinstance(self.expr(root), BundleVal)):
            return None
        found = self.expr(node)
        return found if isinstance(found, ArrayVal) else None

    def part(self, outer: Place, key: Any, node: ast.AST) -> Place:
        """A part that is known while compiling."""
        found = part_of(outer.kind, key)
        if found is None:
            shown = f"[{key}]" if isinstance(key, int) else str(list(key)) if isinstance(key, tuple) else f".{key}"
            raise self.fail(WrongIndexCount if not isinstance(key, str) else UnknownName,
                            f"{type_name(outer.kind)} has no component {shown}", node,
                            advice=component_advice(outer.kind))  # fmt: skip
        kind, first = found
        if outer.path:
            return replace(outer, kind=kind, path=(*outer.path, key))
        return replace(outer, kind=kind, whole=kind, first=outer.first + first)

    def indexed(self, outer: Place, keys: list[Any], node: ast.AST) -> Place:
        key = self.static_key(keys)
        if key is not None:
            return self.part(outer, key, node)
        if len(keys) > (2 if isinstance(outer.kind, t.Mat) else 1) or length_of(outer.kind) is None:
            raise self.fail(WrongIndexCount, f"{type_name(outer.kind)} cannot be indexed by {len(keys)}", node,
                            advice=component_advice(outer.kind))  # fmt: skip
        place = outer
        for item in keys:
            known = static_int(item)
            if known is not None:
                place = self.part(place, known, node)
                continue
            n, index = length_of(place.kind), self.as_index(item, node)
            assert n is not None
            self.check_bounds(index, n, outer.label, node)
            place = replace(place, kind=_type_of_part(place.kind, 0), path=(*place.path, index))
        return place

    def write_slice(self, target: ast.Subscript, value: Any, node: ast.AST) -> None:
        """`v[0:2] = w`, `M[:, j] = c`: component by component."""
        outer = self.place(target.value) if self.array_in(target.value) is None else None
        if outer is None:
            raise self.refuse(next(n for n in ast.walk(target.slice) if isinstance(n, ast.Slice)))
        kind, keys = self.slice_keys(outer.kind, target)
        leaves = flatten(self.convert(value, kind, node, f"the value for {outer.label}")) or []
        for key, leaf in zip(keys, leaves, strict=True):
            self.write(self.indexed(outer, list(key), target), leaf, node)

    def read(self, place: Place, node: ast.AST) -> Any:
        value = self.read_whole(place, node)
        for step in place.path:
            if isinstance(step, str):
                value = self.attribute(value, step, node)
            else:
                value = (
                    self.choose(value, step) if isinstance(step, Value) else self.component(value, [Weak(step)], node)
                )
        return value

    def read_whole(self, place: Place, node: ast.AST) -> Any:
        kind = t.computed(place.whole, self.real)
        types = t.leaves(kind)
        if place.array is not None:
            comps = range(place.first, place.first + len(types))
            return of_type(kind, self.b.load(place.array.array, place.index, comps, types))
        value = self.frame.env[place.name]
        if isinstance(value, Maybe):
            raise self.fail(MaybeUnassigned, f"{place.name!r} may have no value here", node)
        leaves = flatten(value) or []
        return of_type(kind, leaves[place.first : place.first + len(types)])

    def write(self, place: Place, value: Any, node: ast.AST) -> None:
        value = self.convert(value, place.kind, node, f"the value for {place.label}")
        leaves = flatten(value) or []
        if place.array is not None:
            array = place.array.array
            self.at_parts(place, lambda comps: self.b.emit(Store(array, place.index, comps, leaves, self.b.span)), node)
            return
        if place.path:
            leaves = flatten(self.insert(self.read_whole(place, node), place.path, value)) or []
        old = self.frame.env[place.name]
        full = flatten(old) or []
        full[place.first : place.first + len(leaves)] = leaves
        self.frame.env[place.name] = rebuild(old, full)

    def at_parts(self, place: Place, do: Callable[[range], object], node: ast.AST) -> None:
        """Do something to the components of an array element that a place means: where an index is known at run time
        only, to each that it may be, if it is. Other components stay untouched: they may belong to other threads."""
        if not place.path:
            do(range(place.first, place.first + len(t.leaves(place.whole))))
            return
        step, rest = place.path[0], place.path[1:]
        keys = range(length_of(place.whole) or 0) if isinstance(step, Value) else [step]
        for key in keys:
            kind, first = part_of(place.whole, key) or (place.whole, 0)
            part = replace(place, whole=kind, first=place.first + first, path=rest)
            if isinstance(step, Value):
                hit = self.b.op("eq", step, const(step.type, key))
                self.branch(hit, lambda part=part: self.at_parts(part, do, node), lambda: None, node)  # type: ignore[misc]
            else:
                self.at_parts(part, do, node)

    def insert(self, whole: Any, path: tuple[Any, ...], value: Any) -> Any:
        """`whole` with a part replaced: where its index is known at run time only, each part selects old or new."""
        if not path:
            return value
        step, rest = path[0], path[1:]
        keys = range(length_of(whole.type) or 0) if isinstance(step, Value) else [step]
        leaves = list(whole.leaves)
        for key in keys:
            kind, first = part_of(whole.type, key) or (whole.type, 0)
            old = self.slice(whole, kind, first)
            new = self.insert(old, rest, value)
            if isinstance(step, Value):
                new = self.select(self.b.op("eq", step, const(step.type, key)), new, old)
            leaves[first : first + len(t.leaves(kind))] = flatten(new) or []
        return Agg(whole.type, tuple(leaves))

    def stmt_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            old = self.expr(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            right = self.expr(node.value)
            self.at(node)
            self.assign_name(node.target.id, self.binary(type(node.op), old, right, node), node)
            return
        if isinstance(node.target, ast.Subscript) and has_slice(node.target):
            self.update_slice(node.target, node)
            return
        place = self.place(node.target)
        if place.array is not None and isinstance(node.op, (ast.Add, ast.Sub)):
            self.add_to(place, place.array, node)
            return
        # Python reads the target before it computes the right side.
        old = self.read(place, node)
        right = self.expr(node.value)
        self.at(node)
        self.write(place, self.binary(type(node.op), old, right, node), node)

    def update_slice(self, target: ast.Subscript, node: ast.AugAssign) -> None:
        """`v[0:2] += w` of a local value. In an array it would be several steps where `+=` is one."""
        root: ast.expr = target
        while isinstance(root, (ast.Subscript, ast.Attribute)):
            root = root.value
        if isinstance(self.expr(root), (ArrayVal, BundleVal)):
            raise self.fail(Unsupported, "parts of an element of an array are not updated by slices", node,
                            advice="update the components one by one, or the whole element")  # fmt: skip
        old = self.sliced(self.expr(target.value), target)
        right = self.expr(node.value)
        self.at(node)
        self.write_slice(target, self.binary(type(node.op), old, right, node), node)

    def add_to(self, place: Place, array: ArrayVal, node: ast.AugAssign) -> None:
        """`a[i] += v` and `a[i] -= v` are atomic."""
        before = len(self.b.block.body)
        right = self.expr(node.value)
        self.at(node)
        self.check_undisturbed(array, before, node)
        leaves = flatten(self.convert(right, place.kind, node, f"the value for {place.label}")) or []
        kind, index = "add" if isinstance(node.op, ast.Add) else "sub", list(place.index)

        def add(comps: range) -> None:
            self.emit_atomic(kind, array, index, comps, leaves, node, used=False)

        self.at_parts(place, add, node)

    def check_undisturbed(self, array: ArrayVal, before: int, node: ast.AST) -> None:
        """`a[i] += v` is one atomic step: what computes v must not write to `a` itself."""
        fresh = Block([], self.b.block.body[before:])
        if any(isinstance(s, (Store, Atomic)) and s.array is array.array for s in fresh.walk()):
            raise self.fail(Unsupported, f"the right side writes to {array.array.name}, which this line updates", node,
                            advice="compute the value on a line of its own first")  # fmt: skip

    # -- assert and print
    def stmt_Assert(self, node: ast.Assert) -> None:
        if isinstance(node.test, ast.Tuple):
            raise self.fail(Unsupported, "an assert of a tuple is always true in Python", node.test,
                            advice='write `assert condition, "text"` without parentheses')  # fmt: skip
        cond = self.truth(self.expr(node.test), node.test)
        message = ""
        if node.msg is not None:
            if not (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)):
                raise self.fail(Unsupported, "the message of an assert is a plain string", node.msg,
                                advice="print the values on the line before")  # fmt: skip
            message = node.msg.value
        value = const(t.BOOL, cond.value) if isinstance(cond, Weak) else cond
        self.at(node)
        self.b.emit(Check(value, 1, message or ast.unparse(node.test), (), self.b.span))

    def print(self, node: ast.Call) -> None:
        if node.keywords:
            raise self.fail(Unsupported, "print(...) takes no keyword arguments in a kernel", node,
                            advice="print all of a line in one call")  # fmt: skip
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
            raise self.fail(TypeMismatch, f"{describe(value)} cannot be printed", node,
                            advice="print numbers, vectors, or elements of arrays")  # fmt: skip
        if is_number(value):
            parts.append(None)
        else:
            parts.append("(")
            for k in range(len(leaves)):
                parts.extend((None,) if k == 0 else (", ", None))
            parts.append(")")
        values.extend(leaves)


def _type_of_part(kind: t.Type, key: Any) -> t.Type:
    found = part_of(kind, key)
    assert found is not None
    return found[0]
