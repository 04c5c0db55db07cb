"""What the sun sees: cameras of directional lights, and the measure of their screens (surface.Shadow).

A light's screen is centred at the origin, and as large as a power of two: a frame has the same bits in every batch.
"""

import kernelc as kc

FADED = 9.21
"""Where exp(-d² / width²) is 1e-4, in squared widths: there a shadow ends."""


@kc.kernel
def aim(lamps: kc.Array[kc.vec(10), 2], frames: int, pose: kc.Array[kc.vec(12)]):
    """The axes of each light's camera: row k frames + b for light k in frame b.

    How it is turned about the direction of the light does not matter: what is measured on its screen are distances.
    """
    k, b = kc.tid()
    lamp = lamps[b % lamps.shape[0], k]
    back = kc.normalize(kc.float3(lamp[1], lamp[2], lamp[3]))
    side = kc.float3(1.0, 0.0, 0.0)
    if kc.abs(back.x) > 0.6:
        side = kc.float3(0.0, 1.0, 0.0)
    right = kc.normalize(kc.cross(side, back))
    up = kc.cross(back, right)
    pose[k * frames + b] = kc.vec(12)(
        right.x, right.y, right.z, up.x, up.y, up.z, back.x, back.y, back.z, 0.0, 0.0, 0.0
    )  # fmt: skip


@kc.kernel(lanes=0)
def measure_lights(
    view: kc.Array[kc.float3, 2],
    width: float,
    bias: float,
    lens: kc.Array[kc.vec(11)],
    measure: kc.Array[float],
    reach: kc.Array[float],
):
    """One thread: lenses that show all vertices, and what surface.Shadow says of `measure`; without a gradient, because
    it cancels."""
    t = kc.tid()
    largest = 0.0
    for b in range(view.shape[0]):
        for v in range(view.shape[1]):
            p = kc.stop_grad(view[b, v])
            largest = max(largest, kc.abs(p.x), kc.abs(p.y))
    size = 1.0
    for _ in range(100):
        if largest * size > 1.0:
            size = size * 0.5
        elif largest * size < 0.5 and largest > 0.0:
            size = size * 2.0
    for b in range(view.shape[0]):
        lens[b] = kc.vec(11)(size, size, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    soft = width * size
    measure[0] = size
    measure[1] = 1.0 / max(soft * soft, 1e-24)
    measure[2] = FADED * soft * soft
    measure[3] = bias
    measure[4] = width
    reach[t] = kc.sqrt(FADED) * soft
