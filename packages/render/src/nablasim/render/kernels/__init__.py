"""The kernels of the renderer, in the order in which a picture is made: view, triangles, bins, coverage, colour."""
