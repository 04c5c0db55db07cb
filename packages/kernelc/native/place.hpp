// Where arrays lie that are alive, so that a new one over the same bytes finds them.
#pragma once

#include <cstdint>
#include <vector>

namespace kernelc {

// A range of addresses that somebody uses as long as this object lives. All are made, asked and destroyed with the GIL,
// so whoever looks sees all of them or none of a change: no lock is held while Python could run.
class Place {
public:
    Place(int64_t low, int64_t high);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // The other places that have a byte between the ends of this one.
    std::vector<Place*> others();

private:
    const int64_t low_, high_;
};

}  // namespace kernelc
