"""Warp: a launch, and a recorded command launched again (no checks)."""

import warp as wp

from ...harness import Entrant
from . import Work

wp.config.quiet = True


F = wp.array(dtype=float)


@wp.kernel
def add(a: F, b: F, c: F, d: F, e: F, f: F, g: F, out: F):
    i = wp.tid()
    out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i]


def entrants(work: Work) -> dict[str, Entrant]:
    n, inputs = work.arrays.shape[1], [wp.array(a, device="cpu") for a in work.arrays]
    out, recorded_out = wp.zeros_like(inputs[0]), wp.zeros_like(inputs[0])
    command = wp.launch(add, dim=n, inputs=inputs, outputs=[recorded_out], device="cpu", record_cmd=True)
    return {
        "Warp": Entrant({"launch": lambda: wp.launch(add, dim=n, inputs=inputs, outputs=[out], device="cpu")},
                        lambda: {"sum": out.numpy()}),
        "Warp recorded": Entrant({"launch": command.launch}, lambda: {"sum": recorded_out.numpy()}),
    }  # fmt: skip
