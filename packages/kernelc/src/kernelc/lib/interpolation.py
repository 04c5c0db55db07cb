"""Interpolation between values, and in textures.

A texture is an image: row 0 on top, u to the right, v up, so that v = 0 is the bottom edge of the last row; texel
centres lie at half (u = 0.5 / width is the centre of column 0).
"""

import kernelc as kc


@kc.func
def lerp(a, b, t):
    return a * (1.0 - t) + b * t  # exact at both ends


@kc.func
def smoothstep(low, high, x):
    t = kc.clamp((x - low) / (high - low), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@kc.func
def cell(uv, rows, columns):
    """Row and column of the upper left of the four texels around uv, and how far uv lies between them."""
    x = uv.x * columns - 0.5
    y = (1.0 - uv.y) * rows - 0.5
    return int(kc.floor(y)), int(kc.floor(x)), kc.frac(y), kc.frac(x)


@kc.func
def clamped(i, n):
    return kc.clamp(i, 0, n - 1), kc.clamp(i + 1, 0, n - 1)


@kc.func
def wrapped(i, n):
    return i % n, (i + 1) % n


@kc.func
def blend(upper_left, upper_right, lower_left, lower_right, fy, fx):
    return lerp(lerp(upper_left, upper_right, fx), lerp(lower_left, lower_right, fx), fy)


@kc.func
def texture_clamp(texture, uv):
    i, j, fy, fx = cell(uv, texture.shape[0], texture.shape[1])
    i0, i1 = clamped(i, texture.shape[0])
    j0, j1 = clamped(j, texture.shape[1])
    return blend(texture[i0, j0], texture[i0, j1], texture[i1, j0], texture[i1, j1], fy, fx)


@kc.func
def texture_wrap(texture, uv):
    i, j, fy, fx = cell(uv, texture.shape[0], texture.shape[1])
    i0, i1 = wrapped(i, texture.shape[0])
    j0, j1 = wrapped(j, texture.shape[1])
    return blend(texture[i0, j0], texture[i0, j1], texture[i1, j0], texture[i1, j1], fy, fx)


@kc.func
def texture_channel_clamp(texture, uv, k):
    i, j, fy, fx = cell(uv, texture.shape[0], texture.shape[1])
    i0, i1 = clamped(i, texture.shape[0])
    j0, j1 = clamped(j, texture.shape[1])
    return blend(texture[i0, j0, k], texture[i0, j1, k], texture[i1, j0, k], texture[i1, j1, k], fy, fx)


@kc.func
def texture_channel_wrap(texture, uv, k):
    i, j, fy, fx = cell(uv, texture.shape[0], texture.shape[1])
    i0, i1 = wrapped(i, texture.shape[0])
    j0, j1 = wrapped(j, texture.shape[1])
    return blend(texture[i0, j0, k], texture[i0, j1, k], texture[i1, j0, k], texture[i1, j1, k], fy, fx)
