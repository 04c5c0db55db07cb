"""Table 1: the mass of a body that is pushed, from its video. Half of the bodies fly freely, half of them bounce."""

from nablasim.sysid.experiments.contest import Arm, Contest, Group, Scale
from nablasim.sysid.experiments.rigid import Rules

VIDEO = "∇Sim, from the video"
STATES = "DiffPhysics, from 3-D states"

TABLE1 = Contest(
    name="table1",
    title="Table 1: mass from a video",
    text=(
        "A body of one of 14 shapes, density 2 to 12 kg/m³, is pushed by a known impulse; half of them fly, half of "
        "them bounce on a ground that is known. Two seconds are filmed in 8-bit silhouettes of 64 × 64 pixels, 30 per "
        "second. Guesses are drawn blind from the whole range. All methods see the same bodies, and every run counts.",
        "Differences from the paper: masses here are 3 to 30 kg and spread evenly, so that the average is a worse "
        "guess than the paper's; the network is trained here from nothing, and is told how bodies start and are "
        "pushed; PyBullet starts from the same blind guesses, draws with our renderer, and meets films that are ours.",
    ),
    groups=(
        Group(
            "mass",
            Rules(bounds=(("body.density", (2.0, 12.0)),), flying=0.5, every=64),
            arms=(
                Arm("average", "average", paper=(("m", 0.1031),)),
                Arm("random", "random", paper=(("m", 0.1344),)),
                Arm("ConvNet", "convnet", paper=(("m", 0.0094),)),
                Arm("PyBullet + REINFORCE", "bullet", paper=(("m", 0.3668),)),
                Arm(STATES, "states", paper=(("m", 5.17e-9),)),
                Arm(VIDEO, "video", paper=(("m", 9.01e-5),)),
                Arm("∇Sim, data with a quarter of the time step", "video", changes=(("finer", 4),), starts=2),
                Arm("∇Sim, data by a z-buffer", "video", changes=(("renderer", "hard"),), starts=2),
            ),
            goals=((VIDEO, "mean", "m", 9e-5), (STATES, "mean", "m", 5e-9)),
        ),
    ),
    scales=(
        ("ci", Scale(1, 4, 2, reinforce=4, changes=(("frames", 16), ("size", 32)))),
        ("desk", Scale(20, 200, 40)),
        ("paper", Scale(200, 800, 100)),
    ),
    units=(("m", "kg"),),
    paper_units=(
        ("average", 0.2022),
        ("random", 0.2653),
        ("ConvNet", 0.1347),
        ("PyBullet + REINFORCE", 0.0928),
        (STATES, 1.35e-9),
        (VIDEO, 2.36e-5),
    ),
)
