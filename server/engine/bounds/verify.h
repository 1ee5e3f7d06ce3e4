// Which products are checked before they are delivered.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gemmd {

// In order of strictness.
enum class Verify : uint8_t { kOff, kSampled, kAlways };

// What counts where a request and the server's policy both speak.
constexpr Verify Stricter(Verify one, Verify other) { return std::max(one, other); }

}  // namespace gemmd
