// One launch: its grid in chunks, run by the calling thread and, where it pays, by the pool.
#pragma once

#include <cstdint>

#include "kernelc/context.h"
#include "worker.hpp"

namespace kernelc {

struct Launch {
    kc_entry entry;
    const int64_t* block;
    int64_t total;
    bool parallel;
    int64_t grain = 0;  // threads per chunk; 0: chunk_size(total)
    int64_t part = 0;   // every so many threads a chunk begins; 0: none but those of the grain
};

// Threads per chunk of a parallel launch. A function of the total alone: kernels may rely on it, and what they compute
// must not depend on how many cores there are.
int64_t chunk_size(int64_t total);

// What it will take in nanoseconds, judging by when its entry last ran; 0: unknown.
double expected_time(const Launch& launch);

// Runs all threads; afterwards the prints are in the log of the calling thread. After a failure the lowest failing
// thread is reported; every thread below it has run.
Failure run(const Launch& launch, int64_t step = -1) noexcept;

}  // namespace kernelc
