"""Rigid bodies: their motion, their surfaces, and what acts on them. A pair of files each: system and kernels."""
