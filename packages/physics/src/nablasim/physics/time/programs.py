"""Programs of models: made once for a layout, a precision and a choice of gradients, and kept with the layout."""

from __future__ import annotations

from nablasim.physics.model import Model
from nablasim.physics.time.integrators import Integrator, named
from nablasim.physics.time.leaves import Leaves
from nablasim.physics.time.program import Program

PROGRAMS = 16
"""How many programs a layout keeps: each has memory of its own. A run keeps the one that it needs."""


def program_of(leaves: Leaves, integrator: Integrator, grads: frozenset[str] = frozenset(), *,
               tangents: bool = False) -> Program:  # fmt: skip
    """The program of a model in which some columns are differentiated by, backwards or for `tangents`; the same one the
    next time."""
    model, layout = leaves.model, leaves.model.layout
    varied = leaves.columns(leaves.control)
    used = grads | varied | leaves.columns(name for name, _, _ in leaves.live)
    present = model.present | {name for name in used if layout.columns[name].optional}
    tangents = tangents and bool(layout.rows("robots"))  # Only they have two ways.
    key = (model.real, grads, present, varied, integrator, tangents)
    if key not in layout.programs:
        if len(layout.programs) >= PROGRAMS:
            del layout.programs[next(iter(layout.programs))]
        layout.programs[key] = Program(layout, model.real, grads=grads, present=present, varied=varied,
                                       integrator=integrator, tangents=tangents)  # fmt: skip
    return layout.programs[key]


def looking(model: Model) -> Program:
    """A program without gradients."""
    return program_of(Leaves(model, None, 0), named("semi_implicit"))
