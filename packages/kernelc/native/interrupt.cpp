#include "interrupt.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

namespace kernelc {
namespace interrupt {
namespace {

constexpr std::chrono::milliseconds kTick{100}, kIdleTick{400};
constexpr int kIdleTicks = 20;

std::atomic<bool> listening{false};  // in Python's main thread: there is one at most
thread_local Check current = nullptr;
thread_local bool stopped = false;

// Raises the flag now and then while a thread listens. A clock of its own: signals reach Python alone, and reading the
// time in kernels would cost more than the loops around it. Nobody wakes it: that would cost more than a small launch.
class Clock {
public:
    void start() {
        if (started_.load(std::memory_order_relaxed) || started_.exchange(true)) return;
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            std::thread(run).detach();
        } catch (const std::system_error&) {
            // The system gives no more threads: signals then wait for the end of a launch.
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

private:
    static void run() {
        for (int idle = 0;;) {
            std::this_thread::sleep_for(idle < kIdleTicks ? kTick : kIdleTick);
            const bool needed = listening.load(std::memory_order_relaxed);
            idle = needed ? 0 : std::min(idle + 1, kIdleTicks);
            if (needed) flag.store(1, std::memory_order_relaxed);
        }
    }

    std::atomic<bool> started_{false};
};

// Never destroyed: launches at the end of the process may still look at it.
std::atomic<Clock*> clock_{new Clock};

}  // namespace

std::atomic<uint32_t> flag{0};

Listening::Listening(Check check) : active_(check != nullptr) {
    if (!active_) return;
    outer_ = current;
    current = check;
    listening.store(true, std::memory_order_relaxed);
    clock_.load(std::memory_order_relaxed)->start();
}

Listening::~Listening() {
    if (!active_) return;
    current = outer_;
    stopped = false;
    if (outer_ != nullptr) return;
    listening.store(false, std::memory_order_relaxed);
    if (flag.load(std::memory_order_relaxed) != 0) flag.store(0, std::memory_order_relaxed);
}

bool stop() {
    if (current == nullptr || stopped) return stopped;
    flag.store(0, std::memory_order_relaxed);
    stopped = current();
    if (stopped) flag.store(1, std::memory_order_relaxed);  // for those who help
    return stopped;
}

void after_fork() noexcept {
    listening.store(current != nullptr);
    flag.store(0, std::memory_order_relaxed);
    clock_.store(new Clock);
}

}  // namespace interrupt
}  // namespace kernelc
