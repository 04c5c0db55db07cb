"""The rooms of the packages: whoever is outside of a room comes through its door. Their order is an import contract."""

import ast
from pathlib import Path

import pytest

import kernelc
from nablasim import physics, render, sysid

PACKAGES = {package.__name__: Path(package.__file__).parent for package in (physics, sysid)}
ROOMS = {
    "nablasim.physics": {"geometry", "model", "laws", "scene", "time", "standalone", "io", "view"},
    "nablasim.sysid": {
        "video", "look", "problem", "search", "trust", "report", "scenes", "sweep", "control",
    },
}  # fmt: skip
# Folders of files that are entered one by one: an experiment is a file, and so is a command.
SHELVES = {"experiments", "baselines", "cli", "tracks"}
KERNELS = {"kc.kernel", "kc.func", "kernel", "func"}
# It lists the kernels of all rooms for the wheel.
OUTSIDE = {"ahead.py"}


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_are_entered_by_their_door(package):
    folder, inside = PACKAGES[package], ROOMS[package]
    assert inside == {path.parent.name for path in folder.glob("*/__init__.py")} - SHELVES, "name the rooms there are"
    by_the_window = []
    for path in sorted(folder.rglob("*.py")):
        mine = path.relative_to(folder).parts[0]
        for line, module in imports(path):
            room, _, deeper = module.removeprefix(f"{package}.").partition(".")
            if module.startswith(f"{package}.") and room in inside and deeper and room != mine and mine not in OUTSIDE:
                by_the_window.append(f"{path.relative_to(folder)}:{line} imports {module}")
    assert not by_the_window, "import from the room itself, and export the name in its __init__.py"


@pytest.mark.parametrize("package", ROOMS)
def test_the_top_is_small_and_chapters_are_short(package):
    modules = [p for p in PACKAGES[package].glob("*.py") if p.name != "__init__.py"]
    assert len(modules) <= 10
    files = PACKAGES[package].rglob("*.py")
    long = {p.name: n for p in files if (n := len(p.read_text(encoding="utf8").splitlines())) > 350}
    assert not long, "a file is a chapter: split it"


def decorated(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.FunctionDef):
            if any(ast.unparse(d).split("(")[0] in KERNELS for d in node.decorator_list):
                yield node


def parameters(node: ast.FunctionDef) -> int:
    a = node.args
    return len(a.posonlyargs + a.args + a.kwonlyargs)


@pytest.mark.parametrize("package", [kernelc, physics, render, sysid], ids=lambda package: package.__name__)
def test_kernels_take_bundles_instead_of_long_lists(package):
    found = [(path, node) for path in Path(package.__file__).parent.rglob("*.py") for node in decorated(path)]
    assert found
    long = {f"{path.name}:{node.lineno} {node.name}": n for path, node in found if (n := parameters(node)) > 12}
    assert not long, "pass what belongs together as one bundle"
