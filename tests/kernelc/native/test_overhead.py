"""What a launch costs before its kernel does anything. Targets: 0.3 us from Python, 0.1 us as a step of a program."""

from __future__ import annotations

import resource
import timeit

import pytest

from kernelc import _native


def seconds(function, number):
    return min(timeit.repeat(function, number=number, repeat=7)) / number


def test_a_launch_costs_less_than_a_third_of_a_microsecond(entry):
    nothing, launch, words = entry("nothing"), _native.launch, bytes(64)
    assert seconds(lambda: launch(nothing, words, 1, True), 20_000) < 0.3e-6


def test_a_step_costs_less_than_a_tenth_of_a_microsecond(entry):
    program = _native.Program()
    for _ in range(1000):
        program.add_launch(entry("nothing"), bytes(64), 1, True, None)
    assert seconds(program.run, 20) / 1000 < 0.1e-6


def test_the_header_adds_next_to_nothing_to_a_build(compile_cpp, tmp_path):
    source = tmp_path / "empty.cpp"

    def compile_text(text):
        source.write_text(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        compile_cpp("-fsyntax-only", source)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    with_header = min(compile_text('#include "kernelc/context.h"\n') for _ in range(3))
    assert with_header - min(compile_text("") for _ in range(3)) < 0.05


@pytest.mark.parametrize(("language", "std"), [("c++", "c++17"), ("c++", "c++20"), ("c", "c99"), ("c", "c17")])
def test_the_header_is_plain_c(compile_cpp, tmp_path, language, std):
    source = tmp_path / "header"
    source.write_text('#include "kernelc/context.h"\n')
    compile_cpp("-fsyntax-only", "-Wpedantic", "-Wno-unused-function", "-x", language, source, std=std)
