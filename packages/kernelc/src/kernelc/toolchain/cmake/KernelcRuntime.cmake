# KernelcRuntime: how C++ that kernelc writes becomes a library that its runtime opens.
#
#     include(KernelcRuntime)
#     kernelc_read_flags()                         what launches compile with; after find_package(Python)
#     kernelc_take_flags(record.json)              those of it that the compiler of the project takes
#     kernelc_library(name SOURCES kernel.cpp FLAGS ${KERNELC_FLAGS} LIBRARIES ${KERNELC_LIBRARIES})
#
# For the build of kernelc, for kernels in wheels (KernelcAot), for the probe beside it, and for the projects that
# KERNELC_CMAKE=1 writes.
cmake_minimum_required(VERSION 3.20)
# Of the file itself: the repository's cmake/ has a link to it.
get_filename_component(KERNELC_CMAKE_FOLDER "${CMAKE_CURRENT_LIST_FILE}" REALPATH)
get_filename_component(KERNELC_CMAKE_FOLDER "${KERNELC_CMAKE_FOLDER}" DIRECTORY)

# Sets KERNELC_FLAGS and KERNELC_LIBRARIES to what toolchain/flags.py says.
function(kernelc_read_flags)
    set(file "${KERNELC_CMAKE_FOLDER}/../flags.py")
    set(script "import runpy, sys; f = runpy.run_path(sys.argv[1]); print(*f['FLAGS'], '|', *f['LIBRARIES'], end='')")
    execute_process(COMMAND "${Python_EXECUTABLE}" -c "${script}" "${file}"
        OUTPUT_VARIABLE words COMMAND_ERROR_IS_FATAL ANY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    string(REGEX MATCH "^(.*) [|] (.*)$" both "${words}")
    separate_arguments(flags UNIX_COMMAND "${CMAKE_MATCH_1}")
    separate_arguments(libraries UNIX_COMMAND "${CMAKE_MATCH_2}")
    set(KERNELC_FLAGS "${flags}" PARENT_SCOPE)
    set(KERNELC_LIBRARIES "${libraries}" PARENT_SCOPE)
endfunction()

# Leaves of KERNELC_FLAGS and KERNELC_LIBRARIES what the compiler of this project takes, and writes a record of it.
function(kernelc_take_flags record)
    separate_arguments(words UNIX_COMMAND "${CMAKE_CXX_COMPILER_ARG1}")  # of CXX="ccache g++"
    set(KERNELC_COMPILER "${CMAKE_CXX_COMPILER}" ${words})
    set(KERNELC_ID "${CMAKE_CXX_COMPILER_ID}")
    set(KERNELC_VERSION "${CMAKE_CXX_COMPILER_VERSION}")
    set(KERNELC_RECORD "${record}")
    include("${KERNELC_CMAKE_FOLDER}/flags.cmake")
    set(KERNELC_FLAGS "${flags}" PARENT_SCOPE)
    set(KERNELC_LIBRARIES "${libraries}" PARENT_SCOPE)
endfunction()

# A library of kernels. The flags are those of one command that compiles and links.
function(kernelc_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;FLAGS;LIBRARIES")
    add_library(${name} MODULE ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so")
    set(compile ${arg_FLAGS})
    set(link ${arg_FLAGS})
    list(REMOVE_ITEM compile -shared)
    list(FILTER compile EXCLUDE REGEX "^-Wl,")
    list(FILTER link INCLUDE REGEX "^-Wl,")
    # They stand after those of the build type, and win.
    target_compile_options(${name} PRIVATE ${compile})
    target_include_directories(${name} PRIVATE "${KERNELC_CMAKE_FOLDER}/../../include")
    target_link_options(${name} PRIVATE ${link})
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
endfunction()
