"""Objects made of particles: springs, soft solids, cloth, and what acts on them.

Each law is a pair of files: its system, and its kernels.
"""
