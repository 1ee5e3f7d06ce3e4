# The allocator of our programs; an installed library imposes none (docs/adr/0020).
#
# Link gemmd::allocator to a program: it then uses tcmalloc. GEMMD_HAS_TCMALLOC says
# whether it does. Sanitizers and fuzzers bring allocators of their own.

option(GEMMD_TCMALLOC "Link our programs with tcmalloc, but for sanitizers and fuzzers" ON)

add_library(gemmd_allocator INTERFACE)
add_library(gemmd::allocator ALIAS gemmd_allocator)
set(GEMMD_HAS_TCMALLOC OFF)
if(GEMMD_TCMALLOC AND NOT GEMMD_SANITIZE AND NOT GEMMD_BUILD_FUZZERS)
  find_path(TCMALLOC_INCLUDE_DIR gperftools/malloc_extension_c.h REQUIRED)
  find_library(TCMALLOC_LIBRARY tcmalloc_minimal REQUIRED)
  # No program names a symbol of it, and Ubuntu's linker leaves such libraries out.
  target_link_libraries(gemmd_allocator INTERFACE
                        "-Wl,--push-state,--no-as-needed,${TCMALLOC_LIBRARY},--pop-state")
  set(GEMMD_HAS_TCMALLOC ON)
endif()
