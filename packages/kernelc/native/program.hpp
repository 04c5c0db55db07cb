// A tape's forward or backward sweep as a flat list of steps, run in one call. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "launch.hpp"
#include "record.hpp"

namespace kernelc {

class Program {
public:
    using Call = std::function<void(size_t)>;

    // Each returns the index of the new step.
    size_t add_launch(kc_entry entry, const int64_t* words, size_t count, int64_t total, bool parallel, Record* record,
                      int64_t grain = 0, int64_t part = 0);
    size_t add_copy(void* to, const void* from, int64_t bytes);
    size_t add_zero(void* to, int64_t bytes);
    size_t add_accumulate(void* to, const void* from, int64_t count, int bytes_per_real);
    size_t add_call(size_t number);

    // Patches a word of a step's block (of a copy, fill or sum: its addresses). False: there is no such word.
    bool set_word(size_t step, size_t word, int64_t value);

    // Runs the steps in order up to the first failure. `call` does the steps made by add_call; nothing else throws.
    Failure run(const Call& call);

    size_t size() const { return steps_.size(); }

private:
    struct Step {
        kc_entry entry;  // null: a call
        int64_t total;
        int64_t grain, part;
        size_t first, count;  // words of the block; first is the number of a call
        Record* record;
        bool parallel;
    };

    std::vector<Step> steps_;
    std::vector<int64_t> words_;  // the blocks of all steps
};

}  // namespace kernelc
