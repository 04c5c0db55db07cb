"""From tiles to pictures: gather the samples of each pixel, and finish what the loops over faces have summed.

All pictures end here, and here their second derivatives are refused: the rules of coverage.py, and weights that need no
gradient because they move nothing to first order, are right once.
"""

import kernelc as kc
from nablasim.render.kernels.coverage import alpha_of
from nablasim.render.kernels.softras import Sums, relative_weight
from nablasim.render.kernels.triangles import BITS, TILE, face_of
from nablasim.render.kernels.visible import mask_of


@kc.func
def sample_place(i, j, k, sampling, tiles_x):
    """Tile, and place in the tile, of sample k of pixel (i, j)."""
    row, column = i * sampling + k // sampling, j * sampling + k % sampling
    tile = (row >> BITS) * tiles_x + (column >> BITS)
    return tile, ((row & (TILE - 1)) << BITS) + (column & (TILE - 1))


@kc.func
def behind_pixel(background: kc.Array[kc.float3, 3], b, i, j):
    """A picture, or one pixel that stands for all; for each frame, or for all."""
    return background[b % background.shape[0], i % background.shape[1], j % background.shape[2]]


@kc.kernel(curvature=False)
def resolve_alpha(inverse: kc.Array[float, 3], tiles_x: int, sampling: int, image: kc.Array[float, 3]):
    """The mean of 1 - Π(1 - D) over the samples of each pixel."""
    b, i, j = kc.tid()
    total = 0.0
    for k in range(sampling * sampling):
        t, p = sample_place(i, j, k, sampling, tiles_x)
        total += alpha_of(inverse[b, t, p])
    image[b, i, j] = total / float(sampling * sampling)


@kc.kernel(curvature=False)
def resolve_soft(
    sums: Sums,
    top: kc.Array[float, 3],
    background: kc.Array[kc.float3, 3],
    tiles_x: int,
    sampling: int,
    infinity: float,
    sharpness: float,
    composite: int,
    image: kc.Array[kc.float4, 3],
):
    """SoftRas: the weighted mean of the faces' colours and the background's, which weighs as much as something at the
    depth `infinity`; or that of the faces' alone, over the background."""
    b, i, j = kc.tid()
    mean = kc.float4()
    behind = behind_pixel(background, b, i, j)
    for k in range(sampling * sampling):
        t, p = sample_place(i, j, k, sampling, tiles_x)
        alpha = alpha_of(sums.inverse[b, t, p])
        c, w = sums.colour[b, t, p], sums.weight[b, t, p]
        if composite != 0:
            c = c * (alpha / (w if w > 0.0 else 1.0)) + behind * (1.0 - alpha)
        else:
            nearness = (kc.stop_grad(top[b, t, p]) - infinity) * sharpness
            rest = relative_weight(nearness)
            c = (c + behind * rest) / (w + rest)
        mean = mean + kc.float4(c.x, c.y, c.z, alpha)
    image[b, i, j] = mean / float(sampling * sampling)


@kc.kernel(curvature=False)
def resolve_seen(
    colour: kc.Array[kc.float4, 3],
    seen: kc.Array[int, 3],
    left: kc.Array[float, 3],
    masked: int,
    background: kc.Array[kc.float3, 3],
    tiles_x: int,
    sampling: int,
    image: kc.Array[kc.float4, 3],
):
    """The colours of what is seen, as opaque as it is; elsewhere the background with alpha 0, or DIB-R's mask if
    `masked`."""
    b, i, j = kc.tid()
    mean = kc.float4()
    behind = behind_pixel(background, b, i, j)
    for k in range(sampling * sampling):
        t, p = sample_place(i, j, k, sampling, tiles_x)
        if seen[b, t, p] >= 0:
            c = colour[b, t, p]
            clear = 1.0 - c.w
            mean = mean + kc.float4(c.x + behind.x * clear, c.y + behind.y * clear, c.z + behind.z * clear, c.w)
        elif masked != 0:
            mean = mean + kc.float4(behind.x, behind.y, behind.z, mask_of(left[b, t, p]))
        else:
            mean = mean + kc.float4(behind.x, behind.y, behind.z, 0.0)
    image[b, i, j] = mean / float(sampling * sampling)


@kc.kernel(curvature=False)
def resolve_depth(
    depth: kc.Array[float, 3], seen: kc.Array[int, 3], nothing: float, tiles_x: int, sampling: int,
    image: kc.Array[float, 3],
):  # fmt: skip
    """The mean depth of the samples that see something."""
    b, i, j = kc.tid()
    total = 0.0
    count = 0
    for k in range(sampling * sampling):
        t, p = sample_place(i, j, k, sampling, tiles_x)
        if seen[b, t, p] >= 0:
            total += depth[b, t, p]
            count += 1
    image[b, i, j] = total / float(count) if count > 0 else nothing


def mean_kernel(vector: type):
    """The kernel that takes means of vectors of one kind."""

    @kc.kernel(curvature=False)
    def mean_of_seen(
        values: kc.Array[vector, 3], seen: kc.Array[int, 3], unit: float, tiles_x: int, sampling: int,
        image: kc.Array[vector, 3],
    ):  # fmt: skip
        """The mean over the samples that see something, in units: of normals 1, of flow in samples a pixel."""
        b, i, j = kc.tid()
        total = vector()
        count = 0
        for k in range(sampling * sampling):
            t, p = sample_place(i, j, k, sampling, tiles_x)
            if seen[b, t, p] >= 0:
                total = total + values[b, t, p]
                count += 1
        image[b, i, j] = total * (unit / float(max(count, 1)))

    return mean_of_seen


resolve_normals = mean_kernel(kc.float3)
resolve_flow = mean_kernel(kc.float2)


@kc.kernel(curvature=False)
def resolve_index(
    seen: kc.Array[int, 3], part: int, tiles_x: int, sampling: int, numbers: kc.Array[int], image: kc.Array[int, 3]
):
    """numbers[face] of the sample in the middle of each pixel; -1 where it sees nothing."""
    b, i, j = kc.tid()
    t, p = sample_place(i, j, (sampling // 2) * sampling + sampling // 2, sampling, tiles_x)
    s = seen[b, t, p]
    image[b, i, j] = numbers[face_of(s, part, numbers.shape[0])] if s >= 0 else -1
