"""What tangents and Hessian products cost: the rollout of tetrahedra, kernelc beside JAX, as ratios of one run.

    python -m benchmarks.tangents [tetrahedra]

Ours are of a tape that has run: `tape.jvp` and `tape.hvp` alone, against `tape.replay` and against both sweeps of a
gradient. JAX compiles its own rollout into each of its derivatives.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import kernelc as kc

from .cases import fem
from .cases.fem.kernelc import forces, integrate

COUNTS = (1, 4, 16)
LEAVES = {"x": kc.float3, "v": kc.float3, "mu": float, "lam": float}
Runs = dict[str, Callable[[], Any]]


@kc.kernel
def weigh(x: kc.Array[kc.float3], seed: kc.Array[kc.float3], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, kc.dot(x[i], seed[i]))


def directions(work: fem.Work, count: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    return {k: random.standard_normal((count, *getattr(work, k).shape)).astype(np.float32) for k in LEAVES}


def ours(work: fem.Work) -> Runs:
    leaf = {k: kc.array(getattr(work, k), dtype=kind, requires_grad=True) for k, kind in LEAVES.items()}
    tets, inverse = kc.array(work.tets), kc.array(work.inverse, dtype=kc.mat33)
    volume, weight, seed = kc.array(work.volume), kc.array(work.weight), kc.array(work.seed, dtype=kc.float3)
    n, f, loss = len(work.x), kc.zeros_like(leaf["x"]), kc.zeros(1)
    x, v = ([leaf[k], *[kc.zeros_like(leaf[k]) for _ in range(fem.STEPS)]] for k in "xv")
    with kc.Tape() as tape:
        for s in range(fem.STEPS):
            f.zero_()
            kc.launch(forces, len(tets), [x[s], tets, inverse, volume, leaf["mu"], leaf["lam"]], [f])
            kc.launch(integrate, n, [x[s], v[s], f, weight, fem.GRAVITY, fem.DT], [x[s + 1], v[s + 1]])
        loss.zero_()
        kc.launch(weigh, n, [x[-1], seed], [loss])

    def gradient() -> None:
        tape.replay()
        tape.backward(loss, add=False)

    runs: Runs = {"forward": tape.replay, "gradient": gradient}
    for count in COUNTS:
        moved = {leaf[k]: d for k, d in directions(work, count).items()}
        runs[f"{count} tangents"] = lambda moved=moved: tape.jvp(moved, [x[-1]])[x[-1]].numpy()
    single = {leaf[k]: d[0] for k, d in directions(work, 1).items()}
    runs["Hessian product"] = lambda: {k: h.numpy() for k, h in zip(LEAVES, tape.hvp(loss, single).values())}
    return runs


def theirs(work: fem.Work) -> Runs:
    import jax
    import jax.numpy as jnp

    from .cases.fem.jax import rollout_of

    rollout = rollout_of(work)
    leaves = tuple(jnp.asarray(getattr(work, k)) for k in LEAVES)
    seed = jnp.asarray(work.seed)

    def loss(*leaves: Any) -> Any:
        return (seed * rollout(*leaves)).sum()

    slopes = jax.grad(loss, (0, 1, 2, 3))
    pushed = jax.jit(jax.vmap(lambda *d: jax.jvp(rollout, leaves, d)[1]))
    bent = jax.jit(lambda *d: jax.jvp(slopes, leaves, d)[1])
    forward, both = jax.jit(rollout), jax.jit(slopes)
    runs: Runs = {
        "forward": lambda: jax.block_until_ready(forward(*leaves)),
        "gradient": lambda: jax.block_until_ready(both(*leaves)),
    }
    for count in COUNTS:
        moved = [jnp.asarray(d) for d in directions(work, count).values()]
        runs[f"{count} tangents"] = lambda moved=moved: jax.block_until_ready(pushed(*moved))
    single = [jnp.asarray(d[0]) for d in directions(work, 1).values()]
    runs["Hessian product"] = lambda: dict(zip(LEAVES, jax.block_until_ready(bent(*single))))
    return runs


def best(run: Callable[[], Any], least: float = 1.0) -> float:
    """Seconds of the fastest of several runs."""
    run()
    times: list[float] = []
    while sum(times) < least or len(times) < 5:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def check(mine: Runs, other: Runs) -> None:
    """Both compute the same."""
    for name in (f"{COUNTS[-1]} tangents", "Hessian product"):
        a, b = mine[name](), other[name]()
        pairs = [(a[k], b[k]) for k in a] if isinstance(a, dict) else [(a, b)]
        for x, y in pairs:
            x, y = np.asarray(x), np.asarray(y)
            assert np.abs(x - y).max() <= 2e-3 * np.abs(y).max(), f"{name}: kernelc and JAX differ"


def main(size: int) -> None:
    work = fem.make(size)
    mine = ours(work)
    peer = theirs(work) if importlib.util.find_spec("jax") else None
    if peer is not None:
        check(mine, peer)
    taken = {name: best(run) for name, run in mine.items()}
    beside = {name: best(run) for name, run in peer.items()} if peer is not None else {}
    print(f"{size} tetrahedra, {fem.STEPS} steps, float32; the best of several")
    print(f"{'':18}{'ms':>9}{'forward':>9}{'gradients':>11}{'JAX, ms':>10}{'JAX / ours':>12}")
    for name, t in taken.items():
        of = f"{1e3 * t:9.2f}{t / taken['forward']:9.2f}{t / taken['gradient']:11.2f}"
        other = f"{1e3 * beside[name]:10.1f}{beside[name] / t:12.1f}" if beside else ""
        print(f"{name:18}{of}{other}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
