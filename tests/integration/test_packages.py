"""What the four packages promise to each other."""

import importlib
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kernelc import aot

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
