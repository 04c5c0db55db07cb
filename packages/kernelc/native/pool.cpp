#include "pool.hpp"

#include <pthread.h>
#include <signal.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <chrono>
#include <system_error>

#include "interrupt.hpp"

namespace kernelc {
namespace {

// A helper that just worked looks for more for some 20 us: the launches of a program follow each other that fast.
constexpr int kSpins = 1000;
constexpr std::chrono::milliseconds kLook{100};  // how often who waits for helpers looks for signals

std::atomic<int> wanted_threads{0};
std::atomic<Pool*> pool{nullptr};
std::once_flag pool_made;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int cores() {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Signals belong to Python's threads: helpers inherit a mask that blocks all.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

}  // namespace

// Never destroyed: helpers may still sleep in it when the process ends.
Pool& Pool::instance() {
    std::call_once(pool_made, [] {
        pool.store(new Pool);
        pthread_atfork(nullptr, nullptr, after_fork);
    });
    return *pool.load(std::memory_order_acquire);
}

// The child has none of the helpers, and the old pool's locks may be held by threads that it does not have either.
// The forking thread itself is in no launch, so a new pool is all it takes.
void Pool::after_fork() noexcept {
    pool.store(new Pool);
    interrupt::after_fork();
}

int Pool::threads() {
    static const int all = cores();
    const int wanted = wanted_threads.load(std::memory_order_relaxed);
    return wanted > 0 ? wanted : all;
}

void Pool::set_threads(int count) { wanted_threads.store(count, std::memory_order_relaxed); }

bool Pool::open(Job& job, int64_t helpers) {
    const int threads = Pool::threads();
    if (threads < 2 || !busy_.try_lock()) return false;
    if (asked_ != threads - 1) {
        stop_helpers();
        start_helpers(threads - 1);
    }
    if (helpers_.empty()) {
        busy_.unlock();
        return false;
    }
    job_.store(&job);
    wake(helpers);
    return true;
}

void Pool::close(Job& job) {
    job_.store(nullptr);
    for (int spin = 0; spin < spins_ && inside_.load() != 0; ++spin) pause();
    if (inside_.load() != 0) {
        std::unique_lock<std::mutex> lock(mutex_);
        waiting_.store(true);
        while (!idle_.wait_for(lock, kLook, [this] { return inside_.load() == 0; })) {
            lock.unlock();
            job.look();
            lock.lock();
        }
        waiting_.store(false);
    }
    busy_.unlock();
}

void Pool::stop() {
    if (!busy_.try_lock()) return;
    stop_helpers();
    busy_.unlock();
}

void Pool::start_helpers(int count) {
    SignalsBlocked blocked;
    asked_ = count;
    // With more threads than cores a spinning one keeps another from its work.
    spins_ = count < cores() ? kSpins : 0;
    const uint64_t ticket = ticket_.load();
    try {
        for (int i = 1; i <= count; ++i) helpers_.emplace_back([this, ticket, i] { loop(ticket, i); });
    } catch (const std::system_error&) {
        // The system gives no more threads: those we have must do.
    }
}

void Pool::stop_helpers() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stopping_.store(true);
    }
    work_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
    helpers_.clear();
    asked_ = 0;
    stopping_.store(false);
}

void Pool::wake(int64_t helpers) {
    ticket_.fetch_add(1);
    const int sleeping = sleeping_.load();
    if (sleeping == 0) return;
    // Through the lock: a helper that has seen the old ticket but does not wait yet must not miss the call.
    { std::lock_guard<std::mutex> lock(mutex_); }
    if (helpers >= sleeping) {
        work_.notify_all();
    } else {
        for (int64_t i = 0; i < helpers; ++i) work_.notify_one();
    }
}

void Pool::loop(uint64_t ticket, int number) {
    while (await_ticket(ticket)) {
        // Announce first, look then: close() takes the job away first and then waits for those who announced.
        inside_.fetch_add(1);
        if (Job* job = job_.load()) job->help(number);
        if (inside_.fetch_sub(1) == 1 && waiting_.load()) {
            std::lock_guard<std::mutex> lock(mutex_);
            idle_.notify_one();
        }
    }
}

// False: the pool stops.
bool Pool::await_ticket(uint64_t& ticket) {
    const auto called = [&] { return ticket_.load() != ticket || stopping_.load(); };
    for (int spin = 0; spin < spins_ && !called(); ++spin) pause();
    if (!called()) {
        std::unique_lock<std::mutex> lock(mutex_);
        sleeping_.fetch_add(1);
        work_.wait(lock, called);
        sleeping_.fetch_sub(1);
    }
    ticket = ticket_.load();
    return !stopping_.load();
}

}  // namespace kernelc
