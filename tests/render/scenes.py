"""Scenes for the tests of the renderer: small, random, and as unpleasant as real ones are."""

import numpy as np

from nablasim import render


def camera_of(perspective=True):
    if perspective:
        return render.Camera.look_at((0.4, 0.5, 2.6), (0.05, 0, 0), fov=50)
    return render.Camera.look_at((0.4, 0.5, 2.6), (0.05, 0, 0), scale=1.2)


def for_reference(camera, size):
    """The camera as reference.py takes it."""
    return (
        np.asarray(camera.rotation),
        np.asarray(camera.eye),
        [float(v) for v in camera.lens(size)],
        camera.perspective,
    )


def scene(name, seed=0):
    """Vertices and faces by name."""
    return {"soup": soup, "sphere": sphere, "objects": objects, "clipped": clipped, "flat": flat, "one": one}[name](
        np.random.default_rng(seed)
    )


def one(rng):
    return rng.uniform(-0.8, 0.8, (3, 3)), np.array([[0, 1, 2]])


def soup(rng):
    """Triangles of all sizes and both orientations, in each other's way."""
    centre = rng.uniform(-0.9, 0.9, (9, 1, 3))
    spread = rng.uniform(0.05, 0.9, (9, 1, 1))
    return (centre + spread * rng.normal(size=(9, 3, 3))).reshape(-1, 3), np.arange(27).reshape(-1, 3)


def sphere(rng):
    mesh = render.Mesh.sphere(1)
    return mesh.vertices * rng.uniform(0.7, 0.9, 3), mesh.faces


def objects(rng):
    """Two boxes and a ground, which hide each other and reach into each other."""
    boxes = [render.Mesh.box(rng.uniform(0.4, 0.9, 3)).moved(by=rng.uniform(-0.4, 0.4, 3)) for _ in range(2)]
    mesh = render.Mesh.join([*boxes, render.Mesh.plane(3.0, height=-0.6, cells=2)])
    return mesh.vertices, mesh.faces


def clipped(rng):
    """Around the camera: in front, behind, and through the near plane with one corner or two in front."""
    vertices = rng.uniform(-3.0, 3.0, (24, 3)) + [0.4, 0.5, 2.0]
    return vertices, np.arange(24).reshape(-1, 3)


def flat(rng):
    """Seen from the edge, without area, without any extent, and one ordinary triangle."""
    eye = np.array([0.4, 0.5, 2.6])
    a, b = rng.uniform(-0.6, 0.6, (2, 3))
    through = a + 0.4 * (eye - a)  # on the line of sight through a: seen from the edge
    vertices = np.array([a, b, through, b, b, a, b, b, b, a, 0.5 * (a + b), b, *rng.uniform(-0.7, 0.7, (3, 3))])
    return vertices, np.arange(15).reshape(-1, 3)
