#include "tests/rpc/server_metric.h"

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "tests/net/loopback.h"

namespace gemmd {

double Metric(const ServingAt& server, const std::string& series) {
  const std::string text = HttpGet(server.metrics, "/metrics");
  const size_t at = text.find("\n" + series + " ");
  double value = -1;
  if (at == std::string::npos) return value;
  const size_t begin = at + series.size() + 2;
  if (!absl::SimpleAtod(text.substr(begin, text.find('\n', begin) - begin), &value)) return -1;
  return value;
}

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

}  // namespace gemmd
