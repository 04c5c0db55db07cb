#include "prints.hpp"

#include <algorithm>

namespace kernelc {

// noexcept: kernels are C, an exception could not cross them.
void PrintBatch::add(int32_t site, int64_t thread, int32_t count, const double* data) noexcept {
    const uint64_t size = static_cast<uint64_t>(std::max(count, 1));
    if (size > room_) {
        room_ = 0;  // nothing later either, however small
        dropped += size;
        return;
    }
    room_ -= size;
    weight_ += size;
    entries.push_back(Print{-1, thread, site, count, values.size()});
    values.insert(values.end(), data, data + count);
}

// There are kLimit values or more. Chunks mostly come in ascending order; where one does not, what lies beyond the first
// kLimit values is dropped, and the chunk has room if anything that is left comes after it.
bool PrintBatch::leaves_room(int64_t first) {
    const auto lower = [](const Print& one, const Print& other) { return one.thread < other.thread; };
    if (std::max_element(entries.begin(), entries.end(), lower)->thread < first) return false;
    std::stable_sort(entries.begin(), entries.end(), lower);
    std::vector<double> kept;
    uint64_t weight = 0;
    size_t count = 0;
    for (; count < entries.size() && weight < kLimit; ++count) {
        Print& entry = entries[count];
        const auto data = values.begin() + static_cast<std::ptrdiff_t>(entry.first);
        entry.first = kept.size();
        kept.insert(kept.end(), data, data + entry.count);
        weight += static_cast<uint64_t>(std::max(entry.count, 1));
    }
    entries.resize(count);
    values.swap(kept);
    dropped += weight_ - weight;
    weight_ = weight;
    return entries.back().thread > first;
}

void PrintBatch::append(const PrintBatch& other) {
    for (Print entry : other.entries) {
        entry.first += values.size();
        entries.push_back(entry);
    }
    values.insert(values.end(), other.values.begin(), other.values.end());
    weight_ += other.weight_;
    room_ -= std::min(room_, other.weight_);
    dropped += other.dropped;
}

void PrintBatch::clear() {
    entries.clear();
    values.clear();
    weight_ = dropped = 0;
    room_ = kLimit;
}

void PrintLog::add(PrintBatch& batch, int64_t step, int64_t last) {
    std::stable_sort(batch.entries.begin(), batch.entries.end(),
                     [](const Print& one, const Print& other) { return one.thread < other.thread; });
    for (const Print& entry : batch.entries) {
        if (entry.thread > last) break;
        const size_t before = all.entries.size();
        all.add(entry.site, entry.thread, entry.count, batch.values.data() + entry.first);
        if (all.entries.size() > before) all.entries.back().step = step;
    }
    all.dropped += batch.dropped;
    batch.clear();
}

}  // namespace kernelc
