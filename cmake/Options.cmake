# The options of a build, and the flags of all its files.

option(GEMMD_BUILD_SERVER "Build the server and the clients, not the kernels alone" ON)
option(GEMMD_BUILD_TESTS "Build the tests" ON)
option(GEMMD_BUILD_FUZZERS "Build the libFuzzer targets (needs clang)" OFF)
option(GEMMD_WERROR "Treat warnings as errors" ON)
set(GEMMD_CUDA "AUTO" CACHE STRING "Serve CUDA devices: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE GEMMD_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GEMMD_SANITIZE "" CACHE STRING "Sanitizers: empty, 'address,undefined' or 'thread'")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")  # as CMake sets it
  # C++ as in the developer build, which is the tested and measured one.
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
if(CMAKE_CXX_FLAGS_RELWITHDEBINFO STREQUAL "-O2 -g -DNDEBUG")  # as CMake sets it
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # ccache takes files with precompiled headers only if it is told to trust them.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Flags of every target of ours, and of no header of others.
add_library(gemmd_flags INTERFACE)
add_library(gemmd::flags ALIAS gemmd_flags)
set(_warnings -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It is meant for headers, but also counts a source file that another one includes.
  list(APPEND _warnings -Wno-subobject-linkage)
endif()
if(GEMMD_WERROR)
  list(APPEND _warnings -Werror)
endif()
# -pthread for all: precompiled headers serve only files that agree on it.
target_compile_options(gemmd_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-pthread;${_warnings}>")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(gemmd_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>")
endif()
if(GEMMD_BUILD_FUZZERS)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
if(GEMMD_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${GEMMD_SANITIZE};-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=${GEMMD_SANITIZE})
endif()
# The thread sanitizer knows no fences, and g++ says so of Boost.Asio's.
if(GEMMD_SANITIZE STREQUAL "thread")
  add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
