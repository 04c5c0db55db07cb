"""Saves an animation of matplotlib: as mp4 where ffmpeg is installed, as gif otherwise."""

import shutil
from pathlib import Path

from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter


def save(animation: FuncAnimation, path: Path, fps: int) -> Path:
    """Write to the path, with the ending that fits, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer, ending = (FFMpegWriter(fps=fps), ".mp4") if shutil.which("ffmpeg") else (PillowWriter(fps=fps), ".gif")
    animation.save(path.with_suffix(ending), writer=writer, dpi=80)
    return path.with_suffix(ending)
