"""What a point of a triangle looks like: where it is, what is painted there, and how it is lit.

Functions for kernels. Weights are those of a triangle's three corners; arrays with a row per band hold what the corners
have (coverage.py says what bands are).
"""

import functools

import kernelc as kc
from nablasim.render.kernels.coverage import clamp01


@kc.struct
class Light:
    """What lights a surface: normals and positions of corners, the camera, the sky, what surfaces reflect, lamps."""

    normal: kc.Array[kc.vec(9), 2]
    position: kc.Array[kc.vec(9), 2]
    pose: kc.Array[kc.vec(12)]
    sky: kc.Array[kc.vec(30)]
    material: kc.Array[kc.float4]
    lamps: kc.Array[kc.vec(10), 2]


@kc.struct
class Surface:
    """Colours of corners, or a texture and where corners are on it; and light, without which these are what is seen."""

    paint: kc.Array[kc.vec(9), 2] | None
    uv: kc.Array[kc.vec(6), 2] | None
    texture: kc.Array[kc.float3, 2] | None
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


@kc.func
def lit(albedo, n, position, light: Light, row, shines: bool, harmonics: bool):
    """The colour of a point in all lights. material is ka, kd, ks, shininess; sky the ambient light, then harmonics."""
    n = kc.normalize(n)
    sky, material, camera = light.sky[row], light.material[row], light.pose[row]
    colour = kc.cw_mul(kc.float3(sky[0], sky[1], sky[2]), albedo) * material[0]
    if harmonics:
        colour = colour + kc.cw_mul(harmonic_light(sky, n), albedo) * material[1]
    to_eye = kc.normalize(kc.float3(camera[9], camera[10], camera[11]) - position)
    for k in range(light.lamps.shape[1]):
        colour = colour + one_light(
            light.lamps[row, k], albedo, n, position, to_eye, material[1], material[2], material[3], shines
        )
    return colour


@functools.cache
def shader(wrapped: bool, shines: bool, harmonics: bool):
    """The function that colours a point of a slot, for surfaces of one kind; rows are bands (pictures.Surface)."""

    @kc.func
    def shade(surface: Surface, row, slot, a: float, b: float, c: float):
        """The colour where the corners weigh a, b and c."""
        if surface.texture is not None:
            at = mixed_uv(surface.uv[row, slot], a, b, c)
            colour = kc.texture_wrap(surface.texture, at) if wrapped else kc.texture_clamp(surface.texture, at)
        else:
            colour = mixed(surface.paint[row, slot], a, b, c)
        if surface.light is not None:
            n = mixed(surface.light.normal[row, slot], a, b, c)
            place = mixed(surface.light.position[row, slot], a, b, c)
            colour = lit(colour, n, place, surface.light, row, shines, harmonics)
        return colour

    return shade
