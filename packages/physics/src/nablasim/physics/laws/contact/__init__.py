"""Everything that touches: planes, bodies, deformable surfaces and points. A pair of files each: system and kernels."""
