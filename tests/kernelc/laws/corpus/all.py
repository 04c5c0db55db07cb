"""Imports every chapter of the corpus."""

from laws.corpus import atomics, bundles, functions, loops, memory, programs, singular  # noqa: F401
