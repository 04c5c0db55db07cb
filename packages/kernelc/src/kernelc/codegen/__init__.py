"""IR → text (C++), and the layout of the argument block."""

from .cpp import HEADER, Code, Site, emit, label
from .lanes import emit_lanes, lanes_header
from .layout import Layout, Slot, layout, pack_scalar, packer
from .ownership import (
    first_arrays,
    is_parallel,
    is_parallel_by_rows,
    strip_arrays,
    taken_arrays,
    watched_arrays,
)
from .uniform import lanes_refused

__all__ = [
    "HEADER", "Code", "Layout", "Site", "Slot", "emit", "emit_lanes", "first_arrays", "is_parallel",
    "is_parallel_by_rows", "label", "lanes_header", "lanes_refused", "layout", "pack_scalar", "packer", "strip_arrays",
    "taken_arrays", "watched_arrays",
]  # fmt: skip
