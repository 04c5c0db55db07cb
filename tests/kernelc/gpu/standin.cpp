// A CUDA driver without a GPU, for tests: the functions that kernelc calls, with every argument checked.
//
// Modules are shared objects: CUDA text compiled for the host (shim.h). Work is queued by stream, and done when somebody
// waits for that stream, so that a missing wait shows, and work on a stream that nobody meant. Memory of the "GPU" can
// only be touched while work is done: a host that reads it dies. Behind each piece lies a guard that kernels must not
// change. Every call is written down.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

constexpr uint64_t kGuard = 256, kArena = uint64_t{1} << 32;
constexpr unsigned char kGuardByte = 0xA5;

struct Function {
    void (*run)(void* const*, unsigned, unsigned, unsigned, unsigned, int);
    const uint64_t* sizes;
    std::string name;
};

struct Driver {
    std::recursive_mutex mutex;
    bool ready = false;
    char* arena = nullptr;
    uint64_t used = 0, accessible = 0;
    std::map<uint64_t, uint64_t> live;   // address -> bytes
    std::multimap<uint64_t, uint64_t> free;  // bytes -> address
    uint64_t limit = kArena;
    std::map<void*, std::vector<std::function<void()>>> queues;  // by stream; none waits for another
    std::vector<std::unique_ptr<long>> streams;  // those that were made: addresses are handles
    std::vector<void*> modules;
    std::vector<Function*> functions;
    std::vector<std::string> log;
    std::map<std::string, int> failing;  // next call of that name returns this
    int order = 1, workers = 1, devices = 1;
    bool unified = false;  // kernels may touch memory of the host
    bool open = false;  // and the host that of the GPU, so that work is done at once
    uint64_t elsewhere = 0;  // an address that belongs to the second GPU
    int sticky = 0;  // after an illegal address nothing works any more
} d;

thread_local std::vector<void*> contexts;  // the last one is current
int context;  // its address is the handle of the one context
int other_context;  // and this one's of one of another GPU
long stream;  // and this one's of the one stream that is not the default

void open_arena(bool open) {
    // Where memory is unified the host may touch that of the GPU: to open and close it takes longer than the work.
    open = open || d.open || d.unified;
    const uint64_t bytes = d.used ? d.used : 4096;
    if (open && d.accessible >= bytes) return;
    mprotect(d.arena, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
    d.accessible = open ? bytes : 0;
}

int begin(const char* name, const std::string& arguments) {
    if (d.log.size() > 100000) d.log.clear();  // nobody reads it
    d.log.push_back(std::string(name) + "(" + arguments + ")");
    auto found = d.failing.find(name);
    if (found != d.failing.end()) {
        const int status = found->second;
        d.failing.erase(found);
        return status;
    }
    return d.sticky;
}

bool of_host(uint64_t at) {
    const uint64_t begin = reinterpret_cast<uint64_t>(d.arena);
    return at > 65536 && (at < begin || at >= begin + kArena);
}

// Whether [at, at + bytes) lies in one living piece.
bool inside(uint64_t at, uint64_t bytes) {
    if (d.unified && of_host(at)) return true;
    auto after = d.live.upper_bound(at);
    if (after == d.live.begin()) return false;
    --after;
    return at >= after->first && at + bytes <= after->first + after->second;
}

int drain(void* stream) {
    open_arena(true);
    std::vector<std::function<void()>> work;
    work.swap(d.queues[stream]);
    for (auto& step : work) step();
    for (const auto& [at, bytes] : d.live) {
        const unsigned char* guard = reinterpret_cast<unsigned char*>(at + bytes);
        for (uint64_t i = 0; i < kGuard; ++i) {
            if (guard[i] != kGuardByte) d.sticky = ILLEGAL_ADDRESS;
        }
    }
    open_arena(false);
    return d.sticky;
}

void put(void* stream, std::function<void()> work) {
    d.queues[stream].push_back(std::move(work));
    if (d.open) drain(stream);
}

std::string text(uint64_t number) { return std::to_string(number); }
bool known_stream(void* s) {
    return s == nullptr || s == &stream ||
           std::any_of(d.streams.begin(), d.streams.end(), [s](const auto& made) { return made.get() == s; });
}
int drain_all() {
    int status = drain(nullptr);
    std::vector<void*> waiting;
    for (const auto& [s, work] : d.queues) waiting.push_back(s);
    for (void* s : waiting) status = status ? status : drain(s);
    return status;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define BEGIN(name, arguments)                                    \
    std::lock_guard<std::recursive_mutex> lock(d.mutex);          \
    if (int status = begin(name, arguments)) return status;       \
    if (!d.ready) return NOT_INITIALIZED;
#define IN_CONTEXT \
    if (contexts.empty() || contexts.back() != &context) return INVALID_CONTEXT;

// -- for the tests
EXPORT void standin_fail(const char* name, int status) { d.failing[name] = status; }
EXPORT void standin_set(int order, int workers) {
    d.order = order;
    d.workers = workers;
    d.failing.clear();
}
EXPORT void standin_limit(uint64_t bytes) { d.limit = bytes ? bytes : kArena; }
EXPORT void standin_devices(int count) { d.devices = count; }
EXPORT void standin_elsewhere(uint64_t address) { d.elsewhere = address; }
EXPORT void standin_enter_other() { contexts.push_back(&other_context); }
EXPORT int standin_leave_other() {
    if (contexts.empty() || contexts.back() != &other_context) return 0;
    contexts.pop_back();
    return 1;
}
EXPORT void standin_unify(int on, int open) {
    d.unified = on != 0;
    d.open = open != 0;
}
EXPORT uint64_t standin_live() { return d.live.size(); }
EXPORT uint64_t standin_queued() {
    uint64_t count = 0;
    for (const auto& [s, work] : d.queues) count += work.size();
    return count;
}
EXPORT void* standin_stream() { return &stream; }
EXPORT void standin_forget_log() { d.log.clear(); }
EXPORT const char* standin_log() {
    static std::string all;
    all.clear();
    for (const auto& line : d.log) all += line + "\n";
    return all.c_str();
}

// -- the driver
EXPORT int cuGetErrorName(int status, const char** text) {
    static const std::map<int, const char*> names{
        {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {3, "CUDA_ERROR_NOT_INITIALIZED"},
        {100, "CUDA_ERROR_NO_DEVICE"}, {200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
        {400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {999, "CUDA_ERROR_UNKNOWN"}};
    auto found = names.find(status);
    *text = found == names.end() ? nullptr : found->second;
    return found == names.end() ? INVALID_VALUE : SUCCESS;
}
EXPORT int cuGetErrorString(int status, const char** text) {
    static const std::map<int, const char*> texts{
        {1, "invalid argument"}, {2, "out of memory"}, {3, "initialization error"},
        {100, "no CUDA-capable device is detected"}, {200, "device kernel image is invalid"},
        {201, "invalid device context"}, {400, "invalid resource handle"}, {500, "named symbol not found"},
        {700, "an illegal memory access was encountered"}, {999, "unknown error"}};
    auto found = texts.find(status);
    *text = found == texts.end() ? nullptr : found->second;
    return found == texts.end() ? INVALID_VALUE : SUCCESS;
}

EXPORT int cuInit(unsigned flags) {
    std::lock_guard<std::recursive_mutex> lock(d.mutex);
    if (int status = begin("cuInit", text(flags))) return status;
    if (flags != 0) return INVALID_VALUE;
    if (d.arena == nullptr) {
        void* made = mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return OUT_OF_MEMORY;
        d.arena = static_cast<char*>(made);
    }
    d.ready = true;
    return SUCCESS;
}
EXPORT int cuDriverGetVersion(int* version) {
    BEGIN("cuDriverGetVersion", "")
    *version = 13000;
    return SUCCESS;
}
EXPORT int cuDeviceGetCount(int* count) {
    BEGIN("cuDeviceGetCount", "")
    *count = d.devices;
    return SUCCESS;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
    BEGIN("cuDeviceGet", text(ordinal))
    if (ordinal < 0 || ordinal >= d.devices) return INVALID_VALUE;
    *device = ordinal;
    return SUCCESS;
}
EXPORT int cuDeviceGetName(char* name, int length, int device) {
    BEGIN("cuDeviceGetName", text(length))
    if (device != 0 || length <= 0) return INVALID_VALUE;
    std::snprintf(name, length, "stand-in");
    return SUCCESS;
}
EXPORT int cuDeviceGetAttribute(int* value, int which, int device) {
    BEGIN("cuDeviceGetAttribute", text(which))
    static const std::map<int, int> known{{16, 2}, {39, 256}, {75, 8}, {76, 0}};
    auto found = known.find(which);
    if (device != 0 || found == known.end()) return INVALID_VALUE;
    *value = found->second;
    return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRetain(void** made, int device) {
    BEGIN("cuDevicePrimaryCtxRetain", text(device))
    if (device != 0) return INVALID_VALUE;
    *made = &context;
    return SUCCESS;
}
EXPORT int cuCtxGetCurrent(void** found) {
    std::lock_guard<std::recursive_mutex> lock(d.mutex);
    const int status = begin("cuCtxGetCurrent", "");
    *found = contexts.empty() ? nullptr : contexts.back();
    return status == d.sticky ? SUCCESS : status;  // it says so also where nothing else works any more
}
EXPORT int cuCtxSetCurrent(void* given) {
    BEGIN("cuCtxSetCurrent", "")
    if (given != &context) return INVALID_CONTEXT;
    if (!contexts.empty()) contexts.pop_back();
    contexts.push_back(given);
    return SUCCESS;
}
EXPORT int cuCtxPushCurrent_v2(void* given) {
    BEGIN("cuCtxPushCurrent_v2", "")
    if (given != &context) return INVALID_CONTEXT;
    contexts.push_back(given);
    return SUCCESS;
}
EXPORT int cuCtxPopCurrent_v2(void** popped) {
    std::lock_guard<std::recursive_mutex> lock(d.mutex);
    const int status = begin("cuCtxPopCurrent_v2", "");
    if (contexts.empty()) return INVALID_CONTEXT;
    *popped = contexts.back();
    contexts.pop_back();
    return status == d.sticky ? SUCCESS : status;
}
EXPORT int cuCtxSynchronize() {
    BEGIN("cuCtxSynchronize", "")
    IN_CONTEXT
    return drain_all();
}
EXPORT int cuStreamCreate(void** s, unsigned flags) {
    BEGIN("cuStreamCreate", text(flags))
    IN_CONTEXT
    if (s == nullptr || flags > 1) return INVALID_VALUE;
    d.streams.push_back(std::make_unique<long>());
    *s = d.streams.back().get();
    return 0;
}
EXPORT int cuStreamSynchronize(void* s) {
    BEGIN("cuStreamSynchronize", s ? "other" : "default")
    IN_CONTEXT
    return known_stream(s) ? drain(s) : INVALID_HANDLE;
}

EXPORT int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    BEGIN("cuMemAlloc_v2", text(bytes))
    IN_CONTEXT
    if (bytes == 0) return INVALID_VALUE;
    const uint64_t room = (bytes + 255) / 256 * 256 + kGuard;
    auto old = d.free.find(room);
    uint64_t at;
    if (old != d.free.end()) {
        at = old->second;
        d.free.erase(old);
    } else {
        if (d.used + room > d.limit) return OUT_OF_MEMORY;
        at = reinterpret_cast<uint64_t>(d.arena) + d.used;
        d.used += room;
    }
    open_arena(true);
    std::memset(reinterpret_cast<void*>(at), 0xCD, bytes < 65536 ? bytes : 65536);  // nobody relies on zeros
    std::memset(reinterpret_cast<void*>(at + bytes), kGuardByte, kGuard);
    open_arena(false);
    d.live[at] = bytes;
    *address = at;
    return SUCCESS;
}
EXPORT int cuMemFree_v2(uint64_t address) {
    BEGIN("cuMemFree_v2", "")
    IN_CONTEXT
    auto found = d.live.find(address);
    if (found == d.live.end()) return INVALID_VALUE;
    if (int status = drain_all()) return status;
    d.free.emplace((found->second + 255) / 256 * 256 + kGuard, address);
    d.live.erase(found);
    return SUCCESS;
}
EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
    BEGIN("cuMemGetInfo_v2", "")
    IN_CONTEXT
    *free = d.limit - d.used;
    *total = d.limit;
    return SUCCESS;
}
EXPORT int cuPointerGetAttribute(void* value, int which, uint64_t address) {
    BEGIN("cuPointerGetAttribute", text(which))
    IN_CONTEXT
    if (which != 9 || !inside(address, 1)) return INVALID_VALUE;
    *static_cast<int*>(value) = address == d.elsewhere;
    return SUCCESS;
}
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* s) {
    BEGIN("cuMemcpyHtoDAsync_v2", text(bytes))
    IN_CONTEXT
    if (from == nullptr || !inside(to, bytes) || !known_stream(s)) return INVALID_VALUE;
    if (!of_host(reinterpret_cast<uint64_t>(from))) return INVALID_VALUE;  // that is no memory of the host
    // As for pageable memory: it is copied aside before the call returns.
    std::vector<char> held(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    put(s, [to, held] { std::memcpy(reinterpret_cast<void*>(to), held.data(), held.size()); });
    return SUCCESS;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* s) {
    BEGIN("cuMemcpyDtoHAsync_v2", text(bytes))
    IN_CONTEXT
    if (to == nullptr || !inside(from, bytes) || !known_stream(s)) return INVALID_VALUE;
    if (!of_host(reinterpret_cast<uint64_t>(to))) return INVALID_VALUE;
    put(s, [to, from, bytes] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
    return SUCCESS;
}
EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* s) {
    BEGIN("cuMemcpyDtoDAsync_v2", text(bytes))
    IN_CONTEXT
    if (!inside(to, bytes) || !inside(from, bytes) || !known_stream(s)) return INVALID_VALUE;
    if (to < from + bytes && from < to + bytes) return INVALID_VALUE;  // CUDA says nothing, and does anything
    put(s, [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
    return SUCCESS;
}
EXPORT int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void* s) {
    BEGIN("cuMemsetD8Async", text(byte) + ", " + text(bytes))
    IN_CONTEXT
    if (!inside(to, bytes) || !known_stream(s)) return INVALID_VALUE;
    put(s, [=] { std::memset(reinterpret_cast<void*>(to), byte, bytes); });
    return SUCCESS;
}

EXPORT int cuModuleLoadData(void** module, const void* image) {
    BEGIN("cuModuleLoadData", "")
    IN_CONTEXT
    if (image == nullptr || std::memcmp(image, "KCHOST", 6) != 0) return INVALID_IMAGE;
    uint64_t bytes;
    std::memcpy(&bytes, static_cast<const char*>(image) + 8, 8);
    char path[] = "/tmp/kernelc-standin-XXXXXX";
    const int file = mkstemp(path);
    const bool written = write(file, static_cast<const char*>(image) + 16, bytes) == static_cast<ssize_t>(bytes);
    close(file);
    void* opened = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    unlink(path);
    if (opened == nullptr) return INVALID_IMAGE;
    d.modules.push_back(opened);
    *module = opened;
    return SUCCESS;
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
    BEGIN("cuModuleGetFunction", name ? name : "null")
    IN_CONTEXT
    bool known = false;
    for (void* m : d.modules) known |= m == module;
    if (!known || name == nullptr) return INVALID_HANDLE;
    auto* made = new Function{};
    made->name = name;
    made->run = reinterpret_cast<decltype(made->run)>(dlsym(module, (made->name + "_run").c_str()));
    made->sizes = static_cast<const uint64_t*>(dlsym(module, (made->name + "_sizes").c_str()));
    if (made->run == nullptr || made->sizes == nullptr) return NOT_FOUND;
    d.functions.push_back(made);
    *function = made;
    return SUCCESS;
}

namespace {

// include/kernelc/device.h: kc_launch
struct Launch {
    int64_t total;
    uint64_t tape;
    int64_t tape_room;
    uint64_t undo;
    int64_t undo_room;
    uint64_t report;
    int64_t print_room;
    uint64_t count, records;
    int64_t record_room, dry, number;
};

bool fits(const Launch& l, uint64_t slots) {
    if (l.total <= 0 || l.tape_room < 0 || l.tape_room % 8 != 0 || l.undo_room < 0 || (l.dry != 0 && l.dry != 1)) return false;
    if (l.tape_room > 0 && !inside(l.tape, slots * l.tape_room)) return false;
    if (l.undo_room > 0 && !inside(l.undo, slots * l.undo_room * 24)) return false;
    if (l.report != 0 && !inside(l.report, 56 + 8 * l.print_room)) return false;
    if (l.count != 0 && !inside(l.count, 16)) return false;
    return l.records == 0 || inside(l.records, 8 * l.total * l.record_room);
}

}  // namespace

EXPORT int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* s, void** params, void** extra) {
    Function* known = nullptr;
    std::lock_guard<std::recursive_mutex> lock(d.mutex);
    for (Function* f : d.functions) {
        if (f == function) known = f;
    }
    const std::string name = known ? known->name : "?";
    if (int status = begin("cuLaunchKernel", name + ", " + text(gx) + ", " + text(bx))) return status;
    IN_CONTEXT
    if (known == nullptr || !known_stream(s)) return INVALID_HANDLE;
    if (gx == 0 || gx > 0x7fffffffu || gy != 1 || gz != 1 || bx == 0 || bx > 128 || by != 1 || bz != 1) return INVALID_VALUE;
    if (shared != 0 || params == nullptr || extra != nullptr) return INVALID_VALUE;
    if (known->sizes[0] != 2 || known->sizes[2] != sizeof(Launch)) return INVALID_VALUE;
    std::vector<std::vector<int64_t>> held;
    for (int i = 0; i < 2; ++i) {
        if (params[i] == nullptr) return INVALID_VALUE;
        held.emplace_back(known->sizes[1 + i] / 8);
        std::memcpy(held.back().data(), params[i], known->sizes[1 + i]);
    }
    Launch launch;
    std::memcpy(&launch, held[1].data(), sizeof launch);
    if (!fits(launch, uint64_t{gx} * bx)) return INVALID_VALUE;
    const int order = d.order, workers = d.workers;
    put(s, [=] {
        auto run = [&](unsigned first, unsigned last) {
            void* pointers[] = {const_cast<int64_t*>(held[0].data()), const_cast<int64_t*>(held[1].data())};
            known->run(pointers, first, last, gx, bx, order);
        };
        if (workers < 2 || gx < 2) {
            run(0, gx);
        } else {
            std::thread other(run, 0, gx / 2);
            run(gx / 2, gx);
            other.join();
        }
    });
    return SUCCESS;
}
