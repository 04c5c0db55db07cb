"""Windows: pointers through which a group of lanes sees its own elements.

In the last group, which may not be full, a window leads to a copy with room for all lanes, zeros in those that are not
there. So no access has to ask whether the group is full: that would be half of the code that the compiler gets to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .. import ir
from ..types import Type, element_size
from .uniform import is_divergent

Write = ir.Store | ir.Atomic
Access = ir.Load | Write
Windows = dict[tuple[int, str], bool]
"""By position and role of an array: whether it is written."""


def find_windows(
    kernel: ir.Kernel, varying: set[ir.Value], is_own: Callable[[Access], bool], is_whole: Callable[[Write], bool]
) -> Windows:
    """The arrays that a group may see through a window.

    What is written must be written there only: by all lanes, nowhere else, and without a way out before the copy
    has been put back.
    """
    uses: dict[tuple[int, str], list[tuple[bool, bool]]] = {}
    for s, divergent in _places(kernel.body, varying, False):
        if isinstance(s, ir.Check):
            return {}
        if isinstance(s, Access):
            plain, writes = is_own(s) and not divergent, not isinstance(s, ir.Load)
            if isinstance(s, (ir.Store, ir.Atomic)):
                plain = plain and is_whole(s) and not s.logged and not (isinstance(s, ir.Atomic) and s.outs)
            uses.setdefault((s.array.position, s.array.role), []).append((plain, writes))
    found: Windows = {}
    for key, all_uses in uses.items():
        written, fits = any(w for _, w in all_uses), [p for p, _ in all_uses]
        if kernel.dims == 1 and (all(fits) if written else any(fits)):
            found[key] = written
    return found


def _places(block: ir.Block, varying: set[ir.Value], divergent: bool) -> Iterator[tuple[ir.Stmt, bool]]:
    """Every statement, and whether lanes may be inactive there although the group is full."""
    for s in block.body:
        yield s, divergent
        apart = (isinstance(s, ir.If) and s.cond in varying) or (isinstance(s, ir.Loop) and is_divergent(s, varying))
        for inner in s.blocks():
            yield from _places(inner, varying, divergent or apart)


def window_code(
    *, kernel: ir.Kernel, windows: Mapping[tuple[int, str], bool], width: int
) -> tuple[list[str], list[str], list[str]]:
    """What stands before the loop over groups, at the beginning and at the end of its body."""
    before, opened, read, write = [], [], [], []
    for (p, role), written in sorted(windows.items()):
        size = element_size(_element(kernel, p))
        place, copy, some = f"a{p}_{role} + thread * {size}", f"copy{p}_{role}", f"{size}, left, a{p}_n0 - thread"
        before.append(f"    alignas(64) char {copy}[{-(-width * size // 64) * 64}];")
        opened.append(f"        char* w{p}_{role} = {place};")
        read.append(f"            w{p}_{role} = ctx->copy_in({copy}, {place}, {width}, {some});")
        if written:
            write.append(f"            ctx->copy_out({copy}, {place}, {some});")
    if opened:
        opened += ["        if (KC_UNLIKELY(!full)) {", *read, "        }"]
    closed = ["        if (KC_UNLIKELY(!full)) {", *write, "        }"] if write else []
    return before, opened, closed


def _element(kernel: ir.Kernel, p: int) -> Type:
    array = kernel.params[p].array
    assert array is not None
    return array.type.element
