"""`kc.grad(f)(…)` inside of kernels becomes statements, which can be differentiated again.

The gradient of a loop goes back through it by a loop tape, and the reverse of that would need the tape once more. But
the Jacobian of a gradient is symmetric: its transpose is the gradient pushed forward, which goes along with the tape.
"""

from __future__ import annotations

from .. import ir
from .clone import Names, fresh, inline, name
from .forward import tangent_block
from .reverse import gradient_block


def expand_gradients(kernel: ir.Kernel, *, singular: str = "zero") -> ir.Kernel:
    """Replace every `kc.grad(f)(…)` by statements, or by the call of a function where loops are kept on a tape."""
    _expand(kernel.body, singular)
    return ir.verify(kernel)


def _expand(block: ir.Block, singular: str) -> None:
    out: list[ir.Stmt] = []
    for stmt in block.body:
        for inner in stmt.blocks():
            _expand(inner, singular)
        if isinstance(stmt, ir.Call) and not stmt.function.symmetric:
            _expand(stmt.function.body, singular)
            _expand(stmt.function.adjoint, singular)
        if not isinstance(stmt, ir.Gradient):
            out.append(stmt)
            continue
        _expand(stmt.block, singular)
        out.extend(_gradient(stmt, singular))
    block.body[:] = out


def _gradient(stmt: ir.Gradient, singular: str) -> list[ir.Stmt]:
    slopes = gradient_block(stmt.block, singular)
    pushes = any(isinstance(s, ir.Push) for s in slopes.walk())
    # A rule of the user's need not be the derivative of anything: then nothing is symmetric.
    if pushes and not any(isinstance(s, ir.Call) and not s.function.symmetric for s in stmt.block.walk()):
        own = _copy(slopes)
        function = ir.Custom("gradient", own, tangent_block(_copy(slopes), singular), symmetric=True)
        return [ir.Call(stmt.outs, function, stmt.args, stmt.span)]
    b = ir.Builder(ir.Block(), stmt.span)
    for value, result in zip(stmt.outs, inline(b, slopes, list(stmt.args)), strict=True):
        # Give the result the name that the rest of the kernel uses.
        b.emit(ir.Op(value, "select", (ir.TRUE, result, result), stmt.span))
    return b.block.body


def _copy(block: ir.Block) -> ir.Block:
    """The same block with values of its own."""
    m: Names = {}
    b = ir.Builder()
    params = fresh(block.params, m)
    yields = inline(b, block, params)
    b.block.params, b.block.yields = params, name(yields, m)
    return b.block
