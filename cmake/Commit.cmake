# Sets GEMMD_COMMIT_ID: the short hash of this build's commit.

# Builds outside a checkout, such as an image's, pass it in.
set(GEMMD_COMMIT "" CACHE STRING "The commit this build is of; empty: ask git")
set(GEMMD_COMMIT_ID "${GEMMD_COMMIT}")
if(NOT GEMMD_COMMIT_ID)
  execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE GEMMD_COMMIT_ID OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT GEMMD_COMMIT_ID)
  set(GEMMD_COMMIT_ID "unknown")
endif()
