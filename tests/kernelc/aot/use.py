"""Uses the package `springs` in a process of its own; prints what came out, and the libraries it opened, as JSON."""

import hashlib
import json
import sys

import numpy as np
from springs.kernels import forces

import kernelc as kc
from kernelc.toolchain.simd import own_levels


def spring(count, real, wanted):
    """Forces and gradients of a chain of springs."""
    rng = np.random.default_rng(7)
    chain = np.stack([np.arange(count), np.arange(1, count + 1)], 1).astype(np.int32)
    x = kc.array(rng.normal(size=(count + 1, 3)).astype(real), dtype=kc.float3, requires_grad="x" in wanted)
    rest = kc.array(np.ones(count, real), requires_grad="rest" in wanted)
    k = kc.array(np.full(count, 3, real), requires_grad="k" in wanted)
    f = kc.array(np.zeros((count + 1, 3), real), dtype=kc.float3)
    with kc.Tape() as tape:
        kc.launch(forces.spring_forces, count, [x, chain, rest, k], [f])
    tape.backward(grads={f: rng.normal(size=(count + 1, 3))})
    arrays = {"x": x, "rest": rest, "k": k}
    assert all((a.grad is not None) == (name in wanted) for name, a in arrays.items())
    return [digest(f), *(digest(arrays[name].grad) for name in wanted)]


def power(n, count):
    x = kc.array(np.linspace(0.5, 1.5, count), requires_grad=True)
    y = kc.array(np.zeros(count))
    with kc.Tape() as tape:
        kc.launch(forces.powers(n), count, [x], [y])
    tape.backward(grads={y: np.ones(count)})
    return [digest(y), digest(x.grad)]


def limited(count, wanted):
    """Stiffness up to a limit, which half of the springs just reach: a tie, whose weights depend on who asks."""
    k = kc.array(np.linspace(0.5, 1.5, count), requires_grad="k" in wanted)
    most = kc.array(np.where(np.arange(count) % 2, k.numpy(), 1.1), requires_grad="most" in wanted)
    y = kc.array(np.zeros(count))
    with kc.Tape() as tape:
        kc.launch(forces.limited, count, [k, most], [y])
    tape.backward(grads={y: np.linspace(1, 2, count)})
    return [digest(y), *(digest({"k": k, "most": most}[name].grad) for name in wanted)]


def digest(array):
    """Of all bits of an array."""
    return hashlib.sha256(np.ascontiguousarray(array.numpy()).tobytes()).hexdigest()


def launch_undeclared():
    x, y = kc.array(np.ones(4, np.float32)), kc.array(np.zeros(4, np.float32))
    kc.launch(forces.undeclared, 4, [x], [y])
    return y.numpy().tolist()


def launch_debug():
    kc.config.debug = True
    return spring(40, np.float64, ["x"])


def counted():
    x, n = kc.array(np.linspace(-1, 1, 50), requires_grad=True), kc.array(np.zeros(1, np.int32))
    with kc.Tape():
        kc.launch(forces.count, 50, [x], [n])
    return n.numpy().tolist()


def all_springs():
    sizes, precisions = (3, 100, 20_000), (np.float32, np.float64)
    some = (["x"], ["k"], ["x", "rest", "k"])
    found = [spring(count, real, wanted) for count in sizes for real in precisions for wanted in some]
    ties = [limited(count, wanted) for count in (5, 100) for wanted in (["k"], ["most"], ["k", "most"])]
    return [found, ties, [power(n, count) for n in (2, 3) for count in (5, 100)], counted()]


CASES = {"springs": all_springs, "undeclared": launch_undeclared, "debug": launch_debug,
         "levels": lambda: [level.name for level in own_levels()]}  # fmt: skip

if __name__ == "__main__":
    try:
        answer = {"result": CASES[sys.argv[1]]()}
    except kc.KernelError as error:
        answer = {"error": type(error).__name__, "message": error.message, "advice": error.advice}
    with open("/proc/self/maps") as maps:
        answer["opened"] = sorted({line.split("/")[-1].strip() for line in maps if "/_kernels/" in line})
    print(json.dumps(answer))
