"""Two silhouettes that do not overlap find each other, because soft edges begin wide and become sharp.

    python examples/silhouettes_meet.py [--out out] [--rounds 200]

The position, the scale and the angle of a letter are found from one mask at the other side of the picture. With edges
of one pixel from the beginning there is nothing to follow. Writes silhouettes_meet.png and silhouettes_meet.mp4 to the
folder.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from nablasim import render

SIZE = (96, 96)


def letter() -> render.Mesh:
    """An L of two boxes."""
    upright = render.Mesh.box((0.25, 0.9, 0.2)).moved(by=(-0.2, 0.0, 0.0))
    foot = render.Mesh.box((0.65, 0.25, 0.2)).moved(by=(0.0, -0.35, 0.0))
    return render.Mesh.join([upright, foot])


def placed(rest: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Turned by values[3], scaled by exp(values[2]), moved by values[:2]."""
    c, s = torch.cos(values[3]), torch.sin(values[3])
    zero, one = torch.zeros(()), torch.ones(())
    turn = torch.stack([c, -s, zero, s, c, zero, zero, zero, one]).reshape(3, 3)
    return rest @ turn.T * torch.exp(values[2]) + torch.cat([values[:2], torch.zeros(1)])


def fit(mesh: render.Mesh, start: torch.Tensor, truth: torch.Tensor, widths, show=lambda k, values: None):
    camera = render.Camera.look_at((0, 0, 5), (0, 0, 0), scale=2.0)
    silhouette = render.Silhouette(camera, size=SIZE)
    rest = torch.tensor(np.asarray(mesh.vertices), dtype=torch.float32)
    # Where it is shows first, how large it is and how it is turned only when edges are sharp: smaller steps for these.
    place, form = start[:2].clone().requires_grad_(), start[2:].clone().requires_grad_()
    adam = torch.optim.Adam([{"params": [place], "lr": 4e-2}, {"params": [form], "lr": 1e-2}])
    for k, silhouette.renderer.sigma_pixels in enumerate(widths):
        with torch.no_grad():
            seen = silhouette(placed(rest, truth), mesh.faces)
        adam.zero_grad()
        values = torch.cat([place, form])
        loss = ((silhouette(placed(rest, values), mesh.faces) - seen) ** 2).mean()
        loss.backward()
        adam.step()
        show(k, torch.cat([place, form]).detach())
    return torch.cat([place, form]).detach()


def picture(mesh: render.Mesh, places) -> np.ndarray:
    """The target in grey, and a row of steps from light to dark."""
    camera = render.Camera.look_at((0, 0, 5), (0, 0, 0), scale=2.0)
    renderer = render.Renderer(camera, mode="hard", size=(240, 240), sampling=2)
    rest, image = torch.tensor(np.asarray(mesh.vertices), dtype=torch.float32), np.ones((240, 240, 3))
    for color, strength, values in places:
        alpha = strength * renderer(placed(rest, values), mesh.faces).numpy()[..., 3:]
        image = image * (1 - alpha) + alpha * np.asarray(color)
    return image


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    mesh = letter()
    start, truth = torch.tensor([-1.2, -1.0, -0.2, 0.0]), torch.tensor([1.1, 0.9, 0.1, 0.6])
    pictures, film = [], []
    for name, widths in (
        ("annealed", render.anneal(25.0, 1.0, options.rounds)),
        ("sharp", [1.0] * options.rounds),
    ):
        steps = [start]
        found = fit(mesh, start, truth, widths, lambda k, v, steps=steps: steps.append(v))
        error = (found - truth).abs()
        print(f"{name}: off by {error[:2].norm():.3f} in place, {error[2]:.3f} in scale, {error[3]:.3f} in angle")
        chosen = [steps[round(k)] for k in np.linspace(0, len(steps) - 1, 6)]
        trail = [((0.1, 0.3, 0.8), 0.25 + 0.12 * k, v) for k, v in enumerate(chosen)]
        grey = ((0.55, 0.55, 0.55), 0.8, truth)
        pictures.append(picture(mesh, [grey, *trail]))
        film.append([picture(mesh, [grey, ((0.1, 0.3, 0.8), 0.8, v)]) for v in steps[:: max(1, len(steps) // 60)]])
    captions = ["wide edges that become sharp", "sharp edges all the time"]
    sheet = render.contact_sheet(pictures, columns=2, captions=captions, color=0.9)
    render.write_image(options.out / "silhouettes_meet.png", sheet)
    print(render.write_video(options.out / "silhouettes_meet.mp4", np.concatenate(film, axis=2), fps=20))
