"""What of a picture is compared: its pixels, several scales of it, a blurred one, or where its silhouette is.

A loss is a function from pictures (n, height, width) or (n, height, width, channels) to rows of numbers (n, m); the
misfit of two pictures is the squared length of the difference of their rows. All are tensors, with gradients.

`Pixels` is the most precise and has the narrowest basin: shapes that do not overlap do not feel each other. The others
pull from farther away, and are for the way there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class Loss(Protocol):
    """From pictures (n, height, width[, channels]) to numbers (n, m)."""

    def __call__(self, pictures: Any) -> Any: ...


@dataclass(frozen=True)
class Pixels:
    """Every pixel as it is: the mean of squares is the paper's loss."""

    def __call__(self, pictures: Any) -> Any:
        return pictures.reshape(len(pictures), -1)


@dataclass(frozen=True)
class Pyramid:
    """The picture and smaller and smaller versions of it, each half as wide, smoothed by the binomial 1 3 3 1.

    Every level weighs the same for a shape that is far from where it should be, so that coarse ones lead the way.
    """

    levels: int = 4

    def __call__(self, pictures: Any) -> Any:
        import torch

        image = _channels_first(pictures)
        n, channels, *size = image.shape
        line = image.new_tensor([1.0, 3.0, 3.0, 1.0]) / 8
        kernel = (line[:, None] * line)[None, None]
        image, rows = image.reshape(n * channels, 1, *size), []
        for level in range(self.levels):
            if level:
                if min(image.shape[-2:]) < 2:
                    break
                image = torch.nn.functional.conv2d(image, kernel, stride=2, padding=2)
            rows.append(2.0**level * image.reshape(n, -1))
        return torch.cat(rows, dim=1)


@dataclass(frozen=True)
class Blur:
    """Compares pictures blurred by a Gaussian of standard deviation `sigma` pixels."""

    sigma: float = 3.0

    def __call__(self, pictures: Any) -> Any:
        import torch

        reach = max(1, int(3 * self.sigma + 0.5))
        image = _channels_first(pictures)
        line = torch.arange(-reach, reach + 1, dtype=image.dtype)
        line = torch.exp(-0.5 * (line / self.sigma) ** 2)
        line = line / line.sum()
        n, channels, height, width = image.shape
        image = image.reshape(n * channels, 1, height, width)
        image = torch.nn.functional.conv2d(image, line[None, None, :, None], padding=(reach, 0))
        image = torch.nn.functional.conv2d(image, line[None, None, None, :], padding=(0, reach))
        return image.reshape(n, -1)


@dataclass(frozen=True)
class Moments:
    """Where a silhouette is, how large and how wide: square root of the area, centre and widths, all in pixels.

    Six numbers of a whole picture: useful from any distance, as long as the shape is in view.
    """

    def __call__(self, pictures: Any) -> Any:
        import torch

        image = _channels_first(pictures).mean(1).to(torch.float64)
        height, width = image.shape[-2:]
        y = torch.arange(height, dtype=image.dtype)[:, None]
        x = torch.arange(width, dtype=image.dtype)
        # A faint offset keeps the moments of an empty picture finite, in its middle.
        faint = 1e-6
        area = image.sum((1, 2)) + faint * height * width
        image = image + faint

        def mean(what: Any) -> Any:
            return (image * what).sum((1, 2)) / area

        mx, my = mean(x), mean(y)
        sx, sy = ((mean(w * w) - m * m).clamp_min(1e-12).sqrt() for w, m in ((x, mx), (y, my)))
        tilt = (mean(x * y) - mx * my) / (sx * sy).sqrt()
        return torch.stack([area.sqrt(), mx, my, sx, sy, tilt], dim=1)


def _channels_first(pictures: Any) -> Any:
    """(n, channels, height, width)."""
    return pictures[:, None] if pictures.ndim == 3 else pictures.movedim(-1, 1)
