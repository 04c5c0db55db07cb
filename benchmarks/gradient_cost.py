"""What gradients cost: a launch and its reverse sweep, for kernels that stand for the cases of the page on gradients.

    python -m benchmarks.gradient_cost [threads]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import kernelc as kc


@kc.kernel
def pointwise(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.exp(kc.sin(x[i])) * x[i]


@kc.kernel
def sums(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    s = 0.0
    for k in range(n):
        s += kc.sin(x[i] + float(k))
    y[i] = s


@kc.kernel
def product(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    for _ in range(n):
        p *= 0.9 + 0.1 * x[i]
    y[i] = p


@kc.kernel
def flight(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    p = kc.float2(0.0, 1.0)
    v = kc.float2(x[i], 5.0)
    for _ in range(n):
        v += 0.01 * (kc.float2(0.0, -9.81) - 0.1 * kc.length(v) * v)
        p += 0.01 * v
    y[i] = p.x * p.y


@kc.kernel(loop_tape="sqrt")
def flight_sqrt(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    p = kc.float2(0.0, 1.0)
    v = kc.float2(x[i], 5.0)
    for _ in range(n):
        v += 0.01 * (kc.float2(0.0, -9.81) - 0.1 * kc.length(v) * v)
        p += 0.01 * v
    y[i] = p.x * p.y


@kc.kernel
def overwrite(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i]
    for _ in range(n):
        y[i] = y[i] * (1.0 - 0.001 * y[i])


@kc.kernel
def scatter(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(y, i // 2, x[i] * x[i])


CASES: list[tuple[str, Any, int, str]] = [
    ("one expression", pointwise, 0, "nothing"),
    ("sum in a loop", sums, 100, "nothing"),
    ("product in a loop", product, 100, "100 p"),
    ("state in a loop", flight, 100, "100 v"),
    ("the same, sqrt tape", flight_sqrt, 100, "20 v"),
    ("overwritten element", overwrite, 100, "undo log"),
    ("scatter by atomics", scatter, 0, "nothing"),
]


def best(run: Callable[[], Any], least: float = 0.5) -> float:
    """Seconds of processor time of the fastest of several runs: what else runs on the machine matters little."""
    run()
    times: list[float] = []
    while sum(times) < least or len(times) < 5:
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def measure(kernel: Any, n: int, threads: int) -> tuple[float, float]:
    """Seconds of the forward sweep and of the reverse sweep of one launch."""
    x = kc.array(np.linspace(0.5, 1.5, threads, dtype=np.float32), requires_grad=True)
    y = kc.zeros(threads)
    seed = np.ones(threads, np.float32)
    with kc.Tape() as tape:
        kc.launch(kernel, dim=threads, inputs=[x, n], outputs=[y])
    return best(tape.replay), best(lambda: tape.backward(grads={y: seed}))


def main(threads: int) -> None:
    kc.config.threads = 1
    print(f"{threads} threads of float32 on one core; times in ms, the best of several; loops of 100 iterations")
    print(f"{'':22}{'forward':>9}{'reverse':>9}{'ratio':>7}   taped per thread")
    for title, kernel, n, taped in CASES:
        forward, reverse = measure(kernel, n, threads)
        print(f"{title:22}{1e3 * forward:9.2f}{1e3 * reverse:9.2f}{reverse / forward:7.1f}   {taped}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
