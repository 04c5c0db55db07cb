"""Values made from values: conversions, vectors, matrices, structs, local arrays, and what is known of them."""

from __future__ import annotations

import ast
from typing import Any

from .. import types as t
from ..errors import NoOverload, TypeMismatch, WrongType
from ..ir import (
    Value,
    const,
)
from .expressions import Expressions
from .values import (
    Agg,
    ArrayVal,
    Known,
    ShapeVal,
    TupleVal,
    Weak,
    describe,
    flatten,
    is_number,
    length_of,
    of_type,
    static_int,
    type_of,
)

TYPES_ARE = "types are float, int, bool, kc.float3, kc.mat33, a @kc.struct, …"


class Constructors(Expressions):
    """Lowers calls of types."""

    def conversion(self, target: type, args: list[Any], node: ast.AST) -> Any:
        if len(args) != 1 or not is_number(args[0]):
            shown = ", ".join(describe(a) for a in args) or "nothing"
            raise self.fail(TypeMismatch, f"{target.__name__}() converts one number, not {shown}", node,
                            advice="pass a number, for instance an element or a component")  # fmt: skip
        value = args[0]
        if isinstance(value, Weak):
            return Weak(target(value.value))
        if target is bool:
            return self.b.cast(t.BOOL, value)
        if target is int:
            return self.to_integer(value, node)
        return self.as_real(value, node)

    def to_integer(self, value: Any, node: ast.AST) -> Any:
        if isinstance(value, Weak):
            return Weak(int(value.value))
        return self.b.cast(t.INT32, value)

    def construct(self, kind: t.Type, args: list[Any], node: ast.AST) -> Any:
        if isinstance(kind, (t.Scalar, t.Composite)):
            self.annotated(Known(kind), node)
        if isinstance(kind, t.Scalar):
            return self.construct_scalar(kind, args, node)
        assert isinstance(kind, t.Composite)
        if not args:
            return self.zero(t.resolve(kind, self.real))
        if isinstance(kind, t.Transform) and len(args) == 2:
            parts = [flatten(a) for a in args]
            if isinstance(type_of(args[0]), t.Vec) and isinstance(type_of(args[1]), (t.Quat, t.Vec)):
                args = [v for p in parts for v in (p or [])]
        if len(args) == 1 and isinstance(args[0], Agg):
            args = self.regroup(kind, args[0], node)
        elif len(args) == 1 and kind.count > 1 and is_number(args[0]) and isinstance(kind, t.Vec):
            args = args * kind.count
        elif isinstance(kind, t.Mat) and len(args) == kind.c and all(type_of(a) == t.Vec(kind.r, a.leaves[0].type)
                                                                   for a in args if isinstance(a, Agg)):  # fmt: skip
            # Vectors are columns.
            if all(isinstance(a, Agg) for a in args):
                args = [args[j].leaves[i] for i in range(kind.r) for j in range(kind.c)]
        elif isinstance(kind, (t.Vec, t.Quat)) and any(isinstance(a, Agg) for a in args):
            args = [leaf for a in args for leaf in (flatten(a) or [a])]
        if len(args) != kind.count or not all(is_number(a) for a in args):
            shown = ", ".join(describe(a) for a in args)
            raise self.fail(NoOverload, f"{kind!r} is made of {kind.count} numbers, not of ({shown})", node,
                            advice=f"give {kind.count} numbers, or none for zeros")  # fmt: skip
        scalar = self.scalar_of(kind, args, node)
        return Agg(kind.with_scalar(scalar), tuple(self.number(a, scalar, node) for a in args))

    def regroup(self, kind: t.Composite, value: Agg, node: ast.AST) -> list[Any]:
        """A composite from another of the same size: a conversion of precision, or vector against quaternion."""
        if isinstance(value.type, t.Composite) and value.type.count == kind.count and not isinstance(kind, t.Mat):
            if kind.scalar is not t.REAL:
                return [self.construct_scalar(kind.scalar, [v], node) for v in value.leaves]
            return list(value.leaves)
        if isinstance(value.type, t.Mat) and isinstance(kind, t.Mat) and value.type.shape == kind.shape:
            if kind.scalar is not t.REAL:
                return [self.construct_scalar(kind.scalar, [v], node) for v in value.leaves]
            return list(value.leaves)
        return [value]

    def scalar_of(self, kind: t.Composite, args: list[Any], node: ast.AST) -> t.Scalar:
        """A polymorphic constructor takes the precision of its arguments."""
        if kind.scalar is not t.REAL:
            return kind.scalar
        reals = [a for a in args if isinstance(a, Value) and a.type.is_float]
        for other in reals[1:]:
            self.common_type(reals[0], other, node)
        return reals[0].type if reals else self.real

    def construct_scalar(self, kind: t.Scalar, args: list[Any], node: ast.AST) -> Any:
        if len(args) != 1 or not is_number(args[0]):
            shown = ", ".join(describe(a) for a in args) or "nothing"
            raise self.fail(TypeMismatch, f"kc.{kind}() converts one number, not {shown}", node,
                            advice="pass a number, for instance an element or a component")  # fmt: skip
        kind = self.real if kind is t.REAL else kind
        if isinstance(args[0], Weak):
            if isinstance(args[0].value, float) and not kind.is_float:
                return const(kind, int(args[0].value))
            return const(kind, args[0].value)
        return self.b.cast(kind, args[0])

    def zero(self, kind: t.Type) -> Any:
        return of_type(kind, [const(s, 0) for s in t.leaves(kind)])

    def construct_struct(self, kind: t.Struct, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        resolved = t.computed(t.resolve(kind, self.real), self.real)
        assert isinstance(resolved, t.Struct)
        unknown = [n for n in named if n not in resolved.names]
        if unknown or len(args) > len(resolved.fields):
            found = f"{', '.join(unknown)}" if unknown else f"{len(args)} of them"
            raise self.fail(NoOverload, f"{kind.name} has the fields {', '.join(resolved.names)}, not {found}", node,
                            advice=f"write {kind.name}({', '.join(f'{n}=…' for n in resolved.names)})")  # fmt: skip
        given = dict(zip(resolved.names, args, strict=False))
        double = [n for n in named if n in given]
        if double:
            raise self.fail(
                NoOverload, f"{kind.name} gets {', '.join(double)} twice", node, advice="name each field once"
            )
        if resolved.is_bundle:
            return self.construct_bundle(kind, args, named, node)
        given |= named
        leaves: list[Value] = []
        for name, field in resolved.fields:
            if name in given:
                value = self.convert(given[name], field, node, f"field {name!r}")
            else:
                value = self.field_default(resolved, name, field, node)
            leaves.extend(flatten(value) or [])
        return Agg(resolved, tuple(leaves))

    def field_default(self, kind: t.Struct, name: str, field: t.Type, node: ast.AST) -> Any:
        """A field that is not given: its default, or zero."""
        default = dict(kind.defaults).get(name)
        if default is None:
            return self.construct_struct(field, [], {}, node) if isinstance(field, t.Struct) else self.zero(field)
        if isinstance(field, t.Scalar):
            return self.number(Weak(default), field, node)
        assert isinstance(field, t.Composite)
        return Agg(field, tuple(self.number(Weak(x), field.scalar, node) for x in default))

    def call_local(self, args: list[Any], node: ast.AST) -> Agg:
        n = static_int(args[0]) if args else None
        if n is None or not 0 < n <= 256:
            raise self.fail(TypeMismatch, "kc.local(n, T): n is a literal from 1 to 256", node,
                            advice="use an array for more, with a row for each thread")  # fmt: skip
        element = self.annotated(args[1], node) if len(args) > 1 else self.real
        kind = t.Local(n, element)
        return Agg(kind, tuple(const(s, 0) for s in t.leaves(kind)))

    def annotated(self, value: Any, node: ast.AST) -> t.Type:
        """The type that an annotation or an argument means."""
        try:
            return self.resolved(value.object if isinstance(value, Known) else None)
        except WrongType as error:
            if isinstance(value, Known) and isinstance(value.object, t.Type):
                raise self.fail(TypeMismatch, error.message, node, advice=error.advice) from None
            said = f"{describe(value).removeprefix('the type ')} is no type of the kernel language"
            raise self.fail(TypeMismatch, said, node, advice=TYPES_ARE) from None

    def static_argument(self, value: Any, node: ast.AST) -> Any:
        if isinstance(value, Known):
            return value.object
        number = static_int(value)
        if number is None:
            raise self.fail(TypeMismatch, f"{describe(value)} is not known while compiling", node,
                            advice="use a literal or a module constant")  # fmt: skip
        return number

    def call_len(self, args: list[Any], node: ast.AST) -> Any:
        if len(args) == 1 and isinstance(args[0], ArrayVal):
            return self.b.query("shape", len(args[0].prefix), args[0].array)
        if len(args) == 1 and isinstance(args[0], TupleVal):
            return Weak(len(args[0].items))
        if len(args) == 1 and isinstance(args[0], ShapeVal):
            return Weak(args[0].ndim)
        n = length_of(type_of(args[0])) if len(args) == 1 else None
        if n is None:
            shown = ", ".join(map(describe, args)) or "nothing"
            raise self.fail(TypeMismatch, f"{shown} has no length", node, advice="arrays, vectors and tuples have one")
        return Weak(n)
