"""Settings of Sphinx: `make docs` writes out/docs/index.html."""

import importlib.metadata

project = "nablasim"
copyright = "the nablasim authors"
release = importlib.metadata.version("kernelc")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "nablasim"
exclude_patterns = ["_build"]


def as_rst(app, what, name, obj, options, lines):
    """Docstrings here are plain text: names in backticks are code, and lists of arguments keep their lines."""
    import re

    text, done = "\n".join(lines).strip("\n").split("\n\n"), []
    for paragraph in text:
        rows = paragraph.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|").split("\n")
        rows = [re.sub(r"(?<!`)`([^`]+)`(?!`)", lambda m: f"``{m[1]}``".replace("\\", ""), row) for row in rows]
        if len(rows) > 1 and any(row.startswith(" ") or re.match(r"\w[\w, ]*: ", row) for row in rows):
            rows = [f"| {row.strip()}" for row in rows]
        done += [*(row.strip() if not row.startswith("|") else row for row in rows), ""]
    lines[:] = done


def setup(app):
    app.connect("autodoc-process-docstring", as_rst)
