// What wire_bench measures. Each prints a table and writes JSON; the return
// value is the process's exit code: not 0 where a call failed or data came back
// wrong, or, with `check`, where a bound was missed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gemmd::wire {

struct Endpoint {
  std::string name;  // in the tables
  std::string address;
};

struct TransferOptions {
  std::vector<Endpoint> servers;    // gemmd; bounds are for the first
  std::vector<Endpoint> baselines;  // serve-baseline; the fastest is what ratios are to
  uint64_t bytes = uint64_t{1} << 30;
  std::vector<int> channels = {1, 4, 8, 16};
  int rounds = 5;
  uint64_t chunk_bytes = uint64_t{1} << 20;
  std::string json;
  bool check = false;
};
// PutMatrix and GetMatrix, beside the same messages to a server that throws them away and
// from one that has them ready. All servers take turns, round by round.
int BenchTransfers(const TransferOptions& options);

struct LatencyOptions {
  std::string server;
  std::string baseline;
  std::string torch;  // empty: not measured
  int small_calls = 3000;
  int large_calls = 40;
  int torch_calls = 10;
  int64_t large_extent = 4096;
  std::string json;
  bool check = false;
};
// Small products beside an empty call, and a large one end to end.
int BenchLatency(const LatencyOptions& options);

struct SecurityOptions {
  // Addresses of gemmd; empty: not measured.
  std::string plain;
  std::string tls;         // without callers
  std::string tokens;      // with callers
  std::string ca;          // of both
  std::string token_file;  // for the last one
  int calls = 3000;
  int rounds = 5;
  uint64_t bytes = uint64_t{64} << 20;
  std::string json;
};
// 64^3 products in one message, and PutMatrix on one connection.
int BenchSecurity(const SecurityOptions& options);

}  // namespace gemmd::wire
