"""How long MJX takes for its first gradient through a motion of a planar walker: `nablasim control walker` beside it.

    pip install mujoco-mjx gymnasium        # in an environment of its own: MJX and MuJoCo have the same version
    python benchmarks/mjx_gradient.py       # seconds to trace and compile, and for the first gradient
    nablasim control walker                 # a whole training

The walker is walker2d of gymnasium, which MJX differentiates by its joints' torques through 60 steps of 0.5 s in all.
Needs nothing of nablasim.
"""

import time
from pathlib import Path

import gymnasium
import jax
import mujoco
from mujoco import mjx

STEPS = 60


def main() -> None:
    file = Path(gymnasium.__file__).parent / "envs/mujoco/assets/walker2d_v5.xml"
    there = mujoco.MjModel.from_xml_path(str(file))
    there.opt.timestep = 0.5 / STEPS
    # MJX goes back through its solver where it has one round.
    there.opt.iterations, there.opt.ls_iterations = 1, 4
    model = mjx.put_model(there)
    start = mjx.put_data(there, mujoco.MjData(there))

    def loss(torques):
        def step(data, torque):
            return mjx.step(model, data.replace(ctrl=torque)), None

        end, _ = jax.lax.scan(step, start, torques)
        return -end.qpos[0]

    torques = jax.numpy.zeros((STEPS, there.nu)) + 0.1
    began = time.perf_counter()
    gradient = jax.jit(jax.grad(loss)).lower(torques).compile()
    compiled = time.perf_counter()
    found = gradient(torques).block_until_ready()
    done = time.perf_counter()
    finite = bool(jax.numpy.isfinite(found).all())
    print(f"MJX {mujoco.__version__}: {compiled - began:.1f} s to compile the gradient of {STEPS} steps")
    print(f"{done - compiled:.2f} s for the first one, which is {'finite' if finite else 'not finite'}")


if __name__ == "__main__":
    main()
