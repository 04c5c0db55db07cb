"""A GPU without a GPU: generated CUDA text compiled by g++ (shim.h), run by a driver of our own (standin.cpp).

`installed()` puts both in the place of nvcc and of the driver library, for the whole process.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import kernelc as kc
from kernelc.runtime.cuda import device as devices
from kernelc.runtime.cuda import launching
from kernelc.toolchain import cache_root, compiler
from kernelc.toolchain.build import Recipe, cook, headers_in

HERE = Path(__file__).parent


def driver_library() -> Path:
    """The stand-in, compiled once and kept beside the cache of kernels."""
    text = (HERE / "standin.cpp").read_text()
    path = cache_root() / "standin" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{id(text)}.draft")
        flags = ["-std=c++17", "-O1", "-g1", "-shared", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([*compiler().command, *flags, HERE / "standin.cpp", "-o", draft, "-ldl"], check=True)
        draft.rename(path)
    return path


def host_images(sources: Mapping[str, str], architectures: Sequence[int]) -> dict[str, Path]:
    """What `toolchain.fatbins` does, for the stand-in: shared objects in a wrapper that the driver recognises."""
    using = compiler()
    shim = (HERE / "shim.h").read_bytes()
    # -O1: half the time, the same numbers.
    flags = ["-O1" if flag == "-O2" else flag for flag in using.flags]
    command = (*using.command, "-x", "c++", *flags, f"-I{using.include}", "-include", str(HERE / "shim.h"))
    tool = (command, using.version, using.stamp, headers_in(using.include), shim)
    about = hashlib.sha256(repr(tool).encode()).digest()
    made = {}
    for name, library in cook(sources, Recipe(command, using.libraries, about, ".cu", ".so")).items():
        image = library.with_suffix(".image")
        if not image.exists():
            content = library.read_bytes()
            draft = library.with_suffix(f".{id(content)}")
            draft.write_bytes(b"KCHOST\0\0" + struct.pack("<Q", len(content)) + content)
            draft.rename(image)
        made[name] = image
    return made


class StandIn:
    """What tests ask the driver for."""

    def __init__(self, path: Path):
        self.library = ctypes.CDLL(str(path))
        self.library.standin_log.restype = ctypes.c_char_p
        self.library.standin_stream.restype = ctypes.c_void_p
        self.library.standin_limit.argtypes = [ctypes.c_uint64]
        self.library.standin_elsewhere.argtypes = [ctypes.c_uint64]
        self.library.standin_fail.argtypes = [ctypes.c_char_p, ctypes.c_int]

    def fail(self, name: str, status: int) -> None:
        """The next call of this function is refused."""
        self.library.standin_fail(name.encode(), status)

    def set(self, order: int = 1, workers: int = 1) -> None:
        """The order of threads (0 forwards, 1 backwards, 2 in leaps), and how many of the host run them."""
        self.library.standin_set(order, workers)

    def devices(self, count: int) -> None:
        """How many GPUs there are."""
        self.library.standin_devices(count)

    def unify(self, on: bool, *, opened: bool = False) -> None:
        """Let kernels touch memory of the host, or not; `opened`: and the host that of the GPU, whenever it likes."""
        self.library.standin_unify(int(on), int(opened))

    def elsewhere(self, address: int) -> None:
        """Let memory at an address be that of a second GPU; 0: of none."""
        self.library.standin_elsewhere(address)

    @contextlib.contextmanager
    def context_of_another(self) -> Iterator[None]:
        """This thread works on another GPU meanwhile, and finds that unchanged."""
        self.library.standin_enter_other()
        try:
            yield
        finally:
            assert self.library.standin_leave_other()

    def limit(self, nbytes: int) -> None:
        self.library.standin_limit(nbytes)

    def queued(self) -> int:
        return int(self.library.standin_queued())

    def stream(self) -> int:
        return int(self.library.standin_stream())

    def calls(self) -> list[str]:
        """What was called since the last time."""
        said = self.library.standin_log().decode().splitlines()
        self.library.standin_forget_log()
        return said


_device: devices.Device | None = None


@contextlib.contextmanager
def installed() -> Iterator[StandIn]:
    """Kernels for "cuda" run on the stand-in, of which there is one in a process."""
    global _device
    path = driver_library()
    before = devices._device, launching.fatbins
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELC_CUDA_DRIVER", str(path))
        devices._device, launching.fatbins = _device, host_images
        try:
            _device = devices.device()
            yield StandIn(path)
        finally:
            devices._device, launching.fatbins = before


@contextlib.contextmanager
def default_device() -> Iterator[None]:
    """Arrays are made on the GPU, and launches run there, unless they say otherwise."""
    before, kc.config.device = kc.config.device, "cuda"
    try:
        yield
    finally:
        kc.config.device = before
