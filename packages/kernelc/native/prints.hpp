// What kernels print: kept as numbers while they run, put in thread order after each launch, taken by Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernelc {

struct Print {
    int64_t step;  // of a program, else -1
    int64_t thread;
    int32_t site;
    int32_t count;
    size_t first;  // of its values
};

// Prints in the order they were made. Bounded: the rest is only counted.
class PrintBatch {
public:
    static constexpr uint64_t kLimit = 100000;  // values; a print without values counts as one

    // A chunk may keep kLimit values, if those kept of threads below its first one leave room for any.
    void begin_chunk(int64_t first) { room_ = weight_ < kLimit || leaves_room(first) ? kLimit : 0; }
    void add(int32_t site, int64_t thread, int32_t count, const double* values) noexcept;
    void append(const PrintBatch& other);
    void clear();
    bool empty() const { return entries.empty() && dropped == 0; }

    std::vector<Print> entries;
    std::vector<double> values;
    uint64_t dropped = 0;  // values not kept

private:
    bool leaves_room(int64_t first);

    uint64_t weight_ = 0;  // values kept
    uint64_t room_ = kLimit;
};

// The prints of the launches of one thread, in the order of the launches, then threads, then within a thread.
class PrintLog {
public:
    // A chunk is left out only where threads below it make kLimit values: so the first kLimit of the launch are all
    // here, and what is cut does not depend on the number of workers, nor on the order in which they take chunks.
    // Threads after `last` are left out.
    void add(PrintBatch& batch, int64_t step, int64_t last);

    PrintBatch all;
};

}  // namespace kernelc
