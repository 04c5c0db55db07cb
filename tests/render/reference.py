"""The renderer again, slow and obvious: NumPy, float64, one face at a time, straight from the formulas.

Written from docs/render and the papers only; it shares no code with the package. Pictures are image[row, column], row 0
on top. A camera here is (rotation, eye, lens, perspective): rows of `rotation` are right, up and backward, and
NDC = (kx x + ox + skew y, ky y + oy) with x, y divided by the depth if it is a perspective one; lens = kx, ky, ox, oy,
skew.
"""

from dataclasses import dataclass, field

import numpy as np

SILHOUETTE_CUTOFF = 1e-6
COLOUR_CUTOFF = 1e-4
DIBR_CUTOFF = 1e-10


@dataclass
class Corner:
    """A corner of a triangle: where it is in the view (depth positive), and how it is mixed of the face's corners."""

    view: np.ndarray
    weights: np.ndarray
    screen: np.ndarray = field(default_factory=lambda: np.zeros(2))


@dataclass
class Triangle:
    face: int
    corners: list

    @property
    def screen(self):
        return np.array([c.screen for c in self.corners])

    @property
    def depth(self):
        return np.array([c.view[2] for c in self.corners])

    @property
    def weights(self):
        return np.array([c.weights for c in self.corners])


# -- geometry
def view_of(points, camera):
    """x right, y up, depth forward."""
    rotation, eye = camera[0], camera[1]
    view = (np.asarray(points, float) - eye) @ np.asarray(rotation).T
    return view * [1, 1, -1]


def screen_of(view, camera):
    lens, perspective = camera[2], camera[3]
    kx, ky, ox, oy, skew = lens
    x, y, depth = view
    if perspective:
        x, y = x / depth, y / depth
    return np.array([kx * x + skew * y + ox, ky * y + oy])


CLOSEST, NEAR, FAR = 0.1, 1.0, 100.0
"""Where faces are cut off and where SoftRas' z is 1, if `near` is None; and `far`."""


def triangles_of(vertices, faces, camera, near, far=FAR):
    """What is left of each face between the near plane and the far one."""
    view, near = view_of(vertices, camera), CLOSEST if near is None else near
    found = []
    for f, face in enumerate(faces):
        corners = [Corner(view[v], np.eye(3)[k]) for k, v in enumerate(face)]
        for front in clipped(corners, near, 1):
            for part in clipped(front, far, -1):
                for c in part:
                    c.screen = screen_of(c.view, camera)
                found.append(Triangle(f, part))
    return found


def clipped(corners, plane, side):
    """What is left of a triangle on one side of a plane: one, two, or none."""
    left = [side * c.view[2] >= side * plane for c in corners]
    if all(left):
        return [corners]
    if not any(left):
        return []
    lonely = left.index(True) if sum(left) == 1 else left.index(False)
    a, b, c = (corners[(lonely + k) % 3] for k in range(3))
    if sum(left) == 1:
        return [[a, crossing(a, b, plane), crossing(a, c, plane)]]
    p, q = crossing(a, b, plane), crossing(a, c, plane)
    return [[p, b, c], [p, c, q]]


def crossing(a, b, plane):
    t = (plane - a.view[2]) / (b.view[2] - a.view[2])
    return Corner(a.view + t * (b.view - a.view), a.weights + t * (b.weights - a.weights))


def pixel_centres(size):
    """NDC x and y of every pixel: (H, W) each."""
    H, W = size
    j, i = np.meshgrid(np.arange(W), np.arange(H))
    return (2 * j + 1 - W) / W, (H - 1 - 2 * i) / H


def cross2(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def squared_distance(p, tri):
    """From points (..., 2) to the nearest point of the triangle's boundary, and where on the boundary: weights."""
    best, where = np.full(p.shape[:-1], np.inf), np.zeros((*p.shape[:-1], 3))
    for k in range(3):
        a, b = tri[k], tri[(k + 1) % 3]
        size = (b - a) @ (b - a)
        t = np.clip((p - a) @ (b - a) / size, 0, 1) if size > 0 else np.zeros(p.shape[:-1])
        d2 = ((p - a - t[..., None] * (b - a)) ** 2).sum(-1)
        nearer = d2 < best
        best = np.where(nearer, d2, best)
        w = np.zeros((*p.shape[:-1], 3))
        w[..., k], w[..., (k + 1) % 3] = 1 - t, t
        where = np.where(nearer[..., None], w, where)
    return best, where


def twice_area(tri):
    return cross2(tri[1] - tri[0], tri[2] - tri[0])


def is_flat(tri):
    """Twice the area is below 1e-10 of the longest edge squared: seen from the edge, or without area."""
    longest = max(((tri[(k + 1) % 3] - tri[k]) ** 2).sum() for k in range(3))
    return abs(twice_area(tri)) <= 1e-10 * longest


def edge_sides(p, tri):
    """Positive on the inner side of each edge, whatever the orientation."""
    sign = np.sign(twice_area(tri))
    return np.stack([sign * cross2(tri[(k + 1) % 3] - tri[k], p - tri[k]) for k in range(3)], -1)


def is_inside(p, tri):
    return (edge_sides(p, tri) > 0).all(-1) & (not is_flat(tri))


def is_covered(p, tri):
    """Inside or on the edge; a flat triangle covers nothing."""
    if is_flat(tri):
        return np.zeros(p.shape[:-1], bool)
    return (edge_sides(p, tri) >= 0).all(-1)


def barycentrics(p, tri):
    """Clamped to [0, 1] and normalised; on a flat triangle those of the nearest point of the boundary."""
    area = twice_area(tri)
    if is_flat(tri):
        return squared_distance(p, tri)[1]
    w = np.stack([cross2(tri[(k + 1) % 3] - p, tri[(k + 2) % 3] - p) / area for k in range(3)], -1)
    w = np.clip(w, 0, 1)
    return w / w.sum(-1, keepdims=True)


def perspective_weights(w, depth, perspective):
    """Weights in space of what has weights w on the screen, and the depth there."""
    if perspective:
        w = w / depth
        w = w / w.sum(-1, keepdims=True)
    return w, w @ depth


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -700, 700)))


def soft_coverage(p, tri, sigma, cutoff):
    """D, and which pixels count."""
    d2, _ = squared_distance(p, tri)
    inside = is_inside(p, tri)
    D = sigmoid(np.where(inside, d2, -d2) / sigma)
    return D, inside | (D >= cutoff)


# -- pictures
def silhouette(vertices, faces, camera, size, *, sigma=1e-4, near=None, far=FAR, cutoff=SILHOUETTE_CUTOFF,
               units=(1.0, 1.0)):  # fmt: skip
    """1 - Π(1 - D). `units` scales NDC: (W / 2, H / 2) measures distances in pixels."""
    p = np.stack(pixel_centres(size), -1) * units
    keep = np.ones(size)
    for t in triangles_of(vertices, faces, camera, near, far):
        D, counts = soft_coverage(p, t.screen * units, sigma, cutoff)
        keep *= np.where(counts, 1 - D, 1)
    return 1 - keep


def softras(vertices, faces, camera, size, surface, *, background, sigma=1e-4, gamma=1e-4, eps=1e-3, near=None,
            far=FAR, units=(1.0, 1.0), composite=False):  # fmt: skip
    """RGBA. `surface(face, weights)` is the colour (H, W, 3) of a face at weights (H, W, 3) of its corners."""
    p = np.stack(pixel_centres(size), -1) * units
    rows = []
    keep = np.ones(size)
    for t in triangles_of(vertices, faces, camera, near, far):
        D, counts = soft_coverage(p, t.screen * units, sigma, COLOUR_CUTOFF)
        keep *= np.where(counts, 1 - D, 1)
        w, depth = perspective_weights(barycentrics(p, t.screen * units), t.depth, camera[3])
        z = (far - depth) / (far - (NEAR if near is None else near))
        rows.append((np.where(counts, D, 0.0), z, surface(t.face, w @ t.weights)))
    alpha = 1 - keep
    # Everything relative to the nearest, so that nothing overflows; it cancels.
    top = np.full(size, eps) if not composite else np.full(size, -np.inf)
    for D, z, _ in rows:
        top = np.maximum(top, np.where(D > 0, z, -np.inf))
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.exp((eps - top) / gamma) if not composite else np.zeros(size)
    colour = total[..., None] * np.asarray(background, float)
    for D, z, c in rows:
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.where(D > 0, D * np.exp(np.minimum(z - top, 0) / gamma), 0.0)
        total = total + weight
        colour = colour + weight[..., None] * c
    mean = colour / np.where(total > 0, total, 1)[..., None]
    if composite:
        mean = alpha[..., None] * mean + (1 - alpha)[..., None] * np.asarray(background, float)
    return np.concatenate([mean, alpha[..., None]], -1)


def visible(vertices, faces, camera, size, *, near=None, far=FAR, cull=False, units=(1.0, 1.0)):
    """The nearest face of each pixel (-1: none), the weights of its corners in space, and the depth."""
    p = np.stack(pixel_centres(size), -1) * units
    face, nearest, weights = np.full(size, -1), np.full(size, np.inf), np.zeros((*size, 3))
    for t in triangles_of(vertices, faces, camera, near, far):
        tri = t.screen * units
        if cull and twice_area(tri) <= 0:
            continue
        w, depth = perspective_weights(barycentrics(p, tri), t.depth, camera[3])
        wins = is_covered(p, tri) & (depth < nearest)
        face, nearest = np.where(wins, t.face, face), np.where(wins, depth, nearest)
        weights = np.where(wins[..., None], w @ t.weights, weights)
    return face, weights, nearest


def hard(vertices, faces, camera, size, surface, *, background, near=None, far=FAR, cull=False):
    """RGBA by a z-buffer."""
    face, weights, _ = visible(vertices, faces, camera, size, near=near, far=far, cull=cull)
    colour = paint(face, weights, surface, background, len(faces))
    return np.concatenate([colour, (face >= 0)[..., None].astype(float)], -1)


def dibr(vertices, faces, camera, size, surface, *, background, sigmainv=7000.0, near=None, far=FAR,
         units=(1.0, 1.0)):  # fmt: skip
    """RGBA: nearest front face where one covers the pixel, else a mask that falls off with the distance."""
    p = np.stack(pixel_centres(size), -1) * units
    face, weights, _ = visible(vertices, faces, camera, size, near=near, far=far, cull=True)
    keep = np.ones(size)
    for t in triangles_of(vertices, faces, camera, near, far):
        d2, _ = squared_distance(p, t.screen * units)
        e = np.exp(-sigmainv * d2)
        keep *= np.where(e >= DIBR_CUTOFF, -np.expm1(-sigmainv * d2), 1)
    alpha = np.where(face >= 0, 1.0, 1 - keep)
    colour = paint(face, weights, surface, background, len(faces))
    return np.concatenate([colour, alpha[..., None]], -1)


def paint(face, weights, surface, background, count):
    colour = np.broadcast_to(np.asarray(background, float), (*face.shape, 3)).copy()
    for f in range(count):
        mine = face == f
        if mine.any():
            colour[mine] = surface(f, weights)[mine]
    return colour


# -- surfaces
def vertex_colours(colours, faces):
    """Colour mixed of the corners'."""
    return lambda f, w: w @ np.asarray(colours, float)[np.asarray(faces)[f]]


def face_colours(colours):
    return lambda f, w: np.broadcast_to(np.asarray(colours, float)[f], (*w.shape[:-1], 3))


def textured(texture, uvs, uv_faces, *, wrap=False):
    return lambda f, w: sample(texture, w @ np.asarray(uvs, float)[np.asarray(uv_faces)[f]], wrap)


def sample(texture, uv, wrap):
    """Bilinear; u right, v up, texel centres at half."""
    H, W = texture.shape[:2]
    x, y = uv[..., 0] * W - 0.5, (1 - uv[..., 1]) * H - 0.5
    j, i = np.floor(x).astype(int), np.floor(y).astype(int)
    fx, fy = (x - j)[..., None], (y - i)[..., None]

    def texel(i, j):
        return texture[i % H, j % W] if wrap else texture[np.clip(i, 0, H - 1), np.clip(j, 0, W - 1)]

    upper = texel(i, j) * (1 - fx) + texel(i, j + 1) * fx
    lower = texel(i + 1, j) * (1 - fx) + texel(i + 1, j + 1) * fx
    return upper * (1 - fy) + lower * fy


def unit(v):
    n = np.linalg.norm(v, axis=-1, keepdims=True)
    return v / np.where(n > 0, n, 1)


def face_normals(vertices, faces):
    a, b, c = (np.asarray(vertices, float)[np.asarray(faces)[:, k]] for k in range(3))
    return unit(np.cross(b - a, c - a))


def vertex_normals(vertices, faces):
    """Sum of the faces' normals, weighted by their areas."""
    vertices, total = np.asarray(vertices, float), np.zeros((len(vertices), 3))
    for a, b, c in np.asarray(faces):
        n = np.cross(vertices[b] - vertices[a], vertices[c] - vertices[a])
        for v in (a, b, c):
            total[v] += n
    return unit(total)


def lit(albedo, vertices, faces, eye, lights, *, ka, kd, ks, shininess, smooth=False, normals=None):
    """Phong: (ka La + kd Ld max(n·l, 0)) albedo + ks Ls [n·l > 0] max(r·v, 0)^s, over all lights."""
    vertices, faces = np.asarray(vertices, float), np.asarray(faces)
    if normals is None:
        normals = vertex_normals(vertices, faces) if smooth else None
    flat = face_normals(vertices, faces)

    def surface(f, w):
        position = w @ vertices[faces[f]]
        n = unit(w @ normals[faces[f]]) if normals is not None else np.broadcast_to(flat[f], position.shape)
        base = albedo(f, w)
        v = unit(eye - position)
        colour = np.zeros_like(base)
        for light in lights:
            if light["kind"] == "ambient":
                colour = colour + ka * np.asarray(light["colour"]) * base
                continue
            if light["kind"] == "harmonics":
                colour = colour + kd * irradiance(light["coefficients"], n) * base
                continue
            to_light = np.asarray(light["vector"], float)
            l = unit(to_light - position) if light["kind"] == "point" else unit(np.broadcast_to(to_light, n.shape))
            nl = (n * l).sum(-1, keepdims=True)
            r = 2 * nl * n - l
            rv = np.maximum((r * v).sum(-1, keepdims=True), 0)
            colour = colour + kd * np.asarray(light["colour"]) * np.maximum(nl, 0) * base
            colour = colour + ks * np.asarray(light["specular"]) * (nl > 0) * rv**shininess
        return colour

    return surface


def irradiance(coefficients, n):
    """Real spherical harmonics up to order 2 at n, times coefficients (9, 3); not below zero."""
    x, y, z = n[..., 0], n[..., 1], n[..., 2]
    pi = np.pi
    Y = np.stack([
        np.full_like(x, 0.5 * np.sqrt(1 / pi)),
        np.sqrt(3 / (4 * pi)) * y, np.sqrt(3 / (4 * pi)) * z, np.sqrt(3 / (4 * pi)) * x,
        0.5 * np.sqrt(15 / pi) * x * y, 0.5 * np.sqrt(15 / pi) * y * z,
        0.25 * np.sqrt(5 / pi) * (3 * z * z - 1),
        0.5 * np.sqrt(15 / pi) * x * z, 0.25 * np.sqrt(15 / pi) * (x * x - y * y),
    ], -1)  # fmt: skip
    return np.maximum(Y @ np.asarray(coefficients, float), 0)
