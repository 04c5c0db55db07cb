"""What went wrong when a compiler refused generated text, said at the user's Python line.

Generated text carries `#line N "user.py"`, so the compiler itself names the Python file. Its columns are those of the
generated text and mean nothing there: the whole line is marked.
"""

from __future__ import annotations

import re
from pathlib import Path

from kernelc.errors import CompilerFailed, KernelError, Span
from kernelc.toolchain import cache

SOURCE = "kernel.cpp"
"""How the generated text is called in what the compiler says."""

# g++ and clang write file:line:column, nvcc file(line).
_ERROR = re.compile(
    r"^(?P<file>\S.*?)(?::(?P<line>\d+):(?:\d+:)?|\((?P<row>\d+)\):) (?:fatal )?error\b[^:]*: (?P<text>.*)$",
    re.MULTILINE,
)
_MARK = re.compile(r'^\s*#\s*line\s+\d+\s+"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_BREAK = "\u2424"  # the sign for a new line
_DISK = re.compile(r"No space left on device|Read-only file system|Disk quota exceeded")
_KILLED = re.compile(r"\bKilled\b|\bterminated by signal\b|virtual memory exhausted|out of memory", re.IGNORECASE)


def output_of(source: str, ninja: str) -> str:
    """What the compiler said about one source of a batch, by its file name, out of all that Ninja said.

    Not by way of a file for each: on a full disk it would be empty.
    """
    for part in re.split(r"^FAILED: ", ninja, flags=re.MULTILINE)[1:]:
        target, _, rest = part.partition("\n")
        if source.partition(".")[0] in target:
            _command, _, said = rest.partition("\n")
            # Lines of Ninja itself begin so, because NINJA_STATUS says so.
            ours = [line for line in said.splitlines() if not line.startswith("ninja: ")]
            return "\n".join(ours).replace(source, SOURCE)
    return ninja


def failure(name: str, text: str, output: str, suffix: str = ".cpp") -> KernelError:
    """The exception for one source that was not built; its text is kept where the message says."""
    said, span = _first(output, text)
    if disk := _DISK.search(output):
        return cache.unwritable(disk.group())
    if span is None and cache.is_full(output):
        return cache.unwritable("No space left on device")
    kept = _keep(name, text, suffix)
    if span and span.file == SOURCE:
        span = _line(str(kept), span.line)
    advice = "the machine may be out of memory: run fewer builds at once" if _KILLED.search(output) else ""
    which = "nvcc" if suffix == ".cu" else "the C++ compiler"
    message = f"{which} failed on {name!r}: {said}\nsource: {kept}"
    return CompilerFailed(message, span, advice=advice, output=output, source=kept)


def _first(output: str, text: str) -> tuple[str, Span | None]:
    """The first error at a Python line; else the first in the generated text or a header; else what looks like one."""
    # By the name that stands in what the compiler said, on one line.
    users = {file.replace("\n", _BREAK): file for file in map(_unescaped, _MARK.findall(text))}
    for shown, file in users.items():
        output = output.replace(file, shown)
    errors = list(_ERROR.finditer(output))
    for error in [e for e in errors if e["file"] in users] + errors:
        return error["text"], _line(users.get(error["file"], error["file"]), int(error["line"] or error["row"]))
    lines = output.splitlines() or ["it died without a word"]
    return next((line for line in lines if "error" in line or "undefined" in line), lines[-1]), None


def _unescaped(file: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), file)


def _line(file: str, line: int) -> Span:
    text = Span(file, line).text.rstrip()
    return Span(file, line, len(text) - len(text.lstrip()), line, len(text))


def _keep(name: str, text: str, suffix: str) -> Path:
    path = cache.cache_root() / "failed" / f"{safe(name)}{suffix}"
    with cache.writing():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        cache.write(path, text)
    return path


def safe(name: str) -> str:
    """`name` as a file name."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:100].lstrip(".") or "kernel"
