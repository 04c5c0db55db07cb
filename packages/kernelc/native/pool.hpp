// The worker threads: one persistent pool that helps one launch at a time, and sleeps in between.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace kernelc {

// Work that several threads may take part in.
class Job {
public:
    // Called once by each helper, which are numbered from 1 and keep their numbers; returns when nothing is left to take.
    virtual void help(int number) noexcept = 0;

    // Called now and then by who waits for the helpers.
    virtual void look() noexcept = 0;

protected:
    ~Job() = default;
};

class Pool {
public:
    static Pool& instance();

    static int threads();  // including the one that launches
    static void set_threads(int count);  // 0: as many as this process has cores

    // The helpers run job.help(…) from open() on; close() returns when none is in it any more.
    // False: another thread has the pool, or there are no helpers. Then the caller does the work alone.
    bool open(Job& job, int64_t helpers);
    void close(Job& job);

    // Ends the helpers if the pool is idle; a later launch starts them again.
    void stop();

private:
    Pool() = default;
    static void after_fork() noexcept;

    void start_helpers(int count);
    void stop_helpers();
    void wake(int64_t helpers);
    void loop(uint64_t ticket, int number);
    bool await_ticket(uint64_t& ticket);

    std::mutex busy_;  // held by the launch that has the pool
    std::vector<std::thread> helpers_;
    int asked_ = 0;  // helpers asked for; the system may have given fewer
    int spins_ = 0;

    std::atomic<Job*> job_{nullptr};
    std::atomic<int> inside_{0};  // helpers that may be using job_
    std::atomic<uint64_t> ticket_{0};  // counts the jobs
    std::atomic<int> sleeping_{0};
    std::atomic<bool> waiting_{false};  // close() sleeps until inside_ is 0
    std::atomic<bool> stopping_{false};
    std::mutex mutex_;
    std::condition_variable work_, idle_;
};

}  // namespace kernelc
