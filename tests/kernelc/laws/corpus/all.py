"""Imports every chapter of the corpus."""

from laws.corpus import atomics, bundles, functions, loops, memory, parts, programs, singular, storage  # noqa: F401
