"""Folders with letters that the locale does not know, or with line breaks: of the cache, and of the user's sources."""

from __future__ import annotations

import os
import sys

import pytest

from kernelc.config import config
from kernelc.errors import CacheNotWritable, CompilerFailed, ToolchainError
from kernelc.toolchain import build, compiler

build_module = sys.modules["kernelc.toolchain.build"]  # the package exports the function under this name
USER = """\
import numpy as np
import kernelc as kc

@kc.kernel
def halve(x: kc.Array[float], y: kc.Array[float]):
    y[kc.tid()] = 0.5 * x[kc.tid()]

y = np.zeros(3, np.float32)
kc.launch(halve, 3, [np.ones(3, np.float32)], [y])
print(y.tolist())
"""
FROM_FILE = "import runpy, sys; runpy.run_path(sys.argv[1])"


@pytest.fixture
def run(process, tmp_path):
    """What the user's script prints, if it lies in a folder of that name."""

    def start(folder="plain"):
        (tmp_path / folder).mkdir(exist_ok=True)
        user = tmp_path / folder / "user.py"
        user.write_text(USER)
        return process(FROM_FILE, str(user)).communicate()[0]

    return start


@pytest.mark.parametrize("name", ["wärme", "熱", "latin\udce4"])
def test_a_cache_whose_name_the_locale_does_not_know(use_cache, tmp_path, run, monkeypatch, name):
    for variable, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(variable, value)
    use_cache(tmp_path / name)
    assert run() == run(name) == "[0.5, 0.5, 0.5]\n"


def test_a_library_that_cannot_be_opened_is_named_in_any_letters():
    from kernelc import _native

    for name in ("wärme", "latin\udce4"):
        with pytest.raises(OSError, match=f"/no/{name}.so"):
            _native.open_library(os.fsencode(f"/no/{name}.so"))


def test_sources_may_lie_in_a_folder_with_a_line_break(root, run):
    assert run("new\nline") == run("re\rturn") == "[0.5, 0.5, 0.5]\n"


def test_a_compiler_error_points_there(root, tmp_path):
    user = tmp_path / "new\nline" / "user.py"
    user.parent.mkdir()
    user.write_text(USER)
    marked = str(user).replace("\n", "\\n")
    with pytest.raises(CompilerFailed) as caught:
        build(f'#line 6 "{marked}"\nint x = missing;\n', name="k")
    assert (caught.value.filename, caught.value.lineno) == (str(user), 6)
    assert "missing" in str(caught.value)


@pytest.mark.parametrize("name", ["a\nb", "a\rb"])
def test_a_cache_with_a_line_break_is_refused(tmp_path, text, name):
    before = config.cache_dir
    config.cache_dir = tmp_path / name
    try:
        with pytest.raises(CacheNotWritable, match="line break in its name") as caught:
            build(text(1), name="k")
        assert "set KERNELC_CACHE_DIR to a folder without one" in caught.value.advice
        assert not config.cache_dir.exists()
    finally:
        config.cache_dir = before


def test_headers_in_a_folder_with_a_line_break_are_refused(root, text, tmp_path, monkeypatch):
    from dataclasses import replace

    monkeypatch.setattr(build_module, "compiler", lambda: replace(compiler(), include=tmp_path / "a\nb"))
    with pytest.raises(ToolchainError, match=r"there is a line break in '-I.*which Ninja cannot take"):
        build(text(1), name="k")
