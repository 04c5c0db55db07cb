"""Warp: a thread per pixel that looks at every face, and a thread per face that looks at the pixels of its box. Sums of
logarithms, because Warp's adjoint of products in loops is wrong."""

import numpy as np
import warp as wp

from ...harness import Entrant
from . import DISTANCE, HALF_HEIGHT, LIMIT, SIGMA, Work

wp.config.quiet = True


@wp.kernel
def project(x: wp.array(dtype=wp.vec3), distance: float, half_height: float, screen: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    depth = distance - x[i][2]
    screen[i] = wp.vec2(x[i][0] / depth / half_height, x[i][1] / depth / half_height)


@wp.func
def edge_distance(p: wp.vec2, a: wp.vec2, b: wp.vec2):
    e = b - a
    q = p - a
    along = wp.clamp(wp.dot(q, e) / wp.dot(e, e), 0.0, 1.0)
    d = q - along * e
    return wp.dot(d, d)


@wp.func
def side(p: wp.vec2, a: wp.vec2, b: wp.vec2):
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


@wp.func
def uncovered(screen: wp.array(dtype=wp.vec2), faces: wp.array2d(dtype=int), f: int, i: int, j: int, n: int,
              sigma: float, limit: float):  # fmt: skip
    p = wp.vec2(float(2 * j + 1 - n) / float(n), float(n - 1 - 2 * i) / float(n))
    a = screen[faces[f, 0]]
    b = screen[faces[f, 1]]
    c = screen[faces[f, 2]]
    d2 = wp.min(wp.min(edge_distance(p, a, b), edge_distance(p, b, c)), edge_distance(p, c, a))
    s0 = side(p, a, b)
    s1 = side(p, b, c)
    s2 = side(p, c, a)
    inside = (s0 > 0.0 and s1 > 0.0 and s2 > 0.0) or (s0 < 0.0 and s1 < 0.0 and s2 < 0.0)
    logs = float(0.0)
    if inside or d2 < limit:
        logit = wp.where(inside, 1.0, -1.0) * d2 / sigma
        logs = wp.max(logit, 0.0) + wp.log(1.0 + wp.exp(-wp.abs(logit)))
    return logs


@wp.kernel
def cover_pixel(screen: wp.array(dtype=wp.vec2), faces: wp.array2d(dtype=int), n: int, sigma: float, limit: float,
                total: wp.array(dtype=float)):  # fmt: skip
    t = wp.tid()
    logs = float(0.0)
    for f in range(faces.shape[0]):
        logs += uncovered(screen, faces, f, t // n, t % n, n, sigma, limit)
    total[t] = logs


@wp.kernel
def cover_box(screen: wp.array(dtype=wp.vec2), faces: wp.array2d(dtype=int), n: int, sigma: float, limit: float,
              total: wp.array(dtype=float)):  # fmt: skip
    f = wp.tid()
    a = screen[faces[f, 0]]
    b = screen[faces[f, 1]]
    c = screen[faces[f, 2]]
    reach = wp.vec2(wp.sqrt(limit), wp.sqrt(limit))
    low = (wp.min(wp.min(a, b), c) - reach) * float(n)
    high = (wp.max(wp.max(a, b), c) + reach) * float(n)
    last = float(n - 1)
    i0 = wp.max(0, int(wp.ceil((last - high[1]) / 2.0)))
    i1 = wp.min(n, 1 + int(wp.floor((last - low[1]) / 2.0)))
    j0 = wp.max(0, int(wp.ceil((low[0] + last) / 2.0)))
    j1 = wp.min(n, 1 + int(wp.floor((high[0] + last) / 2.0)))
    for i in range(i0, i1):
        for j in range(j0, j1):
            wp.atomic_add(total, i * n + j, uncovered(screen, faces, f, i, j, n, sigma, limit))


@wp.kernel
def finish(total: wp.array(dtype=float), image: wp.array(dtype=float)):
    t = wp.tid()
    image[t] = 1.0 - wp.exp(-total[t])


def entrants(work: Work) -> dict[str, Entrant]:
    return {
        "Warp per pixel": entrant(work, cover_pixel, work.size**2),
        "Warp boxes": entrant(work, cover_box, len(work.faces)),
    }


def entrant(work: Work, cover: wp.Kernel, threads: int) -> Entrant:
    n = work.size
    x = wp.array(work.vertices, dtype=wp.vec3, device="cpu", requires_grad=True)
    screen = wp.zeros(len(work.vertices), dtype=wp.vec2, device="cpu", requires_grad=True)
    faces = wp.array(work.faces, dtype=int, device="cpu")
    total, image = (wp.zeros(n * n, dtype=float, device="cpu", requires_grad=True) for _ in range(2))
    seed = wp.array(work.seed.ravel(), dtype=float, device="cpu")

    def forward() -> None:
        wp.launch(project, len(work.vertices), [x, DISTANCE, HALF_HEIGHT], [screen], device="cpu")
        total.zero_()
        wp.launch(cover, threads, [screen, faces, n, SIGMA, LIMIT], [total], device="cpu")
        wp.launch(finish, n * n, [total], [image], device="cpu")

    def both() -> None:
        tape = wp.Tape()
        with tape:
            forward()
        for array in (x, screen, total, image):
            array.grad.zero_()
        tape.backward(grads={image: seed})

    def results() -> dict[str, np.ndarray]:
        return {"image": image.numpy().reshape(n, n), "grad vertices": x.grad.numpy()}

    return Entrant({"forward": forward, "forward + backward": both}, results)
