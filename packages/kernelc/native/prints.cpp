#include "prints.hpp"

#include <algorithm>

namespace kernelc {

// noexcept: kernels are C, an exception could not cross them.
void PrintBatch::add(int32_t site, int64_t thread, int32_t count, const double* data) noexcept {
    const uint64_t size = static_cast<uint64_t>(std::max(count, 1));
    if (dropped > 0 || weight + size > kLimit) {
        dropped += size;
        return;
    }
    weight += size;
    entries.push_back(Print{-1, thread, site, count, values.size()});
    values.insert(values.end(), data, data + count);
}

void PrintBatch::append(const PrintBatch& other) {
    for (Print entry : other.entries) {
        entry.first += values.size();
        entries.push_back(entry);
    }
    values.insert(values.end(), other.values.begin(), other.values.end());
    weight += other.weight;
    dropped += other.dropped;
}

void PrintBatch::clear() {
    entries.clear();
    values.clear();
    weight = dropped = 0;
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
