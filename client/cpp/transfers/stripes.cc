#include "client/cpp/transfers/stripes.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_format.h"

namespace gemmd::client {

std::vector<Stripe> PlanStripes(uint64_t bytes, int channels, uint64_t chunk_bytes,
                                int first_channel) {
  const uint64_t chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  const uint64_t stripes = std::min<uint64_t>(chunks, static_cast<uint64_t>(channels));
  std::vector<Stripe> plan;
  plan.reserve(stripes);
  uint64_t offset = 0;
  for (uint64_t i = 0; i < stripes; ++i) {
    // The first chunks % stripes stripes have one chunk more than the others.
    const uint64_t whole = chunks / stripes + (i < chunks % stripes ? 1 : 0);
    const uint64_t length = std::min(whole * chunk_bytes, bytes - offset);
    plan.push_back({.channel = static_cast<int>((static_cast<uint64_t>(first_channel) + i) %
                                                static_cast<uint64_t>(channels)),
                    .offset = offset,
                    .length = length});
    offset += length;
  }
  return plan;
}

std::string NewTransferId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

}  // namespace gemmd::client
