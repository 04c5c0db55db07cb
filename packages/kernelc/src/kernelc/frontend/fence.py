"""What the kernel language does not have: one sentence for each construct of Python that is refused."""

from __future__ import annotations

import ast

REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.AsyncFor: ("`async for` has no meaning in a kernel", "use `for`"),
    ast.AsyncFunctionDef: ("functions cannot be defined inside a kernel", "define it outside with @kc.func"),
    ast.AsyncWith: ("`async with` has no meaning in a kernel", "remove it"),
    ast.Await: ("`await` has no meaning in a kernel", "remove it"),
    ast.ClassDef: ("classes cannot be defined inside a kernel", "define a @kc.struct outside"),
    ast.Delete: ("`del` is not part of the kernel language", "names end with the kernel"),
    ast.Dict: ("dictionaries are not part of the kernel language", "use a @kc.struct"),
    ast.DictComp: ("comprehensions are not part of the kernel language", "write a loop"),
    ast.FunctionDef: ("functions cannot be defined inside a kernel", "define it outside with @kc.func"),
    ast.GeneratorExp: ("generators are not part of the kernel language", "write a loop"),
    ast.Global: ("`global` is not part of the kernel language", "return the value, or write to an array"),
    ast.Import: ("`import` cannot stand inside a kernel", "import at the top of the module"),
    ast.ImportFrom: ("`import` cannot stand inside a kernel", "import at the top of the module"),
    ast.JoinedStr: ("f-strings are not part of the kernel language", "pass the values to print(...) one by one"),
    ast.Lambda: ("lambdas are not part of the kernel language", "define a @kc.func"),
    ast.List: ("lists are not part of the kernel language", "use kc.local(n, T), a vector, or a tuple"),
    ast.ListComp: ("comprehensions are not part of the kernel language", "write a loop"),
    ast.NamedExpr: ("`:=` is not part of the kernel language", "assign on a line of its own"),
    ast.Nonlocal: ("`nonlocal` is not part of the kernel language", "return the value, or write to an array"),
    ast.Raise: ("`raise` is not part of the kernel language", "use `assert`"),
    ast.Set: ("sets are not part of the kernel language", "use kc.local(n, T)"),
    ast.SetComp: ("comprehensions are not part of the kernel language", "write a loop"),
    ast.Slice: (
        "only vectors, matrices and tuples have slices in a kernel",
        "index the elements, or pass a view of the array",
    ),
    ast.Starred: ("`*` unpacking is not part of the kernel language", "name the values one by one"),
    ast.Try: ("`try` is not part of the kernel language", "test for the condition with `if`"),
    ast.With: ("`with` is not part of the kernel language", "remove it"),
    ast.Yield: ("`yield` has no meaning in a kernel", "write it in a @kc.func, and loop over that"),
    ast.YieldFrom: ("`yield from` is not part of the kernel language", "loop, and yield the values one by one"),
}
REFUSED_CONSTANTS: dict[type, tuple[str, str]] = {
    str: ("strings are not part of the kernel language", "only print(...) and the message of an assert take one"),
    bytes: ("bytes are not part of the kernel language", "pass an array of integers"),
    complex: ("complex numbers are not part of the kernel language", "use a kc.float2, or two reals"),
    type(None): ("`None` has no meaning in a kernel", "use a number that stands for it, or a bool beside the value"),
    type(...): ("`...` has no value in a kernel", "write the value"),
}
"""Literals that are no numbers."""
if hasattr(ast, "Match"):
    REFUSED[ast.Match] = ("`match` is not part of the kernel language", "use if/elif")
if hasattr(ast, "TryStar"):
    REFUSED[ast.TryStar] = ("`try` is not part of the kernel language", "test for the condition with `if`")
