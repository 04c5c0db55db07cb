"""The kernels of the physics, one file per system. They are launched by `systems/`.

Precision is that of the arrays passed. Each kernel writes memory of its own, or adds to sums.
"""
