"""The report of a fit: one HTML page that needs no other file and no JavaScript."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from numpy.typing import NDArray

from nablasim.sysid.report.curves import draw_landscape, draw_losses, styled, trust
from nablasim.sysid.report.films import shown
from nablasim.sysid.report.motions import write_motions

if TYPE_CHECKING:
    from nablasim.sysid.fit import Fit

DISTRIBUTIONS = ("kernelc", "nablasim-physics", "nablasim-render", "nablasim-sysid", "numpy", "torch")


def write_report(
    fit: Fit,
    folder: str | Path = "out",
    *,
    title: str = "What was found",
    recording: NDArray[Any] | None = None,
    scene: str = "",
    others: Mapping[str, Any] | None = None,
) -> Path:
    """Write report.html into a folder, and give its path. It is renamed into place: a failure leaves the old one.

    Of a scene there is motion.npz beside it, for `nablasim view`.

    recording: the video (frames, height, width, 3) of which the target was made, to be shown as well
    scene: the text of the scene file, if there is one
    others: models by name, such as the one of which the target was made, to be looked at beside what was found
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_motions(fit, Path(folder), recording, others)
    return write_page(Path(folder) / "report.html", _page(fit, title, recording, scene))


def write_page(file: Path, page: str) -> Path:
    """Renamed into place: a failure leaves the old one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".part")
    aside.write_text(page, encoding="utf-8")
    aside.replace(file)
    return file


def filled(template: str, **content: Any) -> str:
    """A template of this package with its content."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nablasim.sysid.report"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(template).render(**content)


def made_by() -> str:
    """What was run, when, and with what."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
    written = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    return f"Made by {command}, {written}; {python}; {', '.join(f'{n} {v}' for n, v in _versions().items())}"


def _page(fit: Fit, title: str, recording: NDArray[Any] | None, scene: str) -> str:
    rows = [
        (e.name, "" if e.unit == "1" else e.unit, f"{first:.4g}", f"{e.value:.6g}",
         f"{e.low:.6g} … {e.high:.6g}" if e.certified else "")
        for e, first in zip(fit.estimates, fit.problem.space.numbers(fit.starts[fit.best].first))
    ]  # fmt: skip
    against: dict[str, list[str]] = {}
    for e in fit.estimates:
        for reason in e.why:
            against.setdefault(reason, []).append(e.name)
    return filled(
        "report.html.j2",
        title=title,
        fit=fit,
        rows=rows,
        against={reason: "all" if len(n) == len(rows) > 1 else ", ".join(n) for reason, n in against.items()},
        scene=scene,
        level=f"{fit.estimates[0].level:.0%}",
        films=shown(fit, recording),
        trust=trust(fit),
        loss=styled(draw_losses, fit),
        landscape=styled(draw_landscape, fit),
        misfit=fit.certificate.misfit,
        made_by=made_by(),
    )


def _versions() -> dict[str, str]:
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "from source"
    return found
