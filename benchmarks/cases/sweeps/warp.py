"""Warp: record, launch the tape backwards, and both as captured graphs."""

from itertools import pairwise

import numpy as np
import warp as wp

from ...harness import Entrant
from . import FACTOR, Work

wp.config.quiet = True


@wp.kernel
def scale(x: wp.array(dtype=float), factor: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * factor


def entrants(work: Work) -> dict[str, Entrant]:
    x = [wp.array(work.x, device="cpu", requires_grad=True)]
    x += [wp.zeros(1, device="cpu", dtype=float, requires_grad=True) for _ in range(work.launches)]

    def record() -> wp.Tape:
        tape = wp.Tape()
        with tape:
            for now, then in pairwise(x):
                wp.launch(scale, dim=1, inputs=[now, FACTOR], outputs=[then], device="cpu")
        return tape

    def zero() -> None:
        for a in x:
            a.grad.zero_()

    def first_backward() -> None:
        zero()
        record().backward(x[-1])

    tape = record()

    def backward() -> None:
        zero()
        tape.backward(x[-1])

    def capture(run) -> object:
        with wp.ScopedCapture(device="cpu") as captured:
            run()
        return captured.graph

    forward_graph, both_graph = capture(record), capture(first_backward)

    def results() -> dict[str, np.ndarray]:
        backward()
        return {"y": x[-1].numpy(), "grad x": x[0].grad.numpy()}

    def results_of_graph() -> dict[str, np.ndarray]:
        wp.capture_launch(both_graph)
        return {"y": x[-1].numpy(), "grad x": x[0].grad.numpy()}

    return {
        "Warp": Entrant({"record": record, "record + first backward": first_backward}, results),
        "Warp graph": Entrant({"replay": lambda: wp.capture_launch(forward_graph),
                               "replay + backward": lambda: wp.capture_launch(both_graph)}, results_of_graph),
    }  # fmt: skip
