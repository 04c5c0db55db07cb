"""What can be set: `kc.config.debug = True`, or the environment variables named below, read once at import."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import UnknownSetting, WrongChoice, public

_CHOICES = {
    "singular": ("zero", "ieee", "raise"),
    "device": ("cpu", "cuda", "python"),
    "lanes": ("auto", 0, 2, 4, 8, 16),
}


class Config:
    """The settings of this process. Setting an unknown name, or a value that is not among the choices, raises."""

    __slots__ = ("_generation", "cache_dir", "debug", "device", "lanes", "singular", "tape_limit", "threads")

    _generation: int
    debug: bool
    """Check bounds, NaN, division by zero, uninitialised reads and store races in every launch (KERNELC_DEBUG)."""
    device: str
    """Where launches run that do not say so: "cpu", "cuda" or "python" (KERNELC_DEVICE)."""
    lanes: str | int
    """How many threads run side by side in SIMD lanes: "auto" (what the machine has), 0 for none, or 2, 4, 8, 16
    (KERNELC_LANES)."""
    singular: str
    """What a derivative is at a singular point: "zero" (the documented subgradient), "ieee" or "raise"."""
    tape_limit: int
    """Bytes that the loop tape of one worker may take before the launch raises (KERNELC_TAPE_LIMIT)."""
    threads: int
    """How many threads run a launch; 0 means one per core (KERNELC_THREADS)."""
    cache_dir: Path | None
    """Where compiled kernels are kept; None means the user's cache folder (KERNELC_CACHE_DIR)."""

    def __init__(self) -> None:
        object.__setattr__(self, "_generation", 0)
        cache = os.environ.get("KERNELC_CACHE_DIR")
        self.debug = os.environ.get("KERNELC_DEBUG", "0") not in ("", "0")
        self.device = os.environ.get("KERNELC_DEVICE", "cpu")
        lanes = os.environ.get("KERNELC_LANES", "auto")
        self.lanes = int(lanes) if lanes.isdigit() else lanes
        self.singular = "zero"
        self.tape_limit = _number("KERNELC_TAPE_LIMIT", 2 << 30)
        self.threads = _number("KERNELC_THREADS", 0)
        self.cache_dir = Path(cache) if cache else None

    @public
    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or name not in self.__slots__:
            known = ", ".join(n for n in self.__slots__ if not n.startswith("_"))
            raise UnknownSetting(f"kc.config has no setting {name!r}", advice=f"it has {known}")
        if name in _CHOICES and value not in _CHOICES[name]:
            choices = ", ".join(map(repr, _CHOICES[name]))
            raise WrongChoice(f"kc.config.{name} cannot be {value!r}", advice=f"choose one of {choices}")
        if name in ("tape_limit", "threads") and (not isinstance(value, int) or value < 0):
            raise WrongChoice(f"kc.config.{name} cannot be {value!r}", advice="it is a whole number, zero or more")
        if name == "cache_dir" and value is not None:
            value = Path(str(value))
        object.__setattr__(self, name, value)
        # Launch plans remember the generation they were made in: a changed setting makes new plans.
        object.__setattr__(self, "_generation", self.generation + 1)

    @property
    def generation(self) -> int:
        """Counts the changes of any setting."""
        value: int = object.__getattribute__(self, "_generation")
        return value


def _number(name: str, default: int) -> int:
    """A number from the environment."""
    text = os.environ.get(name, "").strip() or str(default)
    if not text.isdecimal():
        raise WrongChoice(f"{name}={text} in the environment is no whole number", advice=f"unset it for {default}")
    return int(text)


config = Config()
