/* What a kernel sees on a GPU: its launch, failures, prints, atomics, the loop tape, the undo log, records.
   A launch has `slots` threads of the GPU; a slot runs the threads slot, slot + slots, ... of the grid one after the
   other, on a loop tape of its own. So the memory of tapes is bounded, however many threads a grid has. */
#ifndef KERNELC_DEVICE_H
#define KERNELC_DEVICE_H

#include "base.h"
#include "kernel.h"
#include "stored.h"

#define KC_BLOCK 128 /* threads of a block; kernelc.runtime.cuda launches as many */
#ifndef KC_ENTRY
#define KC_ENTRY(name, words) /* compiled for the host, tests put a way to call the kernel here */
#endif

template <int N> struct kc_words { int64_t word[N]; };

/* Failure and prints of a launch; cleared by the host. */
struct kc_report {
    int32_t lock, code, site, number; /* of the kernel that failed */
    int64_t thread, a, b;
    unsigned long long print_words; /* asked for, also those for which there was no room */
    unsigned long long print_lost;  /* values that are not there */
    int64_t prints[1];              /* thread, number of the print in its thread, site, count, values */
};

/* In words of eight bytes, as Python writes them. */
struct kc_launch {
    int64_t total;
    char* tape;
    int64_t tape_room; /* bytes of a slot, a multiple of eight */
    char* undo;
    int64_t undo_room; /* entries of a slot */
    kc_report* report;
    int64_t print_room; /* words */
    int64_t* count;     /* of tape bytes and undo entries that the adjoint of a thread takes, at most */
    int64_t* records;   /* by number of the record, then thread */
    int64_t record_room; /* records of a thread */
    int64_t dry;        /* only find out who takes adjoints */
    int64_t number;     /* of the kernel */
};

struct kc_context {
    const kc_launch* launch;
    int64_t thread, slot, slots;
    int64_t top, undo_top;
    int32_t failed, printed;
    bool dry;
};

KC_FN int64_t kc_first() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
KC_FN int64_t kc_slots() { return (int64_t)gridDim.x * blockDim.x; }

KC_FN void kc_open(kc_context* ctx, const kc_launch* launch) {
    ctx->launch = launch;
    ctx->slot = kc_first();
    ctx->slots = kc_slots();
    ctx->undo_top = 0;
    ctx->failed = 0;
    ctx->dry = launch->dry != 0;
}
KC_FN void kc_begin(kc_context* ctx, int64_t thread) {
    ctx->thread = thread;
    ctx->top = 0;
    ctx->printed = 0;
}

/* Grids are small as a rule, and 64 bits are divided by a function. */
KC_FN int64_t kc_quotient(int64_t a, int64_t b) {
    return ((a | b) >> 32) == 0 ? (int64_t)((uint32_t)a / (uint32_t)b) : a / b;
}
KC_FN int64_t kc_remainder(int64_t a, int64_t b) {
    return ((a | b) >> 32) == 0 ? (int64_t)((uint32_t)a % (uint32_t)b) : a % b;
}
/* Integers wrap. */
KC_FN int32_t kc_wrap_add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
KC_FN int64_t kc_wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
KC_FN int32_t kc_wrap_sub(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }
KC_FN int64_t kc_wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
KC_FN int32_t kc_wrap_mul(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
KC_FN int64_t kc_wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
KC_FN int32_t kc_wrap_neg(int32_t a) { return (int32_t)(0u - (uint32_t)a); }
KC_FN int64_t kc_wrap_neg(int64_t a) { return (int64_t)(0u - (uint64_t)a); }

/* -- reports. The lowest thread that failed is kept, whichever came first. What is rare is a function of its own, which
   gets numbers and not the context: that stays in registers. */
static __device__ __noinline__ void kc_keep_failure(const kc_launch* launch, int64_t thread, int32_t code,
                                                    int32_t site, int64_t a, int64_t b) {
    kc_report* const report = launch->report;
    for (bool done = false; !done;) {
        if (atomicCAS(&report->lock, 0, 1) != 0) continue;
        __threadfence();
        volatile kc_report* const kept = report;
        if (kept->code == 0 || thread < kept->thread) {
            kept->code = code;
            kept->site = site;
            kept->number = (int32_t)launch->number;
            kept->thread = thread;
            kept->a = a;
            kept->b = b;
        }
        __threadfence();
        atomicExch(&report->lock, 0);
        done = true;
    }
}
KC_FN void kc_fail(kc_context* ctx, int32_t code, int32_t site, int64_t a, int64_t b) {
    if (!ctx->failed) kc_keep_failure(ctx->launch, ctx->thread, code, site, a, b);
    ctx->failed = 1;
}

static __device__ __noinline__ void kc_keep_print(const kc_launch* launch, int64_t thread, int32_t number, int32_t site,
                                                  int32_t count, const double* values) {
    kc_report* const report = launch->report;
    const unsigned long long words = 4 + (unsigned long long)count;
    const unsigned long long at = atomicAdd(&report->print_words, words);
    if (at + words > (unsigned long long)launch->print_room) {
        atomicAdd(&report->print_lost, (unsigned long long)(count > 0 ? count : 1));
        if (at < (unsigned long long)launch->print_room) report->prints[at] = -1; /* the end */
        return;
    }
    int64_t* const to = report->prints + at;
    to[0] = thread;
    to[1] = number;
    to[2] = site;
    to[3] = count;
    for (int32_t i = 0; i < count; ++i) KC_COPY(to + 4 + i, values + i, 8);
}
KC_FN void kc_print(kc_context* ctx, int32_t site, int32_t count, const double* values) {
    kc_keep_print(ctx->launch, ctx->thread, ctx->printed++, site, count, values);
}

/* -- atomics, with the old content. A NaN on either side is the result of minima and maxima, as on the CPU. */
KC_FN float kc_atomic_add(float* at, float v) { return atomicAdd(at, v); }
KC_FN double kc_atomic_add(double* at, double v) { return atomicAdd(at, v); }
KC_FN int32_t kc_atomic_add(int32_t* at, int32_t v) { return atomicAdd(at, v); }
KC_FN uint32_t kc_atomic_add(uint32_t* at, uint32_t v) { return atomicAdd(at, v); }
KC_FN int64_t kc_atomic_add(int64_t* at, int64_t v) {
    return (int64_t)atomicAdd((unsigned long long*)at, (unsigned long long)v);
}
KC_FN uint64_t kc_atomic_add(uint64_t* at, uint64_t v) {
    return (uint64_t)atomicAdd((unsigned long long*)at, (unsigned long long)v);
}
/* Of integers alone. */
#define KC_ATOMIC_BITS(name, native)                                                                              \
    KC_FN int32_t name(int32_t* at, int32_t v) { return native(at, v); }                              \
    KC_FN uint32_t name(uint32_t* at, uint32_t v) { return native(at, v); }                           \
    KC_FN int64_t name(int64_t* at, int64_t v) {                                                      \
        return (int64_t)native((unsigned long long*)at, (unsigned long long)v);                                   \
    }                                                                                                             \
    KC_FN uint64_t name(uint64_t* at, uint64_t v) {                                                   \
        return (uint64_t)native((unsigned long long*)at, (unsigned long long)v);                                  \
    }
KC_ATOMIC_BITS(kc_atomic_and, atomicAnd)
KC_ATOMIC_BITS(kc_atomic_or, atomicOr)
KC_ATOMIC_BITS(kc_atomic_xor, atomicXor)
KC_ATOMIC_BITS(kc_atomic_exchange, atomicExch)
#undef KC_ATOMIC_BITS
KC_FN int32_t kc_atomic_cas(int32_t* at, int32_t expected, int32_t v) { return atomicCAS(at, expected, v); }
KC_FN uint32_t kc_atomic_cas(uint32_t* at, uint32_t expected, uint32_t v) { return atomicCAS(at, expected, v); }
KC_FN int64_t kc_atomic_cas(int64_t* at, int64_t expected, int64_t v) {
    return (int64_t)atomicCAS((unsigned long long*)at, (unsigned long long)expected, (unsigned long long)v);
}
KC_FN uint64_t kc_atomic_cas(uint64_t* at, uint64_t expected, uint64_t v) {
    return (uint64_t)atomicCAS((unsigned long long*)at, (unsigned long long)expected, (unsigned long long)v);
}
#define KC_ATOMIC_INTEGERS(name, native)                                                                          \
    KC_FN int32_t kc_atomic_##name(int32_t* at, int32_t v) { return native(at, v); }                              \
    KC_FN uint32_t kc_atomic_##name(uint32_t* at, uint32_t v) { return native(at, v); }                           \
    KC_FN int64_t kc_atomic_##name(int64_t* at, int64_t v) { return native((long long*)at, (long long)v); }       \
    KC_FN uint64_t kc_atomic_##name(uint64_t* at, uint64_t v) {                                                   \
        return native((unsigned long long*)at, (unsigned long long)v);                                            \
    }                                                                                                             \
    KC_FN float kc_atomic_##name(float* at, float v) {                                                            \
        int32_t seen = *(volatile int32_t*)at, old;                                                               \
        do {                                                                                                      \
            old = seen;                                                                                           \
            float now;                                                                                            \
            KC_COPY(&now, &old, 4);                                                                               \
            const float then = kc_##name(now, v);                                                                 \
            int32_t bits;                                                                                         \
            KC_COPY(&bits, &then, 4);                                                                             \
            if (bits == old) break;                                                                               \
            seen = atomicCAS((int32_t*)at, old, bits);                                                            \
        } while (seen != old);                                                                                    \
        float before;                                                                                             \
        KC_COPY(&before, &old, 4);                                                                                \
        return before;                                                                                            \
    }                                                                                                             \
    KC_FN double kc_atomic_##name(double* at, double v) {                                                         \
        unsigned long long seen = *(volatile unsigned long long*)at, old;                                         \
        do {                                                                                                      \
            old = seen;                                                                                           \
            double now;                                                                                           \
            KC_COPY(&now, &old, 8);                                                                               \
            const double then = kc_##name(now, v);                                                                \
            unsigned long long bits;                                                                              \
            KC_COPY(&bits, &then, 8);                                                                             \
            if (bits == old) break;                                                                               \
            seen = atomicCAS((unsigned long long*)at, old, bits);                                                 \
        } while (seen != old);                                                                                    \
        double before;                                                                                            \
        KC_COPY(&before, &old, 8);                                                                                \
        return before;                                                                                            \
    }
KC_ATOMIC_INTEGERS(min, atomicMin)
KC_ATOMIC_INTEGERS(max, atomicMax)
#undef KC_ATOMIC_INTEGERS

/* Numbers of few bits: the word around one is exchanged as long as others change it as well. T is what memory holds, V
   what kernels compute with. */
#define KC_ATOMIC_PART(name, then)                                                                                \
    template <class T, class V> KC_FN V name(T* at, V expected, V v) {                                  \
        (void)expected;                                                                                           \
        uint32_t* const word = (uint32_t*)((uintptr_t)at & ~(uintptr_t)3);                                        \
        const uint32_t shift = 8 * (uint32_t)((uintptr_t)at & 3), ones = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift; \
        uint32_t seen = *(volatile uint32_t*)word, old;                                                           \
        V before;                                                                                                 \
        do {                                                                                                      \
            old = seen;                                                                                           \
            const uint32_t held = (old & ones) >> shift;                                                          \
            T part;                                                                                               \
            KC_COPY(&part, &held, sizeof part);                                                                   \
            before = (V)part;                                                                                     \
            part = then;                                                                                          \
            uint32_t bits = 0;                                                                                    \
            KC_COPY(&bits, &part, sizeof part);                                                                   \
            seen = atomicCAS(word, old, (old & ~ones) | bits << shift);                                           \
        } while (seen != old);                                                                                    \
        return before;                                                                                            \
    }
KC_FN float kc_wrap_add(float a, float b) { return a + b; }
KC_FN double kc_wrap_add(double a, double b) { return a + b; }
KC_ATOMIC_PART(kc_part_add, kc_wrap_add(before, v))
KC_ATOMIC_PART(kc_part_min, kc_min(before, v))
KC_ATOMIC_PART(kc_part_max, kc_max(before, v))
KC_ATOMIC_PART(kc_part_and, before & v)
KC_ATOMIC_PART(kc_part_or, before | v)
KC_ATOMIC_PART(kc_part_xor, before ^ v)
KC_ATOMIC_PART(kc_part_exchange, v)
KC_ATOMIC_PART(kc_part_cas, before == expected ? v : before)
#undef KC_ATOMIC_PART
#define KC_ATOMIC_SMALL(name, part, T)                                                                            \
    template <class V> KC_FN V name(T* at, V v) { return part(at, v, v); }
#define KC_ATOMIC_SMALLS(T)                                                                                       \
    KC_ATOMIC_SMALL(kc_atomic_add, kc_part_add, T) KC_ATOMIC_SMALL(kc_atomic_min, kc_part_min, T) KC_ATOMIC_SMALL(kc_atomic_max, kc_part_max, T) KC_ATOMIC_SMALL(kc_atomic_and, kc_part_and, T)               \
    KC_ATOMIC_SMALL(kc_atomic_or, kc_part_or, T) KC_ATOMIC_SMALL(kc_atomic_xor, kc_part_xor, T) KC_ATOMIC_SMALL(kc_atomic_exchange, kc_part_exchange, T)                                   \
    template <class V> KC_FN V kc_atomic_cas(T* at, V expected, V v) { return kc_part_cas(at, expected, v); }
KC_ATOMIC_SMALLS(int8_t)
KC_ATOMIC_SMALLS(uint8_t)
KC_ATOMIC_SMALLS(int16_t)
KC_ATOMIC_SMALLS(uint16_t)
KC_ATOMIC_SMALLS(kc_float16)
KC_ATOMIC_SMALLS(kc_bfloat16)
#undef KC_ATOMIC_SMALL
#undef KC_ATOMIC_SMALLS

/* Who takes the adjoint of a minimum or maximum: the lowest thread that holds it. A dry launch finds it out, the next
   one goes by what it found. The table begins as all ones. */
KC_FN bool kc_claim(kc_context* ctx, int64_t* winner, bool holds) {
    if (ctx->dry) {
        if (holds) atomicMin((unsigned long long*)winner, (unsigned long long)ctx->thread);
        return false;
    }
    return holds && *winner == ctx->thread;
}

/* Debug: who stored to a number, read it, or changed it by atomics (codegen/cpp.py: race). Each marks, then looks: of
   two that meet, one sees the other. The thread that was there before plus one; 0: nobody; -1: several. */
KC_FN void kc_touch(int64_t* mark, int64_t thread) {
    const unsigned long long me = (unsigned long long)thread + 1;
    const unsigned long long old = atomicCAS((unsigned long long*)mark, 0ull, me);
    if (old != 0 && old != me) atomicExch((unsigned long long*)mark, ~0ull);
    __threadfence();
}
KC_FN int64_t kc_toucher(int64_t* mark) { return *(volatile int64_t*)mark; }

/* -- loop tape: a stack of frames of whole words. The words of neighbouring slots lie side by side. */
KC_FN char* kc_tape(const kc_context* ctx, int64_t at) {
    return ctx->launch->tape + ((at >> 3) * ctx->slots + ctx->slot) * 8 + (at & 7);
}
KC_FN int64_t kc_reserve(kc_context* ctx, int64_t bytes) {
    if (KC_UNLIKELY(ctx->top + bytes > ctx->launch->tape_room)) {
        kc_fail(ctx, KC_TAPE_FULL, -1, ctx->top + bytes, ctx->launch->tape_room);
        ctx->top = 0; /* there is room for any one frame; what is lost is not looked at */
    }
    const int64_t frame = ctx->top;
    ctx->top = frame + bytes;
    return frame;
}
KC_FN int64_t kc_release(kc_context* ctx, int64_t bytes) {
    if (KC_UNLIKELY(ctx->top < bytes)) return ctx->top = 0;
    return ctx->top -= bytes;
}

/* -- undo log: address, old content, size */
KC_FN int64_t* kc_entry_word(const kc_context* ctx, int64_t entry, int word) {
    return (int64_t*)ctx->launch->undo + ((entry * 3 + word) * ctx->slots + ctx->slot);
}
KC_FN int64_t kc_undo_mark(const kc_context* ctx) { return ctx->undo_top; }
KC_FN void kc_undo_to(kc_context* ctx, int64_t mark) {
    while (ctx->undo_top > mark) {
        const int64_t entry = --ctx->undo_top, old = *kc_entry_word(ctx, entry, 1);
        char* const address = (char*)*kc_entry_word(ctx, entry, 0);
        const int64_t size = *kc_entry_word(ctx, entry, 2);
        if (size == 4) KC_COPY(address, &old, 4);
        else if (size == 8) KC_COPY(address, &old, 8);
        else if (size == 2) KC_COPY(address, &old, 2);
        else *address = (char)old;
    }
}
KC_FN void kc_undo_log(kc_context* ctx, const char* address, int64_t size) {
    if (KC_UNLIKELY(ctx->undo_top >= ctx->launch->undo_room)) {
        kc_fail(ctx, KC_TAPE_FULL, -1, 24 * (ctx->undo_top + 1), 24 * ctx->launch->undo_room);
        kc_undo_to(ctx, 0); /* the log is lost: restore the arrays while it is still there */
    }
    int64_t old = 0;
    if (size == 4) KC_COPY(&old, address, 4);
    else if (size == 8) KC_COPY(&old, address, 8);
    else if (size == 2) KC_COPY(&old, address, 2);
    else KC_COPY(&old, address, 1);
    const int64_t entry = ctx->undo_top++;
    *kc_entry_word(ctx, entry, 0) = (int64_t)address;
    *kc_entry_word(ctx, entry, 1) = old;
    *kc_entry_word(ctx, entry, 2) = size;
}

/* -- what the forward launch leaves for its adjoint */
KC_FN void kc_count_up(int64_t* at, int64_t n) {
    if (*(volatile int64_t*)at < n) atomicMax((long long*)at, (long long)n);
}
KC_FN void kc_count(kc_context* ctx, int64_t bytes, int64_t entries) {
    if (ctx->launch->count == 0) return;
    kc_count_up(ctx->launch->count, bytes);
    kc_count_up(ctx->launch->count + 1, entries);
}
KC_FN void kc_record_put(kc_context* ctx, int64_t number, int64_t value) {
    if (ctx->launch->records == 0) return;
    if (KC_UNLIKELY(number >= ctx->launch->record_room)) {
        kc_fail(ctx, KC_TAPE_FULL, -1, 8 * (number + 1), 8 * ctx->launch->record_room);
        return;
    }
    ctx->launch->records[number * ctx->launch->total + ctx->thread] = value;
}
KC_FN int64_t kc_record_get(const kc_context* ctx, int64_t number) {
    if (number < 0 || number >= ctx->launch->record_room) return 0;
    return ctx->launch->records[number * ctx->launch->total + ctx->thread];
}

/* A thread that stopped midway puts back what its adjoint has overwritten. */
KC_FN void kc_end(kc_context* ctx) {
    if (KC_UNLIKELY(ctx->failed)) kc_undo_to(ctx, 0);
}

#endif
