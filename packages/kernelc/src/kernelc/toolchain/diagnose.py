"""What went wrong when a compiler refused generated text, said at the user's Python line.

Generated text carries `#line N "user.py"`, so the compiler itself names the Python file. Its columns are those of the
generated text and mean nothing there: the whole line is marked.
"""

from __future__ import annotations

import re
from pathlib import Path

from kernelc.errors import CompilerFailed, KernelError, Span
from kernelc.toolchain import cache

_ERROR = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_DISK = re.compile(r"No space left on device|Read-only file system|Disk quota exceeded")


def failure(name: str, text: str, log: Path, ninja: str) -> KernelError:
    """The exception for one source of a batch; its text is kept where the message says."""
    output = log.read_text(encoding="utf-8", errors="replace").strip() if log.exists() else ""
    full = output or ninja.strip()
    if disk := _DISK.search(full):
        return cache.unwritable(disk.group())
    kept = _keep(name, text)
    full = full.replace(log.with_suffix(".cpp").name, str(kept))
    errors = list(_ERROR.finditer(full))
    if not errors:
        last = full.splitlines()[-1] if full else "it was killed"
        return CompilerFailed(f"the C++ compiler failed on {name!r}: {last}\nsource: {kept}", output=full, source=kept)
    said = next((error for error in errors if error["file"].endswith(".py")), errors[0])
    message = f"the C++ compiler refused {name!r}: {said['text']}\nsource: {kept}"
    return CompilerFailed(message, _line(said["file"], int(said["line"])), output=full, source=kept)


def _line(file: str, line: int) -> Span:
    text = Span(file, line).text.rstrip()
    return Span(file, line, len(text) - len(text.lstrip()), line, len(text))


def _keep(name: str, text: str) -> Path:
    path = cache.cache_root() / "failed" / f"{safe(name)}.cpp"
    with cache.writing():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        cache.write(path, text)
    return path


def safe(name: str) -> str:
    """`name` as a file name."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:100].lstrip(".") or "kernel"
