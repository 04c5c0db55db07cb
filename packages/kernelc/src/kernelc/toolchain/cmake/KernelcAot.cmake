# KernelcAot: compile a package's kernels into its wheel, so that its users need no compiler.
#
#     include(KernelcAot)
#     kernelc_add_kernels(mypackage DECLARATION mypackage.kernels SOURCE_DIR src)
#
# Installs <package>/_kernels: one library for each level of the processor, and an index. DECLARATION is the Python
# module that says which kernels (kernelc/aot), SOURCE_DIR the folder that holds the package. Where the package's own
# requirements for building name kernelc, scikit-build-core finds this file by itself. See docs/kernelc/ahead.md.
# Python is that of find_package(Python), which is called where the project has not done so.
#
#     -DKERNELC_AOT=OFF                  a wheel without machine code: its kernels are compiled where they run
#     -DKERNELC_AOT_LEVELS=baseline,avx2 some of the levels only (kernelc/toolchain/simd.py)
cmake_minimum_required(VERSION 3.20)

option(KERNELC_AOT "Compile kernels into the wheel" ON)
set(KERNELC_AOT_LEVELS "" CACHE STRING "Levels of the processor, separated by commas; empty: all that are known")
include("${CMAKE_CURRENT_LIST_DIR}/KernelcRuntime.cmake")

function(kernelc_add_kernels package)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "DECLARATION;SOURCE_DIR" "")
    if(NOT KERNELC_AOT)
        return()
    endif()
    if(NOT arg_DECLARATION)
        message(FATAL_ERROR "kernelc_add_kernels(${package}): DECLARATION names the module that says which kernels")
    endif()
    if(NOT Python_EXECUTABLE)
        find_package(Python REQUIRED COMPONENTS Interpreter)
    endif()
    get_filename_component(source "${arg_SOURCE_DIR}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/kernels-${package}")
    string(TOLOWER "${CMAKE_SYSTEM_NAME}" system)
    execute_process(
        COMMAND "${Python_EXECUTABLE}" "${KERNELC_CMAKE_FOLDER}/generate.py"
                "${source}" "${arg_DECLARATION}" "${folder}" "${system}-${CMAKE_SYSTEM_PROCESSOR}" "${KERNELC_AOT_LEVELS}"
        RESULT_VARIABLE status ERROR_VARIABLE said)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "the kernels of ${package} cannot be made into C++ (${status}):\n${said}")
    endif()
    include("${folder}/sources.cmake")
    kernelc_take_flags("${folder}/record.json")
    string(REPLACE "." "/" place "${package}")
    foreach(level IN LISTS KERNELC_LEVELS)
        if(KERNELC_SOURCES_${level})
            kernelc_add_level("${package}" "${level}" "${folder}" "${place}/_kernels")
        endif()
    endforeach()
    install(FILES "${folder}/index.json" DESTINATION "${place}/_kernels")
endfunction()

function(kernelc_add_level package level folder place)
    string(REPLACE "." "_" target "kernels_${package}_${level}")
    kernelc_library(${target} SOURCES ${KERNELC_SOURCES_${level}} FLAGS ${KERNELC_FLAGS} ${KERNELC_FLAGS_${level}}
        LIBRARIES ${KERNELC_LIBRARIES})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME "${level}" LIBRARY_OUTPUT_DIRECTORY "${folder}/libraries")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # Vectors wider than registers are passed between inlined functions only: no note on how that has changed.
        target_compile_options(${target} PRIVATE -Wno-psabi)
    endif()
    install(TARGETS ${target} LIBRARY DESTINATION "${place}")
endfunction()
