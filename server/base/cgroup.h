// The bounds of the process's cgroups (its container).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gemmd {

// The folders of this process's cgroups for a controller, such as "cpu", and of those around them.
// Those of version 1 and of version 2; not all need be there.
std::vector<std::string> CgroupFolders(absl::string_view controller);

// The CPUs that all of these folders allow, by cpu.max (version 2) or cpu.cfs_quota_us (version 1).
// 1.5: one and a half CPUs may be busy all the time. nullopt: no limit.
std::optional<double> CpuQuota(const std::vector<std::string>& folders);

// CPUs to share work among: those that the process may run on, and no more than its cgroups' quota,
// rounded up. At least 1.
int CpusToUse();

}  // namespace gemmd
