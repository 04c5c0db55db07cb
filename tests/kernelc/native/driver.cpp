// Drives the native core without Python, for the sanitizers: launches, failures, tapes, records, prints and programs,
// from several threads at once, and counts what a second run of a program allocates.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "launch.hpp"
#include "pool.hpp"
#include "program.hpp"
#include "record.hpp"

#define KERNEL(name) extern "C" void name(const int64_t*, int64_t, int64_t, kc_context*)
KERNEL(nothing);
KERNEL(twice);
KERNEL(spin);
KERNEL(fail_some);
KERNEL(push_pop);
KERNEL(overfull);
KERNEL(overwrite);
KERNEL(put);
KERNEL(get);
KERNEL(print_some);

// Of the sanitizers' allocator: called at every allocation, new and malloc alike.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));

using namespace kernelc;

namespace {

std::atomic<long> allocations{0};
void count_allocation(const volatile void*, size_t) { allocations.fetch_add(1); }
void ignore(const volatile void*) {}

void check(bool truth, const char* what) {
    if (truth) return;
    std::fprintf(stderr, "driver: %s\n", what);
    std::_Exit(1);
}

template <class T>
int64_t word(T* address) {
    return reinterpret_cast<int64_t>(address);
}
int64_t word(int64_t number) { return number; }

template <class... Words>
Failure launch(kc_entry entry, int64_t total, bool parallel, Words... words) {
    const int64_t block[] = {word(words)..., 0};
    return run(Launch{entry, block, total, parallel});
}

void launches() {
    std::vector<float> x(50000, 1.0f), y(50000, 0.0f);
    for (int i = 0; i < 5; ++i) check(!launch(twice, 50000, true, y.data(), x.data()), "twice failed");
    for (float value : y) check(value == 10.0f, "a thread ran not once");
    std::vector<int64_t> out(20000);
    check(!launch(spin, 20000, true, int64_t{50}, out.data()), "spin failed");
}

void failures() {
    std::vector<int64_t> out(30000);
    for (int64_t first : {0, 1, 127, 128, 15000, 29999}) {
        const Failure failure = launch(fail_some, 30000, true, first, int64_t{700}, out.data());
        check(failure.thread == first, "not the lowest thread");
    }
}

void tapes() {
    int64_t bad = 0;
    char sink = 0;
    check(!launch(push_pop, 500, true, int64_t{300}, &bad) && bad == 0, "the tape gave something else back");
    check(!launch(overfull, 2, false, int64_t{5000}, int64_t{20}, &sink), "the tape is full too early");
    std::vector<char> a(16 * 2000, 7);
    check(!launch(overwrite, 2000, true, a.data(), int64_t{30}, int64_t{-1}), "overwrite failed");
    check(launch(overwrite, 2000, true, a.data(), int64_t{30}, int64_t{1000}).thread == 1000, "no failure");
    for (char value : a) check(value == 7, "an element was not restored");
}

// With limits from nothing to enough, and code that goes on after the tape is full.
void full_tapes() {
    char sink = 0;
    std::vector<char> a(16 * 300, 7);
    for (uint64_t limit : {0, 1, 23, 24, 100, 5000, 70000}) {
        Worker::set_limit(limit);
        for (int64_t frame : {1, 8, 4096, 9000}) {
            const Failure failure = launch(overfull, 300, true, frame, int64_t{9}, &sink);
            check(bool(failure) == (static_cast<uint64_t>(9 * frame) > limit), "the limit is not exact");
        }
        launch(overwrite, 300, false, a.data(), int64_t{100}, int64_t{-1});
        launch(overwrite, 300, true, a.data(), int64_t{7}, int64_t{150});
    }
    Worker::set_limit(uint64_t{1} << 30);
    tapes();
}

void records() {
    Record record;
    for (int round = 0; round < 2; ++round) {
        record.clear();
        check(!launch(put, 4000, false, &record), "put failed");
    }
    std::vector<int64_t> threads, seqs;
    for (int64_t thread = -1; thread < 4002; ++thread) {
        for (int64_t seq = -1; seq < 5; ++seq) threads.push_back(thread), seqs.push_back(seq);
    }
    std::vector<int64_t> out(threads.size());
    launch(get, static_cast<int64_t>(out.size()), true, &record, threads.data(), seqs.data(), out.data());
    for (size_t i = 0; i < out.size(); ++i) {
        const bool inside = threads[i] >= 0 && threads[i] < 4000 && seqs[i] >= 0 && seqs[i] < threads[i] % 4;
        check(out[i] == (inside ? 100 * threads[i] + seqs[i] : 0), "the record gave something else back");
    }
}

void prints() {
    PrintBatch& log = Worker::current().log.all;
    log.clear();
    launch(print_some, 50000, true, int64_t{1}, int64_t{-1});
    check(log.entries.size() == 2 * 33333 && log.dropped == 150000 - 99999, "not the first 100000 values");
    for (size_t i = 0; i < log.entries.size(); ++i) {
        check(log.entries[i].thread == static_cast<int64_t>(i / 2), "prints are out of order");
    }
    log.clear();
}

void programs() {
    std::vector<float> x(100000, 1.0f), y(100000, 0.0f), z(100000, 1.0f);
    int64_t bad = 0;
    Record record;
    Program program;
    const int64_t twice_block[] = {word(y.data()), word(x.data())};
    const int64_t push_block[] = {100, word(&bad)};
    const int64_t put_block[] = {word(&record)};
    int calls = 0;
    program.add_zero(y.data(), 400000);
    program.add_launch(twice, twice_block, 2, 100000, true, nullptr);
    program.add_launch(push_pop, push_block, 2, 3000, true, nullptr);
    program.add_launch(put, put_block, 1, 500, false, &record);
    program.add_call(42);
    program.add_copy(z.data(), y.data(), 400000);
    program.add_accumulate(z.data(), x.data(), 100000, 4);
    const Program::Call call = [&](size_t number) {
        check(number == 42, "another call");
        launch(twice, 100000, true, x.data(), x.data() + 0);  // x *= 3
        ++calls;
    };
    check(!program.run(call), "the program failed");
    check(y[99999] == 2.0f && z[0] == 5.0f && z[99999] == 5.0f && calls == 1 && bad == 0, "the program is wrong");
    program.run(call);  // the helpers have their tapes by now
    const long before = allocations.load();
    check(!program.run(call), "the program failed");
    check(before > 0, "allocations are not counted");
    if (Pool::threads() == 1) check(allocations.load() == before, "a program that ran before allocates");
}

void everything() {
    launches();
    failures();
    tapes();
    records();
    prints();
}

// Launches from four threads, while the number of helpers changes.
void together() {
    std::atomic<int> left{4};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 3; ++round) everything();
            left.fetch_sub(1);
        });
    }
    for (int i = 0; left.load() > 0; ++i) {
        Pool::set_threads(1 + i % 4);
        Pool::instance().stop();
        std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
}

void forks() {
    Pool::set_threads(3);
    launches();
    const pid_t child = fork();
    if (child == 0) {
        launches();
        tapes();
        std::_Exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child failed");
    launches();
}

}  // namespace

int main(int count, char** arguments) {
    __sanitizer_install_malloc_and_free_hooks(count_allocation, ignore);
    for (int threads : {1, 2, 4}) {
        Pool::set_threads(threads);
        everything();
        full_tapes();
        programs();
    }
    together();
    if (count > 1 && std::strcmp(arguments[1], "fork") == 0) forks();
    Pool::instance().stop();
    std::puts("clean");
}
