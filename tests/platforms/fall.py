"""A ball that falls, with its gradient and without torch: what `pythons.sh` asks of every installation of physics."""

import sys

import numpy as np

import kernelc as kc
from nablasim import physics as ph

scene = ph.Scene(gravity=(0, -10, 0))
scene.add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=(0, 5, 0), vel=(1, 2, 0))
model = scene.build(real="float64")

with kc.Tape() as tape:
    velocity = kc.array(np.array([[1.0, 2.0, 0.0]]), dtype=kc.float3, requires_grad=True)
    path = ph.rollout(model.replace({"ball.v": velocity}), dt=0.01, steps=100)["ball"].x
steps = 100
height = 5 + 2 * 1.0 - 10 * 0.01**2 * steps * (steps + 1) / 2
assert abs(path.numpy()[-1].reshape(3)[1] - height) < 1e-12, path.numpy()[-1]
weights = np.zeros(path.numpy().shape)
weights[-1] = (0.0, 1.0, 0.0)
tape.backward(grads={path: weights})
assert np.allclose(velocity.grad.numpy().reshape(3), (0, 1, 0)), velocity.grad.numpy()
assert "torch" not in sys.modules
print("a ball falls as it should, and its gradient arrives")
