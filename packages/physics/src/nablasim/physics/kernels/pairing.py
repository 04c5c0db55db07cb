"""How the contact numbers [ke, kd, kf, mu] of two things that touch become those of the contact.

A number below zero was not given. One that only one of the two has holds; if both have it, ke, kd and kf are those of
two layers one upon the other, a b / (a + b), and mu is the geometric mean, sqrt(a b).
"""

import kernelc as kc


@kc.func
def in_series(a: float, b: float) -> float:
    """Of two springs, or dampers, that carry the same force."""
    both = max(a, b)
    if a >= 0.0 and b >= 0.0:
        both = a * b / (a + b) if a + b > 0.0 else 0.0
    return both


@kc.func
def mean_friction(a: float, b: float) -> float:
    both = max(a, b)
    if a >= 0.0 and b >= 0.0:
        both = kc.sqrt(a * b)
    return both


@kc.func
def paired(a: kc.float4, b: kc.float4) -> kc.float4:
    return kc.float4(in_series(a.x, b.x), in_series(a.y, b.y), in_series(a.z, b.z), mean_friction(a.w, b.w))


@kc.kernel
def join_four(
    ke: kc.Array[float],
    kd: kc.Array[float],
    kf: kc.Array[float],
    mu: kc.Array[float],
    four: kc.Array[kc.float4],
):
    """What an object was given, side by side."""
    i = kc.tid()
    four[i] = kc.float4(ke[i], kd[i], kf[i], mu[i])


@kc.kernel
def pair_with_body(
    ke: kc.Array[float],
    kd: kc.Array[float],
    kf: kc.Array[float],
    mu: kc.Array[float],
    body: kc.Array[int],
    of_body: kc.Array[kc.float4],
    four: kc.Array[kc.float4],
):
    """Of a contact between a body and something else, whose numbers stand in the row."""
    r = kc.tid()
    four[r] = paired(kc.float4(ke[r], kd[r], kf[r], mu[r]), of_body[body[r]])
