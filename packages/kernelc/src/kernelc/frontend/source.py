"""From a Python function to its syntax tree, with true positions, and to the names that it captures."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import MissingAnnotation, NoSource, Span
from ..records import entity

MISSING = object()
_PARSER_STACK, _PARSER_DEPTH = 512 << 20, 100_000
_PLAIN = (bool, int, float, np.number, np.bool_)
_USEFUL_BUILTINS = ("abs", "bool", "float", "int", "len", "max", "min", "pow", "print", "range", "round")


@entity
class Capture:
    """A name that a kernel read outside of itself, and what it meant: if it means something else, recompile."""

    holder: Any
    name: str
    value: Any
    frozen: Any = None

    def current(self) -> Any:
        if isinstance(self.holder, dict):
            return self.holder.get(self.name, MISSING)
        if self.name == "cell_contents":
            return self.holder.cell_contents if _is_set(self.holder) else MISSING
        return getattr(self.holder, self.name, MISSING)

    def changed(self) -> bool:
        now = self.current()
        if type(now) is not type(self.value):
            return True
        if isinstance(now, (list, tuple)):
            return bool(freeze(now) != self.frozen)
        return now is not self.value and not (isinstance(now, _PLAIN) and freeze(now) == freeze(self.value))


class StaticCapture:
    """What the expression of a `kc.static` gave: it may read what no name tells, so it is evaluated again."""

    value = None

    def __init__(self, source: Source, code: Any, constants: dict[str, Any]):
        self.source, self.code, self.constants = source, code, constants
        self.names = sorted(names_of(code) - (source.locals - set(constants)))
        self.holder, self.name = source.globals, f"kc.static {id(self)}"
        self.result = self.current()
        self.frozen = freeze(self.result)

    def current(self) -> Any:
        cells, names = self.source.cells, self.source.globals
        scope = {"__builtins__": names.get("__builtins__", builtins)}
        for name in self.names:
            if name in self.constants:
                scope[name] = self.constants[name]
            elif name in cells:
                if _is_set(cells[name]):
                    scope[name] = cells[name].cell_contents
            elif name in names:
                scope[name] = names[name]
        return eval(self.code, scope)

    def changed(self) -> bool:
        try:
            return bool(freeze(self.current()) != self.frozen)
        except Exception:
            return True  # compiling anew says what is wrong


def names_of(code: Any) -> set[str]:
    """The names that code reads, in the functions and comprehensions inside of it, too."""
    inner = [names_of(c) for c in code.co_consts if hasattr(c, "co_names")]
    return set(code.co_names).union(*inner)


def _is_set(cell: Any) -> bool:
    """Whether a variable of a function around has a value yet."""
    try:
        return (cell.cell_contents, True)[1]
    except ValueError:
        return False


def freeze(value: Any) -> Any:
    """The content of a container at this moment; numbers with their type and sign, so that 1, True and 1.0 differ, and
    0.0 and -0.0; anything else is itself."""
    if isinstance(value, (list, tuple)):
        return (type(value), *map(freeze, value))
    return (type(value), repr(value)) if isinstance(value, _PLAIN) else value


class Source:
    """A Python function as source. Parsed on first use."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.name = function.__name__
        self.globals: dict[str, Any] = function.__globals__
        free = function.__code__.co_freevars
        self.cells = dict(zip(free, function.__closure__ or (), strict=True))

    def __deepcopy__(self, memo: Any) -> Source:
        return self  # parts of a tree that was copied stand where they stood

    @cached_property
    def file(self) -> str:
        return inspect.getsourcefile(self.function) or self.function.__code__.co_filename

    @cached_property
    def lines(self) -> tuple[list[str], int]:
        """The text of the definition, and the number of its first line."""
        first = self.function.__code__.co_firstlineno
        try:
            return inspect.getsourcelines(self.function)
        except (OSError, TypeError):
            raise NoSource(f"the source of {self.name!r} cannot be read", Span(self.file, first)) from None

    @cached_property
    def definition(self) -> ast.FunctionDef:
        lines, first = self.lines
        # An indented definition is parsed below an `if`: its columns stay those of the file, and comments and strings
        # may stand further to the left.
        indented = lines[0][:1].isspace()
        try:
            tree: Any = _parsed("if True:\n" + "".join(lines) if indented else "".join(lines))
        except SyntaxError:
            raise NoSource(f"the source of {self.name!r} is not a plain `def`", Span(self.file, first)) from None
        ast.increment_lineno(tree, first - 1 - indented)
        node = tree.body[0].body[0] if indented else tree.body[0]
        if isinstance(node, ast.AsyncFunctionDef):
            raise NoSource(f"{self.name!r} is an `async def`", Span(self.file, node.lineno), advice="remove `async`")
        if not isinstance(node, ast.FunctionDef):
            raise NoSource(f"{self.name!r} is not a plain `def`", Span(self.file, first))
        if node.name != self.function.__code__.co_name:
            text = f"the source of {self.name!r} is not where it was: {self.file} has changed since it was imported"
            raise NoSource(text, Span(self.file, first), advice="import the module again, or restart Python")
        return node

    @cached_property
    def locals(self) -> frozenset[str]:
        """Names that the function assigns anywhere: in Python they are local everywhere in it."""
        spec = self.definition.args
        names = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
        for stmt in self.definition.body:
            names |= {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        return frozenset(names)

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Names that the function assigns, or changes in part."""
        return frozenset(assigned_names(self.definition.body))

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """Annotations of the parameters as objects, whether they were postponed or not."""
        try:
            hints = dict(self.function.__annotations__)
        except Exception as error:  # from Python 3.14 on they are evaluated here
            raise self.bad_annotation(error, self.head) from None
        local = {name: cell.cell_contents for name, cell in self.cells.items() if _is_set(cell)}
        return {n: self.evaluate(n, h, local) if isinstance(h, str) else h for n, h in hints.items()}

    def evaluate(self, name: str, hint: str, local: dict[str, Any]) -> Any:
        """A postponed annotation as an object."""
        try:
            return eval(hint, self.globals, local)
        except Exception as error:
            raise self.bad_annotation(error, self.annotation_span(name)) from None

    def annotation_span(self, name: str) -> Span:
        """Where the annotation of a parameter, or of the result, stands."""
        spec = self.definition.args
        nodes = {a.arg: a.annotation for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
        node = nodes.get(name) or self.definition.returns
        return self.span(node) if node is not None else self.head

    def bad_annotation(self, error: Exception, span: Span) -> MissingAnnotation:
        advice = ""
        if isinstance(error, NameError) and "<locals>" in self.function.__qualname__:
            advice = "postponed annotations do not see names of the function around: make the type a global, or remove "
            advice += "`from __future__ import annotations`"
        return MissingAnnotation(f"the annotation cannot be evaluated: {error}", span, advice=advice)

    def span(self, node: ast.AST) -> Span:
        line = getattr(node, "lineno", self.function.__code__.co_firstlineno)
        end_line = getattr(node, "end_lineno", None) or line
        column = self.column(line, getattr(node, "col_offset", 0))
        return Span(
            self.file, line, column, end_line, self.column(end_line, getattr(node, "end_col_offset", None) or 0)
        )

    def column(self, line: int, offset: int) -> int:
        """`ast` counts bytes of UTF-8; people and tracebacks count characters."""
        lines, first = self.lines
        text = lines[line - first] if 0 <= line - first < len(lines) else ""
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))

    @cached_property
    def head(self) -> Span:
        node = self.definition
        return Span(self.file, node.lineno, node.col_offset, node.lineno, node.col_offset + len(f"def {self.name}"))

    def parameter_span(self, name: str) -> Span:
        """Where a parameter is declared."""
        spec = self.definition.args
        found = [a for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg == name]
        return self.span(found[0]) if found else self.head

    def lookup(self, name: str) -> tuple[Any, Capture | None]:
        """What a free name means: closure, then globals, then Python's built-ins; MISSING if nothing."""
        if name in self.cells:
            cell = self.cells[name]
            if not _is_set(cell):
                return MISSING, None
            value = cell.cell_contents
            return value, Capture(cell, "cell_contents", value, freeze(value))
        if name in self.globals:
            value = self.globals[name]
            return value, Capture(self.globals, name, value, freeze(value))
        if hasattr(builtins, name):
            return getattr(builtins, name), None
        return MISSING, None

    def known_names(self) -> set[str]:
        """What a misspelt name may have meant."""
        return {*self.cells, *self.globals, *_USEFUL_BUILTINS}


def _parsed(text: str) -> ast.Module:
    """The syntax tree of a text. Python's parser goes as deep as a sum has terms: if need be, where there is room."""
    try:
        return ast.parse(text)
    except RecursionError:
        pass
    limit, size = sys.getrecursionlimit(), threading.stack_size(_PARSER_STACK)
    try:
        sys.setrecursionlimit(max(limit, _PARSER_DEPTH))
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(ast.parse, text).result()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)


def assigned_names(nodes: list[ast.stmt]) -> list[str]:
    """Names that the statements assign or change in part, in order of appearance."""
    found: dict[str, None] = {}

    def target(node: ast.expr) -> None:
        if isinstance(node, ast.Name):
            found[node.id] = None
        elif isinstance(node, (ast.Tuple, ast.List)):
            for item in node.elts:
                target(item)
        elif isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            target(node.value)

    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Assign):
                for t in node.targets:
                    target(t)
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
                target(node.target)
            elif isinstance(node, ast.Call) and (state := drawn_from(node)) is not None:
                target(state)
    return list(found)


def drawn_from(call: ast.Call) -> ast.Name | None:
    """The generator that a call advances, `state` of kc.randf(state) and kc.randn(state): told by the names alone."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    if name in ("randf", "randn") and len(call.args) == 1 and isinstance(call.args[0], ast.Name):
        return call.args[0]
    return None


def contains(nodes: list[ast.stmt], kinds: type | tuple[type, ...], *, into_loops: bool = True) -> bool:
    """Whether a statement of one of these kinds stands among or below the given ones."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, kinds):
            return True
        if into_loops or not isinstance(node, (ast.For, ast.While)):
            todo += [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
    return False


def always_exits(nodes: list[ast.stmt], *, returns_only: bool = False) -> bool:
    """Whether no path runs past the end of these statements (`break`, `continue` count unless returns_only)."""
    for node in nodes:
        if isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and not returns_only):
            return True
        if isinstance(node, ast.If):
            sides = [node.body]
            while isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
                node = node.orelse[0]
                sides.append(node.body)
            if all(always_exits(side, returns_only=returns_only) for side in (*sides, node.orelse)):
                return True
            continue
        if isinstance(node, ast.While) and _is_true(node.test) and not contains(node.body, ast.Break, into_loops=False):
            return True
    return False


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def set_origin(node: ast.AST, source: Source) -> None:
    """Remember that a node was written elsewhere than in the function that is lowered: errors point there."""
    vars(node)["kc_source"] = source


def origin_of(node: ast.AST, default: Source) -> Source:
    """Where a node was written."""
    found = vars(node).get("kc_source", default)
    assert isinstance(found, Source)
    return found


class Stack:
    """The calls of functions that led to a statement: each function, and where it was called."""

    def __init__(self, calls: Iterable[tuple[Any, Span]] = ()):
        self.calls = tuple(calls)

    def __deepcopy__(self, memo: Any) -> Stack:
        return self  # as for sources


def set_stack(node: ast.AST, stack: Stack) -> None:
    """Remember that a node belongs to a function that was called in another way than the one that is lowered."""
    vars(node)["kc_stack"] = stack


def stack_of(node: ast.AST, default: Stack) -> Stack:
    """The calls that led to a node."""
    found = vars(node).get("kc_stack", default)
    assert isinstance(found, Stack)
    return found
