// The Python module kernelc._native: libraries, launches, programs, records, places.
#include <dlfcn.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cpu.hpp"
#include "interrupt.hpp"
#include "launch.hpp"
#include "outside.hpp"
#include "place.hpp"
#include "pool.hpp"
#include "program.hpp"
#include "record.hpp"

namespace py = pybind11;

namespace kernelc {
namespace {

// A short launch keeps the GIL: where another Python thread computes, getting it back takes a switch interval (5 ms).
constexpr int64_t kManyThreads = 128;
constexpr double kLongTime = 20e3;  // ns

void raise_os_error(const std::string& what) {
    const char* reason = dlerror();
    // A path in it may have letters that are no UTF-8.
    const py::object said = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeFSDefault(reason != nullptr ? reason : what.c_str()));
    PyErr_SetObject(PyExc_OSError, said.ptr());
    throw py::error_already_set();
}

intptr_t open_library(const std::string& path) {
    void* handle = nullptr;
    {
        py::gil_scoped_release released;
        handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == nullptr) raise_os_error("cannot open " + path);
    return reinterpret_cast<intptr_t>(handle);
}

intptr_t symbol(intptr_t handle, const std::string& name) {
    void* address = dlsym(reinterpret_cast<void*>(handle), name.c_str());
    if (address == nullptr) raise_os_error("no symbol " + name);
    return reinterpret_cast<intptr_t>(address);
}

py::object to_python(const Failure& failure) { return failure ? py::cast(failure) : py::none(); }

py::list take_prints() {
    PrintBatch taken;
    std::swap(taken, Worker::current().log.all);
    py::list result;
    for (const Print& entry : taken.entries) {
        py::list values;
        for (int32_t i = 0; i < entry.count; ++i) values.append(taken.values[entry.first + static_cast<size_t>(i)]);
        result.append(py::make_tuple(entry.step, entry.site, entry.thread, values));
    }
    if (taken.dropped > 0) {
        py::list count;
        count.append(static_cast<double>(taken.dropped));
        result.append(py::make_tuple(-1, -1, -1, count));
    }
    return result;
}

// The words of a block: a view into the caller's bytes, which the caller keeps alive.
class Block {
public:
    explicit Block(PyObject* object) {
        if (PyBytes_CheckExact(object)) {
            data_ = PyBytes_AS_STRING(object);
            bytes_ = PyBytes_GET_SIZE(object);
        } else {
            if (PyObject_GetBuffer(object, &view_, PyBUF_C_CONTIGUOUS) != 0) throw py::error_already_set();
            data_ = static_cast<const char*>(view_.buf);
            bytes_ = view_.len;
        }
        if (bytes_ % 8 != 0 || reinterpret_cast<uintptr_t>(data_) % 8 != 0) {
            if (view_.obj != nullptr) PyBuffer_Release(&view_);
            throw py::value_error("the block is made of whole, aligned 8-byte words");
        }
    }
    ~Block() {
        if (view_.obj != nullptr) PyBuffer_Release(&view_);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    const int64_t* words() const { return reinterpret_cast<const int64_t*>(data_); }
    size_t count() const { return static_cast<size_t>(bytes_) / 8; }

private:
    const char* data_;
    Py_ssize_t bytes_;
    Py_buffer view_{};
};

int64_t to_int(PyObject* object) {
    const long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
    return value;
}

kc_entry to_entry(int64_t address) {
    if (address == 0) throw py::value_error("the entry is null");
    return reinterpret_cast<kc_entry>(static_cast<intptr_t>(address));
}

// Python's signals are handled in its main thread, in a launch as well.
std::atomic<unsigned long> main_thread{0};
thread_local PyThreadState* released = nullptr;  // while this thread runs without the GIL

// Afterwards the GIL is released in any case: a launch that comes here is a long one.
bool signals_raise() {
    if (released != nullptr) PyEval_RestoreThread(released);
    const bool raised = PyErr_CheckSignals() != 0;
    released = PyEval_SaveThread();
    return raised;
}

void take_gil() {
    if (released == nullptr) return;
    PyEval_RestoreThread(released);
    released = nullptr;
}

interrupt::Check check_here() { return PyThread_get_thread_ident() == main_thread.load() ? signals_raise : nullptr; }

void note_main_thread() {
    const py::object main = py::module_::import("threading").attr("main_thread")();
    main_thread.store(main.attr("ident").cast<unsigned long>());
}

// An interrupted launch: Python has the exception already, and nobody will ask for what was printed.
bool was_interrupted(const Failure& failure) {
    if (failure.code != KC_INTERRUPTED) return false;
    Worker::current().log.all = PrintBatch();
    return true;
}

// PyEval_RestoreThread and not pybind11's guards: where the interpreter ends meanwhile, it unwinds a daemon thread from
// there, and unwinding out of a destructor would abort the process.
Failure launch_released(const Launch& launch) {
    const interrupt::Listening listening(check_here());
    const bool is_short = launch.total <= kManyThreads && expected_time(launch) < kLongTime;
    if (!is_short) released = PyEval_SaveThread();
    const Failure failure = run(launch);
    take_gil();
    return failure;
}

// A plain C function: pybind11's way of calling costs as much as a small launch.
PyObject* launch(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    try {
        if (count != 4 && count != 5) throw py::type_error("launch(entry, block, total, parallel, grain=0)");
        const Block block(arguments[1]);
        const int parallel = PyObject_IsTrue(arguments[3]);
        if (parallel < 0) throw py::error_already_set();
        const Launch launch{to_entry(to_int(arguments[0])), block.words(), to_int(arguments[2]), parallel != 0,
                            count == 5 ? to_int(arguments[4]) : 0, 0};
        const Failure failure = launch_released(launch);
        if (was_interrupted(failure)) return nullptr;
        if (failure) return py::cast(failure).release().ptr();
        Py_RETURN_NONE;
    } catch (py::error_already_set& error) {
        error.restore();
    } catch (const py::builtin_exception& error) {
        error.set_error();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

PyMethodDef fast_methods[] = {
    {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch)), METH_FASTCALL,
     "launch(entry, block, total, parallel, grain=0, /)\n--\n\nRun an entry over `total` threads; None, or a Failure."},
    {nullptr, nullptr, 0, nullptr}};

// A program and the Python objects that it holds. Python sees these references, so a tape whose callbacks hold the tape
// is collected.
class PyProgram {
public:
    size_t add_launch(int64_t entry, py::object block, int64_t total, bool parallel, py::object record, int64_t grain,
                      int64_t part) {
        check_idle();
        const Block view(block.ptr());
        if (!record.is_none() && !py::isinstance<Record>(record)) throw py::type_error("record is a Record or None");
        Record* native = record.is_none() ? nullptr : record.cast<Record*>();
        if (native != nullptr) keep(record);
        return program_.add_launch(to_entry(entry), view.words(), view.count(), total, parallel, native, grain, part);
    }

    size_t add_copy(intptr_t to, intptr_t from, int64_t bytes) {
        check_idle();
        return program_.add_copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    }

    size_t add_zero(intptr_t to, int64_t bytes) {
        check_idle();
        return program_.add_zero(reinterpret_cast<void*>(to), bytes);
    }

    size_t add_accumulate(intptr_t to, intptr_t from, int64_t count, int bytes_per_real) {
        check_idle();
        if (bytes_per_real != 4 && bytes_per_real != 8) throw py::value_error("bytes_per_real is 4 or 8");
        return program_.add_accumulate(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), count,
                                       bytes_per_real);
    }

    size_t add_call(py::object callable) {
        check_idle();
        if (!PyCallable_Check(callable.ptr())) throw py::type_error("add_call needs something that can be called");
        keep(std::move(callable));
        return program_.add_call(kept_.size() - 1);
    }

    void set_words(size_t step, size_t word, py::int_ value) {
        if (state_ == State::native) throw std::runtime_error("the program is running in another thread");
        // Masked: a word may have been packed as a signed or an unsigned number.
        const uint64_t bits = PyLong_AsUnsignedLongLongMask(value.ptr());
        if (!program_.set_word(step, word, static_cast<int64_t>(bits))) {
            throw py::index_error("step " + std::to_string(step) + " has no word " + std::to_string(word));
        }
    }

    void keep(py::object object) { kept_.push_back(std::move(object)); }

    py::object run() {
        check_idle();
        const Running running(state_);
        const interrupt::Listening listening(check_here());
        released = PyEval_SaveThread();
        const Failure failure = program_.run([&](size_t number) {
            take_gil();
            call(number);  // an exception leaves from here, with the GIL
            released = PyEval_SaveThread();
        });
        take_gil();
        if (was_interrupted(failure)) throw py::error_already_set();
        return to_python(failure);
    }

    size_t size() const { return program_.size(); }

    int traverse(visitproc visit, void* arg) const {
        for (const py::object& object : kept_) Py_VISIT(object.ptr());
        return 0;
    }

    void clear() {
        std::vector<py::object> dropped;
        kept_.swap(dropped);
        program_ = Program();  // its calls refer to what was kept
    }

private:
    enum class State { idle, native, python };

    struct Running {
        explicit Running(State& state) : state(state) { state = State::native; }
        ~Running() { state = State::idle; }
        State& state;
    };

    void check_idle() const {
        if (state_ != State::idle) throw std::runtime_error("the program is running");
    }

    // What a callback's own launches print is theirs to take, so they get an empty log.
    void call(size_t number) {
        PrintBatch outer;
        PrintBatch& log = Worker::current().log.all;
        std::swap(outer, log);
        state_ = State::python;
        PyObject* result = PyObject_CallNoArgs(kept_[number].ptr());
        state_ = State::native;
        outer.append(log);
        std::swap(outer, log);
        if (result == nullptr) throw py::error_already_set();
        Py_DECREF(result);
    }

    Program program_;
    std::vector<py::object> kept_;
    State state_ = State::idle;  // read and written with the GIL
};

// A place, and what Python knows it by.
struct PyPlace : Place {
    PyPlace(int64_t low, int64_t high, py::object owner) : Place(low, high), owner(std::move(owner)) {}

    py::list owners() {
        py::list found;
        for (Place* other : others()) found.append(static_cast<PyPlace*>(other)->owner);
        return found;
    }

    py::object owner;
};

void collect_cycles(PyHeapTypeObject* heap_type) {
    PyTypeObject* type = &heap_type->ht_type;
    type->tp_flags |= Py_TPFLAGS_HAVE_GC;
    type->tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        if (!py::detail::is_holder_constructed(self)) return 0;
        return py::cast<PyProgram&>(py::handle(self)).traverse(visit, arg);
    };
    type->tp_clear = [](PyObject* self) {
        if (py::detail::is_holder_constructed(self)) py::cast<PyProgram&>(py::handle(self)).clear();
        return 0;
    };
}

void set_threads(int count) {
    if (count < 0) throw py::value_error("the number of threads is 0 (one per core) or more");
    Pool::set_threads(count);
}

void set_tape_limit(int64_t bytes) {
    if (bytes < 0) throw py::value_error("the limit of the loop tape is not negative");
    Worker::set_limit(static_cast<uint64_t>(bytes));
}

// What a failed launch says is made in Python, on whichever thread it ran.
std::string report_outside(const py::object& report, const Failure& failure) {
    py::gil_scoped_acquire acquired;
    try {
        return py::cast<std::string>(report(to_python(failure)));
    } catch (const std::exception& error) {
        return error.what();
    }
}

void add_outside(int64_t key, int64_t entry, py::object block, int64_t total, bool parallel, const py::list& slots,
                 const py::list& ranks, py::object report) {
    const Block words(block.ptr());
    outside::Call call{to_entry(entry), {words.words(), words.words() + words.count()}, total, parallel, {}, {}, {}};
    for (const py::handle& item : slots) {
        const py::tuple slot = py::cast<py::tuple>(item);
        call.slots.push_back({py::cast<int64_t>(slot[0]), py::cast<int32_t>(slot[1]), py::cast<int32_t>(slot[2]),
                              py::cast<int64_t>(slot[3])});
    }
    for (const py::handle& rank : ranks) call.ranks.push_back(py::cast<int64_t>(rank));
    // Never freed: calls stay, and at the end of the process there is no Python to free it in.
    const py::object* said = new py::object(std::move(report));
    call.report = [said](const Failure& failure) { return report_outside(*said, failure); };
    outside::add(key, std::move(call));
}

std::string describe(const Failure& failure) {
    const auto field = [](const char* name, int64_t value) { return std::string(name) + "=" + std::to_string(value); };
    return "Failure(" + field("code", failure.code) + ", " + field("site", failure.site) + ", " +
           field("thread", failure.thread) + ", " + field("a", failure.a) + ", " + field("b", failure.b) + ", " +
           field("step", failure.step) + ")";
}

void bind_classes(py::module_& module) {
    py::class_<Failure>(module, "Failure", "Why a launch stopped: the failure of the lowest thread.", py::is_final())
        .def_readonly("code", &Failure::code)
        .def_readonly("site", &Failure::site)
        .def_readonly("thread", &Failure::thread)
        .def_readonly("a", &Failure::a)
        .def_readonly("b", &Failure::b)
        .def_readonly("step", &Failure::step)
        .def("__repr__", &describe);

    py::class_<Record>(module, "Record", "What integer atomics returned in one forward launch.", py::is_final())
        .def(py::init<>())
        .def_property_readonly("pointer", [](const Record& self) { return reinterpret_cast<intptr_t>(&self); })
        .def("clear", &Record::clear)
        .def("__len__", &Record::size);

    py::class_<PyPlace>(module, "Place", "A range of addresses that is in use as long as this lives.", py::is_final())
        .def(py::init<int64_t, int64_t, py::object>(), py::arg("low"), py::arg("high"), py::arg("owner"))
        .def("others", &PyPlace::owners, "The owners of all other places that share a byte with this one.");

    py::class_<PyProgram>(module, "Program", "A flat list of steps that runs in one native call.", py::is_final(),
                          py::custom_type_setup(collect_cycles))
        .def(py::init<>())
        .def("add_launch", &PyProgram::add_launch, py::arg("entry"), py::arg("block"), py::arg("total"),
             py::arg("parallel"), py::arg("record") = py::none(), py::arg("grain") = 0, py::arg("part") = 0)
        .def("add_copy", &PyProgram::add_copy, py::arg("dst"), py::arg("src"), py::arg("nbytes"))
        .def("add_zero", &PyProgram::add_zero, py::arg("dst"), py::arg("nbytes"))
        .def("add_accumulate", &PyProgram::add_accumulate, py::arg("dst"), py::arg("src"), py::arg("count"),
             py::arg("bytes_per_real"))
        .def("add_call", &PyProgram::add_call, py::arg("callable"))
        .def("set_words", &PyProgram::set_words, py::arg("step"), py::arg("word_index"), py::arg("value"))
        .def("keep", &PyProgram::keep, py::arg("obj"))
        .def("run", &PyProgram::run)
        .def("__len__", &PyProgram::size);
}

void bind_functions(py::module_& module) {
    module.def("abi", [] { return KC_ABI; }, "The version of kernelc/context.h that this module was built with.");
    module.def("cpu_level", &cpu_level, "What the vector unit can do: \"baseline\", \"avx2\" or \"avx512\".");
    module.def("open_library", &open_library, py::arg("path"), "Open a shared library for good; its handle.");
    module.def("symbol", &symbol, py::arg("handle"), py::arg("name"), "The address of a function in a library.");
    module.def("set_threads", &set_threads, py::arg("n"), "How many threads run a launch; 0: one per core.");
    module.def("get_threads", &Pool::threads, "How many threads run a launch.");
    module.def("set_tape_limit", &set_tape_limit, py::arg("bytes"), "Bytes of loop tape and undo log per worker.");
    module.def("chunk_size", &chunk_size, py::arg("total"), "Threads per chunk of a parallel launch.");
    module.def("take_prints", &take_prints,
               "What this thread's launches printed since the last call: (step, site, thread, values). "
               "A last (-1, -1, -1, [n]) says that n values more were dropped.");
    module.def("outside", [] { return reinterpret_cast<intptr_t>(&outside::run); },
               "The address of the function by which other runtimes launch.");
    module.def("add_outside", &add_outside, py::arg("key"), py::arg("entry"), py::arg("block"), py::arg("total"),
               py::arg("parallel"), py::arg("slots"), py::arg("ranks"), py::arg("report"),
               "Let other runtimes launch under a key: slots are (word, kind, buffer, bytes).");
    if (PyModule_AddFunctions(module.ptr(), fast_methods) != 0) throw py::error_already_set();
}

}  // namespace
}  // namespace kernelc

PYBIND11_MODULE(_native, module) {
    using namespace kernelc;
    module.doc() = "The native core of kernelc: worker pool, launches, programs.";
    Pool::instance();  // now, while one thread imports: registers what happens at a fork
    bind_functions(module);
    bind_classes(module);
    note_main_thread();
    py::module_::import("os").attr("register_at_fork")(py::arg("after_in_child") = py::cpp_function(note_main_thread));
    py::module_::import("atexit").attr("register")(py::cpp_function([] { Pool::instance().stop(); }));
}
