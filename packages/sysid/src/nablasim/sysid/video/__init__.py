"""What was filmed: pictures and their times. The door of this room."""

from nablasim.sysid.video.video import ROUNDING, Track, Video, check_noise, load_video, masks, scaled, threshold

__all__ = [
    "ROUNDING",
    "Track",
    "Video",
    "check_noise",
    "load_video",
    "masks",
    "scaled",
    "threshold",
]
