"""Values are named after the variables of the source: messages and `kc.explain` speak of what the user wrote."""

import kernelc as kc


@kc.kernel
def flight(velocity: kc.Array[kc.float2], landed: kc.Array[float]):
    i = kc.tid()
    p = kc.float2(0.0, 1.0)
    v = velocity[i]
    while p.y > 0.0:
        v += 0.02 * (kc.float2(0.0, -9.81) - 0.1 * kc.length(v) * v)
        p += 0.02 * v
    landed[i] = p.x


def test_what_is_taped_has_the_name_of_its_variable():
    assert [item.variable for item in kc.explain(flight).taped] == ["v.x", "v.y", "p.y"]
