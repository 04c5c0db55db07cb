# Which of KERNELC_FLAGS and KERNELC_LIBRARIES does the compiler take? Writes the record of the probe as JSON.
#
# In:  KERNELC_COMPILER (path; further words of CXX), KERNELC_ID, KERNELC_VERSION, KERNELC_FLAGS, KERNELC_LIBRARIES,
#      KERNELC_RECORD (the file to write).
# Out: the record; and where it is included, `flags` and `libraries`: those that are taken.
# Run by kernelc_take_flags (KernelcRuntime.cmake).
cmake_minimum_required(VERSION 3.20)

get_filename_component(folder "${KERNELC_RECORD}" DIRECTORY)
# All that kernels need of the libraries: libm, memset and a stack frame (libc), wide division (libgcc).
file(WRITE "${folder}/flags.cpp" "
#include <math.h>
#include <stdint.h>
#include <string.h>
extern \"C\" __attribute__((visibility(\"default\"))) void kernel(double* x, int64_t n, int64_t m) {
    char local[512];
    memset(local, 1, m);
    for (int64_t i = 0; i < n; ++i) x[i] = sin(x[i]) + isnan(x[i]) + local[i];
#ifdef __SIZEOF_INT128__
    x[0] = (double)(int64_t)((__int128)n * n / m);
#endif
}
")

function(kernelc_takes result)
    file(REMOVE "${folder}/flags.so")
    execute_process(
        COMMAND ${KERNELC_COMPILER} ${ARGN} -o flags.so
        WORKING_DIRECTORY "${folder}"
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(status EQUAL 0 AND EXISTS "${folder}/flags.so")
        set(${result} TRUE PARENT_SCOPE)
    else()
        set(${result} FALSE PARENT_SCOPE)
        set(output "${output}" PARENT_SCOPE)
    endif()
endfunction()

set(flags ${KERNELC_FLAGS})
set(libraries ${KERNELC_LIBRARIES})
kernelc_takes(all ${flags} flags.cpp ${libraries})
if(NOT all)
    # One by one, each on top of those that were taken before it.
    set(flags -std=c++17 -shared -fPIC)
    kernelc_takes(enough ${flags} flags.cpp -lm)
    if(NOT enough)
        message(FATAL_ERROR "${KERNELC_COMPILER} cannot make a shared library of C++17 text:\n${output}")
    endif()
    foreach(flag IN LISTS KERNELC_FLAGS)
        kernelc_takes(taken ${flags} ${flag} flags.cpp -lm)
        if(taken AND NOT flag IN_LIST flags)
            list(APPEND flags ${flag})
        endif()
    endforeach()
    kernelc_takes(taken ${flags} flags.cpp ${libraries})
    if(NOT taken)
        set(libraries -lm)
    endif()
endif()

function(kernelc_json result)
    set(array "[]")
    set(index 0)
    foreach(word IN LISTS ARGN)
        string(REPLACE "\\" "\\\\" word "${word}")
        string(REPLACE "\"" "\\\"" word "${word}")
        string(JSON array SET "${array}" ${index} "\"${word}\"")
        math(EXPR index "${index} + 1")
    endforeach()
    set(${result} "${array}" PARENT_SCOPE)
endfunction()

kernelc_json(command_array ${KERNELC_COMPILER})
kernelc_json(flag_array ${flags})
kernelc_json(library_array ${libraries})
kernelc_json(asked_array ${KERNELC_FLAGS} ${KERNELC_LIBRARIES})
# By which to tell whether the compiler is still the same file.
list(GET KERNELC_COMPILER 0 file)
file(SIZE "${file}" size)
file(TIMESTAMP "${file}" seconds "%s" UTC)
file(WRITE "${KERNELC_RECORD}" "{
\"command\": ${command_array},
\"id\": \"${KERNELC_ID}\",
\"version\": \"${KERNELC_VERSION}\",
\"flags\": ${flag_array},
\"libraries\": ${library_array},
\"asked\": ${asked_array},
\"size\": ${size},
\"seconds\": ${seconds}
}
")
