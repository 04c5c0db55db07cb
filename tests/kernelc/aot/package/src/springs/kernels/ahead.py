"""Which kernels the package brings."""

from kernelc import aot
from springs.kernels import forces

AHEAD = [
    *aot.kernels(forces.spring_forces, forces.limited, forces.count, forces.powers(2)),
    *aot.kernels(forces.powers(3), lanes=False),
]
