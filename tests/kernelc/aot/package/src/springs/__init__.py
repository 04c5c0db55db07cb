"""A package that needs what a machine that builds wheels does not have: building must not run this file."""

import sys

if "kernelc._native" in sys.modules and not hasattr(sys.modules["kernelc._native"], "launch"):
    raise ImportError("springs was imported while its kernels were being generated")
