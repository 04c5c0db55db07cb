"""Scene files: what is in front of the camera, written down in YAML, and what is to be found in it."""

from nablasim.sysid.scenes.build import Stage
from nablasim.sysid.scenes.reading import BadScene, Script, parse_scene, read_scene

__all__ = ["BadScene", "Script", "Stage", "parse_scene", "read_scene"]
