/* What a running kernel sees of the native core: failures, the loop tape, the undo log, records, prints.
   Plain C without the STL: the same text is read by the native core, g++ and clang. On a GPU: device.h. */
#ifndef KERNELC_CONTEXT_H
#define KERNELC_CONTEXT_H

#include "base.h"

#define KC_ABI 3

typedef struct kc_undo {
    char* address;
    uint64_t old;
    uint32_t size; /* 1..8 bytes */
} kc_undo;

/* An array of which each thread sees its own element alone: see tail() below. */
typedef struct kc_window {
    int32_t pointer, rows; /* words of the argument block: where it begins, how many elements it has */
    int32_t size;          /* bytes of an element, a multiple of 4 */
    int32_t written;
} kc_window;

struct kc_context;
/* Runs the threads begin..end-1 of the grid, in ascending order. */
typedef void (*kc_entry)(const int64_t* block, int64_t begin, int64_t end, struct kc_context* ctx);

typedef struct kc_context {
    uint32_t abi;    /* KC_ABI */
    uint32_t failed; /* set by fail(): the kernel stops its current thread and leaves the loop over threads */
    int64_t thread;  /* linear index of the running thread: set by the kernel */

    /* Loop tape: one stack of bytes per worker. Only [base, top) is in use; it may move when it grows. */
    char *base, *top, *end;
    /* Afterwards end - top >= need, always. Over the memory limit it fails with KC_TAPE_FULL and restarts at
       top = base: what was pushed is lost, but no access is ever out of bounds. */
    void (*grow)(struct kc_context*, uint64_t need);

    /* Undo log of array elements, a stack too. Marks are indices. */
    kc_undo* undo;
    int64_t undo_top, undo_end;
    /* Afterwards undo_end > undo_top. Over the limit it restores what is logged and restarts at undo_top = 0. */
    void (*grow_undo)(struct kc_context*);

    /* What integer atomics returned in the forward launch: value number `seq` of `thread`. */
    void (*record_put)(void* rec, int64_t thread, int64_t seq, int64_t value);
    int64_t (*record_get)(void* rec, int64_t thread, int64_t seq);

    void (*fail)(struct kc_context*, int32_t code, int32_t site, int64_t a, int64_t b); /* the lowest thread is kept */
    void (*print)(struct kc_context*, int32_t site, int32_t count, const double* values);

    /* Runs the last group of lanes, which is not full, by calling the kernel again: with `windows`, which lead to copies
       of its elements that have room for all lanes, zeros in those that are not there. Afterwards what was written is
       copied back. No kernel then has to ask at each access whether its group is full. */
    void (*tail)(kc_entry entry, const int64_t* block, int64_t begin, int64_t end, struct kc_context* ctx,
                 const kc_window* windows, int32_t count, int32_t lanes);
    char** windows; /* where thread 0 would have its elements; null while groups are full */

    /* Ctrl-C: where *attention is not 0, poll() asks whether to go on; if not, it fails. Loops look now and then. */
    const volatile uint32_t* attention;
    void (*poll)(struct kc_context*);

    void* owner; /* the native worker */
} kc_context;

/* In iteration k of a loop: leaves the kernel where the launch is to end. Nested loops that look each 256th time look
   often enough, and most iterations do not read memory for it. */
#define KC_POLL(k)                                                               \
    if (KC_UNLIKELY(((k) & 255) == 255) && KC_UNLIKELY(*ctx->attention != 0)) {  \
        ctx->poll(ctx);                                                          \
        if (ctx->failed) return;                                                 \
    }

/* Room for a frame of `bytes` on top of the loop tape; the pointer is good until the next reserve. */
KC_FN char* kc_reserve(kc_context* ctx, uint64_t bytes) {
    if (KC_UNLIKELY((uint64_t)(ctx->end - ctx->top) < bytes)) ctx->grow(ctx, bytes);
    char* frame = ctx->top;
    ctx->top = frame + bytes;
    return frame;
}

/* Takes the top frame off; readable until the next reserve. After KC_TAPE_FULL the frame may be gone: then this stays
   at base, where there is room for every frame that was ever reserved. The values are garbage, so a kernel looks at
   `failed` between its pushes and its first pop: a popped trip count or index is then never used. */
KC_FN char* kc_release(kc_context* ctx, uint64_t bytes) {
    if (KC_UNLIKELY((uint64_t)(ctx->top - ctx->base) < bytes)) return ctx->top = ctx->base;
    return ctx->top -= bytes;
}

/* memcpy: a mix of 1, 4 and 8 byte values leaves them unaligned. */
#define KC_PUSH_POP(name, type)                                      \
    KC_FN void kc_push_##name(kc_context* ctx, type value) {         \
        KC_COPY(kc_reserve(ctx, sizeof value), &value, sizeof value); \
    }                                                                \
    KC_FN type kc_pop_##name(kc_context* ctx) {                      \
        type value;                                                  \
        KC_COPY(&value, kc_release(ctx, sizeof value), sizeof value); \
        return value;                                                \
    }
KC_PUSH_POP(f32, float)
KC_PUSH_POP(f64, double)
KC_PUSH_POP(i32, int32_t)
KC_PUSH_POP(i64, int64_t)
KC_PUSH_POP(u32, uint32_t)
#undef KC_PUSH_POP

/* A byte, compared with zero when popped: garbage after KC_TAPE_FULL must not become an invalid bool. */
KC_FN void kc_push_bool(kc_context* ctx, bool value) { *kc_reserve(ctx, 1) = (char)value; }
KC_FN bool kc_pop_bool(kc_context* ctx) { return *kc_release(ctx, 1) != 0; }

KC_FN int64_t kc_undo_mark(const kc_context* ctx) { return ctx->undo_top; }

/* Before a store of `size` <= 8 bytes: remembers what the element holds. */
KC_FN void kc_undo_log(kc_context* ctx, void* address, uint32_t size) {
    if (KC_UNLIKELY(ctx->undo_top == ctx->undo_end)) ctx->grow_undo(ctx);
    kc_undo* entry = ctx->undo + ctx->undo_top++;
    entry->address = (char*)address;
    entry->size = size;
    KC_COPY(&entry->old, address, size);
}

/* Puts back what was stored since the mark, newest first. */
KC_FN void kc_undo_to(kc_context* ctx, int64_t mark) {
    while (ctx->undo_top > mark) {
        const kc_undo* entry = ctx->undo + --ctx->undo_top;
        /* Constant sizes are one store; a variable one is a call. */
        if (entry->size == 4) KC_COPY(entry->address, &entry->old, 4);
        else if (entry->size == 8) KC_COPY(entry->address, &entry->old, 8);
        else KC_COPY(entry->address, &entry->old, entry->size);
    }
}

#endif
