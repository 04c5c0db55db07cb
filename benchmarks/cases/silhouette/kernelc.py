"""nablasim.render: on a tape, as a torch module, and with colours beside it."""

import numpy as np
import torch

import kernelc as kc
from nablasim import render

from ...harness import Entrant
from . import DISTANCE, SIGMA, Work


def entrants(work: Work) -> dict[str, Entrant]:
    camera = render.Camera.look_at((0, 0, DISTANCE), (0, 0, 0), fov=60)
    silhouette = render.Silhouette(camera, size=(work.size, work.size), sigma=SIGMA)
    renderer = render.Renderer(camera, size=(work.size, work.size), sigma=SIGMA)
    return {
        "kernelc": on_tape(work, silhouette, work.seed),
        "kernelc torch module": in_torch(work, silhouette),
        "kernelc RGBA": colours_only(on_tape(work, renderer, np.repeat(work.seed[..., None], 4, -1))),
    }


def on_tape(work: Work, draw: object, seed: np.ndarray) -> Entrant:
    x = kc.array(work.vertices.copy(), dtype=kc.float3, requires_grad=True)
    with kc.Tape() as tape:
        image = draw(x, work.faces)

    def both() -> None:
        tape.replay()
        tape.backward(grads={image: seed}, add=False)

    def results() -> dict[str, np.ndarray]:
        return {"image": image.numpy(), "grad vertices": x.grad.numpy()}

    return Entrant({"forward": tape.replay, "forward + backward": both}, results)


def colours_only(entrant: Entrant) -> Entrant:
    """Another picture: there is nothing to compare it with here; the tests do that."""
    return Entrant(entrant.runs)


def in_torch(work: Work, silhouette: render.Silhouette) -> Entrant:
    x, faces = torch.tensor(work.vertices, requires_grad=True), torch.tensor(work.faces)
    seed, kept = torch.tensor(work.seed), {}

    def forward() -> None:
        with torch.no_grad():
            kept["image"] = silhouette(x, faces)

    def both() -> None:
        x.grad = None
        kept["image"] = silhouette(x, faces)
        kept["image"].backward(seed)

    def results() -> dict[str, np.ndarray]:
        return {"image": kept["image"].detach().numpy(), "grad vertices": x.grad.numpy()}

    return Entrant({"forward": forward, "forward + backward": both}, results)
