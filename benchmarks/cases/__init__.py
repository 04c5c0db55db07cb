"""One package per case: what the work is, and a module for every peer that does it."""
