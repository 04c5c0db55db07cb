"""Compound built-ins, written in the kernel language itself and differentiated by its compiler.

Each function has one row in kernelc/builtins/compound.py. The modules are imported late, by the row that needs one,
because they are written in the language that they extend. A function has its own adjoint only where its result is
reused or its point is singular.
"""
