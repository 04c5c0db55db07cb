/* Tiny kernels, written by hand as the compiler would emit them: one law of the native core each. */
#include <stddef.h>
#include <string.h>

#include "kernelc/context.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define KERNEL(name) void name(const int64_t* block, int64_t begin, int64_t end, kc_context* ctx)

KERNEL(nothing) { (void)block, (void)begin, (void)end, (void)ctx; }

/* y[i] += 2 x[i]: {y, x} */
KERNEL(twice) {
    float* y = (float*)block[0];
    const float* x = (const float*)block[1];
    (void)ctx;
    for (int64_t i = begin; i < end; ++i) y[i] += 2.0f * x[i];
}

/* Where each chunk begins: {begins}, begins[i] = the begin of the chunk that ran thread i */
KERNEL(chunk_of) {
    int64_t* begins = (int64_t*)block[0];
    (void)ctx;
    for (int64_t i = begin; i < end; ++i) begins[i] = begin;
}

/* {steps, out}: some work in every thread */
KERNEL(spin) {
    int64_t* out = (int64_t*)block[1];
    (void)ctx;
    for (int64_t i = begin; i < end; ++i) {
        uint64_t state = (uint64_t)i;
        for (int64_t k = 0; k < block[0]; ++k) state = state * 6364136223846793005u + 1442695040888963407u;
        out[i] = (int64_t)(state >> 1);
    }
}

/* {steps, out}: who ran thread i, after some work */
KERNEL(worker_of) {
    volatile int64_t sink = 0;
    for (int64_t i = begin; i < end; ++i) {
        for (int64_t k = 0; k < block[0]; ++k) sink = sink + k;
        ((int64_t*)block[1])[i] = (int64_t)ctx->owner;
    }
}

/* {first, stride, out}: threads first, first + stride, ... fail; the others write 1 */
KERNEL(fail_some) {
    int64_t* out = (int64_t*)block[2];
    for (int64_t i = begin; i < end; ++i) {
        ctx->thread = i;
        if (i >= block[0] && (i - block[0]) % block[1] == 0) {
            ctx->fail(ctx, KC_INDEX, 17, i, 5);
            if (ctx->failed) break;
        }
        out[i] = 1;
    }
}

/* Two lanes of one group fail, the higher one first. */
KERNEL(fail_lanes) {
    (void)block;
    for (int64_t lane = end - 1; lane >= begin; --lane) {
        ctx->thread = lane;
        ctx->fail(ctx, KC_NAN, (int32_t)lane, 0, 0);
        ctx->fail(ctx, KC_ASSERT, 99, 0, 0);
    }
}

/* {count, bad}: pushes one value of each type per round and takes them off again; bad[0] counts differences */
KERNEL(push_pop) {
    int64_t* bad = (int64_t*)block[1];
    for (int64_t i = begin; i < end; ++i) {
        ctx->thread = i;
        for (int64_t k = 0; k < block[0]; ++k) {
            kc_push_f32(ctx, (float)(i + k));
            kc_push_f64(ctx, (double)(i - k));
            kc_push_i32(ctx, (int32_t)k);
            kc_push_i64(ctx, i * 1000003 + k);
            kc_push_u32(ctx, (uint32_t)(i ^ k));
            kc_push_bool(ctx, k % 3 == 0);
            double* frame = (double*)kc_reserve(ctx, 24);
            memcpy(frame, &k, 8);
        }
        if (ctx->failed) break;
        for (int64_t k = block[0] - 1; k >= 0; --k) {
            int64_t first;
            memcpy(&first, kc_release(ctx, 24), 8);
            int same = first == k;
            same &= kc_pop_bool(ctx) == (k % 3 == 0);
            same &= kc_pop_u32(ctx) == (uint32_t)(i ^ k);
            same &= kc_pop_i64(ctx) == i * 1000003 + k;
            same &= kc_pop_i32(ctx) == (int32_t)k;
            same &= kc_pop_f64(ctx) == (double)(i - k);
            same &= kc_pop_f32(ctx) == (float)(i + k);
            if (!same) __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);
        }
    }
}

/* {frame, count, sum}: goes on after the tape is full, as code does that looks at `failed` only at its end */
KERNEL(overfull) {
    char sum = 0;
    for (int64_t i = begin; i < end; ++i) {
        ctx->thread = i;
        for (int64_t k = 0; k < block[1]; ++k) memset(kc_reserve(ctx, (uint64_t)block[0]), 1, (size_t)block[0]);
        for (int64_t k = 0; k < block[1]; ++k) {
            const char* frame = kc_release(ctx, (uint64_t)block[0]);
            for (int64_t byte = 0; byte < block[0]; ++byte) sum ^= frame[byte];
        }
        if (ctx->failed) break;
    }
    __atomic_fetch_xor((char*)block[2], sum, __ATOMIC_RELAXED);
}

/* {a, rounds, fail_at}: overwrites a[i] of 1, 4 and 8 bytes, then puts everything back */
KERNEL(overwrite) {
    char* a = (char*)block[0];
    for (int64_t i = begin; i < end; ++i) {
        ctx->thread = i;
        char* cell = a + 16 * i;
        const int64_t mark = kc_undo_mark(ctx);
        for (int64_t k = 1; k <= block[1]; ++k) {
            const double real = 0.5 * (double)k;
            const float single = 0.25f * (float)k;
            kc_undo_log(ctx, cell, 8);
            memcpy(cell, &real, 8);
            kc_undo_log(ctx, cell + 8, 4);
            memcpy(cell + 8, &single, 4);
            kc_undo_log(ctx, cell + 12, 1);
            cell[12] = (char)k;
            kc_push_i64(ctx, k);
        }
        if (i == block[2]) ctx->fail(ctx, KC_ASSERT, 3, 0, 0);
        if (ctx->failed) break;
        for (int64_t k = block[1]; k >= 1; --k) kc_pop_i64(ctx);
        kc_undo_to(ctx, mark);
    }
}

/* {rec}: thread i puts i % 4 values */
KERNEL(put) {
    for (int64_t i = begin; i < end; ++i)
        for (int64_t seq = 0; seq < i % 4; ++seq) ctx->record_put((void*)block[0], i, seq, 100 * i + seq);
}

/* {rec, threads, seqs, out}: gets value seqs[i] of threads[i] */
KERNEL(get) {
    for (int64_t i = begin; i < end; ++i)
        ((int64_t*)block[3])[i] = ctx->record_get((void*)block[0], ((int64_t*)block[1])[i], ((int64_t*)block[2])[i]);
}

/* {every, fail_at}: each `every`th thread prints twice, later lanes first */
KERNEL(print_some) {
    for (int64_t i = end - 1; i >= begin; --i) {
        if (i % block[0] != 0) continue;
        const double values[2] = {(double)i, 0.5};
        ctx->thread = i;
        ctx->print(ctx, 1, 2, values);
        ctx->print(ctx, 2, 0, NULL);
    }
    if (begin <= block[1] && block[1] < end) {
        ctx->thread = block[1];
        ctx->fail(ctx, KC_ASSERT, 0, 0, 0);
    }
}

/* {out}: out[i] = whether the context is as a chunk must find it */
KERNEL(is_fresh) {
    const char fresh = ctx->abi == KC_ABI && !ctx->failed && ctx->top == ctx->base && ctx->undo_top == 0;
    for (int64_t i = begin; i < end; ++i) ((char*)block[0])[i] = fresh;
    kc_push_i64(ctx, 1);
}

#if defined(__x86_64__)
/* {on}: flushes denormals to zero in the calling thread, as torch.set_flush_denormal does */
KERNEL(flush_denormals) {
    (void)begin, (void)end, (void)ctx;
    _mm_setcsr(block[0] ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u);
}
#endif

/* {y}: y[i] = a denormal number, after some work */
KERNEL(denormal) {
    (void)ctx;
    for (int64_t i = begin; i < end; ++i) {
        volatile float tiny = 1e-38f;
        for (int k = 0; k < 2000; ++k) tiny = tiny * 1.0f;
        ((float*)block[0])[i] = tiny * 0.01f;
    }
}

#ifdef __cplusplus
}
#endif
