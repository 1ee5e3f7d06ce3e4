// The measurements of wire_bench. Each prints a table and writes JSON, and returns
// the process's exit code: not 0 if a call failed or data came back wrong, or, with
// `check`, if a bound was missed.
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
  std::vector<int> large_channels = {4, 8};
  // The transports of the large product; see LargeTransports.
  std::vector<std::string> transports = {"auto", "striped", "stream"};
  int row_blocks_per_channel = 4;
  std::string kernel;  // of the large product; empty: the server's choice
  bool large_only = false;
  std::string json;
  bool check = false;
};
// Small products beside an empty call, and a large one end to end.
int BenchLatency(const LatencyOptions& options);

struct SmallOptions {
  std::vector<Endpoint> servers;  // gemmd; bounds are for the first
  std::vector<Endpoint>
      baselines;  // serve-baseline with answers; the fastest is what ratios are to
  int callers = 64;
  int channels = 8;     // over which the callers are spread
  int in_flight = 256;  // jobs on the one stream
  int64_t extent = 64;
  double seconds = 2;  // of each measurement
  int rounds = 5;
  std::string json;
  bool check = false;
};
// Small products, sent and returned, as many a second as there can be: from callers that send one
// at a time, and on one stream. Compared with the same bytes both ways. All servers take turns.
int BenchSmall(const SmallOptions& options);

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

// A caller and its server.
struct CallerOptions {
  std::string server;
  std::string ca;          // empty: no TLS
  std::string token_file;  // with a CA; empty: none
};

struct FairnessOptions {
  CallerOptions large;
  CallerOptions small;
  int in_flight = 1000;
  int64_t large_extent = 512;
  int64_t large_batch = 1;  // products of each large one
  int64_t small_extent = 64;
  double small_rate = 0;     // small ones a second, at most; 0: as many as there can be
  bool keep_result = false;  // results of the large ones stay on the device
  double seconds = 10;       // of each measurement
  int rounds = 3;
  std::string json;
  bool check = false;
};
// Small products, one at a time, alone and beside large ones of another caller.
int BenchFairness(const FairnessOptions& options);

struct WeightedCaller {
  CallerOptions caller;
  double weight = 1;  // that the server gives it
};
struct SharesOptions {
  std::vector<WeightedCaller> callers;
  int in_flight = 64;  // of each
  int64_t extent = 512;
  bool keep_result = false;
  double seconds = 10;
  std::string json;
  bool check = false;
};
// The throughput of each of several callers beside the others.
int BenchShares(const SharesOptions& options);

struct OverloadOptions {
  CallerOptions caller;
  int pid = 0;  // of the server, for its memory; 0: not looked at
  double factor = 3;
  double seconds = 300;
  double deadline_seconds = 0.5;  // of each call
  double peak_seconds = 10;
  int peak_in_flight = 16;
  int most_under_way = 20'000;
  int64_t extent = 512;
  int64_t inner = 0;  // of the product; 0: extent
  bool keep_result = false;
  std::string json;
  bool check = false;
};
// Finds the most products a second, and then asks for `factor` times as many.
int BenchOverload(const OverloadOptions& options);

}  // namespace gemmd::wire
