// Which jobs leave payload and result in host memory.
#pragma once

#include <cstddef>

#include "server/engine/job/job_admission.h"

namespace gemmd {

// To begin a copy takes the device's thread longer than the few bytes of a small product take to
// cross the bus. So a kernel reads a small payload in the staging block where it lies, and writes a
// small result into one, and neither is copied.
struct ZeroCopy {
  bool payload = false;
  bool result = false;

  // `bytes` bounds the payload, and the result, as they would lie in device memory. Both are
  // copied where the kernel would cross the bus again and again, and where the product is checked,
  // which reads them once more; a result also where it is kept, or has gaps between its lines. Of
  // a job that runs by itself: launches of several (CoalescedLaunch) always copy.
  static ZeroCopy Of(const AdmittedJob& job, JobHoldings& holdings, size_t bytes);
};

}  // namespace gemmd
