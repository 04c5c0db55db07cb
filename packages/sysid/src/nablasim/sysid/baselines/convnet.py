"""A network that reads physical parameters off a video, trained on other bodies: the paper's second baseline.

As in the paper, 15 frames of 64 × 64 pixels become 4 × 4 × 32 features each, and an MLP of linear layers (7680, 1024,
100, 100, 100, n) reads the numbers off. The paper's features come from an EfficientNet that was trained on photographs;
here a small convolutional network is trained with the rest. It is told what a fit is told, too: how the body starts and
how it is pushed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.experiments.answers import Answer

LOOKS = 15
"""Frames that are looked at."""
RATE = 5e-4
BATCH = 16


@dataclass(frozen=True)
class Trained:
    """The item of all cases: film the training bodies, train, and answer."""

    arm: str
    cases: tuple[Any, ...]
    training: tuple[Any, ...]
    epochs: int

    def run(self) -> list[Answer]:
        import torch

        began = time.perf_counter()
        torch.manual_seed(0)
        seen, told, wanted, columns = _samples(self.training)
        low, high = wanted.min(axis=0), wanted.max(axis=0)
        middle, spread = told.mean(axis=0), told.std(axis=0) + 1e-6
        network = _network(told.shape[1], wanted.shape[1])
        scaled = torch.as_tensor((wanted - low) / (high - low)).float()
        films, notes = torch.as_tensor(seen), torch.as_tensor((told - middle) / spread).float()
        _train(network, films, notes, scaled, self.epochs)
        seconds = (time.perf_counter() - began) / len(self.cases)
        asked, hints, _, _ = _samples(self.cases)
        with torch.no_grad():
            answers = network(torch.as_tensor(asked), torch.as_tensor((hints - middle) / spread).float()).numpy()
        values = np.exp(low + answers * (high - low))
        return [
            Answer(self.arm, case.index, case.columns(case.truth), dict(zip(columns, map(float, row))), seconds)
            for case, row in zip(self.cases, values)
        ]


def _samples(cases: Sequence[Any]) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Films (n, frames, height, width), what is told, logarithms of what is asked, and its names."""
    films, told, wanted = [], [], []
    for case in cases:
        frames = case.film.frames
        films.append(frames[np.linspace(0, len(frames) - 1, LOOKS).round().astype(int)].astype(np.float32))
        told.append(case.known)
        truth = case.columns(case.truth)
        wanted.append([np.log(float(v)) for v in truth.values()])
    return np.stack(films), np.stack(told), np.array(wanted), list(truth)


def _network(told: int, asked: int) -> Any:
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers: list[nn.Module] = []
            for before, after in ((1, 16), (16, 32), (32, 32)):
                layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
            # Whatever the size of the frames, 4 × 4 places of 32 features are left of each.
            self.look = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4))
            sizes = (LOOKS * 512 + told, 1024, 100, 100, 100)
            head: list[nn.Module] = []
            for a, b in pairwise(sizes):
                head += [nn.Linear(a, b), nn.ReLU()]
            self.read = nn.Sequential(*head, nn.Linear(sizes[-1], asked))

        def forward(self, films: Any, notes: Any) -> Any:
            n, frames, height, width = films.shape
            features = self.look(films.reshape(n * frames, 1, height, width)).reshape(n, -1)
            return self.read(torch.cat([features, notes], dim=1))

    return Network()


def _train(network: Any, films: Any, notes: Any, wanted: Any, epochs: int) -> None:
    import torch

    adam = torch.optim.Adam(network.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=epochs)
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for some in torch.randperm(len(films), generator=order).split(BATCH):
            loss = ((network(films[some], notes[some]) - wanted[some]) ** 2).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        schedule.step()
