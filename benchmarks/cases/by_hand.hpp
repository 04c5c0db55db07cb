// What hand-written code needs to be a fair limit: the machine's own lane width, and threads that stay between calls.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#ifdef __AVX512F__
constexpr int LANES = 16;
#else
constexpr int LANES = 8;
#endif
typedef float Lanes __attribute__((vector_size(4 * LANES)));

namespace team {

// As many threads as kernelc has: `python -m benchmarks --threads` sets this for everybody.
inline int threads() {
    const char* said = getenv("KERNELC_THREADS");
    const int wanted = said != nullptr ? atoi(said) : 1;
    return wanted < 1 ? 1 : wanted > 64 ? 64 : wanted;
}

// Spins, as short phases want it; gives the core up where somebody else needs it.
template <class Done> void wait(const Done& done) {
    for (int64_t spins = 0; !done(); ++spins) {
        if (spins > 100000) usleep(50);
        else if (spins > 2000) std::this_thread::yield();
    }
}

class Barrier {
public:
    explicit Barrier(int count) : count_(count) {}
    void meet() {
        if (count_ == 1) return;
        const int turn = turn_.load();
        if (here_.fetch_add(1) + 1 == count_) {
            here_.store(0);
            turn_.store(turn + 1);
        } else {
            wait([&] { return turn_.load() != turn; });
        }
    }

private:
    const int count_;
    std::atomic<int> here_{0}, turn_{0};
};

struct Shared {
    std::function<void(int)> work;
    std::atomic<int64_t> turn{0};
    std::atomic<int> count{0}, busy{0};
    int made = 1;
};

inline Shared& shared() {
    static Shared* one = new Shared;  // threads wait for it until the process ends
    return *one;
}

inline void serve(int number, int64_t seen) {
    for (;;) {
        wait([&] { return shared().turn.load() != seen; });
        seen = shared().turn.load();
        if (number < shared().count.load()) {
            shared().work(number);
            shared().busy.fetch_sub(1);
        }
    }
}

// work(0) … work(count - 1), each on a thread of its own; the caller is number 0.
inline void run(int count, const std::function<void(int)>& work) {
    Shared& all = shared();
    if (count > 1) {
        for (; all.made < count; ++all.made) std::thread(serve, all.made, all.turn.load()).detach();
        all.work = work;
        all.count.store(count);
        all.busy.store(count - 1);
        all.turn.fetch_add(1);
    }
    work(0);
    wait([&] { return all.busy.load() == 0; });
}

// part(begin, end) of n, each on a thread of its own.
template <class Part> void split(int64_t n, const Part& part) {
    const int count = threads();
    run(count, [&](int t) { part(n * t / count, n * (t + 1) / count); });
}

}  // namespace team
