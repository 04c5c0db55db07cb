// Ctrl-C while a launch runs: who computes looks at a flag now and then, and asks Python whether to go on.
#pragma once

#include <atomic>
#include <cstdint>

namespace kernelc {
namespace interrupt {

// Not zero: look, by Worker::poll. Set now and then while a thread listens, and when a launch is to end.
extern std::atomic<uint32_t> flag;

// Lets Python handle its signals; true if a handler raised, so that the launch is to end.
using Check = bool (*)();

// While it lives, the launches of this thread end when `check` says so. For the one thread that gets Python's signals.
class Listening {
public:
    explicit Listening(Check check);  // null: nothing changes
    ~Listening();
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

private:
    const bool active_;
    Check outer_ = nullptr;
};

// Whether the launch that this thread runs is to end.
bool stop();

// The child has no clock thread.
void after_fork() noexcept;

}  // namespace interrupt
}  // namespace kernelc
