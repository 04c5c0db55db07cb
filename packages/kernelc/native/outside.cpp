#include "outside.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace kernelc {
namespace outside {
namespace {

std::shared_mutex mutex;
std::unordered_map<int64_t, std::unique_ptr<const Call>> calls;

const Call* find(int64_t key) {
    std::shared_lock<std::shared_mutex> lock(mutex);
    const auto found = calls.find(key);
    return found == calls.end() ? nullptr : found->second.get();
}

// How many launches: the product of the axes that every buffer has in front.
int64_t batch_of(const Call& call, int64_t count, const int64_t* ranks, const int64_t* const* dims) {
    if (count != static_cast<int64_t>(call.ranks.size())) throw std::runtime_error("the number of buffers is another");
    int64_t batch = -1;
    for (int64_t k = 0; k < count; ++k) {
        int64_t product = 1;
        for (int64_t axis = 0; axis < ranks[k] - call.ranks[static_cast<size_t>(k)]; ++axis) product *= dims[k][axis];
        if (batch >= 0 && product != batch) throw std::runtime_error("buffers differ in their batch");
        batch = product;
    }
    return batch;
}

// The memory that a launch needs beside the buffers.
int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t extra(const Call& call) {
    int64_t sum = 0;
    for (const Slot& slot : call.slots) sum += slot.kind == kCopy || slot.kind == kZeros ? padded(slot.bytes) : 0;
    return sum;
}

void point(const Call& call, void* const* data, int64_t element, char* room, int64_t* block) {
    for (const Slot& slot : call.slots) {
        char* at = room;
        if (slot.kind != kZeros) {
            char* buffer = static_cast<char*>(data[slot.buffer]) + element * slot.bytes;
            if (slot.kind == kCopy) std::memcpy(room, buffer, static_cast<size_t>(slot.bytes));
            else at = buffer;
        }
        if (slot.kind == kZeros || slot.kind == kResult) std::memset(at, 0, static_cast<size_t>(slot.bytes));
        if (at == room) room += padded(slot.bytes);
        block[slot.word] = static_cast<int64_t>(reinterpret_cast<intptr_t>(at));
    }
}

std::string run_all(const Call& call, int64_t count, void* const* data, const int64_t* ranks,
                    const int64_t* const* dims) {
    const int64_t batch = batch_of(call, count, ranks, dims);
    std::vector<char> memory(static_cast<size_t>(extra(call)) + 64);
    char* room = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    std::vector<int64_t> block(call.block);
    for (int64_t element = 0; element < batch; ++element) {
        point(call, data, element, room, block.data());
        const Failure failure = kernelc::run({call.entry, block.data(), call.total, call.parallel});
        if (failure || !Worker::current().log.all.entries.empty()) {
            const std::string said = call.report(failure);
            if (!said.empty()) return said;
        }
    }
    return {};
}

}  // namespace

void add(int64_t key, Call call) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    calls[key] = std::make_unique<const Call>(std::move(call));
}

int run(int64_t key, int64_t count, void* const* data, const int64_t* ranks, const int64_t* const* dims, char* message,
        int64_t room) noexcept {
    std::string said;
    try {
        const Call* call = find(key);
        said = call != nullptr ? run_all(*call, count, data, ranks, dims)
                               : "this program holds a kernel of another process: trace it again here";
    } catch (const std::exception& error) {
        said = error.what();
    }
    if (said.empty()) return 0;
    const size_t length = std::min(said.size(), static_cast<size_t>(room) - 1);
    std::memcpy(message, said.data(), length);
    message[length] = '\0';
    return 1;
}

}  // namespace outside
}  // namespace kernelc
