"""Losses on the tape: how far a simulation is from what was seen."""

import kernelc as kc


@kc.kernel
def squared_distance(
    x: kc.Array[kc.float3],
    marks: kc.Array[int],
    seen: kc.Array[kc.float3],
    weight: float,
    loss: kc.Array[float],
):
    """Add weight |x[marks[i]] - seen[i]|² to loss[0]."""
    i = kc.tid()
    d = x[marks[i]] - seen[i]
    kc.atomic_add(loss, 0, weight * kc.dot(d, d))


def add_squared_distance(
    loss: kc.Array, x: kc.Array, *, marks: kc.Array, seen: kc.Array, weight: float
) -> None:
    """Add the squared distance of the tracked particles `marks` to where they were `seen`, times weight, to loss[0]."""
    kc.launch(squared_distance, dim=marks.shape[0], inputs=[x, marks, seen, weight], outputs=[loss])
