"""Listing 1 of the gradSim paper, as it is printed."""

from kernelc import *


@kernel
def integrate_particles(
    x: tensor(float3),
    v: tensor(float3),
    f: tensor(float3),
    w: tensor(float),
    gravity: tensor(float3),
    dt: float,
    x_new: tensor(float3),
    v_new: tensor(float3),
):

    # Get thread ID
    thread_id = tid()

    # Load state variables and parameters
    x0 = load(x, thread_id)
    v0 = load(v, thread_id)
    f0 = load(f, thread_id)
    inv_mass = load(w, thread_id)

    # Load external forces
    g = load(gravity, 0)

    # Semi-implicit Euler
    v1 = v0 + (f0 * inv_mass - g * step(inv_mass)) * dt
    x1 = x0 + v1 * dt

    # Store results
    store(x_new, thread_id, x1)
    store(v_new, thread_id, v1)
