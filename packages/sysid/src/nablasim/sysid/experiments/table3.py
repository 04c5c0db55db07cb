"""Table 3: soft bodies and cloth: the mass of every particle, both moduli, the velocity of a throw."""

from nablasim.sysid.experiments.contest import Arm, Contest, Group, Scale
from nablasim.sysid.experiments.soft import Softness

VIDEO = "∇Sim, from the video"
STATES = "DiffPhysics, from 3-D states"


def arms(**paper: tuple[float, float]) -> tuple[Arm, ...]:
    """The rows; the paper's figures are (from states, from the video) for each column."""
    states, video = (tuple((c, v[k]) for c, v in paper.items()) for k in (0, 1))
    finer = Arm("∇Sim, data with a quarter of the time step", "video", changes=(("finer", 4),), starts=2)
    return Arm(STATES, "states", paper=states), Arm(VIDEO, "video", paper=video), finer


TABLE3 = Contest(
    name="table3",
    title="Table 3: soft bodies and cloth from a video",
    text=(
        "Beams hang from a wall and balls fall on the ground, after a known kick; cloths are thrown. Searched for are "
        "the mass of every particle (each drawn by itself, over a factor of ten), or mu and lambda (over a factor of "
        "ten), or the velocity of the throw; the rest is known. Errors are the mean of |found - true| over the numbers "
        "of a body, by the mean of |true|. Films are 40 frames of 64 × 64 pixels in 8 bits.",
    ),
    groups=(
        Group(
            "per-particle mass (beams and balls)",
            Softness(("beam", "ball"), "mass"),
            arms(m=(0.032, 0.048)),
            goals=((VIDEO, "mean", "m", 0.03),),
        ),
        Group(
            "material (beams and balls)",
            Softness(("beam", "ball"), "material"),
            arms(**{"mu": (0.0025, 0.0054), "lambda": (0.0024, 0.0056)}),
            goals=((VIDEO, "mean", "mu", 2.5e-3), (VIDEO, "mean", "lambda", 2.5e-3)),
        ),
        Group(
            "initial velocity (cloth)",
            Softness(("cloth",), "velocity"),
            arms(v=(0.127, 0.026)),
            goals=((VIDEO, "mean", "v", 0.02),),
        ),
    ),
    scales=(
        ("ci", Scale(1, 0, 0, changes=(("frames", 8), ("size", 32)))),
        ("desk", Scale(10, 0, 0)),
        ("paper", Scale(34, 0, 0)),
    ),
)
