"""XLA's way to a kernel: a foreign function of a few lines, built once, that looks up a launch and runs it.

A program of XLA holds the number of a launch, and nothing else of it. Numbers are random: a program that another
process compiled finds none here, and says so.
"""

from __future__ import annotations

import ctypes
import secrets
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

from .. import _native
from ..errors import KernelError
from ..records import record
from ..runtime.reports import report
from ..toolchain import build_many

TARGET = "kernelc_launch"
BUFFER, COPY, ZEROS, RESULT = range(4)
"""What a pointer of the argument block is (native/outside.hpp)."""

# The C interface of XLA alone: its C++ one takes seconds to compile.
_HANDLER = """// {version}
#include "{header}"

typedef int (*kc_run)(int64_t key, int64_t count, void* const* data, const int64_t* ranks, const int64_t* const* dims,
                      char* message, int64_t room);
static kc_run run;

#define SEEN extern "C" __attribute__((visibility("default")))

SEEN void kc_connect(void* address) {{ run = (kc_run)address; }}

static XLA_FFI_Error* fail(const XLA_FFI_CallFrame* frame, const char* message) {{
    XLA_FFI_Error_Create_Args args;
    args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
    args.extension_start = 0;
    args.message = message;
    args.errc = XLA_FFI_Error_Code_FAILED_PRECONDITION;
    return frame->api->XLA_FFI_Error_Create(&args);
}}

SEEN XLA_FFI_Error* kc_launch(XLA_FFI_CallFrame* frame) {{
    if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata) {{
        XLA_FFI_Metadata* about = ((XLA_FFI_Metadata_Extension*)frame->extension_start)->metadata;
        about->api_version.major_version = XLA_FFI_API_MAJOR;
        about->api_version.minor_version = XLA_FFI_API_MINOR;
        return 0;
    }}
    const int64_t count = frame->args.size + frame->rets.size;
    enum {{ most = 256 }};
    if (count > most || frame->attrs.size != 1) return fail(frame, "a launch has one number, and at most 256 arrays");
    void* data[most];
    int64_t ranks[most];
    const int64_t* dims[most];
    for (int64_t i = 0; i < count; ++i) {{
        const XLA_FFI_Buffer* buffer = (const XLA_FFI_Buffer*)(i < frame->args.size
            ? frame->args.args[i] : frame->rets.rets[i - frame->args.size]);
        data[i] = buffer->data;
        ranks[i] = buffer->rank;
        dims[i] = buffer->dims;
    }}
    const int64_t key = *(const int64_t*)((const XLA_FFI_Scalar*)frame->attrs.attrs[0])->value;
    char message[4096];
    return run(key, count, data, ranks, dims, message, sizeof message) ? fail(frame, message) : 0;
}}
"""


@record
class Slot:
    """A pointer of the argument block: at which word, what it is, of which buffer, and the bytes of one launch."""

    word: int
    kind: int
    buffer: int
    bytes: int


@cache
def connect() -> None:
    """Build the foreign function and tell XLA of it."""
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    text = _HANDLER.format(version=f"jaxlib {jaxlib.__version__}", header=header)
    library = ctypes.CDLL(str(build_many({"kernelc_xla": text})["kernelc_xla"]))
    library.kc_connect(ctypes.c_void_p(_native.outside()))
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(library.kc_launch), platform="cpu")


def add_launch(
    binary: Any, name: str, block: bytes, total: int, slots: list[Slot], ranks: list[int]
) -> np.int64:  # fmt: skip
    """The number under which XLA finds this launch. `ranks`: of the arguments, then of the results."""
    connect()

    def say(failure: Any) -> str:
        try:
            report(binary.code, failure, name)
        except KernelError as error:
            return str(error)
        return ""

    key = secrets.randbits(63)
    words = [(s.word, s.kind, s.buffer, s.bytes) for s in slots]
    _native.add_outside(key, binary.entry, block, total, binary.parallel, words, ranks, say)
    return np.int64(key)


def call(key: np.int64, args: list[Any], results: list[Any]) -> list[Any]:
    """The launch as an operation of JAX; `results` are shapes and dtypes. A batch is one call, and many launches."""
    made = jax.ffi.ffi_call(TARGET, results, vmap_method="broadcast_all")(*args, key=key)
    return list(made)
