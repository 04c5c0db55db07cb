"""Random numbers from counters: no state, so that an adjoint that replays a loop draws the same numbers.

`rand(seed, i, k)`: one stream per seed, `i` usually the thread, `k` the draw.
"""

import kernelc as kc


@kc.func
def mix(seed, i, k):
    """pcg3d of Jarzynski and Olano, Hash Functions for GPU Rendering (JCGT 2020): two of its well mixed words."""
    x = kc.uint32(seed) * 1664525 + 1013904223
    y = kc.uint32(i) * 1664525 + 1013904223
    z = kc.uint32(k) * 1664525 + 1013904223
    x = x + y * z
    y = y + z * x
    z = z + x * y
    x = x ^ (x >> 16)
    y = y ^ (y >> 16)
    z = z ^ (z >> 16)
    x = x + y * z
    y = y + z * x
    return x, y


@kc.func
def unit(word):
    """The upper 24 bits as a number in [0, 1): exact in float32 and in float64, so that both see the same number."""
    return float(word >> 8) * (1.0 / 16777216.0)


@kc.func
def rand(seed, i, k):
    x, _ = mix(seed, i, k)
    return unit(x)


@kc.func
def randn(seed, i, k):
    """Box and Muller (1958); 1 - u is in (0, 1]."""
    x, y = mix(seed, i, k)
    return kc.sqrt(-2.0 * kc.log(1.0 - unit(x))) * kc.cos(6.283185307179586 * unit(y))


@kc.func
def fade(t):
    """Perlin's blend from 0 to 1, whose first and second derivatives vanish at both ends (SIGGRAPH 2002)."""
    return t * t * t * (t * (t * 6.0 - 15.0) + 10.0)


@kc.func
def slope1(seed, i, x):
    u, _ = mix(seed, i, 0)
    return (2.0 * unit(u) - 1.0) * x


@kc.func
def slope2(seed, i, j, x, y):
    u, _ = mix(seed, i, j)
    turn = 6.283185307179586 * unit(u)
    return kc.cos(turn) * x + kc.sin(turn) * y


@kc.func
def slope3(seed, i, j, k, x, y, z):
    """A direction that is uniform on the sphere."""
    u, v = mix(kc.uint32(seed) ^ (kc.uint32(k) * 1640531527), i, j)
    turn = 6.283185307179586 * unit(u)
    up = 2.0 * unit(v) - 1.0
    return kc.sqrt(1.0 - up * up) * (kc.cos(turn) * x + kc.sin(turn) * y) + up * z


@kc.func
def blend(a, b, t):
    return a + (b - a) * t


@kc.func
def noise1(seed, p):
    i = int(kc.floor(p))
    x = p - kc.floor(p)
    return 2.0 * blend(slope1(seed, i, x), slope1(seed, i + 1, x - 1.0), fade(x))


@kc.func
def noise2(seed, p):
    i, j = int(kc.floor(p.x)), int(kc.floor(p.y))
    x, y = p.x - kc.floor(p.x), p.y - kc.floor(p.y)
    low = blend(slope2(seed, i, j, x, y), slope2(seed, i + 1, j, x - 1.0, y), fade(x))
    high = blend(slope2(seed, i, j + 1, x, y - 1.0), slope2(seed, i + 1, j + 1, x - 1.0, y - 1.0), fade(x))
    return 1.4142135623730951 * blend(low, high, fade(y))


@kc.func
def layer(seed, i, j, k, x, y, z):
    """The blend of four corners of a cell that lie at one height."""
    low = blend(slope3(seed, i, j, k, x, y, z), slope3(seed, i + 1, j, k, x - 1.0, y, z), fade(x))
    high = blend(slope3(seed, i, j + 1, k, x, y - 1.0, z), slope3(seed, i + 1, j + 1, k, x - 1.0, y - 1.0, z), fade(x))
    return blend(low, high, fade(y))


@kc.func
def noise3(seed, p):
    i, j, k = int(kc.floor(p.x)), int(kc.floor(p.y)), int(kc.floor(p.z))
    x, y, z = p.x - kc.floor(p.x), p.y - kc.floor(p.y), p.z - kc.floor(p.z)
    low, high = layer(seed, i, j, k, x, y, z), layer(seed, i, j, k + 1, x, y, z - 1.0)
    return 1.1547005383792515 * blend(low, high, fade(z))
