"""Where does this picture look from? The pose of the camera is found from 60 degrees away.

    python examples/find_pose.py [--out out] [--rounds 200]

A house that is different from every side, one picture of it, and a camera that starts 60 degrees away. Soft edges are
wide at first, so that distant parts pull, and become sharp; coarser pictures count as well. Writes find_pose.png and
find_pose.mp4 to the folder.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from nablasim import render

SIZE = (80, 80)
TRUTH = {"distance": 5.0, "elevation": 25.0, "azimuth": 40.0}


def house() -> render.Mesh:
    """Walls of four colours, a roof, a chimney, a door and a shed."""
    walls = render.Mesh.box((1.6, 1.0, 1.2))
    sides = [(0.3, 0.4, 0.8), (0.9, 0.8, 0.5), (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), (0.6, 0.3, 0.6), (0.4, 0.7, 0.8)]
    walls = walls.replace(face_colors=np.repeat(sides, 2, axis=0))  # back, front, bottom, top, left, right
    roof = render.Mesh.box((1.8, 0.9, 1.4))
    slope = np.asarray(roof.vertices).copy()
    slope[slope[:, 1] > 0, 2] = 0.0
    roof = roof.replace(vertices=slope).moved(by=(0, 0.95, 0)).painted((0.8, 0.2, 0.15))
    chimney = render.Mesh.box((0.2, 0.7, 0.2)).moved(by=(0.5, 1.25, 0.25)).painted((0.4, 0.3, 0.3))
    door = render.Mesh.box((0.35, 0.6, 0.1)).moved(by=(-0.3, -0.2, 0.6)).painted((0.2, 0.4, 0.8))
    shed = render.Mesh.box((0.6, 0.5, 0.6)).moved(by=(1.1, -0.25, 0.2)).painted((0.3, 0.7, 0.3))
    return render.Mesh.join([walls, roof, chimney, door, shed])


def camera_of(values: torch.Tensor) -> render.Camera:
    """From distance, elevation and azimuth; angles in units of 30 degrees, so that all three are about one."""
    return render.Camera.orbit(values[0] * 5, values[1] * 30, values[2] * 30, target=(0.1, 0.3, 0.0), fov=40)


def difference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Squared, of the pictures and of coarser and coarser ones: what is far apart in pixels is near in those."""
    pyramid = [(a - b).permute(2, 0, 1)[None]]
    for _ in range(4):
        pyramid.append(torch.nn.functional.avg_pool2d(pyramid[-1], 2))
    return sum(level.square().mean() * 4**k for k, level in enumerate(pyramid))


def fit(mesh: render.Mesh, start: np.ndarray, seen_from: render.Camera, rounds: int, show):
    renderer = render.Renderer(seen_from, size=SIZE, composite=True, gamma=1e-3, background=1.0)
    values = torch.tensor(start, requires_grad=True)
    adam = torch.optim.Adam([values], lr=5e-2)
    for k, renderer.sigma_pixels in enumerate(render.anneal(8.0, 0.7, rounds)):
        with torch.no_grad():
            seen = renderer(mesh)
        adam.zero_grad()
        difference(renderer(mesh, camera=camera_of(values)), seen).backward()
        adam.step()
        show(k, values.detach())
    return values.detach()


def view(mesh: render.Mesh, camera: render.Camera) -> np.ndarray:
    lights = [render.Ambient(0.5), render.Directional((1, 2, 1.5), color=0.6)]
    renderer = render.Renderer(camera, lights, mode="hard", size=(200, 200), sampling=2, background=1.0, smooth=False)
    return renderer(mesh).detach().numpy()


def degrees_apart(a: render.Camera, b: render.Camera) -> float:
    """The angle of the rotation between two cameras."""
    turn = np.asarray(a.rotation.detach()) @ np.asarray(b.rotation.detach()).T
    return float(np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    mesh = house()
    truth = np.array([TRUTH["distance"] / 5, TRUTH["elevation"] / 30, TRUTH["azimuth"] / 30])
    goal = camera_of(torch.tensor(truth))
    start = np.array([1.2, 1.0, (TRUTH["azimuth"] - 60) / 30])
    seen, frames = view(mesh, goal), []

    def show(k, values):
        if k % max(1, options.rounds // 60) == 0:
            now = view(mesh, camera_of(values))
            frames.append(np.concatenate([seen, now, 0.5 * (seen + now)], 1))

    found = fit(mesh, start, goal, options.rounds, show)
    begin, end = camera_of(torch.tensor(start)), camera_of(found)
    sheet = render.contact_sheet(
        [seen, view(mesh, begin), view(mesh, end)], columns=3, captions=["the picture", "at first", "found"]
    )
    render.write_image(options.out / "find_pose.png", sheet)
    print(f"{degrees_apart(begin, goal):.1f} degrees away at first, {degrees_apart(end, goal):.2f} in the end")
    print(render.write_video(options.out / "find_pose.mp4", frames, fps=20))
