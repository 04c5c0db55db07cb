"""The header that native code shares with kernels: plain C, and light."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("language", "std"), [("c++", "c++17"), ("c++", "c++20"), ("c", "c99"), ("c", "c17")])
def test_the_header_is_plain_c(compile_cpp, tmp_path, language, std):
    source = tmp_path / "header"
    source.write_text('#include "kernelc/context.h"\n')
    compile_cpp("-fsyntax-only", "-Wpedantic", "-Wno-unused-function", "-x", language, source, std=std)


def test_the_header_brings_little(compile_cpp, tmp_path):
    """A kernel must compile in a moment: nothing of the C++ library, and few lines of C's."""
    source, expanded = tmp_path / "light.cpp", tmp_path / "light.ii"
    source.write_text('#include "kernelc/context.h"\n')
    compile_cpp("-E", "-P", "-o", expanded, source)
    text = expanded.read_text()
    assert "kc_context" in text and "std::" not in text
    assert len(text.splitlines()) < 1500
