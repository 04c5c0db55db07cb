"""Table 2: mass, elasticity and friction at once, of bodies that bounce on a ground that nothing is known of."""

from nablasim.sysid.experiments.contest import Arm, Contest, Group, Scale
from nablasim.sysid.experiments.rigid import GROUND, Rules

VIDEO = "∇Sim, from the video"
STATES = "DiffPhysics, from 3-D states"
DENSITY = ("body.density", (2.0, 12.0))
BOUNCIER = {**GROUND, "ground.ke": (500.0, 5000.0), "ground.kd": (1.0, 50.0)}


def row(m: float, kd: float, ke: float, kf: float, mu: float) -> tuple[tuple[str, float], ...]:
    """The paper's figures in the order of its table."""
    return (("m", m), ("kd", kd), ("ke", ke), ("kf", kf), ("mu", mu))


ARMS = (
    Arm("average", "average", paper=row(1.7713, 3.7145, 2.3410, 4.1157, 0.4463)),
    Arm("random", "random", paper=row(10.0007, 4.18, 2.5454, 5.0241, 0.5558)),
    Arm("ConvNet", "convnet", paper=row(0.029, 0.14, 0.14, 0.17, 0.096)),
    Arm(STATES, "states", paper=row(1.70e-8, 0.036, 0.0020, 0.0007, 0.0107)),
    Arm(VIDEO, "video", paper=row(2.87e-4, 0.4, 0.0026, 0.0017, 0.0073)),
)

TABLE2 = Contest(
    name="table2",
    title="Table 2: mass, elasticity and friction from a video",
    text=(
        "As in Table 1, but all bodies bounce, and five numbers are searched for at once: mass, stiffness ke, damping "
        "kd, and friction (kf of the stick regime, mu of sliding). Guesses are drawn blind from the whole range of "
        "each; a further start is made only where the residuals of the last one are not noise.",
        "In the paper's ranges a ground is soft and often overdamped: bodies sink in and hardly bounce. In the "
        "bouncier set they do.",
    ),
    groups=(
        Group(
            "bouncier: ke 500 to 5000, kd 1 to 50",
            Rules(bounds=(DENSITY, *BOUNCIER.items()), ranges=tuple(BOUNCIER.items()), seed=2),
            arms=(
                *ARMS,
                Arm("∇Sim, data with a quarter of the time step", "video", changes=(("finer", 4),), starts=2),
                Arm("∇Sim, data by a z-buffer", "video", changes=(("renderer", "hard"),), starts=2),
            ),
            goals=tuple((VIDEO, "mean", c, most) for c, most in row(2.9e-4, 5e-3, 2.6e-3, 1.7e-3, 7.3e-3)),
        ),
        Group(
            "the paper's ranges: ke, kd, kf 1 to 500",
            Rules(bounds=(DENSITY, *GROUND.items()), ranges=tuple(GROUND.items()), seed=1, every=64),
            arms=ARMS,
            goals=(
                *((VIDEO, "median", c, most) for c, most in row(2.87e-4, 0.4, 0.0026, 0.0017, 0.0073)),
                (VIDEO, "mean", "kd", 0.04),
            ),
        ),
    ),
    scales=(
        ("ci", Scale(1, 4, 2, reinforce=4, changes=(("frames", 16), ("size", 32)))),
        ("desk", Scale(20, 200, 40)),
        ("paper", Scale(200, 800, 100)),
    ),
)
