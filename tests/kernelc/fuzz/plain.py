"""The meaning of a program in Python itself: its own source, run by CPython, with values that are copied on assignment.

The oracle for the front end: what the compiler makes of loops and exits must be what Python makes of them.
"""

from __future__ import annotations

import ast
import math
from types import SimpleNamespace

import numpy as np
from fuzz.layouts import rounded

import kernelc as kc


class Vec:
    """A vector or matrix over NumPy memory: arithmetic makes new ones, components and slices can be set."""

    def __init__(self, data):
        self.data = np.asarray(data)

    def within(self, key):
        """No index is counted from the end: such ones are mistakes of the program."""
        for k, n in zip(key if isinstance(key, tuple) else (key,), self.data.shape):
            if not isinstance(k, slice) and not 0 <= k < n:
                raise IndexError(key)
        return key

    def __getitem__(self, key):
        found = self.data[self.within(key)]
        return Vec(found.copy()) if isinstance(found, np.ndarray) else found.item()

    def __setitem__(self, key, value):
        self.data[self.within(key)] = value.data if isinstance(value, Vec) else value

    x = property(lambda self: self[0], lambda self, value: self.__setitem__(0, value))
    y = property(lambda self: self[1], lambda self, value: self.__setitem__(1, value))
    z = property(lambda self: self[2], lambda self, value: self.__setitem__(2, value))
    __add__ = lambda self, other: Vec(self.data + other.data)  # noqa: E731
    __sub__ = lambda self, other: Vec(self.data - other.data)  # noqa: E731
    __rmul__ = lambda self, factor: Vec(self.data * factor)  # noqa: E731
    __truediv__ = lambda self, divisor: Vec(self.data / divisor)  # noqa: E731
    __rtruediv__ = lambda self, number: Vec(number / self.data)  # noqa: E731
    __neg__ = lambda self: Vec(-self.data)  # noqa: E731
    __abs__ = lambda self: Vec(abs(self.data))  # noqa: E731

    def __mul__(self, other):
        return Vec(self.data @ other.data) if isinstance(other, Vec) else Vec(self.data * other)


def _least(a, b):
    return Vec(np.minimum(a.data, b.data)) if isinstance(a, Vec) else min(a, b)


def _most(a, b):
    return Vec(np.maximum(a.data, b.data)) if isinstance(a, Vec) else max(a, b)


def _clamped(x, low, high):
    return _least(_most(x, low), high)


class State:
    """A generator of random numbers: a value that draws advance."""

    def __init__(self, seed, i, k=0):
        self.seed, self.i, self.k = seed, i, k

    def draw(self):
        self.k += 1
        return kc.rand(self.seed, self.i, self.k - 1)


class Memory:
    """An array as a kernel sees it: integers, reals, or vectors that refer to their place; stores round or wrap."""

    def __init__(self, data, rank, half=None):
        self.data, self.rank, self.half = data, rank, half

    def at(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > self.rank or not all(0 <= k < n for k, n in zip(index, self.data.shape)):
            raise IndexError(index)
        return index

    def __getitem__(self, index):
        index = self.at(index)
        found = self.data[index]
        if len(index) < self.rank:
            return Memory(found, self.rank - len(index), self.half)
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
    if isinstance(value, State):
        return State(value.seed, value.i, value.k)
    return Vec(value.data.copy()) if isinstance(value, Vec) else value


class Record(SimpleNamespace):
    """A struct."""


def _struct(cls):
    names = list(cls.__annotations__)
    defaults = {name: getattr(cls, name) for name in names if hasattr(cls, name)}

    def make(*values, **named):
        given = defaults | dict(zip(names, values)) | named
        return Record(**{name: _copied(value) for name, value in given.items()})

    return make


def _exchange_if_equal(array, *rest):
    index, expected, new = rest[:-2], rest[-2], rest[-1]
    old = array[index]
    array[index] = new if old == expected else old
    return old


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
        found = [_dot(f(*(Dual(a, 1.0 if k == j else 0.0) for j, a in enumerate(args)))) for k in range(len(args))]
        return found[0] if len(found) == 1 else tuple(found)

    return partials


class _Subscripted:
    """Annotations of members, which nothing asks."""

    def __getitem__(self, _):
        return list


class Plain:
    """A program, ready to be run as Python on NumPy arrays (changed in place)."""

    def __init__(self, source):
        tree = _Copying().visit(ast.parse(source))
        tree.body = [node for node in tree.body if not isinstance(node, ast.Import)]
        self.here = SimpleNamespace(thread=0)
        names = SimpleNamespace(
            sin=_smooth(math.sin, math.cos), cos=_smooth(math.cos, lambda x: -math.sin(x)),
            tanh=_smooth(math.tanh, lambda x: 1 - math.tanh(x) ** 2), exp=_smooth(math.exp, math.exp),
            sqrt=_smooth(math.sqrt, lambda x: 0.5 / math.sqrt(x)), abs=abs,
            min=_least, max=_most, clamp=_clamped,
            cw_mul=lambda a, b: Vec(a.data * b.data), noise=kc.noise,
            dot=lambda a, b: float(a.data @ b.data), cross=lambda a, b: Vec(np.cross(a.data, b.data)),
            float3=lambda *xyz: Vec(np.array(xyz * (3 // len(xyz)), float)), int2=lambda *xy: Vec(np.array(xy)),
            mat33=lambda *rows: Vec(np.reshape(rows, (3, 3))), rng=State, randf=State.draw,
            Array=_Subscripted(), grad=_grad, struct=_struct, tid=lambda: self.here.thread,
            local=lambda n, kind: Vec(np.zeros(n)), uint64=lambda value: value % 2**64,
            atomic_add=_atomic(lambda old, v: old + v), atomic_sub=_atomic(lambda old, v: old - v),
            atomic_min=_atomic(min), atomic_max=_atomic(max), atomic_or=_atomic(lambda old, v: old | v),
            atomic_and=_atomic(lambda old, v: old & v), atomic_xor=_atomic(lambda old, v: old ^ v),
            atomic_exchange=_atomic(lambda old, v: v), atomic_cas=_exchange_if_equal,
        )  # fmt: skip
        self.names = {"kc": names, "copied": _copied}
        exec(compile(ast.fix_missing_locations(tree), "<plain>", "exec"), self.names)

    def __call__(self, threads, arguments, ranks, halves):
        """halves: what arguments are halves, as floats here; None for others."""
        passed = [Memory(a, r, h) if r else a for a, r, h in zip(arguments, ranks, halves)]
        for self.here.thread in range(threads):
            self.names["program"](*passed)
