"""Calls of built-ins and of functions, which are inlined; constructors.py and launch_calls.py have the others."""

from __future__ import annotations

import ast
import builtins as python
import inspect
import math
from abc import abstractmethod
from typing import Any

from .. import types as t
from ..builtins import TABLE, CompoundRow, ScalarRow
from ..builtins.random import RNG
from ..errors import MissingReturn, NoOverload, Recursion, Span, TypeMismatch, Unsupported, WrongType
from ..ir import (
    FALSE,
    TRUE,
    Block,
    Builder,
    Call,
    Custom,
    Gradient,
    Value,
    prune_block,
)
from . import intrinsics
from .constructors import TYPES_ARE
from .convert import Frame
from .draws import Draws
from .function import Func
from .generators import yields
from .source import Capture, Source, Stack, always_exits, stack_of
from .values import (
    AbsentVal,
    Agg,
    Known,
    TupleVal,
    Weak,
    describe,
    flatten,
    is_number,
    known_type,
    of_type,
    type_name,
    type_of,
)

_OPERATORS: dict[str, type] = {"cw_mul": ast.Mult, "cw_div": ast.Div}
_PYTHON_NAMES = ((python.abs, "abs"), (python.min, "min"), (python.max, "max"), (python.pow, "pow"))


class Gradients:
    """`kc.grad(f)` while lowering."""

    def __init__(self, function: Func | ScalarRow | CompoundRow):
        self.function = function


class Calls(Draws):
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
        args, named = self.arguments(node, absent=isinstance(target, Func))
        return self.apply(target, args, named, node)

    def arguments(self, node: ast.Call, *, absent: bool = False) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, by position and by name. `absent`: what is absent may be passed on."""
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise self.fail(Unsupported, "* and ** in calls are not part of the kernel language", node,
                            advice="pass the arguments one by one")  # fmt: skip
        lower = self.argument if absent else self.expr
        args = [lower(a) for a in node.args]
        named = {k.arg: lower(k.value) for k in node.keywords if k.arg is not None}
        # A generator is passed on as it is when the call begins: a later argument may have drawn from it.
        args = [lower(n) if self.is_generator(n, a) else a for n, a in zip(node.args, args, strict=True)]
        named |= {k.arg: lower(k.value) for k in node.keywords if k.arg and self.is_generator(k.value, named[k.arg])}
        self.at(node)
        return args, named

    def is_generator(self, node: ast.expr, value: Any) -> bool:
        return isinstance(node, ast.Name) and type_of(value) == RNG

    def argument(self, node: ast.expr) -> Any:
        """An argument of a function, which may ask whether it is there."""
        if isinstance(node, ast.Constant) and node.value is None:
            return AbsentVal("None")
        return self.expr_or_absent(node)

    def apply(self, target: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        if isinstance(target, intrinsics.Intrinsic):
            self.no_names(named, target.name, node)
            return getattr(self, f"call_{target.name}")(args, node)
        if isinstance(target, Func):
            return self.inline(target, args, named, node)
        if isinstance(target, t.Struct):
            return self.construct_struct(target, args, named, node)
        if isinstance(target, (ScalarRow, CompoundRow)):
            args, named = self.row_by_name(target, args, named, node), {}
        self.no_names(named, str(getattr(target, "__name__", None) or getattr(target, "name", repr(target))), node)
        if isinstance(target, ScalarRow):
            return self.scalar_call(target, args, node)
        if isinstance(target, CompoundRow):
            if target.name == "randn" and len(args) == 1:
                return self.draw("randn", args, node)
            return self.compound_call(target, args, node)
        if isinstance(target, Gradients):
            return self.partials(target.function, args, node)
        if isinstance(target, t.Type):
            return self.construct(target, args, node)
        return self.python_call(target, args, node)

    def row_by_name(self, row: Any, args: list[Any], named: dict[str, Any], node: ast.AST) -> list[Any]:
        """The arguments of a built-in, those given by name in their places."""
        rest = row.params[len(args) :]
        if named and sorted(named) != sorted(rest):
            raise self.fail(NoOverload, f"kc.{row.name}() is called with {_counted(args)} and {', '.join(named)}", node,
                            advice=f"candidates: {row.name}({', '.join(row.params)})")  # fmt: skip
        return [*args, *(named[name] for name in rest if named)]

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

    def by_component(self, row: ScalarRow | CompoundRow, args: list[Any], node: ast.AST) -> Any:
        """abs, min, max, clamp, floor … of vectors work component by component; numbers are spread."""
        shapes = {a.type.with_scalar(t.REAL) for a in args if isinstance(a, Agg) and isinstance(a.type, t.Composite)}
        if len(shapes) != 1 or not isinstance(next(iter(shapes)), (t.Vec, t.Mat)):
            return None
        shape = next(iter(shapes))
        columns = [a.leaves if isinstance(a, Agg) else (a,) * shape.count for a in args]
        call: Any = self.scalar_call if isinstance(row, ScalarRow) else self.compound_call
        return self.composite(shape, [call(row, list(c), node) for c in zip(*columns, strict=True)])

    def overload(self, row: CompoundRow, args: list[Any]) -> Any:
        """The func behind the form of a built-in that these arguments fit; None if there is none."""
        from ..builtins.signatures import match

        kinds = tuple(type_of(self.strengthen(a)) for a in args)
        fitting = next((n for n, s in enumerate(row.signatures) if match(s, kinds)), None)  # type: ignore[arg-type]
        return None if fitting is None else row.load(fitting)

    def no_overload(self, row: CompoundRow, args: list[Any], node: ast.AST, call: str) -> Exception:
        from ..builtins.signatures import candidates

        return self.fail(NoOverload, f"no {call}({', '.join(describe(a) for a in args)})", node,
                         advice="candidates: " + "; ".join(candidates(row)))  # fmt: skip

    def compound_call(self, row: CompoundRow, args: list[Any], node: ast.Call) -> Any:
        function = self.overload(row, args)
        if function is None:
            mapped = self.other_form(row, args, node)
            if mapped is not None:
                return mapped
            raise self.no_overload(row, args, node, f"kc.{row.name}")
        # Literals and zeros in the body take the precision of the arguments; its small loops are unrolled anywhere.
        saved = self.real, self.frame.unrolled, self.caller
        self.caller = self.span(node)
        self.real = next((s.type for a in args for s in flatten(a) or () if s.type.is_float), self.real)
        self.frame.unrolled = 1
        try:
            return self.inline(function, args, {}, node)
        finally:
            self.real, self.frame.unrolled, self.caller = saved

    def other_form(self, row: CompoundRow, args: list[Any], node: ast.Call) -> Any:
        """A built-in of reals on vectors and matrices, component by component; products and quotients of integers."""
        whole = all(isinstance(a, Agg) and isinstance(a.type, t.Composite) and a.type.scalar.is_int for a in args)
        if row.name in _OPERATORS and len(args) == 2 and whole and args[0].type.shape == args[1].type.shape:
            sign, pairs = _OPERATORS[row.name], zip(args[0].leaves, args[1].leaves, strict=True)
            return self.composite(args[0].type, [self.scalar_binary(sign, x, y, node) for x, y in pairs])
        if row.name == "dot" and len(args) == 2 and whole:
            return self.product(ast.MatMult, args[0], args[1], node)
        numbers = ", ".join(["real"] * len(row.params)) + " -> real"
        if numbers in row.signatures and len(args) == len(row.params) and any(isinstance(a, Agg) for a in args):
            return self.by_component(row, args, node)
        return None

    # -- functions
    def no_recursion(self, function: Func, node: ast.AST) -> None:
        calls = stack_of(node, self.stack).calls
        if any(f is function for f, _ in calls):
            names = [f.name for f, _ in calls]
            cycle = [*names[names.index(function.name) :], function.name]
            raise self.fail(Recursion, f"recursion: {' → '.join(cycle)}", node)

    def called(self, function: Func, node: ast.AST, span: Span) -> Stack:
        """The calls that led into a function that is called at a node."""
        return Stack((*stack_of(node, self.stack).calls, (function, span)))

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
        stack, self.stack = self.stack, self.called(function, node, self.span(source.definition))
        self.frame = frame
        try:
            self.body(source.definition.body)
            self.check_returns(source, frame)
        finally:
            self.frame, self.stack = outer, stack
        self.b.span = here
        if "$seq" in frame.env:
            outer.env["$seq"] = frame.env["$seq"]
        return frame.env.get("$retval")

    @abstractmethod
    def body(self, stmts: list[ast.stmt]) -> None:
        """Lower statements one after the other (branches.py)."""

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
            found = f"{_counted(args)}{' and ' + ', '.join(named) if named else ''}"
            raise self.fail(NoOverload, f"{source.name}() is called with {found}", node,
                            advice=f"candidates: {source.name}({', '.join(names)})")  # fmt: skip
        given |= named
        defaults = _defaults(source)
        changed = source.assigned
        bound: dict[str, Any] = {}
        for name in names:
            if name not in given and name not in defaults:
                raise self.fail(NoOverload, f"{source.name}() misses the argument {name!r}", node,
                                advice=f"candidates: {source.name}({', '.join(names)})")  # fmt: skip
            value = given[name] if name in given else self.default(name, defaults[name])
            kind = self.declared(source, name)
            if kind is not None:
                value = self.convert(value, kind, node, f"argument {name!r} of {source.name}()")
            bound[name] = self.strengthen(value) if name in changed else value
        return bound

    def default(self, name: str, value: Any) -> Any:
        return AbsentVal(name) if value is None else self.wrap(value)

    def declared(self, source: Source, name: str) -> t.Type | None:
        """The annotated type of a parameter, or of the result; None where there is none."""
        hint = source.annotations.get(name)
        try:
            return self.resolved(hint) if hint is not None else None
        except WrongType as error:
            advice = error.advice if isinstance(hint, t.Type) else TYPES_ARE
            raise TypeMismatch(error.message, source.annotation_span(name), advice=advice) from None

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
        return of_type(known_type(result), outs)

    def custom(self, function: Func, args: list[Any], node: ast.AST) -> tuple[Custom, Any]:
        """The function and its rule for arguments of these types, lowered once."""
        key = (function, tuple(known_type(a) for a in args))
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
        params = [of_type(known_type(v), [Value(s, source.name) for s in t.leaves(known_type(v))]) for v in like]
        block.params = [leaf for p in params for leaf in (flatten(p) or [])]
        env, self.frame = self.frame, Frame(self.frame.source)
        stack, self.stack = self.stack, Stack(c for c in self.stack.calls if c[0] is not function)
        try:
            result = self.strengthen(self.run_function(function, source, params, {}, node))
        finally:
            self.b, self.frame, self.stack = saved, env, stack
        if result is None:
            raise self.fail(MissingReturn, f"{source.name}() must return a value here", node)
        block.yields = flatten(result) or []
        return block, result

    def check_rule(self, function: Func, params: list[Any], back: Any, node: ast.AST) -> None:
        got = list(back.items) if isinstance(back, TupleVal) and len(params) > 1 else [back]
        if len(params) == 1 and isinstance(back, TupleVal) and len(back.items) == 1:
            got = list(back.items)
        want, have = [known_type(p) for p in params], [type_of(g) for g in got]
        if want != have:
            assert function.rule is not None
            wanted, found = ", ".join(map(type_name, want)), ", ".join(map(describe, got))
            raise TypeMismatch(f"the adjoint of {function.name} must return one adjoint per parameter, ({wanted}), not "
                               f"({found})", function.rule.head,
                               advice="return the adjoints in the order of the parameters")  # fmt: skip

    # -- derivatives inside kernels
    def call_grad(self, args: list[Any], node: ast.AST) -> Any:
        target = args[0].object if len(args) == 1 and isinstance(args[0], Known) else None
        if isinstance(target, (Func, ScalarRow, CompoundRow)):
            return Known(Gradients(target))
        if len(args) != 1 or not isinstance(args[0], Known) or not isinstance(args[0].object, Func):
            shown = ", ".join(map(describe, args)) or "nothing"
            raise self.fail(TypeMismatch, f"kc.grad(f) takes a @kc.func or a built-in, not {shown}", node,
                            advice="write a @kc.func that calls it")  # fmt: skip
        return Known(Gradients(args[0].object))

    def partials_of_row(self, row: ScalarRow, args: list[Any], node: ast.Call) -> Any:
        """Partial derivatives of a built-in of numbers."""
        if len(args) != len(row.params) or not all(is_number(a) for a in args):
            raise self.fail(NoOverload, f"no kc.grad({row.name})({', '.join(map(describe, args))})", node,
                            advice=f"candidates: {row.name}({', '.join(row.params)}) of numbers")  # fmt: skip
        flat = [self.as_real(v, node) for v in self.row_arguments(row, args, node)]
        block, saved = Block([Value(v.type, name) for v, name in zip(flat, row.params, strict=True)]), self.b
        self.b = Builder(block, saved.span)
        try:
            result = self.scalar_call(row, list(block.params), node)
        finally:
            self.b = saved
        if not result.type.is_float:
            raise self.fail(TypeMismatch, f"kc.grad needs a function that returns one real; {row.name} returns "
                            f"{describe(result)}", node, advice="use it as it is: it has no derivative")  # fmt: skip
        block.yields = [result]
        outs = [Value(v.type, f"d{row.name}") for v in flat]
        self.b.emit(Gradient(outs, block, flat, self.b.span))
        return outs[0] if len(outs) == 1 else TupleVal(tuple(outs))

    def partials(self, target: Func | ScalarRow | CompoundRow, args: list[Any], node: ast.Call) -> Any:
        if isinstance(target, ScalarRow):
            return self.partials_of_row(target, args, node)
        function = self.overload(target, args) if isinstance(target, CompoundRow) else target
        if isinstance(target, CompoundRow) and function is None:
            raise self.no_overload(target, args, node, f"kc.grad(kc.{target.name})")
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
            if all(s.is_float for s in t.leaves(known_type(v))):
                items.append(of_type(known_type(v), outs[at : at + n]))
            at += n
        return items[0] if len(items) == 1 else TupleVal(tuple(items))


def _counted(args: list[Any]) -> str:
    return f"{len(args)} argument{'s' * (len(args) != 1)}"


def _defaults(source: Source) -> dict[str, Any]:
    function = source.function
    spec = source.definition.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    values = function.__defaults__ or ()
    found = dict(zip(names[len(names) - len(values) :], values, strict=True))
    return found | (function.__kwdefaults__ or {})
