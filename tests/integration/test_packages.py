"""What the four packages promise to each other."""

import importlib
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from kernelc import aot

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["kernelc", "nablasim.physics", "nablasim.render", "nablasim.sysid"])
def test_imports_without_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_nablasim_is_a_namespace_of_three_distributions():
    spec = find_spec("nablasim")
    assert spec.origin is None
    assert not list(ROOT.glob("packages/*/src/nablasim/__init__.py"))
    for name in ("physics", "render", "sysid"):
        assert any(Path(folder, name).is_dir() for folder in spec.submodule_search_locations), name


@pytest.mark.parametrize(("name", "ahead"), [("physics", "ahead"), ("render", "kernels.ahead")])
def test_every_kernel_comes_with_the_wheel(name, ahead):
    declared = {one.kernel for one in importlib.import_module(f"nablasim.{name}.{ahead}").AHEAD}
    package = importlib.import_module(f"nablasim.{name}")
    looked_at = 0
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        own = {one.kernel for one in aot.kernels(module) if one.kernel.source.function.__module__ == found.name}
        assert own <= declared, f"{found.name}: declare {own - declared} in {ahead.replace('.', '/')}.py"
        looked_at += len(own)
    assert looked_at > 20


@pytest.mark.parametrize("name", ["physics", "render", "sysid"])
def test_every_file_says_what_lives_there(name):
    for path in (ROOT / "packages" / name / "src").rglob("*.py"):
        assert path.read_text(encoding="utf-8").startswith(('"""', "'''")), f"{path} does not say what lives there"


def test_the_command_is_installed():
    nablasim = Path(sys.executable).with_name("nablasim")
    if not nablasim.exists():
        pytest.skip("nablasim-sysid is not installed in this environment")
    shown = subprocess.run([nablasim, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("nablasim 0.")


# -- what is uploaded
PROJECTS = sorted(ROOT.glob("packages/*/pyproject.toml"))


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_what_a_package_says_of_itself(path):
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    assert (path.parent / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (path.parent / project["readme"]).stat().st_size > 300
    assert list(path.parent.glob("src/kernelc/py.typed")) or list(path.parent.glob("src/nablasim/*/py.typed"))
    first = tomllib.loads(PROJECTS[0].read_text(encoding="utf-8"))["project"]
    for shared in ("license", "license-files", "authors", "urls", "requires-python", "version"):
        assert project[shared] == first[shared], shared
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.14"} <= set(project["classifiers"])


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_the_version_is_written_in_one_place(path):
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    name = "kernelc" if path.parent.name == "kernelc" else f"nablasim.{path.parent.name}"
    assert importlib.import_module(name).__version__ == project["version"]
    for source in (path.parent / "src").rglob("*.py"):
        assert f'"{project["version"]}"' not in source.read_text(encoding="utf-8"), source


@pytest.mark.parametrize("hidden", [("kernelc", "nablasim.physics", "nablasim.render"), ("nablasim.render",)])
def test_sysid_alone_says_in_one_line_what_it_needs(hidden):
    code = f"""
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {hidden} else found(name, package)
import nablasim.sysid
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    names = [name.replace(".", "-") for name in hidden]
    assert done.returncode == 1
    assert last.startswith(f"ImportError: nablasim-sysid needs {', '.join(names)}, not installed here: pip install")


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/workflows/*.yml")), ids=lambda path: path.stem)
def test_workflows_are_well_formed_and_run_commands_that_exist(path):
    flow = yaml.safe_load(path.read_text(encoding="utf-8"))
    targets = set(re.findall(r"^([a-z][\w-]*)(?: [a-z][\w -]*)?:", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for job in flow["jobs"].values():
        assert job["timeout-minutes"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            command = step.get("run", "")
            if command.startswith("make "):
                assert set(command.split()[1:]) <= targets, command
