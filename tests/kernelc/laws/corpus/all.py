"""Imports every chapter of the corpus."""

from laws.corpus import atomics, functions, loops, memory, programs  # noqa: F401
