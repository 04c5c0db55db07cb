"""Contact of the links of robots with planes: how hard friction holds."""
# mypy: ignore-errors

import kernelc as kc


@kc.kernel
def grips(point: kc.Array[int], light: kc.Array[float], stick: float, grip: kc.Array[float]):
    """How hard friction holds, as a mass: so many times what a point weighs in contacts."""
    r = kc.tid()
    grip[r] = stick / light[point[r]]
