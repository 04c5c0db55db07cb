"""Every compound row is complete: whoever adds one without a derivative, a domain or a meaning is told here."""

import numpy as np
import pytest

from kernelc.builtins import TABLE, CompoundRow
from kernelc.builtins.signatures import bind_values, instantiate, parse

ROWS = [row for row in TABLE.rows.values() if isinstance(row, CompoundRow)]
PUBLIC = """
lerp smoothstep dot cross length length_sq normalize cw_mul cw_div outer reflect angle_between
transpose determinant trace inverse skew diag cofactor ddot solve cholesky svd2 svd3 polar2 polar3 eig3_sym
quat_identity quat_multiply quat_inverse quat_rotate quat_rotate_inv quat_to_matrix quat_from_matrix
quat_from_axis_angle quat_from_rotvec quat_to_rotvec quat_integrate quat_slerp
transform_identity transform_position transform_rotation transform_point transform_vector transform_multiply
transform_inverse transform_twist transform_wrench spatial_join spatial_top spatial_bottom spatial_dot spatial_cross
spatial_cross_dual spatial_adjoint spatial_inertia
closest_point_triangle closest_point_segment closest_point_edge_edge sdf_sphere sdf_box sdf_capsule sdf_plane
triangle_area tet_volume barycentric ray_triangle
rand randn noise texture_clamp texture_wrap texture_channel_clamp texture_channel_wrap lower_bound
""".split()


def test_the_list_is_the_documented_one():
    assert sorted(row.name for row in ROWS) == sorted(PUBLIC)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
class TestRow:
    def test_says_what_it_is(self, row):
        assert row.doc and "\n" not in row.doc and row.public
        assert row.signatures and callable(row.python)
        assert len(row.domain) == len(row.params) and all(low < high for low, high in row.domain)

    def test_signatures_agree_with_the_parameters(self, row):
        results = set()
        for text in row.signatures:
            signature = parse(text)
            assert len(signature.params) == len(row.params)
            results.add(len(signature.results))
        assert results == {max(results)} and min(results) >= 1

    def test_has_a_body_in_the_kernel_language(self, row):
        function = row.load()
        arguments = function.source.definition.args.args
        assert [a.arg for a in arguments] == list(row.params)

    def test_is_differentiable_unless_it_has_no_real_in_or_out(self, row):
        kinds = [parse(text) for text in row.signatures]
        reals_in = any(p.kind not in ("int", "bool") for s in kinds for p in s.params)
        reals_out = any(p.kind not in ("int", "bool") for s in kinds for p in s.results)
        assert row.smooth == (not row.params or (reals_in and reals_out))

    def test_singular_points_fit_a_signature(self, row):
        for values in row.singular:
            assert any(bind_values(text, values) is not None for text in row.signatures)

    def test_makes_arguments_of_the_right_shape(self, row):
        if row.make is None:
            return
        sizes = dict.fromkeys("nmrc", 3)
        for text in row.signatures:
            types = tuple(instantiate(p, sizes) for p in parse(text).params)
            assert bind_values(text, row.make(np.random.default_rng(0), types)) is not None
