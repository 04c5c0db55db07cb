"""The kernel of studies: energies with weights, as one number that can be differentiated."""
# mypy: ignore-errors

import kernelc as kc


@kc.kernel
def weigh(energy: kc.Array[float], weight: kc.Array[float], total: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(total, 0, energy[i] * weight[i])
