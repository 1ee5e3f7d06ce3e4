# gemmd_library(name SOURCES ... DEPS ... [INCLUDES dir] [PCH])
#   A static library gemmd::name; includes are relative to the repository root.
#   PCH where most of its files read the headers of gRPC or the contract.
function(gemmd_library name)
  cmake_parse_arguments(ARG "PCH" "" "SOURCES;DEPS;INCLUDES" ${ARGN})
  add_library(gemmd_${name} STATIC ${ARG_SOURCES})
  add_library(gemmd::${name} ALIAS gemmd_${name})
  target_include_directories(gemmd_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${ARG_INCLUDES})
  target_link_libraries(gemmd_${name} PUBLIC ${ARG_DEPS} PRIVATE gemmd::flags)
  if(ARG_PCH)
    gemmd_pch(gemmd_${name})
  endif()
endfunction()

# gemmd_test(name SOURCES ... DEPS ... [LABELS ...])
#   A GoogleTest program, one ctest test per case.
function(gemmd_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main
                                        gemmd::flags)
  gemmd_pch(${name} TEST)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${ARG_LABELS}")
endfunction()
