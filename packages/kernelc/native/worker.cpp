#include "worker.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "record.hpp"

namespace kernelc {
namespace {

constexpr uint64_t kDefaultLimit = uint64_t{2} << 30;
constexpr uint64_t kSmallest = 4096;  // bytes allocated for either stack, however low the limit is

std::atomic<uint64_t> tape_limit{kDefaultLimit};

// A plain pointer beside its owner: reading it costs no guard, and launches read it every time.
thread_local Worker* current_worker = nullptr;

void* reallocate(void* memory, uint64_t bytes) {
    void* moved = std::realloc(memory, static_cast<size_t>(std::max(bytes, kSmallest)));
    if (moved == nullptr) {
        // Kernels are C: no exception can cross them, and without the memory there is nothing to go on with.
        std::fprintf(stderr, "kernelc: out of memory: %.0f bytes for the loop tape\n", static_cast<double>(bytes));
        std::abort();
    }
    return moved;
}

Worker& make_current() {
    thread_local std::unique_ptr<Worker> owner;
    owner = std::make_unique<Worker>();
    current_worker = owner.get();
    return *current_worker;
}

}  // namespace

Worker& Worker::current() { return current_worker != nullptr ? *current_worker : make_current(); }

uint64_t Worker::limit() { return tape_limit.load(std::memory_order_relaxed); }
void Worker::set_limit(uint64_t bytes) { tape_limit.store(bytes, std::memory_order_relaxed); }

Worker::Worker() {
    context_.abi = KC_ABI;
    context_.grow = grow;
    context_.grow_undo = grow_undo;
    context_.record_put = Record::put;
    context_.record_get = Record::get;
    context_.fail = fail;
    context_.print = print;
    context_.tail = tail;
    context_.attention = reinterpret_cast<const volatile uint32_t*>(&interrupt::flag);
    context_.poll = poll;
    context_.owner = this;
    resize_tape(0);
    resize_undo(0);
}

Worker::~Worker() {
    std::free(context_.base);
    std::free(context_.undo);
    if (current_worker == this) current_worker = nullptr;
}

void Worker::fail(kc_context* context, int32_t code, int32_t site, int64_t a, int64_t b) {
    Worker& self = *static_cast<Worker*>(context->owner);
    // Lanes of one SIMD group may fail in any order; the lowest thread is the one that Python reports.
    if (context->failed && self.failure.thread <= context->thread) return;
    self.failure = Failure{code, site, context->thread, a, b, -1};
    context->failed = 1;
}

void Worker::poll(kc_context* context) {
    const Worker& self = *static_cast<Worker*>(context->owner);
    const bool cancelled = self.cancelled_ != nullptr && self.cancelled_->load(std::memory_order_relaxed);
    if (cancelled || interrupt::stop()) fail(context, KC_INTERRUPTED, -1, 0, 0);
}

// The copies lie in memory of the worker: kernels are C, which have nothing to free them with.
void Worker::tail(kc_entry entry, const int64_t* block, int64_t begin, int64_t end, kc_context* context,
                  const kc_window* windows, int32_t count, int32_t lanes) {
    if (context->failed) return;
    Worker& self = *static_cast<Worker*>(context->owner);
    self.windows_.open(block, begin, end, windows, count, lanes);
    context->windows = self.windows_.places();
    entry(block, begin, end, context);
    context->windows = nullptr;
    if (!context->failed) self.windows_.close();
}

void Worker::print(kc_context* context, int32_t site, int32_t count, const double* values) {
    static_cast<Worker*>(context->owner)->prints.add(site, context->thread, count, values);
}

// The two stacks share one limit. Their rooms never sum to more than it, and a launch fails only if what it uses does:
// so whether a launch fails does not depend on what ran before it. Where they compete, each gets half of what is left.
bool Worker::make_room(uint64_t tape, uint64_t undo) {
    const uint64_t most = limit();
    if (context_.failed || tape > most || undo > most - tape) return false;
    const uint64_t spare = most - tape - undo;
    if (tape > tape_room_) {
        if (undo_room_ > most - tape) resize_undo(undo + spare / 2);
        resize_tape(std::min(std::max({tape, 2 * tape_room_, kSmallest}), most - undo_room_));
    }
    if (undo > undo_room_) {
        if (tape_room_ > most - undo) resize_tape(tape + spare / 2);
        resize_undo(std::min(std::max({undo, 2 * undo_room_, kSmallest}), most - tape_room_));
    }
    return true;
}

void Worker::grow(kc_context* context, uint64_t need) {
    Worker& self = *static_cast<Worker*>(context->owner);
    const uint64_t total = self.tape_used() + need;
    if (self.make_room(total, self.undo_used())) return;
    fail(context, KC_TAPE_FULL, -1, static_cast<int64_t>(total + self.undo_used()), static_cast<int64_t>(limit()));
    context->top = context->base;
    if (need > self.tape_room_) self.resize_tape(need);
}

void Worker::grow_undo(kc_context* context) {
    Worker& self = *static_cast<Worker*>(context->owner);
    const uint64_t total = self.undo_used() + sizeof(kc_undo);
    if (self.make_room(self.tape_used(), total)) return;
    fail(context, KC_TAPE_FULL, -1, static_cast<int64_t>(total + self.tape_used()), static_cast<int64_t>(limit()));
    kc_undo_to(context, 0);  // the log is lost: restore the arrays while it is still there
    if (context->undo_end == 0) self.resize_undo(sizeof(kc_undo));
}

void Worker::resize_tape(uint64_t room) {
    const uint64_t used = tape_used();
    context_.base = static_cast<char*>(reallocate(context_.base, room));
    context_.top = context_.base + used;
    context_.end = context_.base + room;
    tape_room_ = room;
}

void Worker::resize_undo(uint64_t room) {
    context_.undo = static_cast<kc_undo*>(reallocate(context_.undo, room));
    context_.undo_end = static_cast<int64_t>(room / sizeof(kc_undo));
    undo_room_ = room;
}

// The limit was lowered, or a failed launch needed more: both stacks are empty now.
void Worker::trim() {
    resize_tape(0);
    resize_undo(0);
}

// An adjoint overwrites arrays while it runs and puts them back at its end. A thread that stopped midway did not.
void Worker::roll_back() { kc_undo_to(&context_, 0); }

}  // namespace kernelc
