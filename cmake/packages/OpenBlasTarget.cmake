# gemm::openblas, from the variables that OpenBLAS's package sets. Installed beside
# the package gemm, which links it, too.
if(NOT TARGET gemm::openblas)
  add_library(gemm::openblas INTERFACE IMPORTED)
  set_target_properties(gemm::openblas PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${OpenBLAS_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES "${OpenBLAS_LIBRARIES}")
endif()
