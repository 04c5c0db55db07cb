"""`for x in f(…)` over a func that yields: its body is copied around that of the loop, as Python runs the two in turn.

What comes out is plain loops and assignments, in which the names of the func have a mark, so that nothing else in the
lowering knows about generators. A func must yield as the last thing that a loop of it does: `continue` of the loop
around then needs nothing, and `break` leaves the loops of the func one by one.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from copy import deepcopy

from ..errors import Unsupported
from .source import Source, Stack, contains, set_origin, set_stack

Rename = Callable[[str], str]


def yields(source: Source) -> bool:
    """Whether a function is a generator."""
    return inspect.isgeneratorfunction(source.function)


def free_names(source: Source) -> list[ast.Name]:
    """The names that a func takes from outside of it, each once."""
    names = [part for stmt in source.definition.body for part in ast.walk(stmt) if isinstance(part, ast.Name)]
    return list({name.id: name for name in names if name.id not in source.locals}.values())


def spliced(source: Source, node: ast.For, rename: Rename, own: bool, stack: Stack) -> list[ast.stmt]:
    """The statements that stand for `for target in f(…): body`. `rename` gives a name of the func its mark.

    `own`: the func is the user's, and errors in it are shown there; those of a library are shown at the loop.
    `stack`: the calls that led into the func. They hold for its own statements, not for the body of the loop.
    """
    body = deepcopy(source.definition.body)
    _check_places(body, source, in_loop=False)
    leaves = _breaks(node.body) or contains(body, ast.Return)
    for stmt in body:
        for part in ast.walk(stmt):
            _locate(part, source if own else None, node)
            set_stack(part, stack)
    made = _Splicer(node, rename, leaves).run(body)
    done = rename("done'")
    made = _guarded(made, done, in_loop=False) if leaves else made
    start: list[ast.stmt] = [_set(done, False, node)] if leaves else []
    return [*start, *made]


def _locate(part: ast.AST, source: Source | None, node: ast.For) -> None:
    """Remember which file a node comes from; those of a library stand where the loop begins."""
    if source is not None:
        set_origin(part, source)
    elif hasattr(part, "lineno"):
        ast.copy_location(part, node.iter)


def _check_places(stmts: list[ast.stmt], source: Source, *, in_loop: bool, last: bool = True) -> None:
    for n, stmt in enumerate(stmts):
        tail = last and n == len(stmts) - 1
        if isinstance(stmt, (ast.For, ast.While)):
            _check_places(stmt.body, source, in_loop=True)
        elif isinstance(stmt, ast.If):
            for side in (stmt.body, stmt.orelse):
                _check_places(side, source, in_loop=in_loop, last=tail)
        elif isinstance(stmt, ast.Return) and stmt.value is not None:
            raise Unsupported(f"{source.name} yields, so it returns nothing", source.span(stmt),
                              advice="write `return`")  # fmt: skip
        elif any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(stmt)):
            plain = isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Yield) and stmt.value.value is not None
            if not (plain and in_loop and tail):
                raise Unsupported("`yield value` is the last thing that a loop does, on a line of its own",
                                  source.span(stmt), advice="compute what follows it before it")  # fmt: skip


class _Splicer(ast.NodeTransformer):
    """Marks names of the func, and puts the body of the loop where it yields."""

    def __init__(self, node: ast.For, rename: Rename, leaves: bool):
        self.node, self.rename, self.leaves = node, rename, leaves

    def run(self, stmts: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for stmt in stmts:
            made = self.visit(stmt)
            out.extend(made if isinstance(made, list) else [made])
        return out

    def visit_Name(self, name: ast.Name) -> ast.Name:
        name.id = self.rename(name.id)
        return name

    def visit_Expr(self, stmt: ast.Expr) -> ast.AST | list[ast.stmt]:
        if not isinstance(stmt.value, ast.Yield):
            return self.generic_visit(stmt)
        assert stmt.value.value is not None
        value = self.visit(stmt.value.value)
        target = deepcopy(self.node.target)
        assign = ast.copy_location(ast.Assign([target], value), self.node.target)
        body = [_Breaks(self.rename("done'")).visit(deepcopy(s)) for s in self.node.body]
        return [assign, *(s for made in body for s in (made if isinstance(made, list) else [made]))]

    def visit_Return(self, stmt: ast.Return) -> list[ast.stmt]:
        return [_set(self.rename("done'"), True, stmt), ast.copy_location(ast.Break(), stmt)]


class _Breaks(ast.NodeTransformer):
    """`break` of the loop: it also says so to the loops of the func around it."""

    def __init__(self, done: str):
        self.done = done

    def visit_Break(self, stmt: ast.Break) -> list[ast.stmt]:
        return [_set(self.done, True, stmt), stmt]

    def visit_For(self, stmt: ast.For) -> ast.For:
        return stmt  # what breaks in there leaves that loop

    def visit_While(self, stmt: ast.While) -> ast.While:
        return stmt


def _guarded(stmts: list[ast.stmt], done: str, *, in_loop: bool) -> list[ast.stmt]:
    """After a loop that may have been left for good, leave the loop around it, too, or skip what follows."""
    out: list[ast.stmt] = []
    for n, stmt in enumerate(stmts):
        if isinstance(stmt, (ast.For, ast.While)):
            stmt.body = _guarded(stmt.body, done, in_loop=True)
        elif isinstance(stmt, ast.If):
            stmt.body = _guarded(stmt.body, done, in_loop=in_loop)
            stmt.orelse = _guarded(stmt.orelse, done, in_loop=in_loop)
        out.append(stmt)
        if not _leaves(stmt, done):
            continue
        test = ast.copy_location(ast.Name(done, ast.Load()), stmt)
        if in_loop:
            out.append(ast.copy_location(ast.If(test, [ast.copy_location(ast.Break(), stmt)], []), stmt))
        elif stmts[n + 1 :]:
            rest = _guarded(stmts[n + 1 :], done, in_loop=False)
            skip = ast.copy_location(ast.UnaryOp(ast.Not(), test), stmt)
            return [*out, ast.copy_location(ast.If(skip, rest, []), stmt)]
    return out


def _leaves(stmt: ast.stmt, done: str) -> bool:
    """Whether a loop in this statement may set the flag."""
    loops = [part for part in ast.walk(stmt) if isinstance(part, (ast.For, ast.While))]
    return any(
        isinstance(target, ast.Name) and target.id == done
        for loop in loops
        for part in ast.walk(loop)
        if isinstance(part, ast.Assign)
        for target in part.targets
    )


def _breaks(stmts: list[ast.stmt]) -> bool:
    return contains(stmts, ast.Break, into_loops=False)


def _set(name: str, value: bool, at: ast.AST) -> ast.Assign:
    made = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
    for part in ast.walk(made):
        ast.copy_location(part, at)
    return made
