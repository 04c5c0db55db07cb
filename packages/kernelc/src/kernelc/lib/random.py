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
