# Libraries of others, as Debian 12 and Ubuntu 24.04 ship them.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenBLAS REQUIRED CONFIG)
include(${CMAKE_CURRENT_LIST_DIR}/packages/OpenBlasTarget.cmake)
# Headers alone.
find_package(CLI11 REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
if(GEMMD_BUILD_SERVER)
  find_package(Protobuf REQUIRED)
  find_package(gRPC REQUIRED CONFIG)
  find_package(OpenSSL REQUIRED)
  find_package(spdlog REQUIRED CONFIG)
  find_package(prometheus-cpp REQUIRED CONFIG)
  find_package(Boost 1.74 REQUIRED)  # headers alone
endif()
if(GEMMD_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
