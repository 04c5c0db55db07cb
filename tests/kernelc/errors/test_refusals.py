"""Programs that are refused: each error names the line, marks the place, says what was found, and what to do.

refusals.txt holds the programs and their errors. The text of an error is compared with what Python prints for it.
"""

import ast
import warnings
from pathlib import Path

import pytest
from messages import expected, load, module_text, refusal, shown

import kernelc as kc
from kernelc.frontend.fence import REFUSED, REFUSED_CONSTANTS


def read(path):
    """The cases of the file: body, kind of error, message, advice, options of module_text."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip("\n").split("\n")
        if not lines[-1].startswith("? "):
            continue
        kind, says = lines[-2].removeprefix("! ").split(": ", 1)
        advice = lines[-1].removeprefix("? ")
        options = {"before": "\n".join(line[2:] for line in lines if line[0] == ">")}
        body = [line for line in lines[:-2] if line[0] != ">"]
        if body[0].startswith("k("):
            options["params"] = body.pop(0)[2:-1]
        plain = " ".join("\n".join(body).replace("«", "").replace("»", "").split())
        yield pytest.param("\n".join(body), getattr(kc, kind), says, advice, options, id=plain)


def load_quietly(folder, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # Python warns of some of them, too
        return load(folder, text)


@pytest.mark.parametrize(
    ("body", "kind", "says", "advice", "options"), [*read(Path(__file__).with_name("refusals.txt"))]
)
def test_what_is_refused_is_explained(body, kind, says, advice, options, tmp_path):
    text = module_text(body, **options)
    module = load_quietly(tmp_path, text)
    error = refusal(module)
    assert shown(error) == expected(module.__file__, text, kind, says, advice)
    assert type(error) is kind
    assert isinstance(error, (kc.KernelError, SyntaxError))
    assert str(error) == f"[{kind.code}] {says} ({module.__file__}:{error.lineno})"
    assert (error.code, error.advice, error.filename) == (kind.code, advice, module.__file__)
    assert advice, "what to do?"


# -- constructs of Python that the kernel language does not have
CONSTRUCTS = {
    ast.AsyncFunctionDef: "«async def g():»\n    pass",
    ast.ClassDef: "«class C:»\n    pass",
    ast.Delete: "y = 1.0\n«del y»",
    ast.Dict: "y = «{1: 2}»",
    ast.DictComp: "y = «{k: k for k in range(3)}»",
    ast.FunctionDef: "«def g():»\n    pass",
    ast.GeneratorExp: "y = sum«(k for k in range(3))»",
    ast.Global: "«global gravity»",
    ast.Import: "«import math»",
    ast.ImportFrom: "«from math import sin»",
    ast.JoinedStr: 'y = «f"{n}"»',
    ast.Lambda: "y = «lambda a: a»",
    ast.List: "y = «[1, 2]»",
    ast.ListComp: "y = «[k for k in range(3)]»",
    ast.NamedExpr: "out[i] = («y := x[i]») * 2.0",
    ast.Raise: "«raise ValueError»",
    ast.Set: "y = «{1, 2}»",
    ast.SetComp: "y = «{k for k in range(3)}»",
    ast.Slice: "y = x[«0:2»]",
    ast.Starred: "a, «*b» = (1, 2, 3)",
    ast.Try: "«try:»\n    pass\nfinally:\n    pass",
    ast.With: "«with kc.Tape():»\n    pass",
    ast.Match: "«match n:»\n    case 1:\n        pass",
}
# What only stands in functions of other kinds cannot even be parsed where a kernel is, or makes it another kind.
ELSEWHERE = {ast.AsyncFor, ast.AsyncWith, ast.Await, ast.Nonlocal, ast.Yield, ast.YieldFrom}
NEWER = {getattr(ast, name) for name in ("TryStar",) if hasattr(ast, name)}


@pytest.mark.parametrize("node", CONSTRUCTS, ids=lambda node: node.__name__)
def test_each_construct_is_named(node, tmp_path):
    text = module_text(CONSTRUCTS[node])
    module = load_quietly(tmp_path, text)
    says, advice = REFUSED[node]
    assert shown(refusal(module)) == expected(module.__file__, text, kc.Unsupported, says, advice)


def test_every_construct_is_tested():
    assert set(REFUSED) == {*CONSTRUCTS, *ELSEWHERE, *NEWER}


@pytest.mark.parametrize(("body", "kind"), [("«yield n»", ast.Yield), ("y = «yield from x»", ast.YieldFrom)])
def test_a_generator_is_no_kernel(body, kind, tmp_path):
    text = module_text(body)
    module = load_quietly(tmp_path, text)
    says, advice = REFUSED[kind]
    assert shown(refusal(module)) == expected(module.__file__, text, kc.Unsupported, says, advice)


@pytest.mark.skipif(not hasattr(ast, "TryStar"), reason="from Python 3.11 on")
def test_exception_groups_are_named(tmp_path):
    text = module_text("«try:»\n    pass\nexcept* ValueError:\n    pass")
    module = load_quietly(tmp_path, text)
    assert shown(refusal(module)) == expected(module.__file__, text, kc.Unsupported, *REFUSED[ast.Try])


@pytest.mark.parametrize("constant", ['"text"', 'b"text"', "1j", "None", "..."])
def test_each_constant_is_named(constant, tmp_path):
    text = module_text(f"y = «{constant}»")
    module = load_quietly(tmp_path, text)
    says, advice = REFUSED_CONSTANTS[type(ast.literal_eval(constant))]
    assert shown(refusal(module)) == expected(module.__file__, text, kc.Unsupported, says, advice)
