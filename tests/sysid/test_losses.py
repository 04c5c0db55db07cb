"""What losses see of a picture."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from nablasim import sysid


def disc(x: float, y: float, radius: float = 4.0, size: int = 48) -> torch.Tensor:
    i, j = torch.meshgrid(torch.arange(float(size)), torch.arange(float(size)), indexing="ij")
    return torch.sigmoid(2 * (radius - torch.hypot(i - y, j - x)))[None]


LOSSES = [sysid.Pixels(), sysid.Pyramid(4), sysid.Blur(3.0), sysid.Moments()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_gradients_are_those_of_differences(loss):
    picture = disc(20, 25).to(torch.float64)
    picture = torch.cat([picture, disc(30, 18).to(torch.float64)]).requires_grad_()
    way = torch.randn(picture.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = torch.randn(loss(picture).shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    (slope,) = torch.autograd.grad((loss(picture) * weights).sum(), picture)
    h = 1e-6
    sides = [(loss(picture.detach() + s * h * way) * weights).sum() for s in (1, -1)]
    assert float((slope * way).sum()) == pytest.approx(float((sides[0] - sides[1]) / (2 * h)), rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_colours_have_rows_as_well(loss):
    rows = loss(disc(20, 25)[..., None].repeat(2, 1, 1, 3))
    assert rows.ndim == 2 and len(rows) == 2 and torch.equal(rows[0], rows[1])


@pytest.mark.parametrize("loss", LOSSES[1:], ids=lambda loss: type(loss).__name__)
def test_shapes_that_do_not_overlap_pull_on_each_other_except_by_pixels(loss):
    def misfit(kind, x):
        return float(((kind(disc(x, 24)) - kind(disc(36, 24))) ** 2).sum())

    pixels = [misfit(sysid.Pixels(), x) for x in (14, 18, 22)]
    assert np.ptp(pixels) < 1e-3 * pixels[0]
    # From three times the radius apart on.
    far = [misfit(loss, x) for x in (23, 26, 29, 32, 35)]
    assert all(a > b for a, b in pairwise(far))


def test_moments_are_those_of_the_disc():
    area, x, y, wide, high, tilt = sysid.Moments()(disc(20, 25))[0]
    assert (float(x), float(y)) == pytest.approx((20, 25), abs=0.02)
    assert float(area) == pytest.approx(np.sqrt(np.pi) * 4, rel=0.05)
    assert float(wide) == pytest.approx(2, rel=0.2) and float(high) == pytest.approx(float(wide), rel=1e-3)
    assert abs(float(tilt)) < 1e-3
    assert torch.isfinite(sysid.Moments()(torch.zeros(1, 8, 8))).all()
