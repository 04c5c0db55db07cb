"""The kernel cache: one folder per hash, built aside under a lock, published by rename, verified when it is used.

    kernels/<key>/     kernel.so or kernel.fatbin, its source, SHA256SUMS (readable by sha256sum -c) with the key
    probe/             what the probe found out about each compiler
    compilers/         those that have built something: their kernels serve where there is no compiler any more
    locks/             one file per stripe: the first three digits of a key, or "probe"
    aside/<stripe>-*/  builds under way; what killed ones have left is removed by the next build
    failed/            the sources that a compiler refused
    cmake/             projects for an IDE (KERNELC_CMAKE=1)

Reading takes no lock and writes nothing, so a filled cache may lie on a read-only disk. Whoever writes holds the locks
of the stripes that it writes to; the operating system releases them when a process dies, so none is ever stale.
The folder may be removed whenever nothing is being built.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from kernelc.config import config
from kernelc.errors import CacheNotWritable

NAME, SUMS = "kernel", "SHA256SUMS"
BATCH = 128
"""Entries that one build holds the locks of at a time: each is an open file, of which some systems allow 256."""
_DIGITS = 3
Answer = TypeVar("Answer")

_REFUSALS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),  # full, or a file beyond what this process may write
    errno.ENAMETOOLONG,
    *(errno.EROFS, errno.EACCES, errno.EPERM),  # not ours to write
    *(errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP),  # removed under our feet, or something else is there
    *(errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS),  # a disk without locks
}


def cache_root() -> Path:
    """Where compiled kernels are kept: `kc.config.cache_dir`, or the user's cache folder."""
    if config.cache_dir is None:
        return _user_cache()
    try:
        return Path(os.path.abspath(config.cache_dir.expanduser()))
    except FileNotFoundError:  # the folder that this process works in
        raise CacheNotWritable(f"the kernel cache {config.cache_dir} is below a working folder that is gone") from None


def _refuse_line_breaks(root: Path) -> None:
    if "\n" in str(root) or "\r" in str(root):
        raise CacheNotWritable(f"the kernel cache {str(root)!r} has a line break in its name, which CMake cannot take",
                               advice="set KERNELC_CACHE_DIR to a folder without one")  # fmt: skip


@functools.cache
def _user_cache() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("kernelc")


def open_root() -> Path:
    """The cache folder, made when missing (for its owner alone), refused when others could have written to it."""
    root = cache_root()
    _refuse_line_breaks(root)
    with writing():
        if not root.exists():
            root.parent.mkdir(parents=True, exist_ok=True)
            root.mkdir(mode=0o700, exist_ok=True)
        # The root itself may be a link to another disk; what is in it may not.
        _refuse_if_foreign(root, root.stat())
        for name in ("kernels", "probe"):
            with suppress(FileNotFoundError):
                _refuse_if_foreign(root / name, (root / name).lstat())
    return root


def find(key: str, product: str = ".so") -> Path | None:
    """The library of `key`, or None when it was never built, or is damaged and must be built again."""
    folder = cache_root() / "kernels" / key
    library = folder / f"{NAME}{product}"
    try:
        _refuse_if_foreign(folder, folder.lstat())
        _refuse_if_foreign(library, library.lstat())
        expected = (folder / SUMS).read_bytes()
        found = hashlib.sha256(library.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    return library if expected == _sums(key, found, library.name).encode() else None


def _sums(key: str, digest: str, name: str) -> str:
    """The content of SHA256SUMS. With the key, so that an entry that was put in the place of another is no entry."""
    return f"# {key}\n{digest}  {name}\n"


def publish(key: str, library: Path, text: str, suffix: str = ".cpp") -> Path:
    """Move a finished library into the cache by one rename; the caller holds the lock of `stripe(key)`."""
    made = library.with_name(f"{key}.entry")
    target = cache_root() / "kernels" / key
    with writing():
        made.mkdir(mode=0o700)
        name = f"{NAME}{library.suffix}"
        library.rename(made / name)
        digest = hashlib.sha256((made / name).read_bytes()).hexdigest()
        write(made / f"{NAME}{suffix}", text)
        write(made / SUMS, _sums(key, digest, name))
        target.parent.mkdir(mode=0o700, exist_ok=True)
        _remove(target)  # damaged, else we would not be here; whoever has it open keeps it
        made.rename(target)
    return target / name


def answered(path: Path, read: Callable[[], Answer | None], ask: Callable[[Path], Path]) -> Answer | None:
    """What the record at `path` says; the first who needs it asks, in a folder of its own, and writes it down."""
    found = read()
    if found is None:
        with workplace(["probe"]) as folder:
            found = read()  # by whoever held the lock before us
            if found is None:
                made = ask(folder)
                with writing():
                    path.parent.mkdir(mode=0o700, exist_ok=True)
                    write(path, made.read_text(encoding="utf-8"))
                found = read()
    return found


def stripe(key: str) -> str:
    """The lock that guards the entry `key`."""
    return key[:_DIGITS]


def _is_stripe(name: str) -> bool:
    return name == "probe" or (len(name) == _DIGITS and set(name) <= set("0123456789abcdef"))


@contextmanager
def workplace(stripes: Iterable[str]) -> Iterator[Path]:
    """Hold the locks of `stripes` and give an empty folder on the same disk, which is gone afterwards.

    Locks are taken in sorted order, so that two batches never wait for each other. There are 4,096 of them: enough that
    large builds of different kernels seldom wait for one another, and few enough that no lock file has to be removed.
    """
    import tempfile

    names = sorted(set(stripes))
    root = open_root()
    aside = root / "aside"
    with ExitStack() as held:
        with writing():
            aside.mkdir(mode=0o700, exist_ok=True)
            for name in names:
                held.enter_context(_lock(root / "locks" / name))
                _remove_left(aside, name)
            _remove_other_left(root, set(names))
            # A new name each time: the compiler of a killed build may still be writing to the old one.
            folder = Path(tempfile.mkdtemp(prefix=f"{names[0]}-", dir=aside))
        held.callback(_remove, folder)
        yield folder


def _remove_left(aside: Path, stripe: str) -> None:
    """Remove what killed builds left; the caller holds the lock, so its makers are dead: they would hold it."""
    for left in aside.glob(f"{stripe}-*"):
        _remove(left)


def _remove_other_left(root: Path, held: set[str]) -> None:
    """The same for other stripes, where nobody is building: nobody is waited for, so no two builds can wait in turn."""
    for name in {path.name.partition("-")[0] for path in (root / "aside").iterdir()} - held:
        if _is_stripe(name):
            with suppress(BlockingIOError), _lock(root / "locks" / name, wait=False):
                _remove_left(root / "aside", name)


_handles: set[int] = set()


@contextmanager
def _lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    # Not the filelock package: importing it takes longer than compiling a kernel, it polls, and where flock is
    # missing it falls back to a file that outlives a killed process.
    import fcntl

    path.parent.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    _handles.add(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        _handles.discard(handle)
        os.close(handle)


def _drop_handles() -> None:
    # A child forked by another thread in the middle of a build would share the lock and keep it after our death.
    for handle in _handles:
        os.close(handle)
    _handles.clear()


os.register_at_fork(after_in_child=_drop_handles)


def write(path: Path, text: str) -> None:
    """Write a file that only its owner can read; whoever looks sees the old file or the new one, never a half."""
    import tempfile

    handle, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.replace(draft, path)
    except BaseException:
        _remove(Path(draft))
        raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def writing() -> Iterator[None]:
    """Turn the ways in which a disk refuses into an error that names the cache folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        raise unwritable(error.strerror or str(error)) from error


def is_full(said: str) -> bool:
    """Whether a program failed for lack of space: it says so, or could not even say so."""
    return "No space left on device" in said or shutil.disk_usage(cache_root()).free < 1 << 20


def unwritable(reason: str) -> CacheNotWritable:
    """The error for a cache that cannot take a new kernel."""
    return CacheNotWritable(f"the kernel cache {cache_root()} cannot be written: {reason}")


def _refuse_if_foreign(path: Path, found: os.stat_result) -> None:
    """Opening a library runs its code, so nobody else may have been able to put it there."""
    if found.st_uid != os.geteuid():
        raise CacheNotWritable(
            f"{path} in the kernel cache belongs to another user (uid {found.st_uid}, you are {os.geteuid()}), "
            "who could make you run anything"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CacheNotWritable(
            f"{path} in the kernel cache can be written by others ({stat.filemode(found.st_mode)}), "
            "who could make you run anything",
            advice=f"remove it; or, if nobody has misused it: chmod -R go-w '{path}'; or set KERNELC_CACHE_DIR",
        )
