"""Neighbour searches on a GPU: the tables are where the points are, and say what those of the CPU say."""

import numpy as np
import pytest

import kernelc as kc

POINTS = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 3))


@kc.kernel
def near(x: kc.Array[kc.float3], grid: kc.Array[int], radius: float, total: kc.Array[float]):
    i = kc.tid()
    for j in kc.hash_grid_query(grid, x[i], radius):
        d = kc.length_sq(x[i] - x[j])
        if d < radius * radius:
            total[i] += d


@kc.kernel
def touched(lower: kc.Array[kc.float3], upper: kc.Array[kc.float3], order: kc.Array[int],
            boxes: kc.Array[kc.float3, 2], count: kc.Array[int]):  # fmt: skip
    i = kc.tid()
    for _ in kc.bvh_query(order, boxes, lower[i], upper[i]):
        count[i] += 1


def neighbours(device):
    x = kc.array(POINTS, dtype=kc.float3, requires_grad=True, device=device)
    grid, total = kc.HashGrid(60, 0.5, device=device), kc.zeros(60, real=kc.float64, device=device)
    with kc.Tape() as tape:
        grid.build(x)
        kc.launch(near, 60, [x, grid.index, 0.5], [total])
    tape.backward(grads={total: np.ones(60)})
    return total.numpy(), x.grad.numpy()


def boxes(device):
    lower = kc.array(POINTS, dtype=kc.float3, device=device)
    upper = kc.array(POINTS + 0.4, dtype=kc.float3, device=device)
    tree, count = kc.Bvh(60, device=device).build(lower, upper), kc.zeros(60, dtype=int, device=device)
    kc.launch(touched, 60, [lower, upper, *tree.arrays], [count])
    return (count.numpy(),)


@pytest.mark.parametrize("search", [neighbours, boxes])
def test_tables_on_a_gpu_say_what_those_of_the_cpu_say(driver, search):
    for there, here in zip(search("cuda"), search("cpu"), strict=True):
        assert here.any()
        np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-12)
