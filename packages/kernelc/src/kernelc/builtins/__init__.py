"""The built-ins as one table of rows (registry.py); scalar rows in scalar.py, compound ones in compound.py."""

from . import compound as _compound  # noqa: F401  (fills the table)
from . import scalar as _scalar  # noqa: F401
from .registry import TABLE, CompoundRow, Row, ScalarRow

__all__ = ["TABLE", "CompoundRow", "Row", "ScalarRow"]
