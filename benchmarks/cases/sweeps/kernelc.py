"""kernelc: record, replay, backward."""

from itertools import pairwise

import numpy as np

import kernelc as kc

from ...harness import Entrant
from . import FACTOR, Work


@kc.kernel
def scale(x: kc.Array[float], factor: float, y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * factor


def entrants(work: Work) -> dict[str, Entrant]:
    x = [kc.array(work.x, requires_grad=True), *[kc.zeros(1) for _ in range(work.launches)]]

    def record() -> kc.Tape:
        with kc.Tape() as tape:
            for now, then in pairwise(x):
                kc.launch(scale, dim=1, inputs=[now, FACTOR], outputs=[then])
        return tape

    def first_backward() -> None:
        x[0].grad.zero_()
        record().backward(x[-1])

    tape = record()

    def backward() -> None:
        tape.backward(x[-1], add=False)

    def results() -> dict[str, np.ndarray]:
        tape.replay()
        backward()
        return {"y": x[-1].numpy(), "grad x": x[0].grad.numpy()}

    tape.backward(x[-1])
    runs = {"record": record, "record + first backward": first_backward}
    runs |= {"replay": tape.replay, "replay + backward": lambda: (tape.replay(), backward())}
    return {"kernelc": Entrant(runs, results)}
