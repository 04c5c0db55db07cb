"""The schedule of checkpoints: every segment once, from the right state, within the budget, with few repetitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablasim.physics.time.checkpoints import Plan, backward_order, plan


def play(made):
    """Run the schedule on numbers; the segments in order, how many ran again, and the most states kept at a time."""
    kept, reached, order, again, most = made.first_sweep(), None, [], 0, 0

    def advance(low, high):
        nonlocal reached, again
        assert low in kept
        reached, again = high, again + high - low

    def keep(segment):
        nonlocal most
        assert reached == segment
        kept.add(segment)
        most = max(most, len(kept))

    most = len(kept)
    for segment in backward_order(made, advance, keep, kept.discard):
        assert segment in kept or segment == reached
        order.append(segment)
    return order, again, most


@given(st.integers(1, 300), st.integers(1, 40))
def test_every_segment_is_swept_once_in_reverse_within_the_budget(segments, kept):
    order, again, most = play(Plan(segments, 1, kept))
    assert order == list(range(segments))[::-1]
    assert most <= kept
    if kept >= segments:
        assert again == 0


@pytest.mark.parametrize(("kept", "repeats"), [(2, 3), (3, 3), (5, 2), (10, 2)])
def test_as_many_segments_as_the_binomial_allows_run_few_times(kept, repeats):
    # beta(s, r) = (s + r)! / (s! r!) segments need at most r runs of each beside the sweep itself.
    from math import comb

    segments = comb(kept - 1 + repeats, repeats)
    assert play(Plan(segments, 1, kept))[1] <= repeats * segments


@given(st.integers(0, 60), st.integers(1, 50), st.sampled_from(["auto", "all", "sqrt", 5, 50, 3 * 2**20]))
def test_plans_cover_all_steps_and_keep_to_their_budget(frames, every, checkpoint):
    steps, state, step = frames * every, 1000, 3000
    made = plan(checkpoint, steps=steps, frame=every, state_bytes=state, step_bytes=step, differentiable=True)
    bounds = [made.bounds(n) for n in range(made.segments)]
    assert [b for pair in bounds for b in pair][1:-1] == [b for low, _ in bounds[1:] for b in (low, low)]
    assert not bounds or (bounds[0][0], bounds[-1][1]) == (0, steps)
    used = made.length * step + made.kept * state
    if checkpoint == "sqrt":
        assert used <= 2.5 * (steps * step * state) ** 0.5 + every * step + 2 * step
    if checkpoint == 3 * 2**20:
        assert used <= 3 * 2**20 + step + state


def test_short_rollouts_keep_everything_by_themselves():
    made = plan("auto", steps=500, frame=10, state_bytes=1000, step_bytes=3000, differentiable=True)
    assert made.segments == 1
    large = plan("auto", steps=500, frame=10, state_bytes=10**7, step_bytes=3 * 10**7, differentiable=True)
    assert large.segments > 1
