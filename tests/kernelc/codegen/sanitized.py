"""Run by test_sanitizers.py in a process of its own, where kernels are built with the sanitizers and memory is watched.

python sanitized.py laws       the functions of the language tests, with and without lanes
python sanitized.py adjoints   kernels and their adjoints: loops, undo log, atomics, rules, views, structs
python sanitized.py outside    a store past the end of an array: proves that the watch is awake
"""

import functools
import importlib
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "language")]

import kernelc as kc  # noqa: E402
from kernelc.runtime import compile as compiling  # noqa: E402
from kernelc.toolchain import build_many  # noqa: E402

FLAGS = ["-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer",
         "-g1", "-O0", "-Wl,--no-as-needed", "-lasan", "-lubsan"]  # fmt: skip
compiling.build_many = functools.partial(build_many, extra_flags=FLAGS)


def laws() -> None:
    for name in ("test_assignment", "test_logic", "test_loops"):
        module = importlib.import_module(name)
        module.laws.build()
        for case in module.laws.cases:
            for lanes in (0, case.width):
                kc.config.lanes = lanes
                case.check("cpu", np.float64)
                case.check("cpu", np.float32)
        print(name, len(module.laws.cases), flush=True)
    values = importlib.import_module("test_values")
    for kernel, want in values.CASES.values():
        args = values.arguments(np.float64)
        kc.launch(kernel, 1, args)
        np.testing.assert_allclose(args[2][: len(want)], want)


# -- adjoints
@kc.struct
class Body:
    position: kc.float3
    tag: int
    mass: float


@kc.func
def safe_root(x):
    return kc.sqrt(x)


@safe_root.adjoint
def _(x, g):
    return g * 0.5 / kc.sqrt(x)


@kc.kernel
def loops(x: kc.Array[float], n: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    for k in range(n[i]):
        if k % 7 == 5:
            continue
        p *= 1.0 + 0.01 * x[(i + k) % x.shape[0]]
        j = k
        while j > 0:
            j //= 2
            p = p + x[i] * 0.001
            if p > 50.0:
                break
        if p > 90.0:
            break
    y[i] = safe_root(p)


@kc.kernel
def undone(x: kc.Array[float], y: kc.Array[float, 2]):
    i = kc.tid()
    for k in range(y.shape[1]):
        y[i, k] = x[i] * k
        y[i, k] *= y[i, max(k - 1, 0)]
    y[i, 0] = y[i, y.shape[1] - 1] + x[i]


@kc.kernel
def scattered(bodies: kc.Array[Body], to: kc.Array[int], sums: kc.Array[kc.float3], least: kc.Array[float],
              slots: kc.Array[int], order: kc.Array[float]):  # fmt: skip
    i = kc.tid()
    b = bodies[i]
    sums[to[i]] += b.position * b.mass
    kc.atomic_min(least, 0, b.mass)
    slot = kc.atomic_add(slots, 0, 1)
    order[slot] = b.mass * b.position[to[i] % 3]


@kc.kernel
def local_memory(x: kc.Array[float], k: kc.Array[int], y: kc.Array[kc.float3]):
    i = kc.tid()
    a = kc.local(6, float)
    for j in range(6):
        a[(j * k[i]) % 6] += x[i] * j
    y[i][k[i] % 3] = a[k[i] % 6]
    y[i][(k[i] + 1) % 3] += a[5]


def adjoints() -> None:
    rng = np.random.default_rng(7)
    for n in (1, 5, 300):
        x, y = leaf(rng.uniform(0.5, 1.5, n)), zeros(n)
        run([(loops, n, [x, ints(rng, 60, n), y])], y)
        wide = leaf(rng.uniform(0.5, 1.5, (n, 3)))
        run([(loops, n, [wide[:, 1], ints(rng, 60, n), y])], y)
        table = zeros((n, 9))
        run([(undone, n, [x, table])], table)
        bodies = kc.zeros(n, dtype=Body, real=kc.float64, requires_grad=True)
        bodies.numpy()["position"], bodies.numpy()["mass"] = rng.normal(size=(n, 3)), rng.uniform(1, 2, n)
        sums, least, order = kc.zeros(4, dtype=kc.float3, real=kc.float64), kc.full(1, 9.0, real=kc.float64), zeros(n)
        slots = kc.zeros(1, dtype=int)
        run([slots, (scattered, n, [bodies, ints(rng, 4, n), sums, least, slots, order])], sums, least, order)
        v = kc.zeros(n, dtype=kc.float3, real=kc.float64)
        run([(local_memory, n, [x, ints(rng, 100, n), v])], v)
        print("adjoints", n, flush=True)


def leaf(data):
    return kc.array(np.ascontiguousarray(data), requires_grad=True)


def zeros(shape):
    return kc.zeros(shape, real=kc.float64)


def ints(rng, high, n):
    return rng.integers(0, high, n).astype(np.int32)


def run(launches, *outputs):
    with kc.Tape() as tape:
        for step in launches:
            kc.launch(*step) if isinstance(step, tuple) else step.zero_()
    tape.backward(grads={a: np.ones(a.numpy().shape) for a in outputs})
    tape.replay()
    tape.backward(grads={a: np.ones(a.numpy().shape) for a in outputs})


# -- the watch itself
@kc.kernel
def past_the_end(x: kc.Array[float]):
    x[kc.tid() + x.shape[0]] = 1.0


def outside() -> None:
    kc.launch(past_the_end, 1, [np.zeros(1000)])


if __name__ == "__main__":
    {"laws": laws, "adjoints": adjoints, "outside": outside}[sys.argv[1]]()
    print("clean")
