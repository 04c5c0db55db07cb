"""Control flow → nested blocks. Exits (`break`, `continue`, `return`) become flags that guard what follows them.

The variables of a function live in `frame.env`. A branch lowers its two sides on copies and merges them; a loop
turns every name that it assigns and that had a value before into a carried value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .. import types as t
from ..errors import MaybeUnassigned, MissingReturn, SourceError, TypeChange, TypeMismatch, Unsupported
from ..ir import FALSE, TRUE, Block, Builder, Check, If, Loop, Value, const
from .convert import ReturnType, fits
from .function import Func
from .generators import free_names, spliced, yields
from .source import MISSING, always_exits, assigned_names, contains, set_origin
from .statements import Statements
from .values import (
    Known,
    Maybe,
    TupleVal,
    Weak,
    describe,
    flatten,
    rebuild,
    static_int,
    type_of,
)

_FLAGS = ("$brk", "$cont", "$ret")
_LEFT = (*_FLAGS, "$else")
_MOST_ARMS = 24
_UNROLL_TRIPS, _UNROLL_NODES = 16, 700


class Control(Statements):
    """Lowers blocks of statements, branches and loops."""

    # -- sequences and exits
    def body(self, stmts: list[ast.stmt]) -> None:
        for n, stmt in enumerate(stmts):
            rest = stmts[n + 1 :]
            if isinstance(stmt, ast.If):
                if self.if_statement(stmt, rest):
                    return
            else:
                self.stmt(stmt)
            exited = self.exited()
            if exited is TRUE:
                return
            if exited is not FALSE and rest:
                self.branch(exited, lambda: None, lambda rest=rest: self.body(rest), rest[0])  # type: ignore[misc]
                return

    def exited(self) -> Value:
        """Whether this thread has left the statements that follow."""
        result: Value = FALSE
        for flag in _FLAGS:
            value = self.frame.env.get(flag, FALSE)
            result = self.b.op("or", result, value)
        return _canonical(result)

    def if_statement(self, node: ast.If, rest: list[ast.stmt]) -> bool:
        """Lower an `if`. True if what follows it was lowered, too: where one side always leaves, the rest belongs
        to the other side."""
        if (cut := _cut(node)) is not None:
            self.long_if(*cut, node)
            return False
        cond = self.truth(self.expr(node.test), node.test)
        if isinstance(cond, Weak):
            self.body(node.body if cond.value else node.orelse)
            return False
        then, orelse = node.body, node.orelse
        then_exits, else_exits = always_exits(then), always_exits(orelse)
        if then_exits and not else_exits:
            orelse = [*orelse, *rest]
        elif else_exits and not then_exits:
            then = [*then, *rest]
        self.branch(cond, lambda: self.body(then), lambda: self.body(orelse), node)
        return then_exits or else_exits

    def long_if(self, first: ast.If, others: ast.If, node: ast.If) -> None:
        """A chain of many `elif`: its first arms, then, where none of them was taken, the others. Not one in the other:
        a hundred blocks deep is too deep for compilers, ours included."""
        before = dict(self.frame.env)
        self.frame.env["$else"] = FALSE
        self.if_statement(first, [])
        missed = _canonical(self.frame.env.pop("$else", FALSE))
        if missed is FALSE:
            return
        taken = self.frame.env

        def rest() -> None:
            self.frame.env = dict(before)  # nothing has happened yet
            self.body([others])

        def done() -> None:
            self.frame.env = dict(taken)

        self.branch(missed, rest, done, node)

    def stmt_Break(self, node: ast.Break) -> None:
        self.frame.env["$brk"] = TRUE

    def stmt__Else(self, node: _Else) -> None:
        self.frame.env["$else"] = TRUE

    def stmt_Continue(self, node: ast.Continue) -> None:
        self.frame.env["$cont"] = TRUE

    def stmt_Return(self, node: ast.Return) -> None:
        env = self.frame.env
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            if self.frame.returns is not None or "$retval" in self.frame.types:
                raise self.uneven_return("elsewhere, but not here", node)
            self.frame.bare_return = True
            env["$ret"] = TRUE
            return
        if self.frame.is_kernel:
            raise self.fail(Unsupported, "a kernel returns nothing", node, advice="write the result to an array")
        if self.frame.bare_return:
            raise self.uneven_return("here, but not elsewhere", node)
        value = self.return_value(node)
        if self.frame.trial:
            raise ReturnType(value)
        known = self.frame.types.get("$retval")
        if known is not None and known != type_of(value):
            raise self.type_change("$retval", known, type_of(value) or t.BOOL, node)
        self.frame.types["$retval"] = type_of(value) or t.BOOL
        # A conditional in the expression has replaced the environment: look it up again.
        self.frame.env["$retval"] = value
        self.frame.env["$ret"] = TRUE

    def uneven_return(self, where: str, node: ast.Return) -> SourceError:
        return self.fail(
            MissingReturn, f"a value is returned {where}", node, advice="return a value everywhere, or nowhere"
        )

    def return_value(self, node: ast.Return) -> Any:
        assert node.value is not None
        value: Any = self.expr(node.value)
        self.at(node)
        if self.frame.returns is not None:
            return self.convert(value, self.frame.returns, node, "the result")
        known = self.frame.types.get("$retval")
        value = self.strengthen(self.adapt(value, known) if known is not None else value)
        if flatten(value) is None:
            raise self.fail(TypeMismatch, f"{describe(value)} cannot be returned", node,
                            advice="functions return numbers, vectors, other values, and tuples of them")  # fmt: skip
        return value

    # -- branches
    def branch(self, cond: Value, then: Callable[[], Any], orelse: Callable[[], Any], node: ast.AST) -> None:
        """`if cond: then() else: orelse()`, with what they assign merged."""
        span = self.span(node)
        before = self.frame.env
        then_block, then_env = self.side(before, then)
        else_block, else_env = self.side(before, orelse)
        self.b.span = span
        statement = If([], cond, then_block, else_block, span)
        merged: dict[str, Any] = {}
        for name in [*then_env, *(n for n in else_env if n not in then_env)]:
            merged[name] = self.merge(name, then_env, else_env, statement, node)
        self.frame.env = merged
        if then_block.body or else_block.body or statement.outs:
            self.simplify_if(statement)

    def side(self, before: dict[str, Any], lower: Callable[[], Any]) -> tuple[Block, dict[str, Any]]:
        outer, span = self.b.block, self.b.span
        self.frame.env = dict(before)
        self.b.block = Block()
        try:
            lower()
            return self.b.block, self.frame.env
        finally:
            self.b.block, self.b.span = outer, span

    def merge(self, name: str, left: dict[str, Any], right: dict[str, Any], statement: If, node: ast.AST) -> Any:
        missing = FALSE if name in _LEFT else None
        a, b = left.get(name, missing), right.get(name, missing)
        if a is b:
            return a
        # A side that has left does not reach what follows: what it lacks does not matter.
        if (a is None or isinstance(a, Maybe)) and flatten(b) is not None and (name == "$retval" or _has_left(left)):
            a = self.zero(_type(b))
        if (b is None or isinstance(b, Maybe)) and flatten(a) is not None and (name == "$retval" or _has_left(right)):
            b = self.zero(_type(a))
        if a is None or b is None:
            return Maybe("on one branch", statement.span)
        if isinstance(a, Maybe) or isinstance(b, Maybe):
            return a if isinstance(a, Maybe) else b
        a, b = self.join(name, a, b, node)
        if flatten(a) is None or flatten(b) is None:
            if a == b:
                return a
            what = repr(name) if not name.startswith("$") else "this"
            raise self.fail(Unsupported, f"{what} means different things on the two branches: {describe(a)} and "
                            f"{describe(b)}", node, advice="choose between values: use each on its branch")  # fmt: skip
        return rebuild(a, self.phis(name, flatten(a) or [], flatten(b) or [], statement))

    def phis(self, name: str, left: list[Value], right: list[Value], statement: If) -> list[Value]:
        merged = []
        label = "" if name.startswith("$if") else name.lstrip("$")
        for x, y in zip(left, right, strict=True):
            if x is y:
                merged.append(x)
                continue
            out = Value(x.type, y.name or x.name or label)
            statement.outs.append(out)
            statement.then.yields.append(x)
            statement.orelse.yields.append(y)
            merged.append(out)
        return merged

    def join(self, name: str, a: Any, b: Any, node: ast.AST) -> tuple[Any, Any]:
        """Two values of one name; literals take the type of the other side."""
        if isinstance(a, Weak) and isinstance(b, Weak):
            kind = self.weak_type(Weak(a.value + b.value)) if type(a.value) is not type(b.value) else self.weak_type(a)
            return const(kind, a.value), const(kind, b.value)
        if isinstance(a, Weak) and isinstance(b, Value) and fits(a, b.type):
            return const(b.type, a.value), b
        if isinstance(b, Weak) and isinstance(a, Value) and fits(b, a.type):
            return a, const(a.type, b.value)
        if isinstance(a, TupleVal) and isinstance(b, TupleVal) and len(a.items) == len(b.items):
            pairs = [self.join(name, x, y, node) for x, y in zip(a.items, b.items, strict=True)]
            return TupleVal(tuple(p[0] for p in pairs)), TupleVal(tuple(p[1] for p in pairs))
        left, right = type_of(a), type_of(b)
        if (left is None) != (right is None) or left != right:
            what = repr(name) if not name.startswith("$") else "the result"
            raise self.fail(TypeMismatch, f"{what} is {describe(a)} on one side, and {describe(b)} on the other", node,
                            advice="make both sides of one type, for instance with float(...)")  # fmt: skip
        return a, b

    def simplify_if(self, statement: If) -> None:
        """An `if` that only chooses between values is a selection."""
        if statement.then.body or statement.orelse.body:
            self.b.emit(statement)
            return
        replaced: dict[Value, Value] = {}
        for out, x, y in zip(statement.outs, statement.then.yields, statement.orelse.yields, strict=True):
            chosen = self.choose_value(statement.cond, x, y)
            chosen.name = chosen.name or out.name
            replaced[out] = chosen
        for name, value in self.frame.env.items():
            leaves = flatten(value)
            if leaves is not None and any(v in replaced for v in leaves):
                self.frame.env[name] = rebuild(value, [replaced.get(v, v) for v in leaves])

    def choose_value(self, cond: Value, x: Value, y: Value) -> Value:
        if x is TRUE and y is FALSE:
            return cond
        if x is FALSE and y is TRUE:
            return self.b.op("not", cond)
        if x.type is t.BOOL and x is TRUE:
            return self.b.op("or", cond, y)
        if x.type is t.BOOL and y is FALSE:
            return self.b.op("and", cond, x)
        return self.b.op("select", cond, x, y)

    # -- loops
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
        if not isinstance(node, (ast.Tuple, ast.Name, ast.Attribute)):
            return None
        found = self.expr(node)
        return list(found.items) if isinstance(found, TupleVal) else None

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
            gone = _canonical(self.b.op("or", env.get("$brk", FALSE), env.get("$ret", FALSE)))
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
            return _canonical(self.b.op("or", ended.get("$brk", FALSE), ended.get("$ret", FALSE)))
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


def _has_left(env: dict[str, Any]) -> bool:
    """Whether a branch ends in `break`, `continue` or `return` on all of its paths."""
    return any(env.get(flag) is TRUE for flag in _LEFT)


class _Else(ast.Pass):
    """Stands for the arms of a long chain of `elif` that are lowered apart."""


def _cut(node: ast.If) -> tuple[ast.If, ast.If] | None:
    """A long chain of `elif` as its first arms, which end in an `_Else`, and the others; None if it is not long."""
    arms = [node]
    while len(arms) <= _MOST_ARMS:
        orelse = arms[-1].orelse
        if len(orelse) != 1 or not isinstance(orelse[0], ast.If):
            return None
        arms.append(orelse[0])
    others = arms.pop()
    first: ast.stmt = ast.copy_location(_Else(), others)
    for arm in reversed(arms):
        first = ast.copy_location(ast.If(arm.test, arm.body, [first]), arm)
    assert isinstance(first, ast.If)
    return first, others


def _canonical(value: Value) -> Value:
    """The constants TRUE and FALSE are compared by identity."""
    from ..ir import Const

    if isinstance(value, Const):
        return TRUE if value.value else FALSE
    return value


def _type(value: Any) -> t.Type:
    kind = type_of(value)
    assert kind is not None
    return kind
