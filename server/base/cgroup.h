// What the process's cgroups (its container) allow it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gemmd {

// The folders of this process's cgroups for a controller, such as "cpu", and of those around them.
// Of version 1 and of version 2; not all need be there.
std::vector<std::string> CgroupFolders(absl::string_view controller);

// The CPUs that all of these folders leave, as cpu.max (version 2) or cpu.cfs_quota_us (version 1)
// have it: 1.5 where one and a half CPUs may be busy all the time. nullopt where none limits.
std::optional<double> CpuQuota(const std::vector<std::string>& folders);

// CPUs to share work among: those that the process may run on, and no more than its cgroups' quota,
// rounded up. At least 1.
int CpusToUse();

}  // namespace gemmd
