"""Rest for the garbage collector while kernels are made.

Hundreds of thousands of objects appear then, and stay: the collector would look through them again and again, for a
quarter of the time, and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing import ParamSpec

    Given = ParamSpec("Given")
Made = TypeVar("Made")

_lock = Lock()
_resting: list[bool] = []
"""Whether the collector was on, one entry for each call that runs: in any thread, and within each other."""


def calm(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """The function, during which nothing is collected. What was switched off before stays off."""

    @wraps(function)
    def run(*args: Given.args, **options: Given.kwargs) -> Made:
        with _lock:
            _resting.append(gc.isenabled() if not _resting else _resting[0])
            gc.disable()
        try:
            return function(*args, **options)
        finally:
            with _lock:
                if _resting.pop() and not _resting:
                    gc.enable()

    return run
