"""CUDA text in, fat binaries out: which nvcc this machine has (asked of CMake once), and one Ninja run for the rest.

A fat binary holds machine code for one or several architectures; the driver picks what fits the GPU.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shutil
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelc.errors import NoCuda
from kernelc.records import record
from kernelc.toolchain import cache
from kernelc.toolchain.build import FORMAT, Recipe, cook, headers_in
from kernelc.toolchain.probe import program

FLAGS = (
    "-std=c++17",
    "-O3",
    # As -ffp-contract=off on the CPU: the adjoint must get the bits again that the forward kernel got.
    "-fmad=false",
    # Kernels include nothing of the host's library, so it does not matter how new its compiler is.
    "-allow-unsupported-compiler",
)
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
"""Of a fat binary for all GPUs, as far as nvcc knows them: Turing to Blackwell. A launch compiles for its own GPU."""


@record
class Nvcc:
    """nvcc, the flags that it takes and the architectures that it knows."""

    path: Path
    version: str
    flags: tuple[str, ...]
    architectures: tuple[int, ...]
    include: Path
    stamp: str
    """Changes whenever nvcc's file does."""


def nvcc() -> Nvcc:
    """The nvcc of this machine; CUDACXX chooses another one. Raises `NoCuda`."""
    path = _find(os.environ.get("CUDACXX", ""))
    if path is None:
        chosen = os.environ.get("CUDACXX", "")
        where = f": CUDACXX is {chosen!r}, and there is no such program" if chosen else ""
        raise NoCuda(f"nvcc was not found, so kernels cannot be compiled for CUDA{where}",
                     advice="pip install 'kernelc[cuda]', or install the CUDA toolkit; CUDACXX names an nvcc "
                            "that is not on the PATH; or launch on the CPU")  # fmt: skip
    return _probed(cache.open_root(), path, _stamp(path))


def has_nvcc() -> bool:
    """Whether there is an nvcc at all."""
    return _find(os.environ.get("CUDACXX", "")) is not None


def fatbins(
    sources: Mapping[str, str], architectures: Sequence[int], *, extra_flags: Sequence[str] = ()
) -> dict[str, Path]:
    """The fat binaries of `sources` (name to CUDA text) for these architectures, built where the cache has none."""
    if not sources:
        return {}
    using = nvcc()
    command = (str(using.path), *using.flags, "-fatbin", *codes(using, architectures), f"-I{using.include}",
               *extra_flags)  # fmt: skip
    tool = (FORMAT, str(using.path), using.version, using.stamp, command[1:], headers_in(using.include))
    about = hashlib.sha256(repr(tool).encode()).digest()
    return cook(sources, Recipe(command, (), about, ".cu", ".fatbin"))


def codes(using: Nvcc, architectures: Sequence[int]) -> list[str]:
    """The words that ask nvcc for architectures. Of one that it does not know yet, PTX that the driver finishes."""
    words: dict[str, None] = {}
    for number in architectures:
        oldest = using.architectures[0]
        if number < oldest:
            raise NoCuda(f"nvcc {using.version} knows sm_{oldest} and newer, but the GPU is sm_{number}",
                         advice="install the nvcc of an older CUDA toolkit, and name it with CUDACXX")  # fmt: skip
        if number in using.architectures:
            words[f"arch=compute_{number},code=sm_{number}"] = None
        else:
            known = max(n for n in using.architectures if n <= number)
            words[f"arch=compute_{known},code=compute_{known}"] = None
    return [word for code in words for word in ("-gencode", code)]


@record
class Resources:
    """What a compiled kernel takes of a GPU, as ptxas reports it."""

    registers: int
    stack: int
    """Bytes of local memory for variables that cannot be in registers."""
    spills: int
    """Bytes stored to and loaded from local memory because registers did not suffice."""


def resources(
    text: str, architectures: Sequence[int], *, extra_flags: Sequence[str] = ()
) -> dict[int, dict[str, Resources]]:
    """Compile CUDA text with all warnings as errors; by architecture and kernel what ptxas says."""
    import subprocess
    import tempfile

    using = nvcc()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernels.cu")
        source.write_text(text, encoding="utf-8", errors="surrogateescape")
        # PTX is made once, for the oldest, and finished for each.
        oldest = min(architectures)
        wanted = [word for n in architectures for word in ("-gencode", f"arch=compute_{oldest},code=sm_{n}")]
        command = [str(using.path), *using.flags, "-fatbin", *wanted, f"-I{using.include}",
                   "-Werror", "all-warnings", "-Xptxas", "-v", *extra_flags]  # fmt: skip
        done = subprocess.run(
            [*command, str(source), "-o", str(Path(folder, "kernels.fatbin"))],
            capture_output=True, text=True, check=False, env=os.environ | {"TMPDIR": folder},
        )  # fmt: skip
    said = done.stdout + done.stderr
    if done.returncode:
        from kernelc.toolchain import diagnose

        raise diagnose.failure("kernels", text, said, ".cu")
    return _parse(said)


_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")


def _parse(said: str) -> dict[int, dict[str, Resources]]:
    found: dict[int, dict[str, Resources]] = {}
    for part in said.split("Compiling entry function ")[1:]:
        _, name, _, architecture, *_ = part.split("'")
        frames = _FRAME.findall(part)
        registers = _REGISTERS.search(part)
        if frames and registers:
            stack, stores, loads = (int(n) for n in frames[0])
            what = Resources(int(registers[1]), stack, stores + loads)
            found.setdefault(int(architecture.removeprefix("sm_")), {})[name] = what
    return found


# -- the probe
def _find(chosen: str) -> Path | None:
    if chosen:
        found = shutil.which(chosen)
        return Path(found) if found else None
    folders = [os.environ.get("PATH", "")]
    folders += [f"{os.environ[name]}/bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders += ["/usr/local/cuda/bin", "/opt/cuda/bin"]
    for site in dict.fromkeys((sysconfig.get_path("platlib"), sysconfig.get_path("purelib"))):
        folders += [str(p) for p in sorted(Path(site, "nvidia").glob("cu*/bin"), reverse=True)]
    found = shutil.which("nvcc", path=os.pathsep.join(folders))
    return Path(found) if found else None


def _stamp(path: Path) -> str:
    state = path.stat()
    return repr((state.st_size, state.st_mtime_ns))


@functools.lru_cache(maxsize=4)
def _probed(root: Path, path: Path, stamp: str) -> Nvcc:
    question = repr((str(path), stamp, FLAGS))
    record = root / "probe" / f"{hashlib.sha256(question.encode()).hexdigest()[:16]}.nvcc.json"
    found = cache.answered(record, lambda: _read(record, stamp), lambda folder: _ask_cmake(folder, path))
    if found is None:
        raise NoCuda(f"the probe of nvcc wrote a record that cannot be read: {record}", advice="remove it")
    return found


def _read(path: Path, stamp: str) -> Nvcc | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        include = Path(__file__).parents[1] / "include"
        return Nvcc(Path(record["path"]), record["version"], tuple(record["flags"]),
                    tuple(int(n) for n in record["architectures"]), include, stamp)  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _ask_cmake(folder: Path, path: Path) -> Path:
    import subprocess

    record = folder / "record.json"
    asked = [f"-DKERNELC_NVCC={path}", f"-DKERNELC_FLAGS={';'.join(FLAGS)}", f"-DKERNELC_RECORD={record}"]
    script = Path(__file__).with_name("cmake") / "KernelcCuda.cmake"
    done = subprocess.run(
        [program("cmake"), *asked, "-P", str(script)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=os.environ | {"LC_ALL": "C", "TMPDIR": str(folder)}, encoding="utf-8", errors="replace", check=False,
    )  # fmt: skip
    if done.returncode or not record.exists():
        said = "\n".join(line for line in done.stdout.splitlines() if line.strip())[-2000:]
        # nvcc gives what is not for the GPU to the compiler of the host.
        host = any(shutil.which(name) for name in ("g++", "gcc", "cl"))
        advice = "CUDACXX chooses another nvcc" if host else "nvcc needs a C++ compiler beside it: apt-get install g++"
        raise NoCuda(f"{path} cannot compile; CMake says:\n{said}", advice=advice)
    return record
