"""What a point of a triangle looks like: where it is, what is painted there, and how it is lit.

Functions for kernels. Weights are those of a triangle's three corners; arrays with a row per band hold what the corners
have (coverage.py says what bands are).
"""

import functools

import kernelc as kc
from nablasim.render.kernels.bins import Lists, slots_of
from nablasim.render.kernels.coverage import BANDS, clamp01, nearest_boundary, squared_distance
from nablasim.render.kernels.triangles import Triangles, face_of

LIGHT_TILES = 32
"""Along a side of the screen that a light sees the scene on. What a shadow looks like does not depend on it, only how
few faces each point has to look at."""


@kc.struct
class Textures:
    """All texels of all textures and their smaller copies, a row for each frame or one for all; and for each texture
    and copy the first texel, height, width, and whether it repeats."""

    texels: kc.Array[kc.float4, 2]
    levels: kc.Array[kc.int4, 2]


@kc.struct
class Paint:
    """Colours of corners, or textures and where corners are on them. `kinds` has the texture of each face (-1: it has
    colours) and its material; `part` is that of the slots. Without anything it is opaque. Where textures have smaller
    copies, `triangles`, the step from sample to sample and the kind of camera say how much a sample covers of one."""

    kinds: kc.Array[int, 2]
    part: int
    step: kc.float2
    perspective: int
    colors: kc.Array[kc.vec(9), 2] | None
    uv: kc.Array[kc.vec(6), 2] | None
    textures: Textures | None
    triangles: Triangles | None


@kc.struct
class Shadow:
    """What lights see: a row for each light and band (frames for the lists). `measure` has the size of a light's screen
    in the world, inverted; how fast a shadow fades beyond its edge, as 1 / width² there; where it ends, as a squared
    distance there; how far in front something must be; and the width."""

    pose: kc.Array[kc.vec(12)]
    triangles: Triangles
    lists: Lists
    measure: kc.Array[float]


@kc.struct
class Light:
    """What lights a surface: normals and positions of corners, the camera, the sky, what surfaces reflect, lamps."""

    normal: kc.Array[kc.vec(9), 2]
    position: kc.Array[kc.vec(9), 2]
    pose: kc.Array[kc.vec(12)]
    sky: kc.Array[kc.vec(30)]
    material: kc.Array[kc.float4, 2]
    lamps: kc.Array[kc.vec(10), 2]
    sunny: int
    """How many of the lamps, the first ones, cast shadows."""
    turned: int
    """0: a back is as dark as its normal says; else normals are turned to the camera, in perspective (1) or not (2)."""
    shadow: Shadow | None


@kc.struct
class Surface:
    """What is painted, and light, without which that is what is seen."""

    paint: Paint
    light: Light | None


@kc.func
def surface_weights(q, slope, deep, x: float, y: float, perspective: int, flat: bool, u: float, v: float, w: float):
    """Weights of the corners in space at the point of a triangle under (x, y), and its depth.

    The weights on the screen are clamped to the triangle first, then corrected for perspective: in the other order they
    explode beyond the horizon of the face. A flat triangle has none; then u, v, w are the weights.
    """
    dx = x - q[0]
    dy = y - q[1]
    wb = slope[0] * dx + slope[1] * dy
    wc = slope[2] * dx + slope[3] * dy
    wa = 1.0 - wb - wc
    if flat:
        wa, wb, wc = kc.stop_grad(u), kc.stop_grad(v), kc.stop_grad(w)
    wa, wb, wc = clamp01(wa), clamp01(wb), clamp01(wc)
    total = wa + wb + wc
    if perspective != 0:
        ha, hb, hc = wa * deep.x, wb * deep.y, wc * deep.z
        depth_of_one = 1.0 / (ha + hb + hc)
        return ha * depth_of_one, hb * depth_of_one, hc * depth_of_one, total * depth_of_one
    else:
        one = 1.0 / total
        pa, pb, pc = wa * one, wb * one, wc * one
        return pa, pb, pc, pa * deep.x + pb * deep.y + pc * deep.z


@kc.func
def mixed(c, a: float, b: float, w: float):
    """Three numbers per corner, mixed."""
    return kc.float3(
        a * c[0] + b * c[3] + w * c[6],
        a * c[1] + b * c[4] + w * c[7],
        a * c[2] + b * c[5] + w * c[8],
    )


@kc.func
def mixed_uv(c, a: float, b: float, w: float):
    return kc.float2(a * c[0] + b * c[2] + w * c[4], a * c[1] + b * c[3] + w * c[5])


# -- textures
@kc.func
def cell(x: float, size: int, repeats: bool):
    """The two texels between which x of [0, 1] lies, and how far it is from the first."""
    inner = kc.frac(x) if repeats else kc.clamp(x, -1.0, 2.0)
    at = inner * float(size) - 0.5
    i = int(kc.floor(at))
    if repeats:
        return size - 1 if i < 0 else i, 0 if i + 1 >= size else i + 1, kc.frac(at)
    else:
        return kc.clamp(i, 0, size - 1), kc.clamp(i + 1, 0, size - 1), kc.frac(at)


@kc.func
def texture_at(textures: Textures, frame: int, level, uv):
    """Bilinear: u right, v up, texel centres at half."""
    j0, j1, fx = cell(uv.x, level.z, level.w != 0)
    i0, i1, fy = cell(1.0 - uv.y, level.y, level.w != 0)
    upper, lower = level.x + i0 * level.z, level.x + i1 * level.z
    a = textures.texels[frame, upper + j0] * (1.0 - fx) + textures.texels[frame, upper + j1] * fx
    b = textures.texels[frame, lower + j0] * (1.0 - fx) + textures.texels[frame, lower + j1] * fx
    return a * (1.0 - fy) + b * fy


@kc.func
def level_of(q, paint: Paint, row, slot, rows: int, columns: int, a: float, b: float, c: float) -> float:
    """Which of the smaller copies a sample should see: log2 of the longer step on the texture, in texels, to the next
    sample to the right or down. a, b and c weigh the corners in space, q holds their uvs."""
    m, h = paint.triangles.slope[row, slot], paint.triangles.deep[row, slot]
    ha, hb, hc, depth = 1.0, 1.0, 1.0, 1.0
    if paint.perspective != 0:
        ha, hb, hc = h.x, h.y, h.z
        depth = a / ha + b / hb + c / hc
    longest = 0.0
    for way in range(2):
        wb, wc = m[way], m[2 + way]
        wa = -wb - wc
        step = (paint.step.x if way == 0 else paint.step.y) * depth
        mean = wa * ha + wb * hb + wc * hc
        da, db, dc = (wa * ha - a * mean) * step, (wb * hb - b * mean) * step, (wc * hc - c * mean) * step
        du = (da * q[0] + db * q[2] + dc * q[4]) * float(columns)
        dv = (da * q[1] + db * q[3] + dc * q[5]) * float(rows)
        size = du * du + dv * dv
        longest = size if size > longest else longest
    return 0.5 * kc.log2(longest) if longest > 1.0 else 0.0


@kc.func
def textured(paint: Paint, texture: int, row, slot, a: float, b: float, c: float):
    """The texture of a face where the corners weigh a, b and c; of its smaller copies, if there are any."""
    q = paint.uv[row, slot]
    at = mixed_uv(q, a, b, c)
    textures = paint.textures
    frame = (row // BANDS) % textures.texels.shape[0]
    if paint.triangles is not None:
        first = textures.levels[texture, 0]
        high = float(textures.levels.shape[1] - 1)
        level = level_of(q, paint, row, slot, first.y, first.z, a, b, c)
        level = high if level > high else level
        below = int(kc.floor(level))
        above = below + 1 if below + 1 < textures.levels.shape[1] else below
        between = level - float(below)
        fine = texture_at(textures, frame, textures.levels[texture, below], at)
        coarse = texture_at(textures, frame, textures.levels[texture, above], at)
        return fine * (1.0 - between) + coarse * between
    else:
        return texture_at(textures, frame, textures.levels[texture, 0], at)


@kc.func
def painted(paint: Paint, row, slot, a: float, b: float, c: float):
    """Colour and opacity of a point of a slot."""
    if paint.uv is not None:
        if paint.colors is not None:
            texture = paint.kinds[face_of(slot, paint.part, paint.kinds.shape[0]), 0]
            if texture >= 0:
                return textured(paint, texture, row, slot, a, b, c)
            else:
                plain = mixed(paint.colors[row, slot], a, b, c)
                return kc.float4(plain.x, plain.y, plain.z, 1.0)
        else:
            texture = paint.kinds[face_of(slot, paint.part, paint.kinds.shape[0]), 0]
            return textured(paint, texture, row, slot, a, b, c)
    else:
        plain = mixed(paint.colors[row, slot], a, b, c)
        return kc.float4(plain.x, plain.y, plain.z, 1.0)


# -- light
@kc.func
def harmonic_light(c, n):
    """Real spherical harmonics up to order 2 in the direction n, times their coefficients: c[3 + 3 k + channel]."""
    y0 = 0.28209479177387814
    y1 = 0.4886025119029199 * n.y
    y2 = 0.4886025119029199 * n.z
    y3 = 0.4886025119029199 * n.x
    y4 = 1.0925484305920792 * n.x * n.y
    y5 = 1.0925484305920792 * n.y * n.z
    y6 = 0.31539156525252005 * (3.0 * n.z * n.z - 1.0)
    y7 = 1.0925484305920792 * n.x * n.z
    y8 = 0.5462742152960396 * (n.x * n.x - n.y * n.y)
    light = kc.float3()
    for k in range(3):
        total = (y0 * c[3 + k] + y1 * c[6 + k] + y2 * c[9 + k] + y3 * c[12 + k] + y4 * c[15 + k] + y5 * c[18 + k]
                 + y6 * c[21 + k] + y7 * c[24 + k] + y8 * c[27 + k])  # fmt: skip
        light[k] = total if total > 0.0 else 0.0
    return light


@kc.func
def one_light(light, albedo, n, position, to_eye, diffuse: float, specular: float, shininess: float, shines: bool):
    """kd Ld max(n·l, 0) albedo + ks Ls [n·l > 0] max(r·v, 0)^s.

    light is (1 for a point, 0 for a direction), its position or the direction to it, its colour, its highlight's.
    """
    vector = kc.float3(light[1], light[2], light[3])
    to_light = kc.normalize(vector - position if light[0] != 0.0 else vector)
    cosine = kc.dot(n, to_light)
    colour = kc.float3()
    if cosine > 0.0:
        colour = kc.cw_mul(kc.float3(light[4], light[5], light[6]), albedo) * (diffuse * cosine)
        if shines:
            along = kc.dot(2.0 * cosine * n - to_light, to_eye)
            if along > 0.0:
                colour = colour + kc.float3(light[7], light[8], light[9]) * (specular * kc.pow(along, shininess))
    return colour


# What a shadow leaves: a product over the faces that are in the way. What runs back through it is the adjoint of its
# logarithm, as in coverage.py; nothing is ever quite dark, so that there is one.
DARKEST = 1e-6
STEEPEST = 4.0
"""At a width beyond its edge, a face must be so many widths in front."""


@kc.func
def dimmed(left: float, cover: float) -> float:
    """What is left of the light after one more face."""
    return left * (1.0 - (1.0 - DARKEST) * cover)


@dimmed.adjoint
def _(left, cover, adj_out):
    return adj_out, -adj_out * (1.0 - DARKEST) / (1.0 - (1.0 - DARKEST) * cover)


@kc.func
def light_left(left: float) -> float:
    return left


@light_left.adjoint
def _(left, adj_out):
    return adj_out * left


@kc.func
def light_tile(x: float, y: float):
    """The tile of a light's screen in which a point lies."""
    i = kc.clamp(int(kc.floor((1.0 - kc.stop_grad(y)) * (0.5 * LIGHT_TILES))), 0, LIGHT_TILES - 1)
    j = kc.clamp(int(kc.floor((kc.stop_grad(x) + 1.0) * (0.5 * LIGHT_TILES))), 0, LIGHT_TILES - 1)
    return i * LIGHT_TILES + j


@kc.func
def sunlight(shadow: Shadow, sunny: int, lamp: int, row: int, position) -> float:
    """How much of a lamp's light comes to a point: Π(1 - cover) over the faces in front of it, as the lamp sees them.

    A face covers what lies behind it as a whole, and fades beyond its edge as exp(-d² / width²). There it must be
    farther in front, or else the faces of a round body would darken each other along their edges.
    """
    rows = shadow.pose.shape[0] // sunny
    r, b = lamp * rows + row, lamp * (rows // BANDS) + row // BANDS
    pose, size = shadow.pose[r], shadow.measure[0]
    x = kc.dot(kc.float3(pose[0], pose[1], pose[2]), position) * size
    y = kc.dot(kc.float3(pose[3], pose[4], pose[5]), position) * size
    here = -kc.dot(kc.float3(pose[6], pose[7], pose[8]), position)
    scale, limit, ahead = shadow.measure[1], shadow.measure[2], shadow.measure[3]
    left = 1.0
    for s in slots_of(shadow.lists, b, light_tile(x, y)):
        e = shadow.lists.edges[b, s]
        d, inside, u, v, w = nearest_boundary(e, x, y)
        if inside or d < limit:
            q, m, h = shadow.triangles.corner[r, s], shadow.triangles.slope[r, s], shadow.triangles.deep[r, s]
            _, _, _, depth = surface_weights(q, m, h, x, y, 0, e[21] == 0.0, u, v, w)
            beyond = 0.0 if inside else squared_distance(q, x, y, u, v, w) * scale
            front = clamp01((here - depth - STEEPEST * shadow.measure[4] * beyond) / ahead - 1.0)
            left = dimmed(left, front * kc.exp(-beyond))
    return light_left(left)


@kc.func
def facing(c, pose, mode: int) -> float:
    """Positive where a face, with corners at c, is seen from its front."""
    a = kc.float3(c[0], c[1], c[2])
    n = kc.cross(kc.float3(c[3], c[4], c[5]) - a, kc.float3(c[6], c[7], c[8]) - a)
    to_eye = kc.float3(pose[6], pose[7], pose[8]) if mode == 2 else kc.float3(pose[9], pose[10], pose[11]) - a
    return kc.stop_grad(kc.dot(n, to_eye))


@kc.func
def lit(albedo, n, position, light: Light, material, row: int, shines: bool, harmonics: bool):
    """The colour of a point in all lights. material is ka, kd, ks, shininess; sky the ambient light, then harmonics."""
    sky, camera = light.sky[row], light.pose[row]
    colour = kc.cw_mul(kc.float3(sky[0], sky[1], sky[2]), albedo) * material[0]
    if harmonics:
        colour = colour + kc.cw_mul(harmonic_light(sky, n), albedo) * material[1]
    to_eye = kc.normalize(kc.float3(camera[9], camera[10], camera[11]) - position)
    for k in range(light.lamps.shape[1]):
        arrives = one_light(
            light.lamps[row, k], albedo, n, position, to_eye, material[1], material[2], material[3], shines
        )
        if light.shadow is not None:
            if k < light.sunny:
                # From a point above the surface: flat faces of round bodies are in their own way otherwise.
                above = position + n * (2.0 * light.shadow.measure[3])
                arrives = arrives * sunlight(light.shadow, light.sunny, k, row, above)
        colour = colour + arrives
    return colour


@functools.cache
def shader(shines: bool, harmonics: bool):
    """The function that lights a point of a slot, for surfaces of one kind; rows are bands (pictures.Surface)."""

    @kc.func
    def shade(surface: Surface, albedo, row, slot, a: float, b: float, c: float):
        """The colour where the corners weigh a, b and c."""
        colour = albedo
        if surface.light is not None:
            light = surface.light
            corners = light.position[row, slot]
            n = kc.normalize(mixed(light.normal[row, slot], a, b, c))
            if light.turned != 0:
                if facing(corners, light.pose[row], light.turned) < 0.0:
                    n = -n
            kind = surface.paint.kinds[face_of(slot, surface.paint.part, surface.paint.kinds.shape[0]), 1]
            place = mixed(corners, a, b, c)
            colour = lit(albedo, n, place, light, light.material[row, kind], row, shines, harmonics)
        return colour

    return shade
