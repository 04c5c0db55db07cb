"""Calls: built-ins, constructors, functions (inlined), and the intrinsics that know the launch."""

from __future__ import annotations

import ast
import builtins as python
import inspect
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from .. import types as t
from ..builtins import TABLE, CompoundRow, ScalarRow
from ..errors import MissingReturn, NoOverload, NotDifferentiable, Recursion, TypeMismatch, Unsupported, WrongType
from ..ir import (
    FALSE,
    TRUE,
    Atomic,
    Block,
    Builder,
    Call,
    Custom,
    Gradient,
    Op,
    Record,
    Store,
    Value,
    const,
    prune_block,
)
from . import intrinsics
from .convert import Frame, Restart
from .expressions import Expressions
from .function import Func
from .generators import yields
from .source import MISSING, Capture, Source, always_exits, assigned_names, freeze
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
    type_name,
    type_of,
)

_PYTHON_NAMES = ((python.abs, "abs"), (python.min, "min"), (python.max, "max"), (python.pow, "pow"))
_TYPES = "types are float, int, bool, kc.float3, kc.mat33, a @kc.struct, …"


class Gradients:
    """`kc.grad(f)` while lowering."""

    def __init__(self, function: Func):
        self.function = function


class Calls(Expressions):
    """Lowers calls."""

    def call(self, node: ast.Call) -> Any:
        callee = self.expr(node.func)
        if not isinstance(callee, Known):
            raise self.fail(TypeMismatch, f"{describe(callee)} cannot be called", node,
                            advice="a * b multiplies; a[i] indexes")  # fmt: skip
        target = callee.object
        if target is intrinsics.static:
            return self.call_static(node)
        if target is intrinsics.where:
            return self.call_where(node)
        if target is python.print:
            raise self.fail(Unsupported, "print(...) is a statement in kernels: it has no value", node,
                            advice="write it on a line of its own")  # fmt: skip
        args, named = self.arguments(node)
        return self.apply(target, args, named, node)

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise self.fail(Unsupported, "* and ** in calls are not part of the kernel language", node,
                            advice="pass the arguments one by one")  # fmt: skip
        args = [self.expr(a) for a in node.args]
        named = {k.arg: self.expr(k.value) for k in node.keywords if k.arg is not None}
        self.at(node)
        return args, named

    def apply(self, target: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        if isinstance(target, intrinsics.Intrinsic):
            self.no_names(named, target.name, node)
            return getattr(self, f"call_{target.name}")(args, node)
        if isinstance(target, Func):
            return self.inline(target, args, named, node)
        if isinstance(target, t.Struct):
            return self.construct_struct(target, args, named, node)
        self.no_names(named, str(getattr(target, "__name__", None) or getattr(target, "name", repr(target))), node)
        if isinstance(target, ScalarRow):
            return self.scalar_call(target, args, node)
        if isinstance(target, CompoundRow):
            return self.compound_call(target, args, node)
        if isinstance(target, Gradients):
            return self.partials(target.function, args, node)
        if isinstance(target, t.Type):
            return self.construct(target, args, node)
        return self.python_call(target, args, node)

    def no_names(self, named: dict[str, Any], name: str, node: ast.AST) -> None:
        if named:
            raise self.fail(NoOverload, f"{name}() takes no keyword arguments", node, advice="pass them by position")

    def python_call(self, target: Any, args: list[Any], node: ast.Call) -> Any:
        """Functions of Python that have a meaning in kernels."""
        # By identity: the target may be any object of the user's.
        if target is float or target is int or target is bool:
            return self.conversion(target, args, node)
        if target is len:
            return self.call_len(args, node)
        if target is round:
            return self.call_round(args, node)
        known = next((name for function, name in _PYTHON_NAMES if function is target), None)
        if known in ("min", "max") and len(args) > 2:
            row = TABLE.scalar(known)
            result = args[0]
            for other in args[1:]:
                result = self.scalar_call(row, [result, other], node)
            return result
        if target is python.pow and len(args) == 2:
            return self.binary(ast.Pow, args[0], args[1], node)
        if known is not None:
            return self.scalar_call(TABLE.scalar(known), args, node)
        if target is t.vec or target is t.mat:
            return Known(target(*(self.static_argument(a, node) for a in args)))
        if target is t.local:
            return self.call_local(args, node)
        name = getattr(target, "__name__", "")
        if target is not None and getattr(math, name, None) is target:
            return self.math_call(name, args, node)
        raise self.not_callable(target, node)

    def not_callable(self, target: Any, node: ast.Call) -> Exception:
        name = getattr(target, "__name__", None) or type(target).__name__
        module = getattr(target, "__module__", "") or ""
        if hasattr(target, "launchable"):
            return self.fail(Unsupported, f"{name} is a kernel: kernels are launched, not called", node,
                             advice="make it a @kc.func to call it here")  # fmt: skip
        if module.startswith("numpy") and name in TABLE.rows:
            return self.fail(Unsupported, f"numpy.{name} cannot be called in a kernel", node, advice=f"use kc.{name}")
        advice = "decorate it with @kc.func"
        if module == "builtins" or inspect.isbuiltin(target):
            advice = "write it out, with a loop if need be"
        elif module.split(".")[0] in ("kernelc", "numpy", "torch"):
            advice = "call it from Python, and pass the result to the launch"
        return self.fail(Unsupported, f"{name}() cannot be called in a kernel", node, advice=advice)

    def call_round(self, args: list[Any], node: ast.AST) -> Any:
        if len(args) != 1:
            raise self.fail(Unsupported, "round() to a number of digits is not part of the kernel language", node,
                            advice="write kc.round(x * 100.0) / 100.0")  # fmt: skip
        return self.whole("round", args, node)

    def whole(self, name: str, args: list[Any], node: ast.AST) -> Any:
        """Python's round, floor, ceil and trunc give integers, and leave integers as they are."""
        if len(args) == 1 and is_number(args[0]):
            value = self.strengthen(args[0])
            if not value.type.is_float:
                return self.b.cast(t.INT32, value) if value.type is t.BOOL else args[0]
        return self.to_integer(self.scalar_call(TABLE.scalar(name), args, node), node)

    def math_call(self, name: str, args: list[Any], node: ast.Call) -> Any:
        if name in ("floor", "ceil", "trunc"):
            return self.whole(name, args, node)
        known = "abs" if name == "fabs" else name
        if name == "fmod" or not isinstance(TABLE.rows.get(known), ScalarRow):
            raise self.fail(Unsupported, f"math.{name} has no counterpart in the kernel language", node,
                            advice="kernelc has its own functions: see the table of built-ins")  # fmt: skip
        # All of them take reals: math.fabs(-3) is 3.0.
        reals = [self.as_real(a, node) if is_number(a) else a for a in args]
        return self.scalar_call(TABLE.scalar(known), reals, node)

    # -- conversions and constructors
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
        return value if value.type.is_int else self.b.cast(t.INT32, value)

    def construct(self, kind: t.Type, args: list[Any], node: ast.AST) -> Any:
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

    def construct_struct(self, kind: t.Struct, args: list[Any], named: dict[str, Any], node: ast.AST) -> Agg:
        resolved = t.resolve(kind, self.real)
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
        given |= named
        leaves: list[Value] = []
        for name, field in resolved.fields:
            value = self.convert(given[name], field, node, f"field {name!r}") if name in given else self.zero(field)
            leaves.extend(flatten(value) or [])
        return Agg(resolved, tuple(leaves))

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
        except WrongType:
            found = describe(value).removeprefix("the type ")
            raise self.fail(TypeMismatch, f"{found} is no type of the kernel language", node, advice=_TYPES) from None

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
            return self.b.query("shape", 0, args[0].array)
        if len(args) == 1 and isinstance(args[0], TupleVal):
            return Weak(len(args[0].items))
        if len(args) == 1 and isinstance(args[0], ShapeVal):
            return Weak(args[0].array.type.ndim)
        n = length_of(type_of(args[0])) if len(args) == 1 else None
        if n is None:
            shown = ", ".join(map(describe, args)) or "nothing"
            raise self.fail(TypeMismatch, f"{shown} has no length", node, advice="arrays, vectors and tuples have one")
        return Weak(n)

    # -- built-ins
    def scalar_call(self, row: ScalarRow, args: list[Any], node: ast.AST) -> Any:
        if len(args) == len(row.params) and any(isinstance(a, Agg) for a in args):
            mapped = self.by_component(row, args, node)
            if mapped is not None:
                return mapped
        if len(args) != len(row.params) or not all(is_number(a) for a in args):
            shown = ", ".join(describe(a) for a in args)
            raise self.fail(NoOverload, f"no kc.{row.name}({shown})", node,
                            advice=f"candidates: {row.name}({', '.join(row.params)}) of numbers, or of vectors by "
                            "component")  # fmt: skip
        return self.b.op(row.name, *self.row_arguments(row, args, node))

    def row_arguments(self, row: ScalarRow, args: list[Any], node: ast.AST) -> list[Value]:
        strong = [a for a in args if isinstance(a, Value)]
        kind = strong[0].type if strong else self.weak_type(Weak(sum(a.value for a in args)))
        for other in strong[1:]:
            kind = self.common_type(Value(kind, strong[0].name), other, node)
        if any(isinstance(a, Weak) and isinstance(a.value, float) for a in args) and not kind.is_float:
            kind = self.real
        if kind is t.BOOL:
            kind = t.INT32
        if row.kind in ("real", "test") and not kind.is_float:
            kind = self.real
        return [self.number(a, kind, node) for a in args]

    def by_component(self, row: ScalarRow, args: list[Any], node: ast.AST) -> Any:
        """abs, min, max, clamp, floor … of vectors work component by component; numbers are spread."""
        shapes = {a.type.with_scalar(t.REAL) for a in args if isinstance(a, Agg) and isinstance(a.type, t.Composite)}
        if len(shapes) != 1 or not isinstance(next(iter(shapes)), (t.Vec, t.Mat)):
            return None
        shape = next(iter(shapes))
        columns = [a.leaves if isinstance(a, Agg) else (a,) * shape.count for a in args]
        return self.composite(shape, [self.scalar_call(row, list(c), node) for c in zip(*columns, strict=True)])

    def compound_call(self, row: CompoundRow, args: list[Any], node: ast.Call) -> Any:
        from ..builtins.signatures import candidates, match

        kinds = tuple(type_of(self.strengthen(a)) for a in args)
        if not any(match(s, kinds) for s in row.signatures):  # type: ignore[arg-type]
            shown = ", ".join(describe(a) for a in args)
            raise self.fail(NoOverload, f"no kc.{row.name}({shown})", node,
                            advice="candidates: " + "; ".join(candidates(row)))  # fmt: skip
        # Literals and zeros in the body take the precision of the arguments; its small loops are unrolled anywhere.
        saved = self.real, self.frame.unrolled, self.caller
        self.caller = self.span(node)
        self.real = next((s.type for a in args for s in flatten(a) or () if s.type.is_float), self.real)
        self.frame.unrolled = 1
        try:
            return self.inline(row.load(), args, {}, node)
        finally:
            self.real, self.frame.unrolled, self.caller = saved

    # -- functions
    def no_recursion(self, function: Func, node: ast.AST) -> None:
        if any(f is function for f, _ in self.calls):
            names = [f.name for f, _ in self.calls]
            cycle = [*names[names.index(function.name) :], function.name]
            raise self.fail(Recursion, f"recursion: {' → '.join(cycle)}", node)

    def inline(self, function: Func, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        self.no_recursion(function, node)
        if yields(function.source):
            raise self.fail(Unsupported, f"{function.name}() yields values one by one: it is no value itself", node,
                            advice=f"loop over it: `for x in {function.name}(…):`")  # fmt: skip
        self.capture(Capture(function, "rule", function.rule))
        if function.rule is not None:
            return self.custom_call(function, args, named, node)
        return self.run_function(function, function.source, args, named, node)

    def run_function(
        self, function: Func, source: Source, args: list[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        """Lower the body of a function where it is called."""
        outer, here = self.frame, self.b.span
        frame = Frame(source, unrolled=outer.unrolled)
        frame.env.update(self.bind(function, source, args, named, node))
        if "$seq" in outer.env:
            frame.env["$seq"] = outer.env["$seq"]
        frame.types.update({n: k for n, v in frame.env.items() if (k := type_of(v)) is not None})
        frame.returns = self.declared(source, "return")
        frame.env["$ret"] = FALSE
        self.frame = frame
        self.calls.append((function, self.span(source.definition)))
        try:
            self.body(source.definition.body)
            self.check_returns(source, frame)
        finally:
            self.calls.pop()
            self.frame = outer
        self.b.span = here
        if "$seq" in frame.env:
            outer.env["$seq"] = frame.env["$seq"]
        return frame.env.get("$retval")

    @abstractmethod
    def body(self, stmts: list[ast.stmt]) -> None:
        """Lower statements one after the other (control.py)."""

    def check_returns(self, source: Source, frame: Frame) -> None:
        stmts = source.definition.body
        returned = frame.env.get("$ret") is TRUE or always_exits(stmts, returns_only=True)
        if "$retval" in frame.env and not returned:
            raise MissingReturn(f"{source.name!r} returns a value, but not on every path", source.head)
        if "$retval" not in frame.env and frame.returns is not None:
            raise MissingReturn(f"{source.name!r} is annotated to return {type_name(frame.returns)}, but returns "
                                "nothing", source.head)  # fmt: skip

    def bind(
        self, function: Func, source: Source, args: list[Any], named: dict[str, Any], node: ast.AST
    ) -> dict[str, Any]:
        """Arguments to parameter names, with defaults and conversions to annotated types."""
        spec = source.definition.args
        if spec.vararg or spec.kwarg:
            raise self.fail(Unsupported, f"{source.name}() has *args or **kwargs", node, advice="name its parameters")
        names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
        positional = len(spec.posonlyargs) + len(spec.args)
        given = dict(zip(names[:positional], args, strict=False))
        double = [n for n in named if n in given]
        unknown = [n for n in named if n not in names[len(spec.posonlyargs) :]]
        if len(args) > positional or double or unknown:
            found = f"{len(args)} argument{'s' * (len(args) != 1)}{' and ' + ', '.join(named) if named else ''}"
            raise self.fail(NoOverload, f"{source.name}() is called with {found}", node,
                            advice=f"candidates: {source.name}({', '.join(names)})")  # fmt: skip
        given |= named
        defaults = _defaults(source)
        changed = set(assigned_names(source.definition.body))
        bound: dict[str, Any] = {}
        for name in names:
            if name not in given and name not in defaults:
                raise self.fail(NoOverload, f"{source.name}() misses the argument {name!r}", node,
                                advice=f"candidates: {source.name}({', '.join(names)})")  # fmt: skip
            value = given[name] if name in given else self.wrap(defaults[name])
            kind = self.declared(source, name)
            if kind is not None:
                value = self.convert(value, kind, node, f"argument {name!r} of {source.name}()")
            bound[name] = self.strengthen(value) if name in changed else value
        return bound

    def declared(self, source: Source, name: str) -> t.Type | None:
        """The annotated type of a parameter, or of the result; None where there is none."""
        hint = source.annotations.get(name)
        try:
            return self.resolved(hint) if hint is not None else None
        except WrongType as error:
            raise TypeMismatch(error.message, source.annotation_span(name), advice=_TYPES) from None

    # -- functions with a rule of their own
    def custom_call(self, function: Func, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        bound = {n: self.strengthen(v) for n, v in self.bind(function, function.source, args, named, node).items()}
        leaves = [flatten(v) for v in bound.values()]
        if any(part is None for part in leaves):
            raise self.fail(Unsupported, f"{function.name} has an adjoint of its own, so it takes values, not arrays",
                            node, advice="read the elements first, and pass them")  # fmt: skip
        flat = [v for part in leaves if part is not None for v in part]
        custom, result = self.custom(function, list(bound.values()), node)
        outs = [Value(v.type, function.name) for v in custom.body.yields]
        self.b.emit(Call(outs, custom, flat, self.b.span))
        return of_type(_type(result), outs)

    def custom(self, function: Func, args: list[Any], node: ast.AST) -> tuple[Custom, Any]:
        """The function and its rule for arguments of these types, lowered once."""
        key = (function, tuple(_type(a) for a in args))
        if key not in self.customs:
            assert function.rule is not None
            body, result = self.separately(function, function.source, args, node)
            results = list(result.items) if isinstance(result, TupleVal) else [result]
            adjoint, back = self.separately(function, function.rule, [*args, *results], node)
            self.check_rule(function, args, back, node)
            self.customs[key] = Custom(function.name, prune_block(body), prune_block(adjoint)), result
        found: tuple[Custom, Any] = self.customs[key]
        return found

    def separately(self, function: Func, source: Source, like: list[Any], node: ast.AST) -> tuple[Block, Any]:
        """Lower a function into a block of its own, with fresh parameters of the given types."""
        block, saved = Block(), self.b
        self.b = Builder(block, saved.span)
        params = [of_type(_type(v), [Value(s, source.name) for s in t.leaves(_type(v))]) for v in like]
        block.params = [leaf for p in params for leaf in (flatten(p) or [])]
        env, self.frame = self.frame, Frame(self.frame.source)
        calls, self.calls = self.calls, [c for c in self.calls if c[0] is not function]
        try:
            result = self.strengthen(self.run_function(function, source, params, {}, node))
        finally:
            self.b, self.frame, self.calls = saved, env, calls
        if result is None:
            raise self.fail(MissingReturn, f"{source.name}() must return a value here", node)
        block.yields = flatten(result) or []
        return block, result

    def check_rule(self, function: Func, params: list[Any], back: Any, node: ast.AST) -> None:
        got = list(back.items) if isinstance(back, TupleVal) and len(params) > 1 else [back]
        if len(params) == 1 and isinstance(back, TupleVal) and len(back.items) == 1:
            got = list(back.items)
        want, have = [_type(p) for p in params], [type_of(g) for g in got]
        if want != have:
            assert function.rule is not None
            wanted, found = ", ".join(map(type_name, want)), ", ".join(map(describe, got))
            raise TypeMismatch(f"the adjoint of {function.name} must return one adjoint per parameter, ({wanted}), not "
                               f"({found})", function.rule.head,
                               advice="return the adjoints in the order of the parameters")  # fmt: skip

    # -- derivatives inside kernels
    def call_grad(self, args: list[Any], node: ast.AST) -> Any:
        if len(args) != 1 or not isinstance(args[0], Known) or not isinstance(args[0].object, Func):
            shown = ", ".join(map(describe, args)) or "nothing"
            raise self.fail(TypeMismatch, f"kc.grad(f) takes a @kc.func, not {shown}", node,
                            advice="write a @kc.func that calls it")  # fmt: skip
        return Known(Gradients(args[0].object))

    def partials(self, function: Func, args: list[Any], node: ast.Call) -> Any:
        bound = [self.strengthen(v) for v in self.bind(function, function.source, args, {}, node).values()]
        if any(flatten(v) is None for v in bound):
            raise self.fail(Unsupported, "kc.grad(f) is for functions of values, not of arrays", node,
                            advice="read the elements first, and pass them")  # fmt: skip
        block, result = self.separately(function, function.source, bound, node)
        if not (isinstance(result, Value) and result.type.is_float):
            raise self.fail(TypeMismatch, f"kc.grad needs a function that returns one real; {function.name} returns "
                            f"{describe(result)}", node, advice="return a single number")  # fmt: skip
        flat = [leaf for v in bound for leaf in (flatten(v) or [])]
        outs = [Value(v.type, f"d{function.name}") for v in flat]
        self.b.emit(Gradient(outs, block, flat, self.b.span))
        items, at = [], 0
        for v in bound:
            n = len(flatten(v) or [])
            if all(s.is_float for s in t.leaves(_type(v))):
                items.append(of_type(_type(v), outs[at : at + n]))
            at += n
        return items[0] if len(items) == 1 else TupleVal(tuple(items))

    # -- intrinsics
    def call_static(self, node: ast.Call) -> Any:
        if len(node.args) != 1 or node.keywords:
            raise self.fail(NoOverload, "kc.static() takes one expression", node, advice="write kc.static(expression)")
        scope: dict[str, Any] = dict(self.frame.source.globals)
        scope |= {n: c.cell_contents for n, c in self.frame.source.cells.items()}
        for name, value in self.frame.env.items():
            if isinstance(value, Weak):
                scope[name] = value.value
            elif isinstance(value, Known):
                scope[name] = value.object
            elif name in scope:
                del scope[name]
        code = compile(ast.Expression(node.args[0]), self.frame.source.file, "eval")
        for part in ast.walk(node.args[0]):
            self.static_read(part)
        try:
            return self.wrap(eval(code, scope))
        except Exception as error:
            unknown = getattr(error, "name", "") if isinstance(error, NameError) else ""
            if unknown in self.frame.env:
                text = f"kc.static: {unknown!r} is not known while compiling"
                raise self.fail(TypeMismatch, text, node, advice="use constants and names from outside only") from None
            raise self.fail(TypeMismatch, f"kc.static: {type(error).__name__}: {error}", node,
                            advice="the expression runs in Python while the kernel is compiled") from None  # fmt: skip

    def static_read(self, node: ast.AST) -> Any:
        """What a name or a chain of attributes means, captured on the way."""
        if isinstance(node, ast.Name):
            if node.id in self.frame.env:
                value = self.frame.env[node.id]
                return value.object if isinstance(value, Known) else MISSING
            value, capture = self.frame.source.lookup(node.id)
            self.capture(capture)
            return value
        if isinstance(node, ast.Attribute):
            base = self.static_read(node.value)
            value = getattr(base, node.attr, MISSING) if base is not MISSING else MISSING
            if value is not MISSING:
                self.capture(Capture(base, node.attr, value, freeze(value)))
            return value
        return MISSING

    def call_where(self, node: ast.Call) -> Any:
        if len(node.args) != 3 or node.keywords:
            raise self.fail(NoOverload, "kc.where() takes three arguments", node,
                            advice="write kc.where(condition, a, b)")  # fmt: skip
        test, a, b = node.args
        cond = self.truth(self.expr(test), test)
        if isinstance(cond, Weak):
            return self.expr(a if cond.value else b)
        return self.conditional(cond, lambda: self.expr(a), lambda: self.expr(b), node)

    def call_stop_grad(self, args: list[Any], node: ast.AST) -> Any:
        if len(args) != 1:
            raise self.fail(NoOverload, "kc.stop_grad() takes one value", node, advice="write kc.stop_grad(x)")
        value = self.strengthen(args[0])
        leaves = flatten(value)
        if leaves is None:
            raise self.fail(TypeMismatch, f"kc.stop_grad() of {describe(value)}", node,
                            advice="stop the gradient of what is read from it")  # fmt: skip
        outs = []
        for leaf in leaves:
            if leaf.type.is_float:
                out = Value(leaf.type, leaf.name)
                self.b.emit(Op(out, "stop_grad", (leaf,), self.b.span))
                leaf = out
            outs.append(leaf)
        return of_type(_type(value), outs)

    def call_tid(self, args: list[Any], node: ast.AST, count: int = 1) -> Any:
        if args:
            raise self.fail(
                NoOverload, "kc.tid() takes no arguments", node, advice="write i = kc.tid(), i, j = kc.tid()"
            )
        span = self.span(node)
        if self.dims is not None and self.dims[0] != count:
            here, there = f"{count} ind{'ex' if count == 1 else 'ices'}", f"{self.dims[0]} at line {self.dims[1].line}"
            raise self.fail(TypeMismatch, f"kc.tid() gives {here} here, but {there}", node,
                            advice="unpack it in the same way everywhere: the grid has one number of axes")  # fmt: skip
        self.dims = self.dims or (count, span)
        values = self.tids[:count]
        return values[0] if count == 1 else TupleVal(tuple(values))

    def call_load(self, args: list[Any], node: ast.AST) -> Any:
        array, index = self.array_arguments(args, 1, "load(a, i)", node)
        return self.subscript(array, index, node)

    def call_store(self, args: list[Any], node: ast.AST) -> Any:
        array, index = self.array_arguments(args[:-1], 1, "store(a, i, v)", node)
        self.store(array, self.array_index(array, index, node), args[-1], node)
        return None

    def array_arguments(self, args: Sequence[Any], least: int, usage: str, node: ast.AST) -> tuple[ArrayVal, list[Any]]:
        if len(args) <= least or not isinstance(args[0], ArrayVal):
            name, found = usage.split("(")[0], describe(args[0]) if args else "nothing"
            text = f"the first argument of kc.{name}() is an array, not {found}"
            if args and isinstance(args[0], ArrayVal):
                text = f"kc.{name}() got too few arguments"
            raise self.fail(NoOverload, text, node, advice=f"write kc.{usage}")
        return args[0], list(args[1:])

    def store(self, base: ArrayVal, index: list[Value], value: Any, node: ast.AST) -> None:
        kind = base.array.type.element
        leaves = flatten(self.convert(value, kind, node, f"the value for {base.array.name}")) or []
        self.b.emit(Store(base.array, index, range(len(leaves)), leaves, self.b.span))

    def call_atomic_add(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("add", args, node)

    def call_atomic_sub(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("sub", args, node)

    def call_atomic_min(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("min", args, node)

    def call_atomic_max(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("max", args, node)

    def atomic(self, kind: str, args: list[Any], node: ast.AST, *, used: bool = True) -> Any:
        array, index = self.array_arguments(args[:-1], 1, f"atomic_{kind}(a, i, v)", node)
        where = self.array_index(array, index, node)
        value = self.convert(args[-1], array.array.type.element, node, f"the value for {array.array.name}")
        comps = range(len(flatten(value) or []))
        return self.emit_atomic(kind, array, where, comps, flatten(value) or [], node, used=used)

    def emit_atomic(
        self, kind: str, base: ArrayVal, index: list[Value], comps: Sequence[int], leaves: list[Value], node: ast.AST,
        *, used: bool,
    ) -> Any:  # fmt: skip
        if kind == "sub":
            kind, leaves = "add", [self.b.op("neg", v) for v in leaves]
        if any(v.type is t.BOOL for v in leaves):
            raise self.fail(
                NoOverload, f"no atomics on bools ({base.array.name})", node, advice="make it an array of int"
            )
        if not used:
            self.b.emit(Atomic(kind, base.array, index, comps, leaves, (), self.b.span))
            return None
        if any(v.type.is_float for v in leaves):
            advice = "use the result of integer atomics only, or read the array in a later launch"
            raise self.fail(NotDifferentiable, "the old content that a real atomic returns depends on the order of the "
                            "threads: it cannot be used", node, advice=advice)  # fmt: skip
        return self.recorded_atomic(kind, base, index, comps, leaves)

    def recorded_atomic(
        self, kind: str, base: ArrayVal, index: list[Value], comps: Sequence[int], leaves: list[Value]
    ) -> Any:
        """An integer atomic whose result is used: the forward sweep records it, because no replay gets it again."""
        if not self.records:
            raise Restart
        outs = [Value(v.type, f"{base.array.name}.old") for v in leaves]
        self.b.emit(Atomic(kind, base.array, index, comps, leaves, outs, self.b.span))
        for out in outs:
            sequence = self.frame.env["$seq"]
            self.b.emit(Record(sequence, out, self.b.span))
            self.frame.env["$seq"] = self.b.op("add", sequence, const(t.INT64, 1))
        return of_type(base.array.type.element, outs)


def _type(value: Any) -> t.Type:
    kind = type_of(value)
    assert kind is not None
    return kind


def _defaults(source: Source) -> dict[str, Any]:
    function = source.function
    spec = source.definition.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    values = function.__defaults__ or ()
    found = dict(zip(names[len(names) - len(values) :], values, strict=True))
    return found | (function.__kwdefaults__ or {})
