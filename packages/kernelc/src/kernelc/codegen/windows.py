"""Windows: pointers through which a group of lanes sees its own elements.

In the last group, which may not be full, a window leads to a copy with room for all lanes, zeros in those that are not
there. So no access has to ask whether the group is full: that would be half of the code that the compiler gets to see.
The copies are made by the native core, which calls the kernel for that group alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .. import ir
from ..records import record
from ..types import Type, element_size, leaves
from .layout import Layout
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
                plain = plain and is_whole(s) and not s.logged
                plain = plain and not (isinstance(s, ir.Atomic) and (s.outs or s.kind != "add"))
            # A window is copied in words: what is narrower has none.
            plain = plain and not any(leaf.is_stored for leaf in leaves(s.array.type.element))
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


@record
class WindowCode:
    """Lines of C++: before the loop over groups, at the beginning of its body, and after it."""

    before: list[str]
    opened: list[str]
    after: list[str]
    last: str
    """Where the loop over groups ends."""


def window_code(kernel: ir.Kernel, windows: Windows, width: int, layout: Layout, entry: str) -> WindowCode:
    """The loop goes over full groups; the native core calls the kernel again for the last one (context.h)."""
    if not windows:
        return WindowCode([], [], [], "end")
    rows, before, opened = [], [], []
    for k, ((p, role), written) in enumerate(sorted(windows.items())):
        size, slot = element_size(_element(kernel, p, role)), layout.slots[p]
        rows.append(f"{{{slot.role(role)}, {slot.shape(0)}, {size}, {int(written)}}}")
        before.append(f"    char* const b{p}_{role} = ctx->windows ? ctx->windows[{k}] : a{p}_{role};")
        opened.append(f"        char* const w{p}_{role} = b{p}_{role} + thread * {size};")
    before.append(f"    static const kc_window windows[] = {{{', '.join(rows)}}};")
    before.append(f"    const int64_t last = ctx->windows ? end : end - (end - begin) % {width};")
    again = f"{calls_again(entry)}, block, last, end, ctx, windows, {len(rows)}, {width});"
    return WindowCode(before, opened, [f"    if (last < end) {again}"], "last")


def calls_again(entry: str) -> str:
    """How the text of a kernel names itself: who gives it another name must find it there, too."""
    return f"ctx->tail({entry}"


def _element(kernel: ir.Kernel, p: int, role: str) -> Type:
    array = kernel.params[p].array
    assert array is not None
    return array.partner(role).type.element
