"""The notebooks of the quick starts run from top to bottom; the long one in nightly runs, its page in all."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
LONG = {"identify": pytest.mark.nightly}


@pytest.mark.slow
@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem, marks=LONG.get(p.stem, ())) for p in NOTEBOOKS])
def test_the_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells and not any(cell.outputs for cell in cells), "notebooks are kept without what they print"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = "".join(out.text for cell in cells for out in cell.outputs if out.output_type == "stream")
    assert said.strip()


def test_each_quick_start_is_a_notebook():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf8")
    assert len(NOTEBOOKS) == readme.count("## Quick start")
