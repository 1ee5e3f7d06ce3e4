#include "files/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace gemmd::files {

void OpenStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The wrong way round, so that reading and writing fail.
    (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace gemmd::files
