"""Ten kernels by hand and their adjoints, compiled by g++ -O2 where there is no library yet, called through ctypes."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

NAMES = ("scale", "wave", "pull", "smooth", "power", "clip", "turn", "stretch", "spread", "energy")
REAL = sys.argv[1] if len(sys.argv) > 1 else "float"


def library() -> ctypes.CDLL:
    folder = Path(os.environ["TEN_CACHE_DIR"])
    made = folder / f"ten_{REAL}.so"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source, flags = Path(__file__).with_name("ten.cpp"), ["-std=c++17", "-O2", "-shared", "-fPIC"]
        subprocess.run([os.environ.get("CXX", "g++"), *flags, f"-DREAL={REAL}", source, "-o", made, "-lm"], check=True)
    return ctypes.CDLL(str(made))


def main() -> None:
    kernels = library()
    points = np.sin(np.arange(48, dtype=np.float32)).reshape(16, 3).astype("f" if REAL == "float" else "d")
    a = [points, *[np.zeros_like(points) for _ in range(9)], np.zeros_like(points[0, :1])]
    b = [*[np.zeros_like(points) for _ in range(10)], np.ones_like(points[0, :1])]
    n, more = ctypes.c_long(len(points)), {"power": [ctypes.c_long(3)]}

    def call(name: str, *arrays: np.ndarray, numbers: list = ()) -> None:
        getattr(kernels, name)(n, *[ctypes.c_void_p(array.ctypes.data) for array in arrays], *numbers)

    for k, name in enumerate(NAMES):
        call(name, a[k], a[k + 1], numbers=more.get(name, []))
    for k, name in reversed(list(enumerate(NAMES))):
        call(f"{name}_adjoint", a[k], b[k], b[k + 1], numbers=more.get(name, []))
    np.savetxt(sys.stdout, b[0])


main()
