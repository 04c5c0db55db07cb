"""nvcc over many kernels: what ptxas says about each. A warning is an error.

It goes in batches whose results are kept beside the cache of kernels: what was interrupted goes on where it ended.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple

from kernelc.codegen import DEVICE_HEADER, Code
from kernelc.toolchain import Resources, cache_root, nvcc, resources
from kernelc.toolchain.build import headers_in

BATCH = 150_000
"""Characters of CUDA that go to one run of nvcc."""


Found = dict[int, dict[str, Resources]]
"""By architecture and kernel: what it takes of a GPU."""


def compiled(
    codes: Iterable[Code], architectures: Sequence[int], *, flags: Sequence[str] = (), workers: int = 1
) -> Found:
    with ThreadPoolExecutor(workers) as pool:
        made = list(pool.map(lambda text: _of_batch(text, architectures, flags), _batches(codes)))
    return {n: {name: what for found in made for name, what in found[n].items()} for n in architectures}


def _batches(codes: Iterable[Code]) -> Iterator[str]:
    texts: list[str] = []
    for code in codes:
        if texts and sum(map(len, texts)) + len(code.text) > BATCH:
            yield DEVICE_HEADER + "".join(texts)
            texts = []
        texts.append(code.text)
    if texts:
        yield DEVICE_HEADER + "".join(texts)


def _of_batch(text: str, architectures: Sequence[int], flags: Sequence[str]) -> Found:
    about = (text, nvcc().version, nvcc().flags, headers_in(nvcc().include), tuple(architectures), tuple(flags))
    kept = cache_root() / "resources" / f"{hashlib.sha256(repr(about).encode()).hexdigest()[:16]}.json"
    if not kept.exists():
        found = resources(text, architectures, extra_flags=flags)
        kept.parent.mkdir(exist_ok=True)
        draft = kept.with_suffix(f".{id(found)}")
        plain = {n: {name: astuple(what) for name, what in those.items()} for n, those in found.items()}
        draft.write_text(json.dumps(plain))
        draft.rename(kept)
    table = json.loads(kept.read_text())
    return {int(n): {name: Resources(*numbers) for name, numbers in those.items()} for n, those in table.items()}
