# gemmd_library(name SOURCES ... DEPS ... [HEADERS ...] [NAMESPACE namespace] [PCH])
#   A static library gemmd::name; includes are relative to the repository root.
#   HEADERS are its public ones, below include/. They are installed with the library.
#   PCH if most of its files read the headers of gRPC or the contract.
#   Our flags and the repository's root are for this build, not for users of an
#   installed library.
function(gemmd_library name)
  cmake_parse_arguments(ARG "PCH" "NAMESPACE" "SOURCES;DEPS;HEADERS" ${ARGN})
  if(NOT ARG_NAMESPACE)
    set(ARG_NAMESPACE gemmd)
  endif()
  add_library(gemmd_${name} STATIC ${ARG_SOURCES})
  add_library(${ARG_NAMESPACE}::${name} ALIAS gemmd_${name})
  set_target_properties(gemmd_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(gemmd_${name} PUBLIC cxx_std_20)
  target_include_directories(gemmd_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  if(ARG_HEADERS)
    target_sources(gemmd_${name} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${ARG_HEADERS})
  endif()
  target_link_libraries(gemmd_${name} PUBLIC ${ARG_DEPS}
                        PRIVATE $<BUILD_INTERFACE:gemmd::flags>)
  if(ARG_PCH)
    gemmd_pch(gemmd_${name})
  endif()
endfunction()

# gemmd_test(name SOURCES ... DEPS ... [LABELS ...])
#   A GoogleTest program, one ctest test per case. With the label gpu it is one ctest test as a
#   whole: it has thousands of cases, which only skip without a GPU.
function(gemmd_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  include(GoogleTest)
  set(_main GTest::gtest_main)
  if("gpu" IN_LIST ARG_LABELS)
    list(APPEND ARG_SOURCES ${PROJECT_SOURCE_DIR}/tests/gpu_main.cc)
    set(_main "")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock ${_main} gemmd::flags)
  gemmd_pch(${name} TEST)
  if("gpu" IN_LIST ARG_LABELS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT 1800)
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${ARG_LABELS}")
endfunction()
