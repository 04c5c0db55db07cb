"""Loops → blocks with carried values. Small loops with constant bounds, and those over tuples, are unrolled.

A loop turns every name that it assigns and that had a value before into a carried value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .. import types as t
from ..errors import MaybeUnassigned, TypeChange, TypeMismatch, Unsupported
from ..ir import FALSE, TRUE, Block, Builder, Check, Loop, Value, const
from .branches import Branches, canonical
from .convert import ReturnType
from .function import Func
from .generators import free_names, spliced, yields
from .source import MISSING, assigned_names, contains, set_origin
from .values import Known, Maybe, TupleVal, Weak, describe, flatten, rebuild, static_int, type_of

_UNROLL_TRIPS, _UNROLL_NODES = 16, 700


class Loops(Branches):
    """Lowers loops."""

    def stmt_For(self, node: ast.For) -> None:
        self.no_else(node)
        function = self.generator(node.iter)
        if function is not None:
            return self.for_yielded(function, node)
        items = self.items_of(node.iter)
        if items is not None:
            return self.for_items(items, node)
        if not isinstance(node.target, ast.Name):
            raise self.fail(Unsupported, "a loop has one name for its counter", node.target,
                            advice="write `for k in range(n):`")  # fmt: skip
        start, stop, step = self.range_of(node)
        name = node.target.id
        numbers = [static_int(v) for v in (start, stop, step)]
        if None not in numbers and self.unrollable(range(*numbers), node):  # type: ignore[arg-type]
            self.unroll(range(*numbers), name, node)  # type: ignore[arg-type]
            return
        kind = t.INT32
        for value in (start, stop, step):
            kind = t.INT64 if isinstance(value, Value) and value.type is not t.INT32 else kind
        # From zero in steps of one nothing can overflow; else the count may need more than 32 bits.
        origin = static_int(start)
        wide = kind if static_int(step) == 1 and origin is not None and origin >= 0 else t.INT64
        first, last, stride = (self.b.cast(wide, self.as_index(v, node.iter)) for v in (start, stop, step))
        trips = self.trip_count(first, last, stride, node)

        def iteration(k: Value) -> None:
            offset = self.b.op("mul", k, stride)
            counter = self.b.cast(kind, self.b.op("add", first, offset))
            if counter is k:
                counter.name = name
            self.assign_name(name, counter, node)
            self.body(node.body)

        self.loop(trips, iteration, node, [name])

    def generator(self, node: ast.expr) -> Func | None:
        """The func that yields, if a loop runs over a call of one."""
        callee = self.expr(node.func) if isinstance(node, ast.Call) else None
        found = callee.object if isinstance(callee, Known) else None
        return found if isinstance(found, Func) and yields(found.source) else None

    def for_yielded(self, function: Func, node: ast.For) -> None:
        """A loop over what a func yields: lowered as the loops of the func, with the body where it yields."""
        source, call = function.source, node.iter
        assert isinstance(call, ast.Call)
        self.no_recursion(function, call)
        stack = self.called(function, call, self.span(node))
        args, named = self.arguments(call)
        bound = self.bind(function, source, args, named, call)
        self.copies += 1
        mark = f"'{self.copies}"
        for name in free_names(source):
            value, capture = source.lookup(name.id)
            if value is MISSING:
                set_origin(name, source)
                raise self.unknown(name.id, name)
            self.capture(capture)
            bound[name.id] = self.wrap(value)
        for key, value in bound.items():
            self.frame.env[key + mark] = value
            if (kind := type_of(value)) is not None and key in source.locals:
                self.frame.types[key + mark] = kind
        own = source.globals.get("__name__", "").partition(".")[0] != "kernelc"
        self.body(spliced(source, node, lambda name: name + mark, own, stack))
        self.frame.env = {name: value for name, value in self.frame.env.items() if not name.endswith(mark)}

    def items_of(self, node: ast.expr) -> list[Any] | None:
        """The items of a tuple, or of a captured list, that a loop runs over; None if it runs over something else."""
        if isinstance(node, ast.Call):
            return self.items_of_call(node)
        if not isinstance(node, (ast.Tuple, ast.Name, ast.Attribute)):
            return None
        found = self.expr(node)
        return list(found.items) if isinstance(found, TupleVal) else None

    def items_of_call(self, node: ast.Call) -> list[Any] | None:
        """The items of `reversed(t)`, `enumerate(t)` and `zip(t, u)` of tuples."""
        callee = self.expr(node.func)
        function = callee.object if isinstance(callee, Known) else None
        if not any(function is known for known in (reversed, enumerate, zip)) or node.keywords:
            return None
        found = [self.items_of(argument) for argument in node.args]
        tuples = [items for items in found if items is not None]
        if not tuples or len(tuples) != len(found) or (function is not zip and len(tuples) > 1):
            return None
        if function is reversed:
            return tuples[0][::-1]
        if function is enumerate:
            return [TupleVal((Weak(k), item)) for k, item in enumerate(tuples[0])]
        return [TupleVal(row) for row in zip(*tuples, strict=False)]  # as Python's: to the end of the shortest

    def for_items(self, items: list[Any], node: ast.For) -> None:
        """A loop over a tuple: one iteration after the other, each guarded by the exits of those before."""
        names = [*assigned_names([ast.copy_location(ast.Assign([node.target], node.iter), node)]),
                 *assigned_names(node.body)]  # fmt: skip
        nothing = Maybe("inside a loop", self.span(node))
        fresh = [n for n in dict.fromkeys(names) if isinstance(self.frame.env.get(n, nothing), Maybe)]

        def run(left: list[Any]) -> None:
            if not left:
                return
            for name in fresh:
                self.frame.env.pop(name, None)
            self.assign(node.target, left[0], node)
            self.body(node.body)
            env = self.frame.env
            env["$cont"] = FALSE
            gone = canonical(self.b.op("or", env.get("$brk", FALSE), env.get("$ret", FALSE)))
            if gone is FALSE:
                run(left[1:])
            elif gone is not TRUE and left[1:]:
                self.branch(gone, lambda: None, lambda: run(left[1:]), node)

        self.frame.unrolled *= max(1, len(items))
        run(items)
        self.frame.unrolled //= max(1, len(items))
        self.frame.env["$brk"] = self.frame.env["$cont"] = FALSE
        self.frame.env.update(dict.fromkeys(fresh, nothing))

    def range_of(self, node: ast.For) -> tuple[Any, Any, Any]:
        call = node.iter
        callee = self.expr(call.func) if isinstance(call, ast.Call) else None
        if isinstance(call, ast.Call) and isinstance(callee, Known) and callee.object is reversed:
            if len(call.args) == 1 and not call.keywords:
                return self.backwards(*self.range_of(_over(node, call.args[0])), node)
        if not (isinstance(call, ast.Call) and isinstance(callee, Known) and callee.object is range):
            raise self.fail(Unsupported, "`for` runs over range(...), a tuple, or a func that yields", node.iter,
                            advice="write `for i in range(n):` and index with i")  # fmt: skip
        args = [self.expr(a) for a in call.args]
        if not 1 <= len(args) <= 3 or call.keywords:
            raise self.fail(TypeMismatch, "range() takes one to three integers", call,
                            advice="write range(stop), range(start, stop) or range(start, stop, step)")  # fmt: skip
        for arg, arg_node in zip(args, call.args, strict=True):
            self.as_index(arg, arg_node, "a bound of range()")
        self.at(node)
        if len(args) == 1:
            return Weak(0), args[0], Weak(1)
        step = args[2] if len(args) == 3 else Weak(1)
        if static_int(step) == 0:
            raise self.fail(TypeMismatch, "the step of range() is 0", call, advice="count up or down")
        return args[0], args[1], step

    def backwards(self, start: Any, stop: Any, step: Any, node: ast.For) -> tuple[Any, Any, Any]:
        """The bounds of `reversed(range(start, stop, step))`."""
        numbers = [static_int(v) for v in (start, stop, step)]
        if None not in numbers:
            known = range(*numbers)[::-1]  # type: ignore[arg-type]
            return Weak(known.start), Weak(known.stop), Weak(known.step)
        first, last, stride = (self.b.cast(t.INT64, self.as_index(v, node.iter)) for v in (start, stop, step))
        trips = self.trip_count(first, last, stride, node)
        begin = self.b.op("add", first, self.b.op("mul", self.b.op("sub", trips, const(t.INT64, 1)), stride))
        back = [begin, self.b.op("sub", first, stride), self.b.op("neg", stride)]
        if not any(isinstance(v, Value) and v.type is not t.INT32 for v in (start, stop, step)):
            back = [self.b.cast(t.INT32, v) for v in back]  # the counter is what it is forwards
        return back[0], back[1], Weak(-numbers[2]) if numbers[2] is not None else back[2]

    def trip_count(self, first: Value, last: Value, step: Value, node: ast.AST) -> Value:
        """max(0, ceil((last - first) / step)), for either sign of the step."""
        known = static_int(step)
        zero, one = const(step.type, 0), const(step.type, 1)
        if known is None:
            self.b.emit(Check(self.b.op("ne", step, zero), 9, "the step of range() is 0", (), self.b.span))
        if known == 1:
            return self.b.op("sub", self.b.op("max", last, first), first)
        span = self.b.op("sub", last, first)
        up = self.b.op("sub", self.b.op("add", span, step), one)
        down = self.b.op("add", self.b.op("add", span, step), one)
        if known is None:
            rounded = self.b.op("select", self.b.op("gt", step, zero), up, down)
        else:
            rounded = up if known > 0 else down
        return self.b.op("max", self.b.op("floordiv", rounded, step), zero)

    def unrollable(self, counter: range, node: ast.For) -> bool:
        """Small loops that run to their end are unrolled: then their counter can index vectors. It means the same."""
        trips = len(counter)
        size = sum(1 for stmt in node.body for _ in ast.walk(stmt))
        if contains(node.body, ast.Break, into_loops=False) or contains(node.body, ast.Return):
            return False
        return trips <= _UNROLL_TRIPS and trips * self.frame.unrolled * size <= _UNROLL_NODES * 4

    def unroll(self, counter: range, name: str, node: ast.For) -> None:
        names = assigned_names(node.body)
        nothing = Maybe("inside a loop", self.span(node))
        # The names that the loop alone sets: a longer loop, which is not unrolled, would not keep them either.
        fresh = [n for n in dict.fromkeys([name, *names]) if isinstance(self.frame.env.get(n, nothing), Maybe)]
        kind = self.frame.types.setdefault(name, t.INT32)
        if not (isinstance(kind, t.Scalar) and kind in (t.INT32, t.INT64)):
            raise self.type_change(name, kind, t.INT32, node)
        self.frame.unrolled *= max(1, len(counter))
        around = self.frame.env.get("$cont", FALSE)
        for i in counter:
            self.frame.env["$cont"] = FALSE
            self.at(node)
            for other in fresh:
                self.frame.env.pop(other, None)
            self.frame.env[name] = const(kind, i) if name in names else Weak(i)
            self.body(node.body)
        self.frame.unrolled //= max(1, len(counter))
        env = self.frame.env
        env["$cont"] = around
        if len(counter) and isinstance(env[name], Weak):
            env[name] = const(kind, env[name].value)
        env.update(dict.fromkeys(fresh, nothing))

    def no_else(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            raise self.fail(Unsupported, "`else` of a loop is not part of the kernel language", node.orelse[0],
                            advice="set a flag before `break` and test it after the loop")  # fmt: skip

    def stmt_While(self, node: ast.While) -> None:
        self.no_else(node)

        def iteration(_: Value) -> None:
            cond = self.truth(self.expr(node.test), node.test)
            if isinstance(cond, Weak):
                if cond.value:
                    self.body(node.body)
                else:
                    self.frame.env["$brk"] = TRUE
                return
            self.branch(cond, lambda: self.body(node.body), lambda: self.stmt_Break(ast.Break()), node)

        self.loop(None, iteration, node, assigned_names([ast.Expr(node.test)]))  # draws advance their state

    def loop(
        self, trips: Value | None, iteration: Callable[[Value], None], node: ast.For | ast.While, extra: list[str]
    ) -> None:
        """Lower a loop whose iterations are made by `iteration(k)`."""
        span = self.span(node)
        returns = contains(node.body, ast.Return)
        if returns:
            self.declare_return(iteration, node, extra, trips)
        before = self.frame.env
        assigned = [*extra, *(n for n in assigned_names(node.body) if n not in extra)]
        carried = self.carried_names(assigned, before, returns)
        inits = {n: flatten(before[n]) or [] for n in carried}
        counter = Value(trips.type if trips is not None else t.INT32, "k")
        block, env = Block(), dict(before)
        block.params = [counter]
        for name in carried:
            params = [Value(v.type, label) for v, label in zip(inits[name], _labels(name, before[name]), strict=True)]
            block.params.extend(params)
            env[name] = rebuild(before[name], params)
        fixed = [n for n in assigned if n not in carried and n in env and not isinstance(env[n], Maybe)]
        assigned = [n for n in assigned if n not in fixed]
        for name in assigned:
            if name not in carried:
                env.pop(name, None)
        # An iteration begins only if no exit was taken.
        env["$brk"], env["$cont"], env["$ret"] = FALSE, FALSE, FALSE
        stop = self.lower_iteration(block, env, iteration, counter)
        ended = self.frame.env
        for name in fixed:
            if ended.get(name) is not before[name]:
                raise self.fail(Unsupported, f"{name!r} is {describe(before[name])}: it cannot change in a loop", node,
                                advice="use a name of its own in the loop")  # fmt: skip
        if "$retval" in ended and "$retval" not in before:
            raise self.fail(Unsupported, "what this loop returns has no type that could be found", node,
                            advice="annotate the function with what it returns: `def f(…) -> float:`")  # fmt: skip
        block.yields = [v for n in carried for v in self.carried_leaves(n, ended, inits[n], node)]
        outs = {n: [Value(v.type, x) for v, x in zip(inits[n], _labels(n, before[n]), strict=True)] for n in carried}
        after = dict(before)
        for name in carried:
            after[name] = rebuild(before[name], outs[name])
        for name in assigned:
            if name not in carried:
                after[name] = Maybe("inside a loop", span)
        self.frame.env = after
        flat_inits = [v for n in carried for v in inits[n]]
        flat_outs = [v for n in carried for v in outs[n]]
        self.b.span = span
        self.b.emit(Loop(flat_outs, trips, flat_inits, block, None if stop is FALSE else stop, span))

    def carried_names(self, assigned: list[str], before: dict[str, Any], returns: bool) -> list[str]:
        names = [n for n in assigned if n in before and not isinstance(before[n], Maybe)]
        for name in names:
            before[name] = self.strengthen(before[name])
        names = [n for n in names if flatten(before[n]) is not None]
        if returns:
            names += [n for n in ("$ret", "$retval") if n in before]
        if "$seq" in before:
            names.append("$seq")
        return names

    def carried_leaves(self, name: str, ended: dict[str, Any], inits: list[Value], node: ast.AST) -> list[Value]:
        value = ended.get(name)
        if value is None or isinstance(value, Maybe):
            raise self.fail(MaybeUnassigned, f"{name!r} may lose its value in the loop", node)
        leaves = flatten(self.strengthen(value)) or []
        if [v.type for v in leaves] != [v.type for v in inits]:
            raise self.fail(TypeChange, f"{name!r} changes its type in the loop", node)
        return leaves

    def lower_iteration(self, block: Block, env: dict[str, Any], iteration: Callable[[Value], None], k: Value) -> Value:
        outer, span, depth = self.b.block, self.b.span, self.frame.loop_depth
        self.b.block, self.frame.env = block, env
        self.frame.loop_depth = depth + 1
        try:
            iteration(k)
            ended = self.frame.env
            return canonical(self.b.op("or", ended.get("$brk", FALSE), ended.get("$ret", FALSE)))
        finally:
            self.b.block, self.b.span, self.frame.loop_depth = outer, span, depth

    def declare_return(
        self, iteration: Callable[[Value], None], node: ast.AST, extra: list[str], trips: Value | None
    ) -> None:
        """A `return` in a loop needs a carried result, so its type is found by a trial if no annotation tells it."""
        env = self.frame.env
        if self.frame.is_kernel or "$retval" in env:
            return
        kind = self.frame.returns
        if kind is None:
            saved, types = self.b, dict(self.frame.types)
            self.b = Builder(Block(), saved.span)
            self.frame.trial += 1
            self.frame.env = {**env, "$brk": FALSE, "$cont": FALSE}
            try:
                iteration(Value(trips.type if trips is not None else t.INT32, "k"))
            except ReturnType as found:
                kind = type_of(found.value)
            finally:
                self.frame.trial -= 1
                self.b, self.frame.env, self.frame.types = saved, env, types
        if kind is not None:
            env["$retval"] = self.zero(kind)


def _over(node: ast.For, items: ast.expr) -> ast.For:
    """The same loop over something else."""
    return ast.copy_location(ast.For(node.target, items, node.body, node.orelse), node)


def _labels(name: str, value: Any) -> list[str]:
    """The leaves of a carried variable, named after it: this is what `kc.explain` calls them."""
    kind = type_of(value)
    assert kind is not None
    return [label for label, _ in t.leaf_items(kind, name.lstrip("$"))]
