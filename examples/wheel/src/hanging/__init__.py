"""A chain that hangs between two points: a small package whose wheel brings its kernels as machine code."""

from hanging.chain import energy, settle

__all__ = ["energy", "settle"]
