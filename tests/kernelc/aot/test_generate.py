"""What is written for CMake: the same wherever it is written, one piece for each thing that a launch may ask for."""

import json
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import kernelc as kc
from kernelc import aot, toolchain
from kernelc.aot import generate
from kernelc.toolchain import compiler, shipped


@kc.kernel
def double(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i]


@kc.kernel(lanes=0)
def count(n: kc.Array[int]):
    n[0] += 1


@pytest.fixture
def write(tmp_path):
    """Writes what is declared; returns by level what each piece is."""

    def labels(ahead, machine="linux-x86_64"):
        generate.write(ahead, tmp_path, machine)
        index = json.loads((tmp_path / "index.json").read_text())
        assert index["machine"] == machine
        return {level: sorted(label.split(".")[-1] for label in held.values())
                for level, held in index["kernels"].items()}  # fmt: skip

    return labels


def test_pieces_of_a_kernel(write):
    assert write(aot.kernels(double, reals=(kc.float32,))) == {
        "baseline": ["double float32 adjoint", "double float32 forward"],
        "avx2": ["double float32 adjoint x8", "double float32 forward x8"],
        "avx512": ["double float32 adjoint x16", "double float32 forward x16"],
    }
    assert write(aot.kernels(double, adjoint=False), "linux-aarch64") == {
        "baseline": ["double float32 forward", "double float32 forward x4", "double float64 forward",
                     "double float64 forward x2"],
    }  # fmt: skip


@kc.struct
class Masses:
    x: kc.Array[float]
    scale: kc.Array[float] | None


@kc.kernel
def weighted(m: Masses, y: kc.Array[float]):
    i = kc.tid()
    if m.scale is not None:
        y[i] = m.x[i] * m.scale[i]
    else:
        y[i] = m.x[i]


def test_bundles_with_and_without_a_member_are_two_kernels(write):
    single = {"reals": (kc.float32,)}
    ahead = [*aot.kernels(weighted, **single), *aot.kernels(weighted, **single, absent=("m.scale",))]
    both = write(generate.declared(types.SimpleNamespace(__name__="m", AHEAD=ahead)))
    assert both["baseline"] == 2 * ["weighted float32 adjoint"] + 2 * ["weighted float32 forward"]
    wrong = types.SimpleNamespace(__name__="m", AHEAD=aot.kernels(weighted, absent=("m.x",)))
    with pytest.raises(kc.WrongUse, match=r"no kernel has an optional member m\.x"):
        generate.declared(wrong)


def test_what_has_no_lanes_or_no_gradient_has_no_pieces_of_them(write):
    forward = ["count float32 forward", "count float64 forward"]
    assert write(aot.kernels(count)) == {"baseline": forward[:1], "avx2": [], "avx512": []}
    threads = write(aot.kernels(double, lanes=False))
    assert len(threads["baseline"]) == 4 and not threads["avx2"]


def test_a_declaration():
    module = types.ModuleType(__name__)
    module.first, module.other, module.number = double, count, 3
    assert [one.kernel for one in aot.kernels(module)] == [double, count]
    module.AHEAD = [*aot.kernels(module), *aot.kernels(count, adjoint=False)]
    assert [(one.kernel, one.adjoint) for one in generate.declared(module)] == [(double, True), (count, False)]
    with pytest.raises(kc.WrongUse, match="takes kernels and modules, not 3"):
        aot.kernels(3)


def test_a_digest_knows_content_and_not_places():
    text = '#include "kernelc/kernel.h"\n#line 3 "/home/a/k.py"\nint x;\n    #line 4\nint y;\n'
    elsewhere = text.replace("/home/a/k.py", "C:/b.py").replace("#line 4", "#line 5")
    assert shipped.digest(text) == shipped.digest(elsewhere) != shipped.digest(text.replace("x", "z"))
    assert "#line" not in shipped.plain(text)


def test_a_package_is_built_the_same_everywhere(package, installed, build_package, tmp_path):
    elsewhere = shutil.copytree(package, tmp_path / "another place")
    target = tmp_path / "site"
    said = build_package(elsewhere, target, hash_seed=5, KERNELC_AOT_LEVELS="baseline")
    assert not said, said
    indices = [site / "springs/_kernels/index.json" for site in (installed, target)]
    first, second = (json.loads(index.read_text())["kernels"] for index in indices)
    assert list(second) == ["baseline"] and second["baseline"] == first["baseline"]
    labels = [label.split(".")[-1] for label in first["baseline"].values()]
    assert len(labels) == 19 and len([label for label in labels if label.startswith("power float32")]) == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"KERNELC_AOT_LEVELS": "sse9"}, "linux-x86_64 has no kernels for sse9 alone"),
        ({"KERNELC_AOT_LEVELS": "avx2"}, "choose baseline, and with it any of"),
        ({"declaration": "springs.kernels"}, "declares no kernel"),
        ({"declaration": "springs.nowhere"}, "No module named 'springs.nowhere'"),
    ],
)
def test_what_cannot_be_built_is_said(package, build_package, tmp_path, change, said):
    changed = shutil.copytree(package, tmp_path / "package")
    if "declaration" in change:
        project = changed / "CMakeLists.txt"
        project.write_text(project.read_text().replace("springs.kernels.ahead", change.pop("declaration")))
    output = build_package(changed, tmp_path / "site", **change)
    words = " ".join(output.split())  # CMake breaks lines
    assert said in words and "the kernels of springs cannot be made into C++" in words


def test_editable_installations_do_not_stand_in_the_way(package, tmp_path):
    """Kernels are those of the sources that are built, written by the kernelc whose CMake function was called."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Editable:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        assert name.partition('.')[0] not in ('kernelc', 'springs'), f'{name} of another place'\n"
        "sys.meta_path.insert(0, Editable)\n"
    )
    script = Path(toolchain.__file__).parent / "cmake/generate.py"
    command = [sys.executable, script, package / "src", "springs.kernels.ahead", tmp_path / "made", "linux-x86_64", ""]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made/index.json").exists()


def test_without_an_interpreter_one_is_found(package, build_package, tmp_path):
    said = build_package(package, tmp_path / "site", KERNELC_AOT_LEVELS="sse9", Python_EXECUTABLE="",
                         Python_ROOT_DIR=sys.prefix, Python_FIND_STRATEGY="LOCATION")  # fmt: skip
    assert "has no kernels for sse9 alone" in " ".join(said.split())


def test_a_compiler_may_have_several_words(package, build_package, tmp_path, monkeypatch):
    """As with CXX="ccache g++"."""
    monkeypatch.setenv("CXX", f"env {compiler().path}")
    said = build_package(package, tmp_path / "site", KERNELC_AOT_LEVELS="baseline")
    assert not said, said
    assert (tmp_path / "site/springs/_kernels/baseline.so").exists()


def test_a_wheel_may_come_without_kernels(package, build_package, tmp_path):
    assert not build_package(package, tmp_path / "site", KERNELC_AOT="OFF")
    assert not (tmp_path / "site/springs/_kernels").exists()


def test_a_file_whose_header_makes_no_sense_is_not_opened(installed, tmp_path):
    whole = (installed / "springs/_kernels/baseline.so").read_bytes()
    for number, (at, what) in enumerate([(54, b"\0\0"), (32, b"\xff" * 8), (56, b"\xff\xff")]):
        library = tmp_path / f"{number}.so"
        library.write_bytes(whole[:at] + what + whole[at + len(what) :])
        assert not shipped.is_whole(library)
    assert shipped.is_whole(installed / "springs/_kernels/baseline.so")
    assert not shipped.is_whole(tmp_path / "nowhere.so")


# -- declarations
@kc.kernel
def scaled(x: kc.Array[float], k: float, y: kc.Array[float]):
    y[kc.tid()] = k * x[kc.tid()]


@kc.kernel
def highest(x: kc.Array[float], y: kc.Array[float]):
    y[0] = 0.0
    kc.atomic_max(y, 0, x[kc.tid()])


def module(**names):
    made = types.ModuleType("declared")
    vars(made).update(names)
    return made


def test_a_kernel_may_come_with_a_number_in_both_ways():
    both = [*aot.kernels(scaled), *aot.kernels(scaled, boxed=("k",)), *aot.kernels(scaled, adjoint=False)]
    found = generate.declared(module(AHEAD=both))
    assert [(one.given_as_arrays, one.adjoint) for one in found] == [((), False), (("k",), True)]


def test_an_empty_list_declares_nothing():
    assert generate.declared(module(AHEAD=[], scaled=scaled)) == []


def test_a_number_that_no_kernel_has():
    with pytest.raises(kc.WrongUse, match="declared: no kernel has a number called kk"):
        generate.declared(module(AHEAD=[*aot.kernels(scaled, boxed=("k", "kk")), *aot.kernels(highest)]))


def test_a_kernel_without_an_adjoint_says_how_it_can_be_declared(tmp_path):
    with pytest.raises(kc.NotDifferentiable, match="which thread won cannot be told") as caught:
        generate.write(aot.kernels(highest), tmp_path, "linux-x86_64")
    assert "aot.kernels(..., adjoint=False)" in caught.value.advice
    generate.write(aot.kernels(highest, adjoint=False), tmp_path, "linux-x86_64")
