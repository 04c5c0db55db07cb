"""Numbers from a track alone: flights, bounces, slides, rolls and swings in closed form, with intervals."""

from nablasim.sysid.tracks.answers import Answer, CannotTell
from nablasim.sysid.tracks.asking import Asked, ask
from nablasim.sysid.tracks.page import HOW, write_answers
from nablasim.sysid.tracks.questions import Known
from nablasim.sysid.tracks.scenes import story_of, tell

__all__ = ["HOW", "Answer", "Asked", "CannotTell", "Known", "ask", "story_of", "tell", "write_answers"]
