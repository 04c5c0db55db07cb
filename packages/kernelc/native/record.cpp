#include "record.hpp"

namespace kernelc {

void Record::put(void* record, int64_t thread, int64_t, int64_t value) noexcept {
    Record& self = *static_cast<Record*>(record);
    const size_t wanted = static_cast<size_t>(thread) + 1;
    if (self.start_.size() < wanted) self.start_.resize(wanted, static_cast<int64_t>(self.values_.size()));
    self.values_.push_back(value);
}

int64_t Record::get(void* record, int64_t thread, int64_t seq) noexcept {
    const Record& self = *static_cast<const Record*>(record);
    const int64_t threads = static_cast<int64_t>(self.start_.size());
    if (thread < 0 || thread >= threads || seq < 0) return 0;
    const int64_t begin = self.start_[static_cast<size_t>(thread)];
    const int64_t end = thread + 1 < threads ? self.start_[static_cast<size_t>(thread) + 1]
                                             : static_cast<int64_t>(self.values_.size());
    return seq < end - begin ? self.values_[static_cast<size_t>(begin + seq)] : 0;
}

// The memory stays: a replayed program does not allocate.
void Record::clear() {
    start_.clear();
    values_.clear();
}

}  // namespace kernelc
