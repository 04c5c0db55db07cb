"""Settings of Sphinx: `make docs` writes out/docs/index.html."""

import importlib.metadata

project = "nablasim"
copyright = "the nablasim authors"
release = importlib.metadata.version("kernelc")

extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "nablasim"
exclude_patterns = ["_build"]
