"""Kernels that come with a package: they run without a compiler, are what would have been built, and never others."""

import json
import os
import platform
import shutil

import pytest

from kernelc import _native
from kernelc.toolchain.simd import levels

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="looks into /proc")
NAMES = [level.name for level in levels(platform.machine())]
LEVELS = NAMES[: NAMES.index(_native.cpu_level()) + 1]
"""Those of the processor, whatever KERNELC_CPU says: the programs of these tests run without it."""
KERNELS = "springs/_kernels"


@pytest.fixture
def copy(installed, tmp_path):
    """The package once more, to be changed."""
    return shutil.copytree(installed, tmp_path / "site")


@pytest.fixture(scope="module")
def compiled():
    """What comes out where the kernels are compiled; filled by the first test that needs it."""
    return {}


@pytest.fixture
def expected(compiled, installed, run, tmp_path):
    if not compiled:
        sources = shutil.copytree(installed, tmp_path / "sources", ignore=shutil.ignore_patterns("_kernels"))
        compiled.update(run(sources, "springs", compiler=True))
        assert compiled["built"] and not compiled["opened"]
    return compiled["result"]


@pytest.mark.parametrize("level", LEVELS)
def test_without_a_compiler_the_results_are_those_of_a_compiler(installed, run, expected, level):
    answer = run(installed, "springs", KERNELC_CPU=level)
    # The gradients of some arrays come from the adjoint of all, small launches from code thread by thread.
    assert answer["result"] == expected
    assert answer["opened"] == sorted({f"{LEVELS[0]}.so", f"{level}.so"})
    assert answer["built"] == []


def test_the_processor_decides(installed, run):
    assert run(installed, "levels")["result"] == LEVELS
    answer = run(installed, "levels", KERNELC_CPU="pentium")
    assert answer["error"] == "WrongChoice" and LEVELS[0] in answer["advice"]


def test_with_a_compiler_they_are_used_as_well(installed, run):
    answer = run(installed, "debug", compiler=True)
    assert answer["built"] and not answer["opened"]  # debug mode looks at every access: that is other code
    assert run(installed, "undeclared", compiler=True)["result"] == [2.0] * 4


def test_what_is_not_there_is_said(installed, run):
    answer = run(installed, "undeclared")
    assert answer["error"] == "NoCompiler"
    assert "there is no C++ compiler on this machine" in answer["message"]
    assert "springs brings machine code, but none for undeclared" in answer["message"]
    assert "its forward in float32" in answer["message"]
    assert "apt-get install g++" in answer["advice"]
    assert "in debug mode" in run(installed, "debug")["message"]


def test_an_edited_kernel_is_never_run_as_it_was(copy, run, expected):
    source = copy / "springs/kernels/forces.py"
    text = source.read_text()
    source.write_text("# one line more, which changes no kernel\n" + text)
    assert run(copy, "springs")["result"] == expected
    source.write_text(text.replace("kc.length(d) - rest", "kc.length(d) - 2.0 * rest"))
    answer = run(copy, "springs")
    assert answer["error"] == "NoCompiler" and "none for spring_forces" in answer["message"]
    answer = run(copy, "springs", compiler=True)
    assert answer["built"] and answer["result"] != expected


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("machine", "it is for other, and this is linux-"),
        ("format", "it was made by another kernelc"),
        ("index", "index.json is damaged"),
        ("library", "but none for spring_forces"),
    ],
)
def test_what_does_not_fit_the_machine_is_as_if_it_were_not_there(copy, run, damage, said):
    index = copy / KERNELS / "index.json"
    if damage == "index":
        index.write_text("{")
    elif damage == "library":
        for library in index.parent.glob("*.so"):
            library.write_bytes(b"not a library")
    else:
        index.write_text(json.dumps(json.loads(index.read_text()) | {damage: "other"}))
    answer = run(copy, "springs")
    assert answer["error"] == "NoCompiler" and not answer["opened"] and said in answer["message"]


@pytest.mark.parametrize("part", [0.1, 0.4, 0.6])
def test_a_library_that_was_cut_off_is_never_opened(copy, run, part):
    """To map one would end the process where its missing end is touched."""
    for library in (copy / KERNELS).glob("*.so"):
        os.truncate(library, int(part * library.stat().st_size))
    answer = run(copy, "springs")
    assert answer.get("error") == "NoCompiler" and not answer["opened"]
    answer = run(copy, "springs", compiler=True)
    assert answer["built"] and not answer["opened"]


def test_what_is_cut_off_behind_all_code_does_not_matter(copy, run, expected):
    for library in (copy / KERNELS).glob("*.so"):
        os.truncate(library, library.stat().st_size - 100)
    assert run(copy, "springs")["result"] == expected
