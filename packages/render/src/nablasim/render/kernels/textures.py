"""From pictures to texels side by side: what textures are when kernels look things up in them (surface.Textures)."""

import kernelc as kc


@kc.kernel
def expand(picture: kc.Array[float, 4], texels: kc.Array[kc.float4, 3]):
    """Pictures of three or four numbers; what has no fourth is opaque."""
    b, i, j = kc.tid()
    opacity = 1.0
    if picture.shape[3] > 3:
        opacity = picture[b, i, j, 3]
    texels[b, i, j] = kc.float4(picture[b, i, j, 0], picture[b, i, j, 1], picture[b, i, j, 2], opacity)


@kc.func
def overlap(k: int, i: int, count: int, smaller: int) -> float:
    """How much of texel k of `count` lies within texel i of `smaller` ones that cover the same, in texels."""
    ratio = float(count) / float(smaller)
    low, high = max(float(k), float(i) * ratio), min(float(k + 1), float(i + 1) * ratio)
    return max(high - low, 0.0) / ratio


@kc.kernel
def shrink(texels: kc.Array[kc.float4, 3], smaller: kc.Array[kc.float4, 3]):
    """The mean over the texels that each of the smaller picture covers, by area."""
    b, i, j = kc.tid()
    rows, columns = texels.shape[1], texels.shape[2]
    total = kc.float4()
    for r in range(i * rows // smaller.shape[1], min(((i + 1) * rows - 1) // smaller.shape[1] + 1, rows)):
        high = overlap(r, i, rows, smaller.shape[1])
        for c in range(j * columns // smaller.shape[2], min(((j + 1) * columns - 1) // smaller.shape[2] + 1, columns)):
            total = total + texels[b, r, c] * (high * overlap(c, j, columns, smaller.shape[2]))
    smaller[b, i, j] = total


@kc.kernel
def place(texels: kc.Array[kc.float4, 3], first: int, table: kc.Array[kc.float4, 2]):
    """Rows of a picture one after the other, from `first` on; for each frame, or the same for all."""
    b, k = kc.tid()
    columns = texels.shape[2]
    table[b, first + k] = texels[b % texels.shape[0], k // columns, k % columns]
