#include "program.hpp"

#include "interrupt.hpp"

#include <algorithm>
#include <cstring>

namespace kernelc {
namespace {

constexpr int64_t kBytesPerChunk = 1 << 17;

// Copying, filling and summing are kernels like others: block = {to, from}, a thread is a byte or a number.
void copy(const int64_t* block, int64_t begin, int64_t end, kc_context*) {
    std::memmove(reinterpret_cast<char*>(block[0]) + begin, reinterpret_cast<const char*>(block[1]) + begin,
                 static_cast<size_t>(end - begin));
}

void zero(const int64_t* block, int64_t begin, int64_t end, kc_context*) {
    std::memset(reinterpret_cast<char*>(block[0]) + begin, 0, static_cast<size_t>(end - begin));
}

template <class Real>
void accumulate(const int64_t* block, int64_t begin, int64_t end, kc_context*) {
    Real* to = reinterpret_cast<Real*>(block[0]);
    const Real* from = reinterpret_cast<const Real*>(block[1]);
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
}

int64_t word(const void* address) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(address)); }

}  // namespace

size_t Program::add_launch(kc_entry entry, const int64_t* words, size_t count, int64_t total, bool parallel,
                           Record* record, int64_t grain, int64_t part) {
    steps_.push_back(Step{entry, total, grain, part, words_.size(), count, record, parallel});
    words_.insert(words_.end(), words, words + count);
    return steps_.size() - 1;
}

size_t Program::add_copy(void* to, const void* from, int64_t bytes) {
    const int64_t words[] = {word(to), word(from)};
    const bool apart = words[0] + bytes <= words[1] || words[1] + bytes <= words[0];
    // Where they overlap it is one call, which knows the direction.
    return add_launch(copy, words, 2, bytes, apart, nullptr, apart ? kBytesPerChunk : std::max<int64_t>(bytes, 1));
}

size_t Program::add_zero(void* to, int64_t bytes) {
    const int64_t words[] = {word(to)};
    return add_launch(zero, words, 1, bytes, true, nullptr, kBytesPerChunk);
}

size_t Program::add_accumulate(void* to, const void* from, int64_t count, int bytes_per_real) {
    const int64_t words[] = {word(to), word(from)};
    const kc_entry entry = bytes_per_real == 4 ? accumulate<float> : accumulate<double>;
    return add_launch(entry, words, 2, count, true, nullptr, kBytesPerChunk / bytes_per_real);
}

size_t Program::add_call(size_t number) {
    steps_.push_back(Step{nullptr, 0, 0, 0, number, 0, nullptr, false});
    return steps_.size() - 1;
}

bool Program::set_word(size_t step, size_t word, int64_t value) {
    if (step >= steps_.size() || word >= steps_[step].count) return false;
    words_[steps_[step].first + word] = value;
    return true;
}

Failure Program::run(const Call& call) {
    for (size_t i = 0; i < steps_.size(); ++i) {
        const Step& step = steps_[i];
        if (KC_UNLIKELY(interrupt::flag.load(std::memory_order_relaxed)) && interrupt::stop()) {
            return Failure{KC_INTERRUPTED};
        }
        if (step.entry == nullptr) {
            call(step.first);
            continue;
        }
        if (step.record != nullptr) step.record->clear();
        const Launch launch{step.entry, words_.data() + step.first, step.total, step.parallel, step.grain,
                            step.part};
        if (Failure failure = kernelc::run(launch, static_cast<int64_t>(i))) return failure;
    }
    return {};
}

}  // namespace kernelc
