"""The kernels of the package."""
