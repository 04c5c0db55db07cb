// Launches that another runtime asks for, from its own threads and without Python: XLA, by its foreign functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "launch.hpp"

namespace kernelc {
namespace outside {

// What a pointer in the argument block is to be.
enum Kind : int32_t {
    kBuffer = 0,  // the buffer itself
    kCopy = 1,    // a copy of it: the kernel writes there
    kZeros = 2,   // memory of its own, zero
    kResult = 3,  // the buffer, set to zero first
};

struct Slot {
    int64_t word;
    int32_t kind;
    int32_t buffer;
    int64_t bytes;
};

struct Call {
    kc_entry entry;
    std::vector<int64_t> block;
    int64_t total;
    bool parallel;
    std::vector<Slot> slots;
    std::vector<int64_t> ranks;  // of the buffers of one launch; what they have more is a batch
    // Says why a launch failed, and prints what it printed; empty: nothing to say.
    std::function<std::string(const Failure&)> report;
};

// Under a number that no other process uses. Calls stay: whoever compiled with the number may ask at any time.
void add(int64_t key, Call call);

// 0: done. Else `message` says why not.
int run(int64_t key, int64_t count, void* const* data, const int64_t* ranks, const int64_t* const* dims, char* message,
        int64_t room) noexcept;

}  // namespace outside
}  // namespace kernelc
