// What integer atomics returned in a forward launch, so that its adjoint finds the same indices again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernelc {

// Written by one thread of a sequential launch, in ascending thread order; read at random, by many.
class Record {
public:
    // The two functions of kc_context. noexcept: kernels are C, an exception could not cross them.
    static void put(void* record, int64_t thread, int64_t seq, int64_t value) noexcept;
    static int64_t get(void* record, int64_t thread, int64_t seq) noexcept;

    void clear();
    size_t size() const { return values_.size(); }

private:
    std::vector<int64_t> start_;  // of each thread up to the last one that put something
    std::vector<int64_t> values_;
};

}  // namespace kernelc
