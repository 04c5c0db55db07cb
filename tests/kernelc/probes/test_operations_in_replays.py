"""Operations of a tape that launch kernels, replayed while another tape is open."""

import numpy as np

import kernelc as kc


@kc.kernel
def doubled(x: kc.Array[float], y: kc.Array[float]):
    y[kc.tid()] = 2.0 * x[kc.tid()]


def test_what_an_operation_launches_in_a_replay_is_not_recorded_around_it():
    x, y, z = (kc.array(np.ones(3)) for _ in range(3))

    def forward():
        kc.launch(doubled, 3, [x], [y])

    with kc.Tape() as inner:
        kc.launch(doubled, 3, [y], [z])
        inner.record(lambda: None, reads=[x], writes=[y], forward=forward)
    x.assign([1.0, 2.0, 3.0])
    with kc.Tape() as outer:
        inner.replay()
        assert y not in outer
        inner.replay()
    np.testing.assert_array_equal(y.numpy(), [2, 4, 6])
    np.testing.assert_array_equal(z.numpy(), [4, 8, 12])
