# The packages that users of the libraries install: CMake packages and files of pkg-config.
#
# Components of the installation: server (gemmd), ctl (gemmctl), tools (gemm_bench),
# client-dev and kernels-dev (the libraries). A prefix can be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# gemmd_package(package library TARGETS ...)
#   Installs the targets, which are static libraries, with their public headers. They are the
#   component `library` of the CMake package, in its namespace, and package-library of pkg-config.
#   All of it is the install component library-dev. Templates: cmake/packages. TARGETS has the
#   library and the targets that it links.
function(gemmd_package package library)
  cmake_parse_arguments(ARG "" "" "TARGETS" ${ARGN})
  set(_component ${library}-dev)
  set(_templates ${PROJECT_SOURCE_DIR}/cmake/packages)
  set(_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/${package})
  set(_pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

  install(TARGETS ${ARG_TARGETS} EXPORT ${package}Targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${_component}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${_component})
  install(EXPORT ${package}Targets NAMESPACE ${package}:: DESTINATION ${_cmake_dir}
          COMPONENT ${_component})

  configure_package_config_file(${_templates}/${package}Config.cmake.in ${package}Config.cmake
                                INSTALL_DESTINATION ${_cmake_dir}
                                NO_SET_AND_CHECK_MACRO)
  # Before 1.0.0 a minor release may change an interface.
  write_basic_package_version_file(${package}ConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}Config.cmake
                ${CMAKE_CURRENT_BINARY_DIR}/${package}ConfigVersion.cmake
          DESTINATION ${_cmake_dir} COMPONENT ${_component})
  if(package STREQUAL "gemm")
    install(FILES ${_templates}/OpenBlasTarget.cmake DESTINATION ${_cmake_dir}
            COMPONENT ${_component})
  endif()

  file(RELATIVE_PATH GEMMD_UP_TO_PREFIX /${_pkgconfig_dir} /)
  string(REGEX REPLACE "/$" "" GEMMD_UP_TO_PREFIX "${GEMMD_UP_TO_PREFIX}")
  set(GEMMD_PC_CUDA_DIR "")
  set(GEMMD_PC_CUDA_LIBS "")
  if(GEMMD_HAS_CUDA)
    # CUDA has no files of pkg-config that could be required.
    set(GEMMD_PC_CUDA_DIR "cudalibdir=${CUDAToolkit_LIBRARY_DIR}\n")
    set(GEMMD_PC_CUDA_LIBS "-L\${cudalibdir} -lcublas -lcublasLt -lcudart_static -ldl -lrt ")
  endif()
  configure_file(${_templates}/${package}-${library}.pc.in ${package}-${library}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}-${library}.pc
          DESTINATION ${_pkgconfig_dir} COMPONENT ${_component})
endfunction()
