"""Writes the C++ of a package's kernels: run by KernelcAot.cmake, with the arguments that it gives.

    python generate.py SOURCE_DIR DECLARATION FOLDER MACHINE LEVELS

A script, not a module of kernelc: when kernelc's own wheel is built its native core is not there yet, and a package
beside kernelc in one repository is built in an environment that has only NumPy.
"""

import importlib
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path
from types import ModuleType


def main(source: str, declaration: str, folder: str, machine: str, names: str) -> None:
    sys.path[:0] = [source, str(Path(__file__).parents[3])]
    # Editable installations stand before every path, and reach into the environments in which pip builds: another
    # kernelc would write other text than the one that will look for it.
    sys.meta_path.sort(key=lambda finder: finder not in (BuiltinImporter, FrozenImporter, PathFinder))
    # Generating launches nothing: an empty module will do for the native core.
    sys.modules.setdefault("kernelc._native", ModuleType("kernelc._native"))
    _leave_parents_alone(Path(source), declaration)
    module = importlib.import_module(declaration)

    from kernelc.aot import generate
    from kernelc.errors import KernelError

    try:
        ahead = generate.declared(module)
        if not ahead:
            sys.exit(f"{declaration} declares no kernel: its AHEAD is empty, or it has none and defines no kernel")
        generate.write(ahead, Path(folder), machine, [name for name in names.split(",") if name])
    except KernelError as error:
        sys.exit(f"{error}\n{error.advice}")


def _leave_parents_alone(source: Path, declaration: str) -> None:
    """The packages around the declaration are not run: they may need what the machine that builds does not have."""
    parts = declaration.split(".")[:-1]
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        if parts[0] != "kernelc":
            package = sys.modules[name] = ModuleType(name)
            package.__path__ = [str(source.joinpath(*parts[:count]))]


if __name__ == "__main__":
    main(*sys.argv[1:])
