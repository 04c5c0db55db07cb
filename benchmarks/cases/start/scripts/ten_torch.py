"""Ten functions of tensors, one after the other, and the way back. Nothing is compiled, nothing kept."""

import sys

import numpy as np
import torch


def scale(x, k):
    return x * k


def wave(x):
    return torch.stack([torch.sin(x[:, 0]), torch.cos(x[:, 1]), torch.exp(-x[:, 2] * x[:, 2])], -1)


def pull(x):
    d = x.roll(-1, 0) - x
    length = d.norm(dim=-1, keepdim=True)
    return d / length * (length - 0.5)


def smooth(x):
    d = x - x[:, None]
    return torch.exp(-(d * d).sum(-1)) @ x


def power(x, steps):
    p = x
    for _ in range(steps):
        p = p * x + x * 0.5
    return p


def clip(x):
    length = x.norm(dim=-1, keepdim=True)
    return torch.where(length > 1.0, x / length, x)


def turn(x):
    half = 0.5 * x[:, :1]
    axis = torch.sin(half) * torch.tensor([0.0, 1.0, 0.0])
    return x + 2.0 * torch.linalg.cross(axis, torch.linalg.cross(axis, x) + torch.cos(half) * x)


def stretch(x):
    A = x[:, :, None] * x[:, None] + torch.eye(3)
    return (torch.linalg.inv(A) @ x[:, :, None])[..., 0]


def spread(x):
    return x + x.roll(3, 0) * 0.5


def energy(x):
    return (x * x).sum()


def main() -> None:
    points = np.sin(np.arange(48, dtype=np.float32)).reshape(16, 3)
    x = torch.tensor(points, requires_grad=True)
    y = power(smooth(pull(wave(scale(x, 0.3)))), 3)
    energy(spread(stretch(turn(clip(y))))).backward()
    np.savetxt(sys.stdout, x.grad.numpy())


main()
