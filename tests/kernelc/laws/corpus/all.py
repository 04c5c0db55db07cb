"""Imports every chapter of the corpus."""

from laws.corpus import atomics, bundles, functions, loops, memory, parts, programs, singular  # noqa: F401
