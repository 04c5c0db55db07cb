"""The tasks of visuomotor control by the names that `nablasim control` takes."""

from nablasim.sysid.experiments.control_cloth import CONTROL_CLOTH
from nablasim.sysid.experiments.control_fem import CONTROL_FEM
from nablasim.sysid.experiments.control_walker import CONTROL_WALKER
from nablasim.sysid.experiments.jellyfish import JELLYFISH
from nablasim.sysid.experiments.steering import Steering

TASKS: dict[str, Steering] = {
    "fem": CONTROL_FEM,
    "cloth": CONTROL_CLOTH,
    "walker": CONTROL_WALKER,
    "jellyfish": JELLYFISH,
}
