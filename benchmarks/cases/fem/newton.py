"""Newton's semi-implicit solver, the same material: looking for contact of particles, as it does by itself; without
that, which this block does not need; and that captured as a graph.

By itself it also looks for contact of triangles, each with each, and is another ten times slower: that is turned off.
"""

import newton
import numpy as np
import warp as wp

from ...harness import Entrant
from . import _CELLS, DENSITY, DT, GRAVITY, STEPS, Work, block

wp.config.quiet = True


class Rollout:
    def __init__(self, work: Work, contact: bool = False):
        rest, tets = block(_CELLS[len(work.tets)])
        builder = newton.ModelBuilder(gravity=(0.0, GRAVITY, 0.0), up_axis=newton.Axis.Y)
        builder.add_soft_mesh(
            pos=wp.vec3(), rot=wp.quat_identity(), scale=1.0, vel=wp.vec3(), vertices=[wp.vec3(*x) for x in rest],
            indices=tets.ravel().tolist(), density=DENSITY, k_mu=work.mu, k_lambda=work.lam, k_damp=0.0,
            add_surface_mesh_edges=False, particle_radius=0.01,  # nothing touches: the results are the same
        )  # fmt: skip
        self.model = builder.finalize(device="cpu", requires_grad=True)
        if not contact:
            self.model.particle_grid = None
        self.solver = newton.solvers.SolverSemiImplicit(self.model, enable_tri_contact=False)
        self.states = [self.model.state(requires_grad=True) for _ in range(STEPS + 1)]
        self.states[0].particle_q.assign(work.x)
        self.states[0].particle_qd.assign(work.v)
        self.control, self.seed = self.model.control(), wp.array(work.seed, dtype=wp.vec3, device="cpu")

    def forward(self) -> None:
        for now, then in zip(self.states, self.states[1:]):
            now.clear_forces()
            self.solver.step(now, then, self.control, None, DT)

    def both(self) -> None:
        tape = wp.Tape()
        with tape:
            self.forward()
        for state in self.states:
            for a in (state.particle_q, state.particle_qd, state.particle_f):
                a.grad.zero_()
        self.model.tet_materials.grad.zero_()
        tape.backward(grads={self.states[-1].particle_q: self.seed})

    def results(self) -> dict[str, np.ndarray]:
        first, materials = self.states[0], self.model.tet_materials.grad.numpy()
        return {
            "x": self.states[-1].particle_q.numpy(), "grad x": first.particle_q.grad.numpy(),
            "grad v": first.particle_qd.grad.numpy(), "grad mu": materials[:, 0], "grad lam": materials[:, 1],
        }  # fmt: skip


def entrants(work: Work) -> dict[str, Entrant]:
    usual, plain, graph = Rollout(work, contact=True), Rollout(work), Rollout(work)
    graph.both()
    captured = {}
    for name, run in (("forward", graph.forward), ("forward + backward", graph.both)):
        with wp.ScopedCapture(device="cpu") as capture:
            run()
        captured[name] = lambda graph=capture.graph: wp.capture_launch(graph)
    return {
        "Newton": Entrant({"forward": usual.forward, "forward + backward": usual.both}, usual.results),
        "Newton, no contact": Entrant({"forward": plain.forward, "forward + backward": plain.both}, plain.results),
        "Newton, no contact, graph": Entrant(captured, graph.results),
    }
