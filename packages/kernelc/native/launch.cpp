#include "launch.hpp"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <limits>
#include <mutex>

#include "interrupt.hpp"
#include "pool.hpp"

namespace kernelc {
namespace {

constexpr int64_t kSmallestChunk = 128;  // up to here a launch is one call
constexpr int64_t kMostChunks = 128;
constexpr int64_t kAlignment = 64;        // whole SIMD groups, whole cache lines of results
constexpr double kWorthSharing = 10e3;    // ns of work left that pay for waking another thread

double now() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What a thread of an entry took when it last ran. Decides who runs the chunks, never what they are.
class Costs {
public:
    double of(kc_entry entry) const {  // 0: unknown
        const Slot& slot = slots_[index(entry)];
        return slot.entry.load(std::memory_order_relaxed) == entry ? slot.cost.load(std::memory_order_relaxed) : 0.0;
    }
    void note(kc_entry entry, double nanoseconds) {
        Slot& slot = slots_[index(entry)];
        slot.entry.store(entry, std::memory_order_relaxed);
        slot.cost.store(nanoseconds, std::memory_order_relaxed);
    }

private:
    struct Slot {
        std::atomic<kc_entry> entry{nullptr};
        std::atomic<double> cost{0.0};
    };
    static size_t index(kc_entry entry) {
        return (reinterpret_cast<uintptr_t>(entry) * uint64_t{0x9E3779B97F4A7C15}) >> 55;  // 9 bits
    }
    Slot slots_[512];
};
Costs costs;

// Chunks side by side that one thread takes first, and others when they have none left. Launches of the same size are
// cut alike, so a thread finds in its cache what it wrote in the launch before.
struct alignas(64) Range {
    std::atomic<int64_t> next;
    int64_t end;
};
constexpr int64_t kMostRanges = 32;

class Chunks final : public Job {
public:
    Chunks(const Launch& launch, int64_t grain);

    Failure run_all(Worker& self);
    void help(int number) noexcept override;
    void look() noexcept override;

    PrintBatch prints;

private:
    int64_t take(int64_t first);
    int64_t run_next(Worker& worker, int64_t first);
    bool share(int64_t left);
    void collect(Worker& worker);

    const Launch& launch_;
    const int64_t grain_, part_, in_part_, count_;
    int64_t ranges_;
    Range range_[kMostRanges];
    alignas(64) std::atomic<int64_t> failed_;  // the lowest chunk that did, or count_
    std::atomic<bool> cancelled_{false};
    std::mutex mutex_;  // of failure_ and prints
    Failure failure_;
    std::fenv_t environment_;
};

Chunks::Chunks(const Launch& launch, int64_t grain)
    : launch_(launch), grain_(grain), part_(launch.part > 0 ? launch.part : launch.total),
      in_part_((part_ - 1) / grain + 1), count_(((launch.total - 1) / part_ + 1) * in_part_),
      ranges_(std::min({static_cast<int64_t>(Pool::threads()), count_, kMostRanges})), failed_(count_) {
    for (int64_t k = 0; k < ranges_; ++k) {
        range_[k].next.store(count_ * k / ranges_, std::memory_order_relaxed);
        range_[k].end = count_ * (k + 1) / ranges_;
    }
}

// A chunk of the given range, or of the next one that has any left; count_ when there is none.
// Chunks above one that failed need not start, but all below it do.
int64_t Chunks::take(int64_t first) {
    for (int64_t k = 0; k < ranges_; ++k) {
        Range& range = range_[(first + k) % ranges_];
        if (range.next.load(std::memory_order_relaxed) >= range.end) continue;
        const int64_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk < range.end && chunk < failed_.load(std::memory_order_relaxed)) return chunk;
    }
    return count_;
}

// The number of threads run; 0 when there is no chunk left.
int64_t Chunks::run_next(Worker& worker, int64_t first) {
    if (KC_UNLIKELY(interrupt::flag.load(std::memory_order_relaxed))) look();
    if (KC_UNLIKELY(cancelled_.load(std::memory_order_relaxed))) return 0;
    const int64_t chunk = take(first);
    if (chunk == count_) return 0;
    const int64_t origin = chunk / in_part_ * part_, begin = origin + chunk % in_part_ * grain_;
    const int64_t end = std::min({begin + grain_, origin + part_, launch_.total});
    if (worker.run(launch_.entry, launch_.block, begin, end, &cancelled_)) return end - begin;
    if (worker.failure.code == KC_INTERRUPTED) cancelled_.store(true);
    std::lock_guard<std::mutex> lock(mutex_);
    if (chunk < failed_.load(std::memory_order_relaxed)) {
        failed_.store(chunk, std::memory_order_relaxed);
        failure_ = worker.failure;
    }
    return end - begin;
}

// Alone while the work left does not pay for waking a helper, as far as we know; from then on together.
Failure Chunks::run_all(Worker& self) {
    const double begin = now();
    double left = expected_time(launch_);
    int64_t done = 0;
    bool asked = false, shared = false;
    for (int64_t chunks = 1;; ++chunks) {
        if (!asked && left > kWorthSharing) {
            asked = true;
            shared = share(count_ - chunks + 1);
        }
        const int64_t ran = run_next(self, 0);
        if (ran == 0) break;
        done += ran;
        // After 1, 2, 4, ... chunks: reading the clock takes as long as a small chunk.
        const bool look = !asked && (chunks & (chunks - 1)) == 0;
        if (look) left = (now() - begin) / static_cast<double>(done) * static_cast<double>(launch_.total - done);
    }
    if (done > 0) costs.note(launch_.entry, (now() - begin) / static_cast<double>(done));
    if (shared) Pool::instance().close(*this);
    collect(self);
    return cancelled_.load() ? Failure{KC_INTERRUPTED} : failure_;
}

void Chunks::look() noexcept {
    if (interrupt::stop()) cancelled_.store(true);
}

bool Chunks::share(int64_t left) {
    std::fegetenv(&environment_);
    return left > 1 && Pool::instance().open(*this, left - 1);
}

void Chunks::help(int number) noexcept {
    Worker& worker = Worker::current();
    std::fenv_t own;
    std::fegetenv(&own);
    std::fesetenv(&environment_);  // rounding and denormals as the calling thread has them: the same bits everywhere
    while (run_next(worker, number) > 0) {
    }
    std::fesetenv(&own);
    collect(worker);
}

void Chunks::collect(Worker& worker) {
    if (worker.prints.empty()) return;
    std::lock_guard<std::mutex> lock(mutex_);
    prints.append(worker.prints);
    worker.prints.clear();
}

// A failed launch prints what came before the failing thread, and what that one printed.
int64_t last_print(const Failure& failure) {
    return failure ? failure.thread : std::numeric_limits<int64_t>::max();
}

Failure run_alone(const Launch& launch, Worker& self, int64_t step) {
    Failure failure;
    const bool single = step < 0;  // whoever launched it from Python asks next time whether to give up the GIL for it
    const double begin = single ? now() : 0.0;
    const int64_t slice = launch.grain > 0 ? launch.grain : Worker::kSlice;
    if (!self.run(launch.entry, launch.block, 0, launch.total, nullptr, slice)) failure = self.failure;
    if (single) costs.note(launch.entry, (now() - begin) / static_cast<double>(launch.total));
    if (!self.prints.empty()) self.log.add(self.prints, step, last_print(failure));
    failure.step = step;
    return failure;
}

Failure run_chunks(const Launch& launch, int64_t grain, Worker& self, int64_t step) {
    Chunks chunks(launch, grain);
    Failure failure = chunks.run_all(self);
    if (!chunks.prints.empty()) self.log.add(chunks.prints, step, last_print(failure));
    failure.step = step;
    return failure;
}

}  // namespace

int64_t chunk_size(int64_t total) {
    const int64_t share = (std::max<int64_t>(total, 1) - 1) / kMostChunks + 1;
    return std::max(kSmallestChunk, (share + kAlignment - 1) / kAlignment * kAlignment);
}

double expected_time(const Launch& launch) { return costs.of(launch.entry) * static_cast<double>(launch.total); }

Failure run(const Launch& launch, int64_t step) noexcept {
    if (launch.total <= 0) return {};
    Worker& self = Worker::current();
    if (!launch.parallel) return run_alone(launch, self, step);
    const int64_t grain = launch.grain > 0 ? launch.grain : chunk_size(launch.total);
    return grain >= launch.total ? run_alone(launch, self, step) : run_chunks(launch, grain, self, step);
}

}  // namespace kernelc
