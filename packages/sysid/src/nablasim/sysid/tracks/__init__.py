"""Numbers from a track alone: flights, bounces, slides, rolls and swings in closed form, with intervals."""

from nablasim.sysid.tracks.answers import Answer, CannotTell
from nablasim.sysid.tracks.asking import Asked, ask
from nablasim.sysid.tracks.questions import Known

__all__ = ["Answer", "Asked", "CannotTell", "Known", "ask"]
