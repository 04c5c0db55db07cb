"""nvcc takes what is generated, without a warning: the kernels of the repository, of the laws, and random programs.

No GPU is needed. Where there is no nvcc these tests are skipped; `pip install nvidia-cuda-nvcc` brings one.
"""

import ast
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from gpu import corpus, repository
from gpu.compiling import compiled
from gpu.conftest import WHOLE
from gpu.repository import PARTS
from laws.bench import CASES

import kernelc as kc
from kernelc import toolchain
from kernelc import types as t
from kernelc.codegen import DEVICE_HEADER
from kernelc.toolchain import ARCHITECTURES, fatbins, has_nvcc, nvcc
from kernelc.toolchain.nvcc import FLAGS
from kernelc.toolchain.probe import program

ROOT = Path(__file__).parents[3]
MODULES = Path(toolchain.__file__).with_name("cmake")
"""Where scikit-build-core looks for modules of CMake, too."""
TABLE = ROOT / "docs/kernelc/cuda_resources.md"
needs_nvcc = pytest.mark.skipif(not has_nvcc(), reason="there is no nvcc here: pip install nvidia-cuda-nvcc")
QUICK = ("-Xcicc", "-O0", "-Xptxas", "-O1")
"""The machine code does not matter here, only what nvcc says. `make resources` compiles all kernels as users do."""
LARGE = 40_000
"""Characters of a kernel that takes seconds to compile: those are left out, unless all are asked for."""
whole = pytest.mark.skipif(not WHOLE, reason="takes minutes: KERNELC_TEST_CUDA=all")


def compiles(codes, architectures=(80,)):
    """All kernels come out, for each architecture, and nvcc has nothing to say about them."""
    found = compiled(codes, architectures, flags=QUICK)
    assert {n: found[n].keys() for n in found} == {n: {code.name for code in codes} for n in architectures}


def part_of(things, part):
    return list(things)[part::PARTS]


def test_no_kernel_of_the_repository_is_forgotten():
    """Also those that functions make: every decorated function is there."""
    found = {(f.kernel.source.function.__code__.co_filename, f.kernel.source.function.__name__)
             for f in repository.kernels()}  # fmt: skip
    missing = [(path, name) for path, name in decorated() if (str(path), name) not in found]
    assert not missing


def test_the_table_of_resources_has_a_row_for_every_kernel():
    rows = {line.split("`")[1] for line in TABLE.read_text().splitlines() if line.startswith("| `")}
    assert rows == {f.name for f in repository.kernels()}  # else: make resources


def decorated():
    """The functions of packages, benchmarks and examples that `kc.kernel` stands above."""
    places = ("packages/*/src/**/*.py", "benchmarks/**/*.py", "examples/**/*.py")
    for path in (path for place in places for path in ROOT.glob(place)):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(map(is_kernel, node.decorator_list)):
                yield path, node.name


def is_kernel(decorator):
    return ast.unparse(decorator).partition("(")[0] in ("kc.kernel", "kernel")


@needs_nvcc
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, PARTS))])
def test_the_kernels_of_the_repository(part):
    # Of those that one function makes, one.
    found = part_of((f for f in repository.kernels() if WHOLE or f.number < 2), part)
    assert len(found) > 10
    codes = [code for made in repository.codes(found, t.FLOAT32) for code in made.values()]
    compiles([code for code in codes if WHOLE or len(code.text) < LARGE])


@needs_nvcc
@whole
@pytest.mark.parametrize("part", range(PARTS))
def test_the_kernels_of_the_repository_in_double_precision(part):
    codes = repository.codes(part_of(repository.kernels(), part), t.FLOAT64)
    compiles([code for made in codes for code in made.values()], (75, 90, 120))


@needs_nvcc
def test_some_kernels_of_the_laws():
    compiles(corpus.codes_of_the_laws(list(CASES.values())[::15], corpus.PLAIN))


@needs_nvcc
@whole
@pytest.mark.parametrize("part", range(PARTS))
def test_all_kernels_of_the_laws(part):
    compiles(corpus.codes_of_the_laws(part_of(CASES.values(), part)))


@pytest.mark.nightly
@needs_nvcc
def test_random_programs(tmp_path):
    compiles(corpus.codes_of_programs(500 if WHOLE else 6, tmp_path))


# -- fat binaries
@kc.kernel
def halved(x: kc.Array[float]):
    x[kc.tid()] *= 0.5


@needs_nvcc
def test_a_fat_binary_has_code_for_several_architectures():
    known = [n for n in ARCHITECTURES if n in nvcc().architectures]
    assert len(known) > 3
    known = known if WHOLE else known[::2]
    library = fatbins({"halved": kc.inspect(halved, "cuda")}, known)["halved"]
    assert sorted(found_in(library.read_bytes())) == known
    assert fatbins({"halved": kc.inspect(halved, "cuda")}, known)["halved"] == library  # from the cache


@needs_nvcc
def test_a_cmake_project_makes_fat_binaries(tmp_path):
    """By what every wheel of kernelc brings: machine code for each architecture, and PTX for what comes after them."""
    known = [n for n in ARCHITECTURES if n in nvcc().architectures][:2]
    (tmp_path / "halved.cu").write_text(kc.inspect(halved, "cuda"))
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.20)
        project(halved NONE)
        list(APPEND CMAKE_MODULE_PATH "{MODULES}")
        include(KernelcCuda)
        kernelc_fatbin(OUTPUT halved.fatbin SOURCE "${{CMAKE_CURRENT_SOURCE_DIR}}/halved.cu"
                       ARCHITECTURES {" ".join(map(str, known))})
        add_custom_target(all_of_it ALL DEPENDS halved.fatbin)
    """)
    configure = [program("cmake"), "-S", tmp_path, "-B", tmp_path / "b", "-G", "Ninja",
                 f"-DCMAKE_MAKE_PROGRAM={program('ninja')}"]  # fmt: skip
    environment = os.environ | {"CUDACXX": str(nvcc().path)}
    for command in (configure, [program("cmake"), "--build", tmp_path / "b"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(found_in((tmp_path / "b" / "halved.fatbin").read_bytes())) == [*known, known[-1]]


def test_cmake_projects_compile_with_the_flags_of_launches():
    said = (MODULES / "KernelcCuda.cmake").read_text()
    assert f"set(KERNELC_CUDA_FLAGS {' '.join(FLAGS)})" in said


def test_a_cmake_project_without_nvcc_says_so(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.20)
        project(nothing NONE)
        function(find_program)
        endfunction()
        include("{ROOT}/cmake/KernelcCuda.cmake")
        kernelc_fatbin(OUTPUT k.fatbin SOURCE k.cu ARCHITECTURES 80)
    """)
    done = subprocess.run(
        [
            program("cmake"),
            "-S",
            tmp_path,
            "-B",
            tmp_path / "b",
            "-G",
            "Ninja",
            f"-DCMAKE_MAKE_PROGRAM={program('ninja')}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "kernelc_fatbin(k.fatbin): there is no nvcc on this machine" in done.stderr


@needs_nvcc
def test_a_gpu_that_nvcc_does_not_know_gets_ptx():
    newest = max(nvcc().architectures)
    library = fatbins({"halved": kc.inspect(halved, "cuda")}, [newest + 1000])["halved"]
    assert f".target sm_{newest}".encode() in library.read_bytes() or found_in(library.read_bytes()) == [newest]


@needs_nvcc
def test_a_gpu_that_is_too_old_for_nvcc():
    with pytest.raises(kc.NoCuda, match=r"knows sm_[0-9]+ and newer, but the GPU is sm_35") as caught:
        fatbins({"halved": kc.inspect(halved, "cuda")}, [35])
    assert "CUDACXX" in caught.value.advice


def found_in(image):
    """The architectures in a fat binary: a header, then entries with sizes and the number of an architecture."""
    magic, _, head, size = struct.unpack_from("<IHHQ", image)
    assert magic == 0xBA55ED50
    at, found = head, []
    while at < head + size:
        _, _, header, length = struct.unpack_from("<HHIQ", image, at)
        found.append(struct.unpack_from("<I", image, at + 28)[0])
        at += header + length
    return found


# -- what goes wrong
@needs_nvcc
def test_what_nvcc_refuses_is_said_at_the_python_line():
    text = f'{DEVICE_HEADER}#line 5 "{__file__}"\n__global__ void k() {{ no_such_thing(); }}\n'
    with pytest.raises(kc.CompilerFailed, match=r"nvcc failed on 'k'.*no_such_thing") as caught:
        fatbins({"k": text}, [80])
    assert (caught.value.filename, caught.value.lineno) == (__file__, 5)


def test_no_nvcc(monkeypatch):
    monkeypatch.setenv("CUDACXX", "/no/such/nvcc")
    with pytest.raises(kc.NoCuda, match=r"nvcc was not found.*: CUDACXX is '/no/such/nvcc'") as caught:
        fatbins({"halved": ""}, [80])
    assert "kernelc[cuda]" in caught.value.advice
    assert "__global__" in kc.inspect(halved, "cuda")  # text needs no nvcc
    assert "nvcc: none" in kc.cuda.describe()


@needs_nvcc
def test_an_nvcc_without_a_compiler_of_the_host(monkeypatch, tmp_path):
    found, tools = nvcc().path, [program("cmake"), program("ninja")]
    monkeypatch.setenv("CUDACXX", str(found))
    monkeypatch.setattr(kc.config, "cache_dir", tmp_path)
    asked = sys.modules["kernelc.toolchain.nvcc"]  # the name in the package is its function
    monkeypatch.setattr(asked, "program", lambda name: next(t for t in tools if Path(t).name == name))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(kc.NoCuda, match="cannot compile") as caught:
        nvcc()
    assert caught.value.advice == "nvcc needs a C++ compiler beside it: apt-get install g++"


@needs_nvcc
def test_an_nvcc_that_does_not_work(monkeypatch, tmp_path):
    broken = tmp_path / "nvcc"
    broken.write_text("#!/bin/sh\necho 'it is broken' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CUDACXX", str(broken))
    with pytest.raises(kc.NoCuda, match="it is broken"):
        nvcc()
