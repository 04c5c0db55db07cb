"""KERNELC_CPU: which instructions kernels are compiled to, and what is said where a processor does not have them."""

from __future__ import annotations

import json
import platform

import pytest

from kernelc import _native
from kernelc.toolchain.simd import levels

NAMES = [level.name for level in levels(platform.machine())]
OWN = NAMES[: NAMES.index(_native.cpu_level()) + 1]
"""What the processor has, whatever KERNELC_CPU leaves of it to these tests."""
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have one level")

SCRIPT = """
import json, sys
import kernelc as kc
from kernelc.toolchain import build, compiler, simd

TEXT = '''extern "C" __attribute__((visibility("default"))) long answer() {
#if defined(__AVX512F__)
    return 512;
#elif defined(__AVX2__)
    return 256;
#else
    return 128;
#endif
}
'''
try:
    library = build(TEXT, name="k")
    import ctypes
    print(json.dumps([simd().bytes * 8, ctypes.CDLL(str(library)).answer(), library.parent.name]))
except kc.KernelError as error:
    print(json.dumps([type(error).__name__, error.message, error.advice]))
"""


@pytest.fixture
def compiled(root, process, monkeypatch):
    """Bits of the vector unit, what the compiler was allowed to use and the key, with KERNELC_CPU as given."""

    def run(level):
        monkeypatch.setenv("KERNELC_CPU", level)
        said = process(SCRIPT).communicate()[0]
        return json.loads(said)

    return run


@on_x86
def test_it_chooses_the_instructions_and_the_width(compiled):
    bits = {"baseline": 128, "avx2": 256, "avx512": 512}
    found = {level: compiled(level) for level in OWN}
    assert {level: (wide, used) for level, (wide, used, _) in found.items()} == {n: (bits[n], bits[n]) for n in OWN}
    keys = [key for _, _, key in found.values()] + [compiled("native")[2]]
    assert len(set(keys)) == len(OWN) + 1, "each level has an entry of its own in the cache"


def test_native_is_what_is_done_without_it(compiled):
    assert compiled("native") == compiled("") == compiled(" native ")


def test_a_processor_that_nobody_knows_is_refused(compiled):
    kind, message, advice = compiled("pentium")
    assert kind == "WrongChoice" and "KERNELC_CPU=pentium" in message and "names no kind of processor" in message
    assert advice == f"choose one of native, {', '.join(OWN)}, or unset it"


@on_x86
@pytest.mark.skipif(len(OWN) == 3, reason="this processor has all levels")
def test_what_this_processor_lacks_is_refused(compiled):
    kind, message, advice = compiled("avx512")
    assert kind == "WrongChoice"
    assert f"nothing that this processor can run: it has {OWN[-1]} at most" in message
    assert advice == f"choose one of native, {', '.join(OWN)}, or unset it"


def test_every_architecture_has_a_baseline():
    assert [level.name for level in levels("x86_64")] == ["baseline", "avx2", "avx512"]
    (arm,) = levels("aarch64")
    assert (arm.name, arm.bytes, arm.flags) == ("baseline", 16, ("-march=armv8-a",))
    assert [level.flags for level in levels("riscv64")] == [()]
