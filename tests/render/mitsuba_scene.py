"""A scene as Mitsuba draws it: a witness for shadows and textures."""

import numpy as np


def direct_light(mesh, camera, to_light, size):
    """(H, W) what a white Lambertian mesh sends of one directional light of irradiance π, by one bounce."""
    import mitsuba as mi

    mi.set_variant("scalar_rgb")
    vertices, faces = np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces, np.uint32)
    shape = mi.Mesh("mesh", len(vertices), len(faces))
    params = mi.traverse(shape)
    params["vertex_positions"], params["faces"] = vertices.ravel(), faces.ravel()
    params.update()
    folder = _written(shape)
    height, width = size
    fov = float(2 * np.degrees(np.arctan(camera.half_height)))
    eye, back, up = np.asarray(camera.eye), np.asarray(camera.rotation)[2], np.asarray(camera.rotation)[1]
    scene = mi.load_dict({
        "type": "scene",
        "integrator": {"type": "direct", "hide_emitters": True},
        "sensor": {
            "type": "perspective", "fov": fov, "fov_axis": "y",
            "to_world": mi.ScalarTransform4f().look_at(
                origin=eye.tolist(), target=(eye - back).tolist(), up=up.tolist()
            ),
            "film": {"type": "hdrfilm", "width": width, "height": height, "rfilter": {"type": "box"},
                     "pixel_format": "rgb"},
            "sampler": {"type": "independent", "sample_count": 16},
        },
        "sun": {"type": "directional", "direction": (-np.asarray(to_light)).tolist(),
                "irradiance": {"type": "rgb", "value": float(np.pi)}},
        "mesh": {"type": "ply", "filename": folder, "face_normals": True,
                 "bsdf": {"type": "diffuse", "reflectance": {"type": "rgb", "value": 1.0}}},
    })  # fmt: skip
    return np.array(mi.render(scene))[..., 0]


def _written(shape):
    import tempfile
    from pathlib import Path

    path = Path(tempfile.mkdtemp()) / "mesh.ply"
    shape.write_ply(str(path))
    return str(path)


def texture_of(mesh, picture, size):
    """(H, W, 3) a textured obj in light from everywhere, without filters."""
    import mitsuba as mi

    mi.set_variant("scalar_rgb")
    scene = mi.load_dict({
        "type": "scene",
        "integrator": {"type": "direct", "hide_emitters": True},
        "sensor": {
            "type": "perspective", "fov": 45, "fov_axis": "y",
            "to_world": mi.ScalarTransform4f().look_at(origin=[0.8, 0.6, 3], target=[0, 0, 0], up=[0, 1, 0]),
            "film": {"type": "hdrfilm", "width": size[1], "height": size[0], "rfilter": {"type": "box"},
                     "pixel_format": "rgb"},
            "sampler": {"type": "independent", "sample_count": 64},
        },
        "sky": {"type": "constant", "radiance": {"type": "rgb", "value": 1.0}},
        "mesh": {"type": "obj", "filename": str(mesh),
                 "bsdf": {"type": "twosided", "bsdf": {"type": "diffuse", "reflectance": {
                     "type": "bitmap", "filename": str(picture), "raw": True}}}},
    })  # fmt: skip
    return np.array(mi.render(scene))
