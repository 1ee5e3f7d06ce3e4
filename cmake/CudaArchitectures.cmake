# The kernels that a list of CUDA architectures leaves without machine code.

# gemmd_check_cuda_architectures(ARCHITECTURES [NATIVE]) stops if GPUs of compute capability 9.0
# would take code for sm_90. That lacks the features of sm_90a alone, and so the fastest kernels.
# For other GPUs it reports what a list leaves out. NATIVE has the architectures that "native"
# stands for. At run time a device offers the rows that its code has (DeviceCode in gemm/kernel.h).
function(gemmd_check_cuda_architectures architectures)
  set(_of_sm90a FALSE)
  set(_of_sm90 FALSE)
  set(_of_sm89 FALSE)
  set(_listed ${architectures})
  if(_listed STREQUAL "native")
    set(_listed ${ARGN})
  endif()
  foreach(_architecture IN LISTS _listed)
    if(_architecture MATCHES "^90a")
      set(_of_sm90a TRUE)
    elseif(_architecture MATCHES "^90(-|$)|^all")
      set(_of_sm90 TRUE)
    endif()
    if(_architecture MATCHES "^([0-9]+)" AND CMAKE_MATCH_1 GREATER_EQUAL 89)
      set(_of_sm89 TRUE)
    endif()
  endforeach()
  if(_of_sm90 AND NOT _of_sm90a)
    message(FATAL_ERROR
      "CMAKE_CUDA_ARCHITECTURES=${architectures} compiles for sm_90 and not for sm_90a: on GPUs of "
      "compute capability 9.0 (H100, H200) the kernels of the family hopper would be missing. "
      "Add 90a-real, such as -DCMAKE_CUDA_ARCHITECTURES=\"80-real;90a-real;90-virtual\"")
  endif()
  if(NOT _of_sm90a)
    message(STATUS "CUDA: no code for sm_90a (90a-real): without the kernels of the family hopper")
  endif()
  if(NOT _of_sm89 AND NOT _of_sm90)
    message(STATUS "CUDA: no code for sm_89 or higher: without the kernels grouped_e4m3 and "
                   "grouped_e5m2")
  endif()
endfunction()
