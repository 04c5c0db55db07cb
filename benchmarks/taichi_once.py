"""Taichi, started once for all cases: `ti.init` forgets every field and kernel that was made before.

Kernels say `ti.loop_config(parallelize=THREADS)`: told of a single thread there, Taichi adds without atomics, also in
its adjoints, and is up to four times faster. That `ti.init` knows the number is not enough.
"""

import os

os.environ.setdefault("TI_LOG_LEVEL", "error")  # it talks while it is imported, too

import taichi as ti

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
ti.init(arch=ti.cpu, cpu_max_num_threads=THREADS, log_level=ti.ERROR)
