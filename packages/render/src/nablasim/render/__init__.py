"""The differentiable renderer, as far as it is built: the camera and its conventions."""

from nablasim.render.camera import Camera, ndc_to_pixels, pixels_to_ndc

__all__ = ["Camera", "ndc_to_pixels", "pixels_to_ndc"]
