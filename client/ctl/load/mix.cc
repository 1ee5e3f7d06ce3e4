#include "client/ctl/load/mix.h"

#include <algorithm>
#include <numeric>

namespace gemmd::ctl {

// In each step the credit of every choice grows by its weight. The choice with the
// most credit is taken, and loses the sum of all weights.
Mix::Mix(const std::vector<int>& weights) {
  int divisor = 0;
  for (int weight : weights) divisor = std::gcd(divisor, weight);
  std::vector<int64_t> credit(weights.size());
  const int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t{0}) / divisor;
  for (int64_t step = 0; step < total; ++step) {
    for (size_t i = 0; i < weights.size(); ++i) credit[i] += weights[i] / divisor;
    const size_t richest =
        static_cast<size_t>(std::max_element(credit.begin(), credit.end()) - credit.begin());
    credit[richest] -= total;
    cycle_.push_back(richest);
  }
}

}  // namespace gemmd::ctl
