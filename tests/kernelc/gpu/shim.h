/* Lets g++ compile generated CUDA text, unchanged, for the host: what nvcc knows without being told.
   A kernel becomes a function NAME_run that runs a range of blocks, thread after thread, in an order of choice. */
#pragma once
#include <stdint.h>

#define __CUDACC__ 1
#define __device__
#define __global__ __attribute__((visibility("default")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(threads)
#define __grid_constant__

struct shim_dim { unsigned x, y, z; };
static thread_local shim_dim threadIdx, blockIdx, blockDim, gridDim;

static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#define SHIM_INTEGER(type)                                                                                        \
    static inline type atomicAdd(type* at, type v) { return __atomic_fetch_add(at, v, __ATOMIC_SEQ_CST); }        \
    static inline type atomicExch(type* at, type v) { return __atomic_exchange_n(at, v, __ATOMIC_SEQ_CST); }      \
    static inline type atomicAnd(type* at, type v) { return __atomic_fetch_and(at, v, __ATOMIC_SEQ_CST); }        \
    static inline type atomicOr(type* at, type v) { return __atomic_fetch_or(at, v, __ATOMIC_SEQ_CST); }          \
    static inline type atomicXor(type* at, type v) { return __atomic_fetch_xor(at, v, __ATOMIC_SEQ_CST); }        \
    static inline type atomicCAS(type* at, type old, type v) {                                                    \
        __atomic_compare_exchange_n(at, &old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
        return old;                                                                                               \
    }                                                                                                             \
    static inline type atomicMin(type* at, type v) {                                                              \
        type seen = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                        \
        while (v < seen && !__atomic_compare_exchange_n(at, &seen, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) \
            ;                                                                                                     \
        return seen;                                                                                              \
    }                                                                                                             \
    static inline type atomicMax(type* at, type v) {                                                              \
        type seen = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                        \
        while (v > seen && !__atomic_compare_exchange_n(at, &seen, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) \
            ;                                                                                                     \
        return seen;                                                                                              \
    }
SHIM_INTEGER(int)
SHIM_INTEGER(unsigned)
SHIM_INTEGER(long long)
SHIM_INTEGER(unsigned long long)
#undef SHIM_INTEGER

#define SHIM_REAL(type, bits)                                                                                     \
    static inline type atomicAdd(type* at, type v) {                                                              \
        bits seen = __atomic_load_n((bits*)at, __ATOMIC_SEQ_CST), next;                                           \
        type old, sum;                                                                                            \
        do {                                                                                                      \
            __builtin_memcpy(&old, &seen, sizeof old);                                                            \
            sum = old + v;                                                                                        \
            __builtin_memcpy(&next, &sum, sizeof sum);                                                            \
        } while (!__atomic_compare_exchange_n((bits*)at, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
        return old;                                                                                               \
    }
SHIM_REAL(float, uint32_t)
SHIM_REAL(double, uint64_t)
#undef SHIM_REAL

/* Threads of a GPU run in no order: forwards, backwards, or in leaps. */
static inline unsigned shim_place(unsigned k, unsigned n, int order) {
    if (order == 0) return k;
    if (order == 1) return n - 1 - k;
    unsigned step = n / 2 + 1;
    for (;; ++step) {
        unsigned a = step, b = n;
        while (b) { const unsigned r = a % b; a = b; b = r; }
        if (a == 1) return (unsigned)((uint64_t)k * step % n);
    }
}

#define KC_ENTRY(name, count)                                                                                     \
    extern "C" __attribute__((visibility("default"))) void name##_run(void* const* params, unsigned first,        \
                                                                      unsigned last, unsigned blocks,             \
                                                                      unsigned threads, int order) {              \
        gridDim = {blocks, 1, 1};                                                                                 \
        blockDim = {threads, 1, 1};                                                                               \
        for (unsigned b = first; b < last; ++b) {                                                                 \
            blockIdx = {shim_place(b, blocks, order), 0, 0};                                                      \
            for (unsigned t = 0; t < threads; ++t) {                                                              \
                threadIdx = {shim_place(t, threads, order), 0, 0};                                                \
                name(*(const kc_words<count>*)params[0], *(const kc_launch*)params[1]);                           \
            }                                                                                                     \
        }                                                                                                         \
    }                                                                                                             \
    extern "C" __attribute__((visibility("default"))) const uint64_t name##_sizes[3] = {                          \
        2, sizeof(kc_words<count>), sizeof(kc_launch)};
