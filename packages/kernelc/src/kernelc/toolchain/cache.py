"""The kernel cache: one folder per hash, built aside under a lock, published by rename, verified when it is used.

    kernels/<key>/     kernel.so, kernel.cpp, SHA256SUMS (readable by sha256sum -c)
    probe/             what the probe found out about each compiler
    locks/             one file per stripe: the first digit of a key, or "probe"
    aside/<stripe>-*/  builds under way
    failed/            the sources that a compiler refused
    cmake/             projects for an IDE (KERNELC_CMAKE=1)

Reading takes no lock and writes nothing, so a full cache may lie on a read-only disk. Whoever writes holds the locks
of the stripes that it writes; the kernel of the system releases them when a process dies, so none is ever stale.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kernelc.config import config
from kernelc.errors import CacheNotWritable

LIBRARY, SOURCE, SUMS = "kernel.so", "kernel.cpp", "SHA256SUMS"

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ENOLCK)


def cache_root() -> Path:
    """Where compiled kernels are kept: `kc.config.cache_dir`, or the user's cache folder."""
    return Path(os.path.abspath(config.cache_dir)) if config.cache_dir else _user_cache()


@functools.cache
def _user_cache() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("kernelc")


def open_root() -> Path:
    """The cache folder, made when missing (for its owner alone), refused when others could write to it."""
    root = cache_root()
    if not root.exists():
        with writing():
            root.parent.mkdir(parents=True, exist_ok=True)
            root.mkdir(mode=0o700, exist_ok=True)
    _refuse_if_foreign(root, "the kernel cache", stat.S_ISDIR)
    return root


def find(key: str) -> Path | None:
    """The library of `key`, or None when it was never built, or is damaged and must be built again."""
    folder = cache_root() / "kernels" / key
    library = folder / LIBRARY
    try:
        for path, kind in ((folder.parent, stat.S_ISDIR), (folder, stat.S_ISDIR), (library, stat.S_ISREG)):
            _refuse_if_foreign(path, "the cached kernel", kind)
        expected = (folder / SUMS).read_text().split()[0]
        found = hashlib.sha256(library.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError, IndexError):
        return None
    return library if found == expected else None


@contextmanager
def workplace(stripes: Iterable[str]) -> Iterator[Path]:
    """Hold the locks of `stripes` and give an empty folder on the same disk, which is gone afterwards.

    Stripes are locked in sorted order, so that two batches never wait for each other. There are few of them: a batch
    of a thousand kernels needs no thousand open files, and no lock file ever has to be cleaned away.
    """
    import shutil
    import tempfile

    names = sorted(set(stripes))
    root = open_root()
    aside = root / "aside"
    with ExitStack() as held:
        with writing():
            aside.mkdir(mode=0o700, exist_ok=True)
            for name in names:
                held.enter_context(_lock(root / "locks" / name))
                # A folder of this stripe cannot belong to anyone alive: its maker would hold the lock.
                for left in aside.glob(f"{name}-*"):
                    shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix=f"{names[0]}-", dir=aside))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def stripe(key: str) -> str:
    """The lock that guards the entry `key`."""
    return key[0]


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    # Not the filelock package: importing it takes longer than compiling a kernel, it polls, and where flock is
    # missing it falls back to a file that outlives a killed process.
    import fcntl

    path.parent.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def publish(key: str, library: Path, source: str) -> Path:
    """Move a finished library into the cache, in one rename; the caller holds the lock of `stripe(key)`."""
    made = library.with_name(f"{key}.entry")
    target = cache_root() / "kernels" / key
    with writing():
        made.mkdir(mode=0o700)
        library.rename(made / LIBRARY)
        (made / LIBRARY).chmod(0o600)
        write(made / SOURCE, source)
        digest = hashlib.sha256((made / LIBRARY).read_bytes()).hexdigest()
        write(made / SUMS, f"{digest}  {LIBRARY}\n")
        target.parent.mkdir(mode=0o700, exist_ok=True)
        if target.exists():  # damaged: whoever has it open keeps it
            target.rename(library.with_name(f"{key}.damaged"))
        made.rename(target)
    return target / LIBRARY


def write(path: Path, text: str) -> None:
    """Write a file that only its owner can read; whoever looks sees the old file or the new one, never a half."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    draft.replace(path)


@contextmanager
def writing() -> Iterator[None]:
    """Turn the ways in which a disk refuses into an error that names the cache folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise unwritable(error.strerror or str(error)) from error


def unwritable(reason: str) -> CacheNotWritable:
    """The error for a cache that cannot take a new kernel."""
    return CacheNotWritable(f"the kernel cache {cache_root()} cannot be written: {reason}")


def _refuse_if_foreign(path: Path, what: str, kind: object) -> None:
    """Loading a library runs its code, so nobody else may have been able to put it there."""
    found = path.lstat() if what != "the kernel cache" else path.stat()
    assert callable(kind)
    if found.st_uid != os.geteuid():
        raise CacheNotWritable(f"{what} {path} belongs to another user (uid {found.st_uid}, you are {os.geteuid()})")
    if found.st_mode & 0o022:
        raise CacheNotWritable(
            f"{what} {path} can be written by others (mode {stat.filemode(found.st_mode)})",
            advice=f"if you trust what is in it: chmod go-w '{path}'; else remove it, or set KERNELC_CACHE_DIR",
        )
    if not kind(found.st_mode):
        raise CacheNotWritable(f"{what} {path} is not what it should be (mode {stat.filemode(found.st_mode)})")
