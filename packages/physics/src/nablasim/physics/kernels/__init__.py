"""The kernels of the physics, one file per system. They are launched by `simulator.py`."""
