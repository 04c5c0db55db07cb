"""What an answer is worth: intervals, identifiability, misfit of the model. The door of this room."""

from nablasim.sysid.trust.agreement import SlopesDisagree
from nablasim.sysid.trust.misfit import examine
from nablasim.sysid.trust.uncertainty import (
    LEVEL,
    Certificate,
    Estimate,
    Identifiability,
    certify,
    identifiability,
    uncertified,
)

__all__ = [
    "LEVEL",
    "Certificate",
    "Estimate",
    "Identifiability",
    "SlopesDisagree",
    "certify",
    "examine",
    "identifiability",
    "uncertified",
]
