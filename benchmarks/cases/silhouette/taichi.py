"""Taichi: boxes of faces, which add the logarithms of what they leave uncovered, differentiated by `.grad()`."""

import numpy as np

from ...harness import Entrant
from ...taichi_once import THREADS, ti
from . import DISTANCE, HALF_HEIGHT, LIMIT, SIGMA, Work

REACH = LIMIT**0.5


@ti.func
def edge_distance(p, a, b):
    e, q = b - a, p - a
    d = q - ti.math.clamp(q.dot(e) / e.dot(e), 0.0, 1.0) * e
    return d.dot(d)


@ti.func
def side(p, a, b):
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def entrants(work: Work) -> dict[str, Entrant]:
    n, points, count = work.size, len(work.vertices), len(work.faces)
    x, screen = ti.Vector.field(3, ti.f32, points, needs_grad=True), ti.Vector.field(2, ti.f32, points, needs_grad=True)
    total, image = (ti.field(ti.f32, (n, n), needs_grad=True) for _ in range(2))
    faces, seed = ti.Vector.field(3, ti.i32, count), ti.field(ti.f32, (n, n))
    box = ti.Vector.field(4, ti.i32, count)
    for field, data in ((x, work.vertices), (faces, work.faces), (seed, work.seed)):
        field.from_numpy(data)

    @ti.kernel
    def project():
        ti.loop_config(parallelize=THREADS)
        for k in range(points):
            screen[k] = x[k].xy / ((DISTANCE - x[k].z) * HALF_HEIGHT)

    @ti.kernel
    def bound():  # no gradient goes through here
        for f in range(count):
            a, b, c = screen[faces[f][0]], screen[faces[f][1]], screen[faces[f][2]]
            low, high = ti.min(a, b, c) - REACH, ti.max(a, b, c) + REACH
            box[f] = ti.Vector([
                ti.max(0, ti.ceil((n - 1 - high.y * n) / 2, int)), ti.min(n, ti.floor((n + 1 - low.y * n) / 2, int)),
                ti.max(0, ti.ceil((low.x * n + n - 1) / 2, int)), ti.min(n, ti.floor((high.x * n + n + 1) / 2, int)),
            ])  # fmt: skip
        for i, j in total:
            total[i, j] = 0.0

    @ti.kernel
    def cover():
        ti.loop_config(parallelize=THREADS)
        for f in range(count):
            for i in range(box[f][0], box[f][1]):
                for j in range(box[f][2], box[f][3]):
                    a, b, c = screen[faces[f][0]], screen[faces[f][1]], screen[faces[f][2]]
                    p = ti.Vector([(2.0 * j + 1 - n) / n, (n - 1 - 2.0 * i) / n])
                    d2 = ti.min(edge_distance(p, a, b), edge_distance(p, b, c), edge_distance(p, c, a))
                    s0, s1, s2 = side(p, a, b), side(p, b, c), side(p, c, a)
                    inside = ti.min(s0, s1, s2) > 0 or ti.max(s0, s1, s2) < 0
                    if inside or d2 < LIMIT:
                        logit = ti.select(inside, d2, -d2) / SIGMA
                        total[i, j] += ti.max(logit, 0.0) + ti.log(1.0 + ti.exp(-ti.abs(logit)))

    @ti.kernel
    def finish():
        ti.loop_config(parallelize=THREADS)
        for i, j in total:
            image[i, j] = 1.0 - ti.exp(-total[i, j])

    @ti.kernel
    def prepare():
        for k in range(points):
            x.grad[k] = 0.0
            screen.grad[k] = 0.0
        for i, j in seed:
            total.grad[i, j] = 0.0
            image.grad[i, j] = seed[i, j]

    def forward() -> None:
        for kernel in (project, bound, cover, finish):
            kernel()

    def both() -> None:
        forward()
        prepare()
        for kernel in (finish, cover, project):
            kernel.grad()

    def results() -> dict[str, np.ndarray]:
        return {"image": image.to_numpy(), "grad vertices": x.grad.to_numpy()}

    return {"Taichi boxes": Entrant({"forward": forward, "forward + backward": both}, results)}
