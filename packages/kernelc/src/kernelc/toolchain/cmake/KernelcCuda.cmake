# KernelcCuda: where is nvcc, which version, which architectures and flags does it take?
#
# As a script, run once for each nvcc by kernelc/toolchain/nvcc.py: writes the record of the probe as JSON.
#     cmake -DKERNELC_NVCC=/path/to/nvcc "-DKERNELC_FLAGS=-std=c++17;-O3" -DKERNELC_RECORD=record.json -P KernelcCuda.cmake
# Included: offers kernelc_find_nvcc(result), and for what `kc.inspect(kernel, "cuda")` gives
# kernelc_fatbin(OUTPUT file SOURCE file ARCHITECTURES 75 80 ... [NVCC path]).
cmake_minimum_required(VERSION 3.20)
# Of the file itself: the repository's cmake/ has a link to it.
get_filename_component(KERNELC_INCLUDE "${CMAKE_CURRENT_LIST_FILE}" REALPATH)
get_filename_component(KERNELC_INCLUDE "${KERNELC_INCLUDE}/../../../include" ABSOLUTE)
set(KERNELC_CUDA_FLAGS -std=c++17 -O3 -fmad=false -allow-unsupported-compiler)  # as in nvcc.py

# CUDACXX, else what the machine has, or what pip has installed for find_package(Python); empty if there is none.
function(kernelc_find_nvcc result)
    set(wheels "")
    foreach(folder IN LISTS Python_SITEARCH Python_SITELIB)
        file(GLOB found "${folder}/nvidia/cu*/bin")
        list(APPEND wheels ${found})
    endforeach()
    find_program(KERNELC_FOUND_NVCC NAMES $ENV{CUDACXX} nvcc
        HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda /opt/cuda PATH_SUFFIXES bin PATHS ${wheels})
    if(KERNELC_FOUND_NVCC)
        set(${result} "${KERNELC_FOUND_NVCC}" PARENT_SCOPE)
    else()
        set(${result} "" PARENT_SCOPE)
    endif()
endfunction()

# Machine code for each architecture, and PTX of the last one for GPUs that come after it.
function(kernelc_fatbin)
    cmake_parse_arguments(arg "" "OUTPUT;SOURCE;NVCC" "ARCHITECTURES" ${ARGN})
    if(NOT arg_NVCC)
        kernelc_find_nvcc(arg_NVCC)
    endif()
    if(NOT arg_NVCC)
        message(FATAL_ERROR "kernelc_fatbin(${arg_OUTPUT}): there is no nvcc on this machine; CUDACXX names one")
    endif()
    set(codes "")
    foreach(number IN LISTS arg_ARCHITECTURES)
        list(APPEND codes -gencode "arch=compute_${number},code=sm_${number}")
    endforeach()
    list(GET arg_ARCHITECTURES -1 last)
    list(APPEND codes -gencode "arch=compute_${last},code=compute_${last}")
    add_custom_command(OUTPUT "${arg_OUTPUT}"
        COMMAND "${arg_NVCC}" ${KERNELC_CUDA_FLAGS} -fatbin ${codes} "-I${KERNELC_INCLUDE}" "${arg_SOURCE}"
                -o "${arg_OUTPUT}"
        DEPENDS "${arg_SOURCE}" VERBATIM)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
    return()
endif()

# -- the probe
if(NOT KERNELC_NVCC)
    kernelc_find_nvcc(KERNELC_NVCC)
endif()
if(NOT KERNELC_NVCC)
    message(FATAL_ERROR "there is no nvcc on this machine")
endif()
get_filename_component(folder "${KERNELC_RECORD}" DIRECTORY)
file(WRITE "${folder}/flags.cu" "extern \"C\" __global__ void kernel(float* x) { x[threadIdx.x] = sinf(x[0]); }\n")

execute_process(COMMAND "${KERNELC_NVCC}" --version OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT said MATCHES "release ([0-9.]+)")
    message(FATAL_ERROR "${KERNELC_NVCC} --version says:\n${said}")
endif()
set(version "${CMAKE_MATCH_1}")
execute_process(COMMAND "${KERNELC_NVCC}" --list-gpu-arch OUTPUT_VARIABLE said ERROR_VARIABLE said)
string(REGEX MATCHALL "compute_[0-9]+" names "${said}")
list(TRANSFORM names REPLACE "compute_" "")
list(SORT names COMPARE NATURAL)
list(REMOVE_DUPLICATES names)
list(GET names 0 lowest)

set(flags "")
foreach(flag IN LISTS KERNELC_FLAGS)
    execute_process(
        COMMAND "${KERNELC_NVCC}" ${flags} ${flag} -cubin "-arch=sm_${lowest}" flags.cu -o flags.cubin
        WORKING_DIRECTORY "${folder}" RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(status EQUAL 0)
        list(APPEND flags ${flag})
    else()
        set(refused "${said}")
    endif()
endforeach()
if(NOT flags)
    message(FATAL_ERROR "${KERNELC_NVCC} cannot compile:\n${refused}")
endif()

string(REPLACE ";" "\", \"" flags "${flags}")
string(REPLACE ";" ", " names "${names}")
file(WRITE "${KERNELC_RECORD}" "{
\"path\": \"${KERNELC_NVCC}\",
\"version\": \"${version}\",
\"flags\": [\"${flags}\"],
\"architectures\": [${names}]
}
")
