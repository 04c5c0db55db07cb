"""IR → text (C++, CUDA), and the layout of the argument block."""

from .cpp import HEADER, Code, Site, emit, label
from .cuda import DEVICE_HEADER, Counted, claims, emit_cuda, runs_in_order
from .lanes import emit_lanes, header, uses_math
from .layout import SPECIAL, UNASKED, Layout, Slot, layout, pack_scalar, packer
from .needs import Launch, Need, counted_for, frame_size, largest_frame, need_of
from .ownership import (
    first_arrays,
    is_parallel,
    is_parallel_by_rows,
    strip_arrays,
    taken_arrays,
    watched_arrays,
)
from .uniform import lanes_refused
from .windows import calls_again

__all__ = [
    "DEVICE_HEADER", "HEADER", "SPECIAL", "UNASKED", "Code", "Counted", "Launch", "Layout", "Need", "Site", "Slot",
    "calls_again", "claims", "counted_for", "emit", "emit_cuda", "emit_lanes", "first_arrays", "frame_size",
    "header", "is_parallel", "is_parallel_by_rows", "label", "lanes_refused", "largest_frame", "layout", "need_of",
    "pack_scalar", "packer", "runs_in_order", "strip_arrays", "taken_arrays", "uses_math", "watched_arrays",
]  # fmt: skip
