#include "interrupt.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace kernelc {
namespace interrupt {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr int kIdleTicks = 20;  // then it sleeps: launches that follow each other need not wake it

std::atomic<int> listeners{0};
thread_local Check current = nullptr;
thread_local bool stopped = false;

// Raises the flag ten times a second while a thread listens. A clock of its own: signals reach Python alone, and reading
// the time in kernels would cost more than the loops around it.
class Clock {
public:
    void wake() {
        if (!started_.load() && !started_.exchange(true)) start();
        if (!sleeping_.load()) return;
        { std::lock_guard<std::mutex> lock(mutex_); }
        called_.notify_one();
    }

private:
    void start() {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            std::thread([this] { run(); }).detach();
        } catch (const std::system_error&) {
            // The system gives no more threads: signals then wait for the end of a launch.
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (int idle = 0;;) {
            called_.wait_for(lock, kTick);
            if (listeners.load() > 0) {
                idle = 0;
                flag.store(1, std::memory_order_relaxed);
            } else if (++idle >= kIdleTicks) {
                sleeping_.store(true);
                called_.wait(lock, [] { return listeners.load() > 0; });
                sleeping_.store(false);
                idle = 0;
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable called_;
    std::atomic<bool> started_{false}, sleeping_{false};
};

// Never destroyed: its thread runs until the process ends.
std::atomic<Clock*> clock_{new Clock};

}  // namespace

std::atomic<uint32_t> flag{0};

Listening::Listening(Check check) : active_(check != nullptr) {
    if (!active_) return;
    outer_ = current;
    current = check;
    listeners.fetch_add(1);
    clock_.load()->wake();
}

Listening::~Listening() {
    if (!active_) return;
    current = outer_;
    stopped = false;
    if (listeners.fetch_sub(1) == 1) flag.store(0, std::memory_order_relaxed);
}

bool stop() {
    if (current == nullptr || stopped) return stopped;
    flag.store(0, std::memory_order_relaxed);
    stopped = current();
    if (stopped) flag.store(1, std::memory_order_relaxed);  // for those who help
    return stopped;
}

void after_fork() noexcept {
    listeners.store(current != nullptr ? 1 : 0);
    flag.store(0, std::memory_order_relaxed);
    clock_.store(new Clock);
}

}  // namespace interrupt
}  // namespace kernelc
