#include "place.hpp"

#include <set>
#include <utility>

namespace kernelc {
namespace {

constexpr int kSizes = 64;

// By the power of two above their length: a search goes back by no more than the longest place of its class.
using Sorted = std::set<std::pair<int64_t, Place*>>;

Sorted* all() {
    static Sorted* const places = new Sorted[kSizes];  // never destroyed: arrays may outlive what is static
    return places;
}

int size_class(int64_t length) {
    int bits = 0;
    while (bits < kSizes - 2 && (int64_t{1} << bits) < length) ++bits;
    return bits;
}

}  // namespace

Place::Place(int64_t low, int64_t high) : low_(low), high_(high) { all()[size_class(high - low)].emplace(low, this); }

Place::~Place() { all()[size_class(high_ - low_)].erase({low_, this}); }

std::vector<Place*> Place::others() {
    std::vector<Place*> found;
    for (int k = 0; k < kSizes; ++k) {
        const Sorted& places = all()[k];
        if (places.empty()) continue;
        const int64_t first = low_ - (int64_t{1} << k);
        for (auto at = places.lower_bound({first, nullptr}); at != places.end() && at->first < high_; ++at) {
            if (at->second != this && at->second->high_ > low_) found.push_back(at->second);
        }
    }
    return found;
}

}  // namespace kernelc
