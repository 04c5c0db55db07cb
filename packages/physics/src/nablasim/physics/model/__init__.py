"""How a scene lies in memory: drafts, layouts, models, states, batches, and arrays of them. The door of this room."""

from nablasim.physics.model.arrays import Array, Arrays, Step, of_real
from nablasim.physics.model.draft import Column, Draft, Index, Parameter, Real, Rows
from nablasim.physics.model.frames_kernels import COPIES_FIRST
from nablasim.physics.model.layout import Layout, finish, owner
from nablasim.physics.model.model import Model, batch
from nablasim.physics.model.scenes import different, scene_of, world_of
from nablasim.physics.model.standalone import Frames, Quantity, Standalone
from nablasim.physics.model.state import Part, State, part
from nablasim.physics.model.values import between_graphs, is_kernelc, is_torch, needs_gradient, plain, shape_of

__all__ = [
    "COPIES_FIRST",
    "Array",
    "Arrays",
    "Column",
    "Draft",
    "Frames",
    "Index",
    "Layout",
    "Model",
    "Parameter",
    "Part",
    "Quantity",
    "Real",
    "Rows",
    "Standalone",
    "State",
    "Step",
    "batch",
    "between_graphs",
    "different",
    "finish",
    "is_kernelc",
    "is_torch",
    "needs_gradient",
    "of_real",
    "owner",
    "part",
    "plain",
    "scene_of",
    "shape_of",
    "world_of",
]
