// The descriptors of standard input, output and error.
#pragma once

namespace gemmd::files {

// Opens those that are closed, so that no socket or file gets their numbers and with them the
// program's output. Reading and writing them fails as before. Call first of all in main.
void OpenStandardDescriptors();

}  // namespace gemmd::files
