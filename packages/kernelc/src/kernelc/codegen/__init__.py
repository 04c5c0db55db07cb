"""IR → text (C++), and the layout of the argument block."""

from .cpp import HEADER, Code, Site, emit
from .layout import Layout, Slot, layout, pack_scalar
from .ownership import is_parallel

__all__ = ["HEADER", "Code", "Layout", "Site", "Slot", "emit", "is_parallel", "layout", "pack_scalar"]
