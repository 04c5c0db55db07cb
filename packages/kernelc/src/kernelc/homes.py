"""Where a kernel, a func or a struct lives: pickles hold its module and its name, not its source.

Another process imports the module and finds it there. What cannot be imported says so when it is pickled, not there.
"""

from __future__ import annotations

import importlib
import sys
from functools import reduce
from types import FrameType
from typing import Any

from .errors import WrongUse


def found(module: str, path: str) -> Any:
    """What a pickle means."""
    try:
        return reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        advice = "make the module that another process has sent it from importable here, too"
        raise WrongUse(f"there is no {path} in a module {module} here", advice=advice) from None


def pickled(thing: Any, kind: str) -> tuple[Any, tuple[str, str]]:
    """How a thing with `__module__` and `__qualname__` is pickled."""
    module, path = thing.__module__, thing.__qualname__
    reason = _missing(thing, module, path)
    if reason:
        raise WrongUse(f"{kind} {thing.__name__} {reason}: another process cannot find it",
                       advice="define it at the top of a module, a file that can be imported")  # fmt: skip
    return found, (module, path)


def sent_by_value(thing: Any) -> bool:
    """Whether another process is to get the function itself: cloudpickle asks (joblib, dask, ray), for what another
    process cannot import. Plain pickles cannot hold functions."""
    module = thing.__module__
    if module != "__main__" and is_importable(thing, module, thing.__qualname__):
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if "cloudpickle" in str(frame.f_globals.get("__name__")):
            return True
        frame = frame.f_back
    return False


def is_importable(thing: Any, module: str, path: str) -> bool:
    """Whether another process finds it under this name."""
    return not _missing(thing, module, path)


def _missing(thing: Any, module: str, path: str) -> str:
    """Why a name does not lead back to the thing; empty if it does."""
    if "<locals>" in path:
        return f"is defined inside of {path.split('.<locals>')[0]}()"
    home = sys.modules.get(module)
    if module == "__main__" and not getattr(home, "__file__", None):
        return "is defined in a notebook, in a console or by `python -c`"
    try:
        there = reduce(getattr, path.split("."), home)
    except AttributeError:
        return f"is not to be found as {module}.{path}"
    return "" if there is thing else f"is not what {module}.{path} means by now"
