// Copies of the elements of the last group of lanes: what kc_context's `windows` lead to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernelc/context.h"

namespace kernelc {

class Windows {
public:
    // Copies the elements of threads begin..end-1, with room for `lanes` of them.
    void open(const int64_t* block, int64_t begin, int64_t end, const kc_window* windows, int32_t count, int32_t lanes);
    // Copies back what was written.
    void close();
    // Where thread 0 would have its element, by window.
    char** places() { return places_.data(); }

private:
    struct Copy {
        char* there;  // in the array
        char* here;
        int64_t bytes;
    };
    std::vector<char*> places_;
    std::vector<Copy> written_;
    std::unique_ptr<char[]> memory_;
    size_t room_ = 0;
};

}  // namespace kernelc
