"""Arrays of numbers that kernels do not compute with: bytes, short integers, halves; 64 bits; atomics on them.

What is rounded when it is stored has no slope that differences could see: gradients through halves are in storage/.
"""

from laws.bench import N, case, const, leaf, program, whole, zeros

import kernelc as kc


@kc.kernel
def weigh(image: kc.Array[kc.uint8, 2], mask: kc.Array[kc.int8], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    total = x[i] * float(mask[i])
    for c in range(image.shape[1]):
        total += kc.sin(x[i] * image[i, c] / 255.0)
    out[i] = total
    mask[i] = image[i, 0] - 200


case("bytes of an image", weigh, N, image=whole((N, 3), 256, dtype=kc.uint8), mask=whole(N, 100, -100, dtype=kc.int8),
     x=leaf(N), out=zeros(N))  # fmt: skip


@kc.kernel
def look_up(index: kc.Array[kc.uint16], step: kc.Array[kc.int16], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] += x[index[i]] * x[i] * float(step[i])
    kc.atomic_add(out, index[i], x[i])


case("short integers as indices", look_up, N, index=whole(N, N, dtype=kc.uint16),
     step=whole(N, 9, -9, dtype=kc.int16), x=leaf(N), out=zeros(N))  # fmt: skip


@kc.kernel
def halves(h: kc.Array[kc.float16], b: kc.Array[kc.vec(2, kc.bfloat16)], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    v = b[i]
    out[i] = h[i] * x[i] * x[i] + kc.cos(x[i] * v.x) * v.y
    if h[i] > 1.0:
        out[i] *= h[(i + 1) % h.shape[0]]


case("halves as weights", halves, N, h=const(N, kc.float16), b=const(N, kc.vec(2, kc.bfloat16), high=7), x=leaf(N),
     out=zeros(N))  # fmt: skip


@kc.kernel
def hashed(seed: kc.Array[kc.uint64], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    z = (seed[i] + kc.uint64(i)) * 0x9E3779B97F4A7C15
    z = z ^ (z >> 29)
    if z % 3 == 0:
        out[int(z % 5)] += x[i] * x[i]
    else:
        out[int(z % 5)] += kc.sin(x[i])
    seed[i] = kc.max(z, seed[i]) - 1


case("integers of 64 bits decide", hashed, N, seed=whole(N, 2**60, dtype=kc.uint64), x=leaf(N), out=zeros(5))


@kc.kernel
def mark(index: kc.Array[int], bits: kc.Array[int], seen: kc.Array[kc.uint8]):
    i = kc.tid()
    kc.atomic_xor(bits, index[i], i)
    kc.atomic_or(seen, index[i], 1 << i % 8)


@kc.kernel
def by_marks(bits: kc.Array[int], seen: kc.Array[kc.uint8], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = x[i] * x[i] if bits[i] & 1 == 1 else x[i] * float(seen[i])


def marked(run, index, bits, seen, x, out):
    run(mark, run.sized(N), [index], [bits, seen])
    run(by_marks, run.sized(N), [bits, seen, x], [out])


program("bits that threads set together", marked, index=whole(N, N), bits=whole(N),
        seen=whole(N, dtype=kc.uint8), x=leaf(N), out=zeros(N))  # fmt: skip


@kc.kernel
def claims(owner: kc.Array[int], head: kc.Array[kc.int64], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    before = kc.atomic_cas(owner, i % 3, -1, i)
    newest = kc.atomic_exchange(head, 0, kc.int64(i))
    if before == -1:
        kc.atomic_add(out, i % 3, x[i] * x[i])
    else:
        kc.atomic_add(out, before % 3, kc.sin(x[i]) * float(newest % 7 + 2))


case("swaps that threads compete in", claims, N, owner=whole([-1, -1, -1]), head=whole(1, dtype=kc.int64), x=leaf(N),
     out=zeros(3))  # fmt: skip
