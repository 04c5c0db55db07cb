"""Kernels on a GPU: the driver, its memory, launches."""
