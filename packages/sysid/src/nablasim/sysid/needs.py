"""The other packages, without which nothing here runs: importing this says in one line which are missing."""

from importlib.util import find_spec

NEEDED = {"kernelc": "kernelc", "nablasim.physics": "nablasim-physics", "nablasim.render": "nablasim-render"}

missing = [name for module, name in NEEDED.items() if find_spec(module) is None]
if missing:
    raise ImportError(
        f"nablasim-sysid needs {', '.join(missing)}, not installed here: pip install {' '.join(missing)}, or all four "
        "from a checkout: pip install ./packages/*"
    )
