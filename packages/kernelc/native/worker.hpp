// One thread's side of a launch: the context that kernels see, the memory behind its tapes, its failure, its prints.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interrupt.hpp"
#include "kernelc/context.h"
#include "prints.hpp"
#include "window.hpp"

namespace kernelc {

struct Failure {
    int32_t code = 0;  // 0: none
    int32_t site = -1;
    int64_t thread = -1;
    int64_t a = 0;
    int64_t b = 0;
    int64_t step = -1;  // of a program, else -1

    explicit operator bool() const { return code != 0; }
};

// Every thread that runs kernels owns one, made when first needed and freed with the thread.
class Worker {
public:
    // Whole SIMD groups, and so many that looking between them costs nothing.
    static constexpr int64_t kSlice = 1 << 14;

    static Worker& current();

    Worker();
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // Runs threads begin..end-1 on fresh tapes. False: one of them failed, see `failure`. `cancelled`: the launch ends.
    // `slice`: threads between two looks at the flag of interrupts, in one call.
    bool run(kc_entry entry, const int64_t* block, int64_t begin, int64_t end, const std::atomic<bool>* cancelled = nullptr,
             int64_t slice = kSlice) {
        cancelled_ = cancelled;
        context_.top = context_.base;
        context_.undo_top = 0;
        context_.failed = 0;
        prints.begin_chunk(begin);
        if (tape_room_ + undo_room_ > limit()) trim();
        for (int64_t from = begin, to; from < end && !context_.failed; from = to) {
            to = std::min(end, from + slice);
            entry(block, from, to, &context_);
            if (KC_UNLIKELY(interrupt::flag.load(std::memory_order_relaxed)) && to < end) poll(&context_);
        }
        if (context_.failed) roll_back();
        return !context_.failed;
    }

    Failure failure;   // of the last run that returned false
    PrintBatch prints; // of the current launch
    PrintLog log;      // of the launches that this thread made, until Python takes them

    static uint64_t limit();
    static void set_limit(uint64_t bytes);

private:
    static void grow(kc_context* context, uint64_t need);
    static void grow_undo(kc_context* context);
    static void fail(kc_context* context, int32_t code, int32_t site, int64_t a, int64_t b);
    static void print(kc_context* context, int32_t site, int32_t count, const double* values);
    static void poll(kc_context* context);
    static void tail(kc_entry entry, const int64_t* block, int64_t begin, int64_t end, kc_context* context,
                     const kc_window* windows, int32_t count, int32_t lanes);

    uint64_t tape_used() const { return static_cast<uint64_t>(context_.top - context_.base); }
    uint64_t undo_used() const { return static_cast<uint64_t>(context_.undo_top) * sizeof(kc_undo); }
    bool make_room(uint64_t tape, uint64_t undo);
    void resize_tape(uint64_t room);
    void resize_undo(uint64_t room);
    void trim();
    void roll_back();

    kc_context context_{};
    const std::atomic<bool>* cancelled_ = nullptr;
    Windows windows_;
    uint64_t tape_room_ = 0;  // bytes that count against the limit
    uint64_t undo_room_ = 0;
};

}  // namespace kernelc
