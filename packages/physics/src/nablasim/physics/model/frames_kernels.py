"""Kernels that look at frames of rollouts on a tape of kernelc: copies of a batch one by one, corners of bodies."""
# mypy: ignore-errors

import kernelc as kc


def apart(element):
    """(frames, copies, rows) of elements as (copies, frames, rows)."""

    @kc.kernel
    def copies_first(frames: kc.Array[element, 3], copies: kc.Array[element, 3]):
        c, f, r = kc.tid()
        copies[c, f, r] = frames[f, c, r]

    return copies_first


COPIES_FIRST = {(): apart(float), (3,): apart(kc.float3), (4,): apart(kc.quat)}
"""By the shape of an element."""


@kc.kernel
def corners(x: kc.Array[kc.float3], rot: kc.Array[kc.quat], points: kc.Array[kc.float3], out: kc.Array[kc.float3, 2]):
    """Where the points of a body are in each of its frames."""
    f, i = kc.tid()
    out[f, i] = x[f] + kc.quat_rotate(rot[f], points[i])


@kc.kernel
def corners_of_copies(
    x: kc.Array[kc.float3, 2], rot: kc.Array[kc.quat, 2], points: kc.Array[kc.float3], out: kc.Array[kc.float3, 3]
):
    """The same of a batch."""
    c, f, i = kc.tid()
    out[c, f, i] = x[c, f] + kc.quat_rotate(rot[c, f], points[i])
