"""The paper's experiments: one declarative file each, run at three sizes by `nablasim reproduce`."""
