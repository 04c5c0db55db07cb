"""The folder of a sweep: whose it is, which items are finished, and who works on the others.

    sweep            whose results these are, as digests (JSON)
    000003.pickle    the result of item 3: a pickle, then a digest of it, so that what was cut or exchanged is noticed
    claims/000004    item 4 is being computed: locked by the process that does; the lock ends with the process

Pickles run code when they are read: only those of the user who reads them are.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import stat
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nablasim.sysid.sweep.content import NoContent, digest

SEAL = b"nablasim"
"""Between a pickle and its digest."""


@dataclass(frozen=True)
class Mark:
    """What tells a sweep from others."""

    version: str
    function: str
    options: str
    items: list[str]

    @classmethod
    def of(cls, function: Any, options: Any, items: Sequence[Any], key: str | None = None) -> Mark:
        """By content; or by a name that the user gives, and answers for."""
        made_by = version("nablasim-sysid")
        if key is not None:
            return cls(made_by, f"key {key}", "", [f"key {key}"] * len(items))
        try:
            parts = [digest(item, f"item {k}")[:24] for k, item in enumerate(items)]
            return cls(made_by, digest(function, "the function"), digest(options, "the options"), parts)
        except NoContent as error:
            raise TypeError(
                f"{error}. A folder keeps results for a later sweep of the same items by the same function: make such "
                'things inside of the function; or sweep(…, key="a name"), another one whenever something changes'
            ) from None

    @property
    def name(self) -> str:
        """Short, for names of folders."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:10]

    def difference(self, other: Mark) -> str:
        """What is not the same, in words; empty if everything is."""
        if self.version != other.version:
            return f"nablasim {other.version} (this is {self.version})"
        if self.function != other.function:
            is_key = "key " in (self.function[:4], other.function[:4])
            return "another key" if is_key else "another function: its code, or what it reads, is not the same"
        if self.options != other.options:
            return "other options"
        if len(self.items) != len(other.items):
            return f"other items: {len(other.items)} instead of {len(self.items)}"
        differ = [k for k, (a, b) in enumerate(zip(self.items, other.items)) if a != b]
        return f"other items: number {differ[0]} is not the same" if differ else ""


class Nowhere:
    """No folder: nothing is kept, and nobody else works on the items."""

    def read(self, k: int) -> tuple[bool, Any]:
        return False, None

    def write(self, k: int, value: Any) -> None:
        return

    def claim(self, k: int) -> bool:
        return True

    def release(self, k: int) -> None:
        return


class Folder(Nowhere):
    """Results on disk, shared with whoever runs the same sweep at the same time."""

    def __init__(self, folder: str | Path, mark: Mark):
        self.path, self.mark = Path(folder), mark
        self._claimed: dict[int, Any] = {}
        self._said: set[int] = set()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        _check_owner(self.path, os.stat(self.path))
        self._claims = self.path / "claims"
        self._claims.mkdir(mode=0o700, exist_ok=True)
        with FileLock(self._claims / "sweep"):  # Of two that begin at once, one marks the folder.
            self._belongs()

    def _belongs(self) -> None:
        file = self.path / "sweep"
        if not file.exists():
            if any(self.path.glob("*.pickle")):
                raise ValueError(f"{self.path} has items of something else: choose an empty folder")
            _put(file, json.dumps(asdict(self.mark), indent=1).encode())
            return
        try:
            found = Mark(**json.loads(_own_bytes(file)))
        except (ValueError, TypeError):
            raise ValueError(
                f"{file} is not the mark of a sweep of this version: remove {self.path} or choose another folder"
            ) from None
        what = self.mark.difference(found)
        if what:
            raise ValueError(f"{self.path} belongs to a sweep of {what}. Remove it or choose another folder")

    def read(self, k: int) -> tuple[bool, Any]:
        """Whether an item is finished, and its result. One that is damaged counts as not finished."""
        file = self._file(k)
        try:
            content = _own_bytes(file)
        except FileNotFoundError:
            return False, None
        made, seal, found = content[: -len(SEAL) - 32], content[-len(SEAL) - 32 : -32], content[-32:]
        if seal != SEAL or found != self._digest(k, made):
            return self._again(k, f"is cut off or was changed ({len(content)} bytes)")
        try:
            return True, pickle.loads(made)
        except Exception as error:  # Whatever the classes of a result raise, if they are no longer what they were.
            return self._again(k, f"cannot be read any more ({type(error).__name__}: {error})")

    def _again(self, k: int, what: str) -> tuple[bool, None]:
        if k not in self._said:  # It is looked at before it is claimed, and after.
            warnings.warn(f"{self._file(k)} {what}: item {k} is computed again", stacklevel=2)
            self._said.add(k)
        return False, None

    def write(self, k: int, value: Any) -> None:
        made = pickle.dumps(value)
        _put(self._file(k), made + SEAL + self._digest(k, made))

    def claim(self, k: int) -> bool:
        """Whether this process is the one to compute an item. A process that dies loses its claims."""
        # Claimed by one thread, and released by whichever has the result.
        lock = FileLock(self._claims / f"{k:06d}", thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        self._claimed[k] = lock
        return True

    def release(self, k: int) -> None:
        self._claimed.pop(k).release()

    def _file(self, k: int) -> Path:
        return self.path / f"{k:06d}.pickle"

    def _digest(self, k: int, made: bytes) -> bytes:
        """Also of the place: a result of another item or another sweep is none of this one."""
        return hashlib.sha256(f"{self.mark.name} {self.mark.items[k]} {k} {len(made)} ".encode() + made).digest()


def _put(file: Path, content: bytes) -> None:
    """Written aside and renamed into place, so that a kill leaves a whole file or none."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    with open(aside, "wb", opener=_private) as made:
        made.write(content)
        made.flush()
        os.fsync(made.fileno())
    aside.replace(file)


_private: Callable[[str, int], int] = lambda path, flags: os.open(path, flags, 0o600)  # noqa: E731


def _own_bytes(file: Path) -> bytes:
    """What is in a file of this user."""
    with file.open("rb") as opened:
        _check_owner(file, os.fstat(opened.fileno()))
        return opened.read()


def _check_owner(path: Path, found: os.stat_result) -> None:
    if not hasattr(os, "geteuid"):  # Windows, where folders of a user are private.
        return
    if found.st_uid != os.geteuid():
        raise PermissionError(
            f"{path} belongs to user {found.st_uid}, not to you ({os.geteuid()}): results run code when they are read, "
            "so only your own are. Choose another folder"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"others may write into {path} (mode {stat.S_IMODE(found.st_mode):o}), and results run code when they are "
            f"read. If nobody else did: chmod go-w {path}"
        )
