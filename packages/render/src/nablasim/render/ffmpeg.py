"""Video files by the ffmpeg of imageio-ffmpeg: frames, and the time that the container gives to each of them.

Frames are neither dropped nor doubled to make them even, pictures of a turned phone are turned upright, and pixels that
are not square are made so. What ffmpeg has to say is caught: it becomes a message, or a note.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from imageio_ffmpeg import get_ffmpeg_exe
from numpy.typing import NDArray

Taken = TypeVar("Taken")

SQUARE = "scale=w='max(1,round(iw*sar))':h=ih"
CALM = ["-nostdin", "-hide_banner", "-nostats"]
_FRAME = re.compile(r"\] n: *\d+ pts: *(\S+) .*? sar:(\d+)/(\d+) s:(\d+)x(\d+) ")
_BASE = re.compile(r"config in time_base: (\d+)/(\d+)")
_CAPTURE = re.compile(r"com\.android\.capture\.fps *: *([\d.]+)")
_COMPLAINT = re.compile(r"\[(?:error|fatal|panic)\] (.*)")
_FORMAT = re.compile(r"Input #0, (\S+), from")


@dataclass(frozen=True)
class Log:
    """What ffmpeg said about the frames that it gave."""

    stamps: NDArray[np.int64] | None
    """When each frame is shown, in ticks from the first one on; None if the file does not say."""
    tick: float
    """s"""
    sizes: tuple[tuple[int, int], ...]
    """(height, width) of each frame, upright and with square pixels."""
    captured: float | None
    """Frames per second of the sensor, where a phone has noted that."""
    complaints: tuple[str, ...]


def probe(path: Path) -> Log:
    """When frames are shown and how large they are, without keeping them."""
    return _run(path, None, ["-vf", "showinfo=checksum=0", "-f", "null", "-"], lambda pipe: None)[1]


def decode(path: Path, take: Callable[[NDArray[np.uint8]], Taken], most: int | None) -> tuple[list[Taken], Log]:
    """What `take` makes of each picture (height, width, 3), one by one: a long video does not fit into memory."""
    # Pictures that bring their own size: it may change within a file.
    output = ["-vf", f"showinfo=checksum=0,{SQUARE}", "-f", "image2pipe", "-c:v", "ppm", "-pix_fmt", "rgb24", "-"]

    def pictures(pipe: IO[bytes]) -> list[Taken]:
        taken = []
        while (picture := _next(pipe)) is not None:
            taken.append(take(picture))
        return taken

    found, log = _run(path, most, output, pictures)
    if len(found) > len(log.sizes):
        raise ValueError(f"{path} cannot be read as a video: ffmpeg gave {len(found)} frames, {len(log.sizes)} times")
    return found, log


def encode(path: Path, rgb: NDArray[np.uint8], fps: float, *, crf: int = 10) -> None:
    """Write bytes (time, height, width, 3) as H.264; `crf` is how coarse, from 0 (exact) to 51 (phones: about 23)."""
    height, width = rgb.shape[1:3]
    command = [get_ffmpeg_exe(), "-hide_banner", "-nostats", "-loglevel", "level+error", "-y", "-f", "rawvideo",
               "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:.9g}", "-i", "-", "-an", "-c:v", "libx264",
               "-pix_fmt", "yuv420p", "-crf", str(crf), f"file:{path}"]  # fmt: skip
    done = subprocess.run(command, input=rgb.tobytes(), capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise OSError(f"{path} cannot be written: {_why(said)}")


def _run(path: Path, most: int | None, output: list[str], use: Callable[[IO[bytes]], Any]) -> tuple[Any, Log]:
    limit = [] if most is None else ["-frames:v", str(most)]
    # A file that names other files (a playlist) may name those of this machine only.
    command = [get_ffmpeg_exe(), *CALM, "-loglevel", "level+info", "-protocol_whitelist", "file", "-i", f"file:{path}",
               "-map", "0:v:0", *limit, "-fps_mode", "passthrough", *output]  # fmt: skip
    # A file for what it says: two pipes that are read one after the other can wait for each other.
    with tempfile.TemporaryFile() as said:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        try:
            assert running.stdout is not None
            found = use(running.stdout)
            code = running.wait()
        finally:
            running.kill()
            running.communicate()
        said.seek(0)
        text = said.read().decode(errors="replace")
    log = _parse(text)
    kind = _FORMAT.search(text)
    if kind is not None and kind[1].startswith("tty"):
        raise ValueError(f"{path} cannot be read as a video: it is text")
    if code or not log.sizes:
        raise ValueError(f"{path} cannot be read as a video: {_why(text)}")
    return found, log


def _parse(text: str) -> Log:
    frames, base, captured = _FRAME.findall(text), _BASE.search(text), _CAPTURE.search(text)
    sizes = tuple((int(h), max(1, round(int(w) * int(n) / int(d))) if int(n) and int(d) else int(w))
                  for _, n, d, w, h in frames)  # fmt: skip
    known = base is not None and all(re.fullmatch(r"-?\d+", pts) for pts, *_ in frames)
    stamps = np.array([int(pts) for pts, *_ in frames], np.int64) if known else None
    return Log(
        None if stamps is None else stamps - stamps[:1].sum(),
        int(base[1]) / int(base[2]) if base is not None else 0.0,
        sizes,
        float(captured[1]) if captured is not None else None,
        tuple(dict.fromkeys(_COMPLAINT.findall(text))),
    )


def _why(text: str) -> str:
    """What ffmpeg said last: the rest is what follows from it."""
    if "matches no streams" in text:
        return "it has no pictures"
    lines = _COMPLAINT.findall(text) or ["it has no frames"]
    return str(lines[-1]).rpartition(": ")[2]


def _next(pipe: IO[bytes]) -> NDArray[np.uint8] | None:
    """A picture in the format PPM: `P6`, width and height, 255, and the bytes."""
    if not pipe.readline():
        return None
    width, height = (int(n) for n in pipe.readline().split())
    pipe.readline()
    content = pipe.read(3 * width * height)
    return None if len(content) < 3 * width * height else np.frombuffer(content, np.uint8).reshape(height, width, 3)
