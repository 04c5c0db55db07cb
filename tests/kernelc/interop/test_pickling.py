"""Kernels, funcs and structs pickle by module and name; worker processes of every kind use them."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

import kernelc as kc

MODULE = """
import numpy as np
import torch
import kernelc as kc


@kc.func
def twice(x: float) -> float:
    return 2.0 * x


@kc.struct
class Pair:
    a: float
    b: float


@kc.struct
class Bodies:
    x: kc.Array[float]


@kc.kernel
def double(b: Bodies, out: kc.Array[float]):
    i = kc.tid()
    out[i] = twice(b.x[i])


class Outer:
    @kc.kernel
    def inner(out: kc.Array[float]):
        out[kc.tid()] = 3.0


def use(kernel, x):
    out = np.zeros_like(x)
    kc.launch(kernel, len(x), [Bodies(x=kc.array(x))], [out])
    return out


class Doubled(torch.utils.data.Dataset):
    def __init__(self, kernel):
        self.kernel = kernel

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.from_numpy(use(self.kernel, np.full(3, float(i), np.float32)))
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pickles")
    (folder / "pickled_kernels.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    try:
        import pickled_kernels

        yield pickled_kernels
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("pickled_kernels", None)


def test_they_come_back_as_themselves(module):
    for thing in (module.double, module.twice, module.Pair, module.Bodies, module.Outer.inner, kc.normalize, kc.sin,
                  kc.tid, kc.atomic_cas, kc.float16, kc.float3):  # fmt: skip
        assert pickle.loads(pickle.dumps(thing)) == thing
    for thing in (module.double, module.twice, module.Pair, module.Outer.inner, kc.normalize, kc.tid, kc.bfloat16):
        assert pickle.loads(pickle.dumps(thing)) is thing
        assert copy.deepcopy(thing) is thing and copy.copy(thing) is thing


def test_bundles_and_arrays_of_structs_come_back(module):
    bodies = pickle.loads(pickle.dumps(module.Bodies(x=kc.ones(3))))
    assert bodies._struct is module.Bodies and bodies.x.tolist() == [1.0] * 3
    pairs = pickle.loads(pickle.dumps(kc.zeros(2, module.Pair)))
    assert pairs.dtype == kc.zeros(2, module.Pair).dtype


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_worker_processes_launch_a_pickled_kernel(module, method):
    module.use(module.double, np.ones(40_000, np.float32))  # the parent's threads are at work already
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.apply(module.use, (module.double, np.arange(4.0, dtype=np.float32)))
    assert np.array_equal(found, [0.0, 2.0, 4.0, 6.0])


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_of_a_data_loader_launch_a_kernel(module, method):
    loader = torch.utils.data.DataLoader(
        module.Doubled(module.double), batch_size=3, num_workers=1, multiprocessing_context=method
    )
    batches = list(loader)
    assert torch.equal(torch.cat(batches), 2 * torch.arange(6.0)[:, None].expand(6, 3))


# -- what cannot be found again
def test_a_kernel_inside_of_a_function_says_so():
    @kc.kernel
    def local(out: kc.Array[float]):
        out[kc.tid()] = 1.0

    @kc.func
    def helper(x: float) -> float:
        return x

    where = "test_a_kernel_inside_of_a_function_says_so"
    with pytest.raises(kc.WrongUse, match=rf"the kernel local is defined inside of {where}\(\): another process") as e:
        pickle.dumps(local)
    assert "top of a module" in e.value.advice
    with pytest.raises(kc.WrongUse, match="the func helper is defined inside of"):
        pickle.dumps(helper)


def test_a_kernel_that_was_replaced_says_so(module, monkeypatch):
    old = module.double
    monkeypatch.setattr(module, "double", kc.kernel(old.source.function))
    with pytest.raises(kc.WrongUse, match=r"is not what pickled_kernels\.double means by now"):
        pickle.dumps(old)
    monkeypatch.delattr(module, "double")
    with pytest.raises(kc.WrongUse, match=r"is not to be found as pickled_kernels\.double"):
        pickle.dumps(old)


def test_a_kernel_without_a_file_says_so():
    """A kernel needs its source, so `python -c` cannot make one; a console or a notebook can, by linecache."""
    text = textwrap.dedent(
        """
        import linecache, pickle
        import kernelc as kc
        text = "@kc.kernel\\ndef k(out: kc.Array[float]):\\n    out[kc.tid()] = 1.0\\n"
        linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
        exec(compile(text, "<cell 1>", "exec"), globals())
        try:
            pickle.dumps(k)
        except kc.WrongUse as error:
            print(error)
        """
    )
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "the kernel k is defined in a notebook, in a console or by `python -c`: another process" in run.stdout, run
