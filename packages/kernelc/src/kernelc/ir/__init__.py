"""Typed statements of one kernel, with source spans: nodes, a builder, a printer and a verifier."""

from .builder import FALSE, TRUE, Builder, const, is_const
from .fuse import fuse, fuse_adjoint
from .nodes import (
    ArrayRef,
    Atomic,
    Block,
    Call,
    Check,
    Claim,
    Const,
    Custom,
    Gradient,
    If,
    Kernel,
    Load,
    Loop,
    Mark,
    Op,
    Param,
    Pop,
    Print,
    Push,
    Query,
    Recall,
    Record,
    Stmt,
    Store,
    Tape,
    Undo,
    Value,
)
from .prune import prune, prune_block
from .text import kernel_text
from .verify import MalformedIR, verify

__all__ = [
    "FALSE", "TRUE", "ArrayRef", "Atomic", "Block", "Builder", "Call", "Check", "Claim", "Const", "Custom", "Gradient",
    "If", "Kernel", "Load", "Loop", "MalformedIR", "Mark", "Op", "Param", "Pop", "Print", "Push", "Query", "Recall",
    "Record", "Stmt", "Store", "Tape", "Undo", "Value", "const", "fuse", "fuse_adjoint", "is_const", "kernel_text",
    "prune", "prune_block", "verify",
]  # fmt: skip
