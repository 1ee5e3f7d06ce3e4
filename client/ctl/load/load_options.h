// The options of a load test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/context.h"
#include "client/ctl/load/schedule.h"
#include "client/ctl/load/slo.h"
#include "client/ctl/parsing/parse.h"
#include "gemmd/client/product.h"
#include "gemmd/client/types.h"

namespace CLI {
class App;
}

namespace gemmd::ctl {

// The source of a request's operands.
enum class Source { kSent, kResident, kGenerated };
// The destination of the results.
enum class Sink { kStream, kKeep, kBoth };

struct WeightedShape {
  std::string text;  // "MxNxK"
  ProductShape shape;
  int weight = 1;
};

struct LoadOptions {
  // The most requests under way; in the closed loop always that many. 0: 4 in the
  // closed loop, 64 in the open one.
  int concurrency = 0;
  double rate = 0;  // per second; 0: closed loop
  Arrivals arrivals = Arrivals::kUniform;
  absl::Duration ramp;  // before the warm-up
  absl::Duration duration = absl::InfiniteDuration();
  uint64_t requests = 0;
  absl::Duration warmup = absl::Seconds(1);
  absl::Duration max_delay = absl::Seconds(1);
  absl::Duration timeout = absl::Seconds(30);
  std::vector<WeightedShape> shapes;
  std::vector<Weighted> kernels;  // empty: the server picks
  int32_t batch = 1;              // products of a request, of one shape
  int32_t group = 0;              // or products that share the shape's m; 0: no group
  client::DataType dtype = client::kF32;
  client::ComputeMode compute = client::kDefaultCompute;
  Source source = Source::kSent;
  Sink sink = Sink::kStream;
  double verify_fraction = 0;
  int64_t verify_samples = 64;
  uint64_t seed = 1;
  std::string json;  // a file, or "-"
  std::string csv;   // the same
  std::string html;  // the same
  std::vector<Objective> slo;
  bool find_rate = false;
  std::vector<int> sweep;  // concurrencies; empty: no sweep
  std::string compare;     // a file of --json; empty: none
  std::string compare_by = "p50";
  double tolerance = 0.05;  // of the comparison

  int32_t products() const { return group > 0 ? group : batch; }  // of a request
  bool open_loop() const { return rate > 0; }
  bool streams() const { return sink != Sink::kKeep; }
  bool keeps() const { return sink != Sink::kStream; }
};

const char* Name(Source source);
const char* Name(Sink sink);

// Declares the options on `command`. `options` outlives the parsing.
void DeclareLoadOptions(CLI::App& command, LoadOptions& options);

// "concurrency=A..B": A, its doubles below B, and B.
absl::StatusOr<std::vector<int>> ParseSweep(absl::string_view text);

// INVALID_ARGUMENT for options that do not go together.
absl::Status CheckOptions(const LoadOptions& options);

// Fills in the defaults.
void ApplyDefaults(LoadOptions& options);

// "MxNxK" or "MxNxK=weight"; one number is a cube.
absl::StatusOr<WeightedShape> ParseWeightedShape(absl::string_view text);

Json ToJson(const LoadOptions& options);

}  // namespace gemmd::ctl
