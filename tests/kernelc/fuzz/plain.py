"""The meaning of a program in Python itself: its own source, run by CPython, with values that are copied on assignment.

The oracle for the front end: what the compiler makes of loops and exits must be what Python makes of them.
"""

from __future__ import annotations

import ast
import math
from types import SimpleNamespace

import numpy as np
from fuzz.layouts import rounded


class Vec:
    """A vector over NumPy memory: arithmetic makes new ones, components can be set."""

    def __init__(self, data):
        self.data = np.asarray(data, float)

    def __getitem__(self, k):
        if not 0 <= k < len(self.data):
            raise IndexError(k)
        return float(self.data[k])

    def __setitem__(self, k, value):
        if not 0 <= k < len(self.data):
            raise IndexError(k)
        self.data[k] = value

    x = property(lambda self: self[0], lambda self, value: self.__setitem__(0, value))
    y = property(lambda self: self[1], lambda self, value: self.__setitem__(1, value))
    z = property(lambda self: self[2], lambda self, value: self.__setitem__(2, value))
    __add__ = lambda self, other: Vec(self.data + other.data)  # noqa: E731
    __sub__ = lambda self, other: Vec(self.data - other.data)  # noqa: E731
    __mul__ = __rmul__ = lambda self, factor: Vec(self.data * factor)
    __truediv__ = lambda self, divisor: Vec(self.data / divisor)  # noqa: E731
    __neg__ = lambda self: Vec(-self.data)  # noqa: E731


class Memory:
    """An array as a kernel sees it: integers, reals, or vectors that refer to their place; stores round or wrap."""

    def __init__(self, data, rank, half=None):
        self.data, self.rank, self.half = data, rank, half

    def at(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != self.rank or not all(0 <= k < n for k, n in zip(index, self.data.shape)):
            raise IndexError(index)
        return index

    def __getitem__(self, index):
        found = self.data[self.at(index)]
        return Vec(found) if isinstance(found, np.ndarray) else found.item()

    def __setitem__(self, index, value):
        if self.half is not None:
            value = rounded(value, self.half)
        elif self.data.dtype.kind in "iu":
            value = np.array(value % 2**64, np.uint64).astype(self.data.dtype)
        self.data[self.at(index)] = value.data if isinstance(value, Vec) else value


class _Copying(ast.NodeTransformer):
    """Values are copied where the kernel language copies them: into names, and into the parameters of functions."""

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.decorator_list, node.returns = [], None
        for a in node.args.args:
            a.annotation = None
        copies = [f"{a.arg} = copied({a.arg})" for a in node.args.args]
        node.body[:0] = ast.parse("\n".join(copies)).body
        return node

    def visit_Assign(self, node):
        self.generic_visit(node)
        node.value = ast.Call(ast.Name("copied", ast.Load()), [node.value], [])
        return node

    def visit_Call(self, node):
        """kc.where forms only the side that is taken."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "where":
            test, yes, no = node.args
            return ast.IfExp(test, yes, no)
        return node


def _copied(value):
    if isinstance(value, tuple):
        return tuple(map(_copied, value))
    if isinstance(value, Record):
        return Record(**{name: _copied(field) for name, field in vars(value).items()})
    return Vec(value.data.copy()) if isinstance(value, Vec) else value


class Record(SimpleNamespace):
    """A struct."""


def _struct(cls):
    names = list(cls.__annotations__)
    return lambda *values, **named: Record(**{k: _copied(v) for k, v in (dict(zip(names, values)) | named).items()})


def _atomic(change):
    def run(array, *rest):
        index, value = rest[:-1], rest[-1]
        old = array[index]
        array[index] = change(old, value)
        return old

    return run


class Dual:
    """A number with its derivative: what `kc.grad` means."""

    def __init__(self, value, dot=0.0):
        self.value, self.dot = value, dot

    __add__ = __radd__ = lambda a, b: Dual(a.value + _value(b), a.dot + _dot(b))
    __sub__ = lambda a, b: Dual(a.value - _value(b), a.dot - _dot(b))  # noqa: E731
    __rsub__ = lambda a, b: Dual(b - a.value, -a.dot)  # noqa: E731
    __mul__ = __rmul__ = lambda a, b: Dual(a.value * _value(b), a.dot * _value(b) + a.value * _dot(b))
    __neg__ = lambda a: Dual(-a.value, -a.dot)  # noqa: E731
    __abs__ = lambda a: Dual(abs(a.value), math.copysign(a.dot, a.value * a.dot))  # noqa: E731
    __pow__ = lambda a, n: Dual(a.value**n, n * a.value ** (n - 1) * a.dot)  # noqa: E731
    __lt__ = lambda a, b: a.value < _value(b)  # noqa: E731
    __gt__ = lambda a, b: a.value > _value(b)  # noqa: E731

    def __truediv__(self, other):
        quotient = self.value / _value(other)
        return Dual(quotient, (self.dot - quotient * _dot(other)) / _value(other))

    def __rtruediv__(self, other):
        return Dual(other) / self


def _value(x):
    return x.value if isinstance(x, Dual) else x


def _dot(x):
    return x.dot if isinstance(x, Dual) else 0.0


def _smooth(function, slope):
    def run(x):
        return Dual(function(x.value), slope(x.value) * x.dot) if isinstance(x, Dual) else function(x)

    return run


def _grad(f):
    def partials(*args):
        return tuple(_dot(f(*(Dual(a, 1.0 if k == j else 0.0) for j, a in enumerate(args)))) for k in range(len(args)))

    return partials


class Plain:
    """A program, ready to be run as Python on NumPy arrays (changed in place)."""

    def __init__(self, source):
        tree = _Copying().visit(ast.parse(source))
        tree.body = [node for node in tree.body if not isinstance(node, ast.Import)]
        self.here = SimpleNamespace(thread=0)
        kc = SimpleNamespace(
            sin=_smooth(math.sin, math.cos), cos=_smooth(math.cos, lambda x: -math.sin(x)),
            tanh=_smooth(math.tanh, lambda x: 1 - math.tanh(x) ** 2), exp=_smooth(math.exp, math.exp),
            sqrt=_smooth(math.sqrt, lambda x: 0.5 / math.sqrt(x)), abs=abs, min=min, max=max,
            dot=lambda a, b: float(a.data @ b.data), cross=lambda a, b: Vec(np.cross(a.data, b.data)),
            float3=lambda *xyz: Vec(xyz), grad=_grad, struct=_struct, tid=lambda: self.here.thread,
            local=lambda n, kind: Vec(np.zeros(n)), uint64=lambda value: value % 2**64,
            atomic_add=_atomic(lambda old, v: old + v), atomic_sub=_atomic(lambda old, v: old - v),
            atomic_min=_atomic(min), atomic_max=_atomic(max),
        )  # fmt: skip
        self.names = {"kc": kc, "copied": _copied}
        exec(compile(ast.fix_missing_locations(tree), "<plain>", "exec"), self.names)

    def __call__(self, threads, arguments, ranks, halves):
        """halves: what arguments are halves, as floats here; None for others."""
        passed = [Memory(a, r, h) if r else a for a, r, h in zip(arguments, ranks, halves)]
        for self.here.thread in range(threads):
            self.names["program"](*passed)
