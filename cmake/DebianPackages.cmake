# Debian packages, which scripts/package.sh makes with CPack's generator DEB.
#
#   gemmd, or gemmd-cuda   the server, its systemd unit and its flag file
#   gemmctl                the command line
#   libgemmd-client-dev    the client library
#
# A package is a group of install components. GEMMD_PACKAGE_FILES has man pages and completions,
# which scripts/package.sh writes with the finished programs. Their components, and what lies
# outside the prefix, are not part of `cmake --install`.

set(GEMMD_PACKAGE_VERSION "${PROJECT_VERSION}" CACHE STRING "Version of the Debian packages")
set(GEMMD_PACKAGE_FILES ${CMAKE_BINARY_DIR}/package-files)
set(_systemd ${PROJECT_SOURCE_DIR}/deploy/systemd)
set(_debian ${PROJECT_SOURCE_DIR}/deploy/debian)

foreach(_program gemmd gemmctl)
  install(DIRECTORY ${GEMMD_PACKAGE_FILES}/${_program}/ DESTINATION share
          COMPONENT ${_program}-system EXCLUDE_FROM_ALL)
endforeach()
install(FILES ${_systemd}/gemmd.service DESTINATION lib/systemd/system
        COMPONENT gemmd-system EXCLUDE_FROM_ALL)
install(FILES ${_systemd}/gemmd.flags DESTINATION /etc/gemmd COMPONENT gemmd-system EXCLUDE_FROM_ALL)
if(GEMMD_HAS_CUDA)
  install(FILES ${_systemd}/cuda.conf DESTINATION lib/systemd/system/gemmd.service.d
          COMPONENT gemmd-system EXCLUDE_FROM_ALL)
  set(_server gemmd-cuda)
  set(_on_cuda " and on CUDA devices")
  set(_other_server gemmd)
else()
  set(_server gemmd)
  set(_on_cuda "")
  set(_other_server gemmd-cuda)
endif()
foreach(_package gemmd gemmctl libgemmd-client-dev)
  set(_name ${_package})
  if(_package STREQUAL "gemmd")
    set(_name ${_server})
  endif()
  install(FILES ${_debian}/copyright DESTINATION share/doc/${_name} COMPONENT ${_package}-doc
          EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gemmd)
set(CPACK_PACKAGE_VERSION "${GEMMD_PACKAGE_VERSION}")
set(CPACK_PACKAGE_CONTACT "gemmd maintainers <gemmd@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "matrix products over gRPC")
set(_commit "Built from commit ${GEMMD_COMMIT_ID}.")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL server gemmd-system gemmd-doc ctl gemmctl-system gemmctl-doc client-dev
    libgemmd-client-dev-doc)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME ${_server})
set(CPACK_DEBIAN_SERVER_DESCRIPTION
    "The server gemmd multiplies on the host${_on_cuda}.\n\n${_commit}")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS passwd)
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS gemmctl)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONFLICTS ${_other_server})
set(CPACK_DEBIAN_SERVER_PACKAGE_REPLACES ${_other_server})
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
    "${_debian}/conffiles;${_debian}/postinst;${_debian}/prerm;${_debian}/postrm")

set(CPACK_DEBIAN_CTL_PACKAGE_NAME gemmctl)
set(CPACK_DEBIAN_CTL_DESCRIPTION "The command line of the server gemmd.\n\n${_commit}")

set(CPACK_DEBIAN_CLIENT-DEV_PACKAGE_NAME libgemmd-client-dev)
set(CPACK_DEBIAN_CLIENT-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CLIENT-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CLIENT-DEV_PACKAGE_DEPENDS
    "libabsl-dev, libgrpc++-dev, libprotobuf-dev, libssl-dev, pkg-config, protobuf-compiler-grpc")
set(CPACK_DEBIAN_CLIENT-DEV_DESCRIPTION
    "The C++ client library of the server gemmd: headers, a static library,\nand files for CMake and pkg-config.\n\n${_commit}")

include(CPack)
cpack_add_component_group(server)
cpack_add_component_group(ctl)
cpack_add_component_group(client-dev)
cpack_add_component(server GROUP server)
cpack_add_component(gemmd-system GROUP server)
cpack_add_component(gemmd-doc GROUP server)
cpack_add_component(ctl GROUP ctl)
cpack_add_component(gemmctl-system GROUP ctl)
cpack_add_component(gemmctl-doc GROUP ctl)
cpack_add_component(client-dev GROUP client-dev)
cpack_add_component(libgemmd-client-dev-doc GROUP client-dev)
