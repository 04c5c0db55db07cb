"""kernelc."""
