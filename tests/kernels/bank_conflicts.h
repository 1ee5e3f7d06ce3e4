// Bank conflicts of a warp's accesses to shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <vector>

namespace gemm::testing {

// The passes beyond the first of each phase of `lanes` lanes that an access takes: lane i
// moves `bytes` at offsets[i]. There are 32 banks of 4 bytes, and different words of a bank
// take turns.
inline int BankConflicts(const std::vector<int>& offsets, int bytes, size_t lanes) {
  constexpr int kBanks = 32, kWordBytes = 4;
  int conflicts = 0;
  for (size_t first = 0; first < offsets.size(); first += lanes) {
    std::map<int, std::set<int>> words;  // by bank
    size_t passes = 1;
    for (size_t lane = first; lane < std::min(first + lanes, offsets.size()); ++lane) {
      const int end = (offsets[lane] + bytes + kWordBytes - 1) / kWordBytes;
      for (int word = offsets[lane] / kWordBytes; word < end; ++word) {
        std::set<int>& bank = words[word % kBanks];
        bank.insert(word);
        passes = std::max(passes, bank.size());
      }
    }
    conflicts += static_cast<int>(passes) - 1;
  }
  return conflicts;
}

// In the phases of the hardware: 32 lanes where each moves 4 bytes at most, 16 for 8 bytes
// and 8 for 16.
inline int BankConflicts(const std::vector<int>& offsets, int bytes) {
  return BankConflicts(offsets, bytes, bytes <= 4 ? 32 : bytes == 8 ? 16 : 8);
}

}  // namespace gemm::testing
