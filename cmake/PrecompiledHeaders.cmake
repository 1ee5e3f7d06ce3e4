# Headers of others that most files read, parsed once: more than half of the time
# of a build. GEMMD_PCH=OFF proves that each file names the headers it needs.
#
# gemmd_pch(target [TEST])
#   The target's files are read after those headers; TEST for programs that use
#   GoogleTest. Flags must be those of gemmd::flags.

option(GEMMD_PCH "Precompile the headers of gRPC, protobuf, Abseil and GoogleTest" ON)

set(_headers <algorithm> <functional> <map> <memory> <string> <utility> <vector>
    <absl/functional/any_invocable.h> <absl/status/statusor.h> <absl/strings/cord.h>
    <absl/strings/str_cat.h> <absl/time/clock.h> <absl/time/time.h>)
set(_rpc_headers <grpcpp/grpcpp.h> <grpcpp/support/byte_buffer.h> <gemm/v1/gemm.grpc.pb.h>)

# gcc takes a precompiled header only under the flags it was made with, and
# libraries (-fPIC) differ from programs (-fPIE) in theirs.
if(GEMMD_PCH AND GEMMD_BUILD_SERVER)
  file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "int main() {}\n")
  add_library(gemmd_pch_library OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/pch.cc)
  target_precompile_headers(gemmd_pch_library PRIVATE ${_headers} ${_rpc_headers})
  target_link_libraries(gemmd_pch_library PRIVATE gemmd::proto gemmd::flags absl::any_invocable
                        absl::cord absl::statusor absl::time)
  if(GEMMD_BUILD_TESTS)
    add_executable(gemmd_pch_test EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/pch.cc)
    target_precompile_headers(gemmd_pch_test PRIVATE ${_headers} ${_rpc_headers} <gmock/gmock.h>
                              <gtest/gtest.h>)
    target_link_libraries(gemmd_pch_test PRIVATE gemmd::proto gemmd::flags GTest::gtest GTest::gmock
                          absl::any_invocable absl::cord absl::statusor absl::time)
  endif()
endif()

function(gemmd_pch target)
  cmake_parse_arguments(ARG "TEST" "" "" ${ARGN})
  if(NOT GEMMD_PCH OR NOT GEMMD_BUILD_SERVER)
    return()
  endif()
  if(ARG_TEST)
    target_precompile_headers(${target} REUSE_FROM gemmd_pch_test)
  else()
    target_precompile_headers(${target} REUSE_FROM gemmd_pch_library)
  endif()
endfunction()
