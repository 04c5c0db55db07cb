"""Whose gradients are right: programs of a few lines, written as users of each peer would, held against differences.

    python -m benchmarks.right [--peers kernelc,warp,taichi,jax]

Each program turns four numbers into one. What comes out is the derivative ("right"), another number ("wrong"), or an
error ("refused": the user knows); or the process ends ("crashes").
"""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

X = np.array([0.9, 1.3, 0.7, 1.1])
"""Where programs are differentiated: away from ties and jumps of all of them."""

SEPARATOR = " -> "
PEERS = ("kernelc", "warp", "taichi", "jax")
TOLERANCE = 1e-3
"""Of the largest slope. Peers compute in single precision; a wrong rule errs by more."""


@dataclass(frozen=True)
class Program:
    """What a program computes, in plain Python."""

    title: str
    value: Callable[[np.ndarray], float]


PROGRAMS: dict[str, Program] = {}


def program(title: str) -> Callable[[Callable[[np.ndarray], float]], Callable[[np.ndarray], float]]:
    def add(value: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], float]:
        PROGRAMS[value.__name__] = Program(title, value)
        return value

    return add


@program("`p *= x[i]` in a loop of run-time length")
def product(x: np.ndarray) -> float:
    p = 1.0
    for i in range(len(x)):
        p *= x[i]
    return p


@program("a state carried through 100 iterations")
def carried(x: np.ndarray) -> float:
    v = x[0]
    for k in range(100):
        v = np.sin(v) * x[k % 4] + 0.5
    return v


@program("`while`")
def halved(x: np.ndarray) -> float:
    v = 10.0 * x[0]
    while v > 0.5:
        v = v * x[2]
    return v


@program("`break`")
def broken(x: np.ndarray) -> float:
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
        if s > 2.0:
            break
    return s * s


@program("`continue`")
def continued(x: np.ndarray) -> float:
    p = 1.0
    for i in range(len(x)):
        if x[i] < 0.8:
            continue
        p *= x[i]
    return p


@program("`return` inside of a loop")
def returned(x: np.ndarray) -> float:
    p = 1.0
    for i in range(len(x)):
        p = p * (1.0 + x[i])
        if p > 6.0:
            return p * p
    return p


@program("a running maximum")
def largest(x: np.ndarray) -> float:
    m = -1.0
    for i in range(len(x)):
        m = max(m, x[i] * x[i])
    return m


@program("`v[1] = v[1] * v[0]`: a component written twice")
def component(x: np.ndarray) -> float:
    a, b = x[0], x[1]
    b = b * a
    b = b * b
    return a + b


@program("`y[i] = y[i]**2` in place")
def in_place(x: np.ndarray) -> float:
    y = x.copy()
    for _ in range(2):
        y = y**2
    return float(y.sum())


@program("`y[i] *= x[i]` on an array")
def scaled(x: np.ndarray) -> float:
    return float((np.sin(x) * x).sum())


@program("one buffer over ten launches")
def stepped(x: np.ndarray) -> float:
    y = x.copy()
    for _ in range(10):
        y = np.sin(y) * 1.1
    return float(y.sum())


@program("the input overwritten after it was recorded (right or refused)")
def overwritten(x: np.ndarray) -> float:
    return float((x**2).sum())


def slopes(value: Callable[[np.ndarray], float], step: float = 1e-6) -> np.ndarray:
    """Central differences in float64."""
    shifts = step * np.eye(len(X))
    return np.array([(value(X + d) - value(X - d)) / (2 * step) for d in shifts])


def verdict(gradient: Callable[[np.ndarray], np.ndarray], truth: np.ndarray) -> str:
    try:
        found = np.asarray(gradient(X.copy()), dtype=np.float64)
    except Exception as error:  # whatever a peer raises: its user is told
        return f"refused ({type(error).__name__})"
    off = np.abs(found - truth).max() / np.abs(truth).max()
    return "right" if off < TOLERANCE else "wrong"


def judge(peer: str, names: list[str]) -> None:
    """Prints a verdict for each name, at once: the process may end in any of them."""
    written = importlib.import_module(f"{__name__}.{peer}").GRADIENTS
    for name in names:
        print(name, verdict(written[name], slopes(PROGRAMS[name].value)), sep=SEPARATOR, flush=True)


def judged(peer: str) -> dict[str, str]:
    """The verdict of every program. A process of its own: one that crashes is begun again behind the crash."""
    found: dict[str, str] = {}
    while left := [name for name in PROGRAMS if name not in found]:
        command = [sys.executable, "-m", __name__, "--judge", peer, *left]
        run = subprocess.run(command, capture_output=True, text=True)
        lines = [line.split(SEPARATOR) for line in run.stdout.splitlines() if SEPARATOR in line]
        found |= dict(lines)
        if run.returncode > 0:
            raise RuntimeError(f"{peer}: {run.stderr.strip().splitlines()[-1]}")
        if run.returncode < 0:
            found[left[len(lines)]] = f"crashes ({signal.Signals(-run.returncode).name})"
    return found


def table(found: dict[str, dict[str, str]]) -> str:
    lines = [f"| | {' | '.join(found)} |", f"| --- |{' --- |' * len(found)}"]
    for name, one in PROGRAMS.items():
        lines.append(f"| {one.title} | {' | '.join(verdicts[name] for verdicts in found.values())} |")
    return "\n".join(lines)
