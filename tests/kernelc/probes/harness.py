"""The judge of the probes: runs a small program on every device and in both precisions, against NumPy in float64.

A probe is a kernel, its leaves, a reference in NumPy and, where it can be said by hand, the gradient. Everything else
is compared with central differences of the reference.
"""

import inspect
import os
import re
from contextlib import contextmanager

import numpy as np
import pytest

import kernelc as kc

REALS = (np.float64, np.float32)
# Buffers carry gradients by themselves. Marking them as well must change nothing: PROBES_MARK=1 runs it that way.
MARK_BUFFERS = os.environ.get("PROBES_MARK") == "1"
DEVICES = ("cpu", "python")


class leaf:
    """A differentiable input, given as float64 numbers."""

    def __init__(self, data, dtype=None):
        self.data, self.dtype = np.array(data, np.float64), dtype


class const:
    """An array without gradient: integers become int32, reals the precision of the run."""

    def __init__(self, data, dtype=None):
        self.data, self.dtype = np.array(data), dtype


class tmp:
    """A buffer that lies on the path to the loss. Not marked: it must carry the gradient by itself."""

    def __init__(self, shape, dtype=None, fill=0.0):
        self.shape, self.dtype, self.fill = shape, dtype, fill


OUT = tmp(1)


class Arrays:
    """Makes arrays of one precision."""

    def __init__(self, real):
        self.real = np.dtype(real)

    def array(self, data, dtype=None, requires_grad=False):
        data = np.array(data)
        data = data.astype(np.int32) if data.dtype.kind in "iub" else data.astype(self.real)
        return kc.array(data, dtype=dtype, requires_grad=requires_grad)

    def leaf(self, data, dtype=None):
        return self.array(np.asarray(data, np.float64), dtype, True)

    def zeros(self, shape, dtype=None, fill=0.0):
        return self.array(np.full(shape, float(fill)), dtype, MARK_BUFFERS)

    def make(self, spec):
        if isinstance(spec, leaf):
            return self.leaf(spec.data, spec.dtype)
        if isinstance(spec, const):
            return self.array(spec.data, spec.dtype)
        if isinstance(spec, tmp):
            return self.zeros(spec.shape, spec.dtype, spec.fill)
        return spec


def central(reference, xs, h=1e-3):
    """The gradient of reference(*xs) by five-point differences."""
    xs = [np.array(x, np.float64) for x in xs]
    result = []
    for x in xs:
        g = np.zeros_like(x)
        for at in np.ndindex(*x.shape):
            x0, v = x[at], []
            for s in (-2, -1, 1, 2):
                x[at] = x0 + s * h
                v.append(float(np.asarray(reference(*[a.copy() for a in xs])).reshape(())))
            x[at] = x0
            g[at] = (v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * h)
        result.append(g)
    return result


def near(got, want, tol, what="value"):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.size == want.size, f"{what}: shape {got.shape} instead of {want.shape}"
    got = got.reshape(want.shape)
    finite = np.isfinite(want)
    assert np.array_equal(got[~finite], want[~finite], equal_nan=True), f"{what}: {got}, true {want}"
    scale = max(1.0, np.abs(want[finite]).max(initial=0.0))
    gap = np.abs(got - want)[finite].max(initial=0.0)
    assert gap <= tol * scale, f"{what}: {got.ravel()[:12]}, true {want.ravel()[:12]}"


def check(program, leaves, reference, grad=None, *, devices=DEVICES, reals=REALS, tol=None, tape=None):
    """`program(A, *arrays)` launches and returns the one-element loss; value and gradients must be right."""
    leaves = [x if isinstance(x, leaf) else leaf(x) for x in leaves]
    if grad is not None:
        grad = [np.array(g, np.float64) for g in ([grad] if len(leaves) == 1 else grad)]
    for real in reals:
        A, data = Arrays(real), [x.data.astype(real).astype(np.float64) for x in leaves]
        value = float(np.asarray(reference(*[d.copy() for d in data])).reshape(()))
        slopes = grad if grad is not None else central(reference, data)
        limit = tol or (3e-4 if real == np.float32 else 1e-9 if grad is not None else 1e-7)
        for device in devices:
            where = f" ({device}, {np.dtype(real)})"
            with on(device):
                xs = [A.leaf(x.data, x.dtype) for x in leaves]
                with (tape or kc.Tape)() as t:
                    loss = program(A, *xs)
                near(loss.numpy(), [value], limit, "value" + where)
                t.backward(loss)
                for n, (x, want) in enumerate(zip(xs, slopes)):
                    assert x.grad.numpy().dtype == real
                    near(x.grad.numpy(), want, limit, f"gradient of leaf {n}{where}")


def check_kernel(kernel, dim, args, reference, grad=None, *, loss=-1, **options):
    """The same for one launch; `args` are leaf, const, tmp, OUT or plain values; `loss` is the position of the loss."""

    def program(A, *xs):
        given = iter(xs)
        made = [next(given) if isinstance(a, leaf) else A.make(a) for a in args]
        kc.launch(kernel, dim, inputs=made)
        return made[loss]

    check(program, [a for a in args if isinstance(a, leaf)], reference, grad, **options)


def values(kernel, dim, args, n=1, *, devices=DEVICES, reals=REALS, dtype=None):
    """What a kernel writes to its last argument, an array of n numbers that is added here; one row per run."""
    rows = []
    for real in reals:
        for device in devices:
            A = Arrays(real)
            out = kc.zeros(n, dtype=dtype) if dtype is not None else A.zeros(n)
            with on(device):
                kc.launch(kernel, dim, inputs=[*map(A.make, args), out])
            rows.append(out.numpy().copy())
    return rows


@contextmanager
def on(device):
    before = kc.config.device
    kc.config.device = device
    try:
        yield
    finally:
        kc.config.device = before


@contextmanager
def setting(**changes):
    """Change kc.config for a while."""
    before = {name: getattr(kc.config, name) for name in changes}
    for name, value in changes.items():
        setattr(kc.config, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(kc.config, name, value)


def marked_line(function):
    """The number of the line that ends in the mark `# here`."""
    lines, first = inspect.getsourcelines(getattr(function, "__wrapped__", function))
    (found,) = [first + n for n, text in enumerate(lines) if text.rstrip().endswith("# here")]
    return found


def names_line(error, function):
    """Whether the text of an error has the file, and the marked line or any line of the function."""
    text, file = str(error), inspect.getsourcefile(getattr(function, "__wrapped__", function))
    lines, first = inspect.getsourcelines(getattr(function, "__wrapped__", function))
    wanted = [first + n for n, line in enumerate(lines) if line.rstrip().endswith("# here")]
    wanted = wanted or range(first, first + len(lines))
    return file.rsplit("/", 1)[-1] in text and any(int(n) in wanted for n in re.findall(r":(\d+)", text))


def refused(kernel, code=None, *, at=None):
    """The kernel does not compile: an error with this code that names the marked line."""
    with pytest.raises(kc.KernelError) as caught:
        kc.inspect(kernel, "ir")
    assert code is None or caught.value.code == code, caught.value
    assert names_line(caught.value, at or kernel), caught.value
    return caught.value


def array64(data, dtype=None, requires_grad=True):
    return kc.array(np.array(data, np.float64), dtype=dtype, requires_grad=requires_grad)


def zeros64(shape, dtype=float, requires_grad=False):
    return kc.zeros(shape, dtype=dtype, real=kc.float64, requires_grad=requires_grad)
