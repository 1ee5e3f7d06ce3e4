#include "client/ctl/load/load_options.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/parsing/operand_spec.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

constexpr int kMaxConcurrency = 4096;
constexpr double kFirstRate = 10;     // of --find-rate
constexpr int kMostProducts = 65536;  // of a request: more than any server takes
constexpr int kClosedConcurrency = 4;
constexpr int kOpenConcurrency = 64;
constexpr absl::Duration kDefaultDuration = absl::Seconds(10);
constexpr const char* kDefaultShape = "512x512x512";

absl::StatusOr<double> ParseRate(absl::string_view text) {
  double rate = 0;
  if (!absl::SimpleAtod(text, &rate) || !(rate > 0 && rate <= 1e6)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a rate above 0 and at most 1000000 a second"));
  }
  return rate;
}

// Unlike other durations, the warm-up may be zero.
absl::StatusOr<absl::Duration> ParseWarmup(absl::string_view text) {
  if (text == "0" || text == "0s") return absl::ZeroDuration();
  return ParseDuration(text);
}

absl::StatusOr<Arrivals> ParseArrivals(absl::string_view word) {
  static constexpr std::pair<const char*, Arrivals> kArrivals[] = {{"uniform", Arrivals::kUniform},
                                                                   {"poisson", Arrivals::kPoisson}};
  return OneOf(word, kArrivals);
}

absl::StatusOr<Source> ParseSource(absl::string_view word) {
  static constexpr std::pair<const char*, Source> kSources[] = {
      {"sent", Source::kSent}, {"resident", Source::kResident}, {"generated", Source::kGenerated}};
  return OneOf(word, kSources);
}

absl::StatusOr<Sink> ParseSink(absl::string_view word) {
  static constexpr std::pair<const char*, Sink> kSinks[] = {
      {"stream", Sink::kStream}, {"keep", Sink::kKeep}, {"both", Sink::kBoth}};
  return OneOf(word, kSinks);
}

// No fp8: no result would have the type of its operands.
absl::StatusOr<client::DataType> ParseOperandType(absl::string_view word) {
  static constexpr std::pair<const char*, client::DataType> kTypes[] = {{"f64", client::kF64},
                                                                        {"f32", client::kF32},
                                                                        {"f16", client::kF16},
                                                                        {"bf16", client::kBF16},
                                                                        {"s8", client::kS8}};
  return OneOf(word, kTypes);
}

void DeclareLoop(CLI::App& command, LoadOptions& options) {
  command
      .add_option("--concurrency", options.concurrency,
                  "Requests under way: in a closed loop always this many [4], in an open loop at "
                  "most this many [64]")
      ->check(CLI::Range(1, kMaxConcurrency).description(""))
      ->type_name("N");
  AddParsed(command, "--rate", options.rate, ParseRate,
            "Open loop: requests per second, independent of the server. Latency counts from when "
            "a request was due, so waiting for a free slot is part of it")
      ->type_name("PER-SECOND");
  AddParsed(command, "--max-delay", options.max_delay, ParseDuration,
            "Open loop: a request that is later than this is not sent, and counts as an error "
            "NOT_SENT_IN_TIME. The time that it waited stands among the latencies [1s]")
      ->type_name("DURATION");
  AddParsed(command, "--arrivals", options.arrivals, ParseArrivals,
            "Open loop: requests come at equal distances, or as from many independent users, with "
            "exponential gaps of the same mean [uniform]")
      ->type_name("uniform|poisson");
  AddParsed(command, "--ramp", options.ramp, ParseDuration,
            "Before the warm-up the rate, or the concurrency of a closed loop, grows from nothing "
            "in this time [none]")
      ->type_name("DURATION");
  AddParsed(command, "--duration", options.duration, ParseDuration,
            "How long to run after the warm-up [10s, or until --requests]")
      ->type_name("DURATION");
  AddParsed(command, "--requests", options.requests, ParseCount,
            "How many requests to make after the warm-up")
      ->type_name("N");
  AddParsed(command, "--warmup", options.warmup, ParseWarmup,
            "Requests in this time from the start are sent but not counted [1s]")
      ->type_name("DURATION");
  AddParsed(command, "--timeout", options.timeout, ParseDuration, "For each request [30s]")
      ->type_name("DURATION");
}

void DeclareProducts(CLI::App& command, LoadOptions& options) {
  AddParsedList(command, "--shape", options.shapes, ParseWeightedShape,
                "M, N and K of the products, or one number for a cube; several are mixed by weight "
                "[512x512x512]")
      ->type_name("MxNxK[=WEIGHT]");
  CLI::Option* const batch =
      command.add_option("--batch", options.batch, "Products of one shape in each request [1]")
          ->check(CLI::Range(1, kMostProducts).description(""))
          ->type_name("N");
  command
      .add_option("--group", options.group,
                  "Products in each request that differ in m: the rows M of the shape are dealt to "
                  "them at random, as tokens to the experts of a mixture")
      ->check(CLI::Range(1, kMostProducts).description(""))
      ->type_name("N")
      ->excludes(batch);
  AddParsed(command, "--dtype", options.dtype, ParseOperandType,
            "The type of the operands and the result: f64, f32, f16 or bf16, or s8 with results "
            "in s32 [f32]. Elements are uniform on [-1, 1), or on [-128, 128) for s8")
      ->type_name("DTYPE");
  AddParsed(command, "--compute", options.compute, ParseComputeName,
            "f64, f32, tf32, f32x3, f16 or s32. Default: f64 for f64 operands, s32 for s8 ones, "
            "f32 for others")
      ->type_name("MODE");
  AddParsedList(command, "--kernel", options.kernels, ParseWeighted,
                "Names from `gemmctl kernels`, or auto; several are mixed by weight [auto]")
      ->type_name("NAME[=WEIGHT]");
  AddParsed(command, "--source", options.source, ParseSource,
            "Operands are sent with each request, are resident on the server, or are generated "
            "there for each request [sent]")
      ->type_name("sent|resident|generated");
  AddParsed(command, "--result", options.sink, ParseSink,
            "Results are streamed back, kept on the server, or both. A kept result takes the place "
            "of the one before it, so each request under way has one or two there [stream]")
      ->type_name("stream|keep|both");
}

void DeclareVerdicts(CLI::App& command, LoadOptions& options) {
  AddParsed(command, "--slo", options.slo, ParseSlo,
            "What must hold, separated by commas: p99<5ms, errors<0.1%, rate>200. Else the exit "
            "status is 4")
      ->type_name("OBJECTIVES");
  command.add_flag("--find-rate", options.find_rate,
                   "Search the highest rate that holds --slo in each third of --duration: double "
                   "or halve from --rate [10], then halve the gap down to 1%");
  AddParsed(command, "--sweep", options.sweep, ParseSweep,
            "A test for each power of two of the concurrency, such as concurrency=1..256, in one "
            "table")
      ->type_name("concurrency=A..B");
  command
      .add_option("--compare", options.compare,
                  "Compare with an earlier test, a file that --json wrote: faster, slower, the "
                  "same or unclear. The exit status is 4 where it is slower")
      ->type_name("FILE");
  command
      .add_option("--compare-by", options.compare_by,
                  "The figure whose verdict is that of the test [p50]")
      ->check(CLI::IsMember({"p50", "p90", "p99", "mean", "rate"}).description(""))
      ->type_name("p50|p90|p99|mean|rate");
  command
      .add_option("--tolerance", options.tolerance,
                  "Tests are the same where the interval of their ratio lies within this share of "
                  "1 [0.05]")
      ->check(CLI::Range(0.001, 1.0).description(""))
      ->type_name("SHARE");
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseSweep(absl::string_view text) {
  absl::string_view rest = text;
  std::vector<absl::string_view> ends;
  if (absl::ConsumePrefix(&rest, "concurrency=")) ends = absl::StrSplit(rest, "..");
  int low = 0, high = 0;
  if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &low) || !absl::SimpleAtoi(ends[1], &high) ||
      low < 1 || high < low || high > kMaxConcurrency) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not concurrency=A..B with 1 <= A <= B <= ", kMaxConcurrency));
  }
  std::vector<int> sweep;
  for (int concurrency = low; concurrency < high; concurrency *= 2) sweep.push_back(concurrency);
  sweep.push_back(high);
  return sweep;
}

absl::Status CheckOptions(const LoadOptions& options) {
  const auto error = [](absl::string_view sentence) {
    return absl::InvalidArgumentError(sentence);
  };
  if (options.find_rate && options.slo.empty()) return error("--find-rate needs --slo");
  if (options.find_rate && options.requests > 0) {
    return error("--find-rate takes --duration, not --requests");
  }
  if (options.find_rate && (!options.sweep.empty() || !options.compare.empty())) {
    return error("--find-rate does not go with --sweep or --compare");
  }
  if (!options.sweep.empty() && (options.concurrency > 0 || options.open_loop())) {
    return error("--sweep does not go with --concurrency or --rate");
  }
  if (!options.sweep.empty() && !options.compare.empty()) {
    return error("--sweep does not go with --compare");
  }
  if (options.arrivals == Arrivals::kPoisson && !options.open_loop() && !options.find_rate) {
    return error("--arrivals poisson needs --rate");
  }
  return absl::OkStatus();
}

const char* Name(Source source) {
  switch (source) {
    case Source::kResident:
      return "resident";
    case Source::kGenerated:
      return "generated";
    case Source::kSent:
      break;
  }
  return "sent";
}

const char* Name(Sink sink) {
  switch (sink) {
    case Sink::kKeep:
      return "keep";
    case Sink::kBoth:
      return "both";
    case Sink::kStream:
      break;
  }
  return "stream";
}

absl::StatusOr<WeightedShape> ParseWeightedShape(absl::string_view text) {
  const auto weighted = ParseWeighted(text);
  if (!weighted.ok()) return weighted.status();
  const auto shape = ParseProductShape(weighted->value);
  if (!shape.ok()) return shape.status();
  return WeightedShape{.text = weighted->value, .shape = *shape, .weight = weighted->weight};
}

void DeclareLoadOptions(CLI::App& command, LoadOptions& options) {
  DeclareLoop(command, options);
  DeclareProducts(command, options);
  DeclareVerdicts(command, options);
  AddParsed(command, "--verify", options.verify_fraction, ParseFraction,
            "Check this fraction of the products against a product in double precision, and each "
            "worker's first one of every shape and kernel. Without a value: 0.01")
      ->expected(0, 1)
      ->default_str("0.01")
      ->type_name("FRACTION");
  command
      .add_option("--verify-samples", options.verify_samples,
                  "The most elements to check of a product [64]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40).description(""))
      ->type_name("N");
  AddParsed(command, "--seed", options.seed, ParseSeed, "The seed of operands and samples [1]")
      ->type_name("SEED");
}

void ApplyDefaults(LoadOptions& options) {
  if (options.find_rate && options.rate == 0) options.rate = kFirstRate;
  if (!options.sweep.empty()) options.concurrency = options.sweep.back();
  if (options.concurrency == 0) {
    options.concurrency = options.open_loop() ? kOpenConcurrency : kClosedConcurrency;
  }
  if (options.duration == absl::InfiniteDuration() && options.requests == 0) {
    options.duration = kDefaultDuration;
  }
  if (options.shapes.empty()) options.shapes.push_back(*ParseWeightedShape(kDefaultShape));
  if (options.kernels.empty()) options.kernels.push_back({.value = "auto"});
}

Json ToJson(const LoadOptions& options) {
  Json shapes = Json::array();
  for (const WeightedShape& shape : options.shapes) {
    shapes.push_back({{"m", shape.shape.m},
                      {"n", shape.shape.n},
                      {"k", shape.shape.k},
                      {"weight", shape.weight}});
  }
  Json kernels = Json::array();
  for (const Weighted& kernel : options.kernels) {
    kernels.push_back({{"name", kernel.value}, {"weight", kernel.weight}});
  }
  Json json = {{"loop", options.open_loop() ? "open" : "closed"},
               {"concurrency", options.concurrency}};
  if (options.open_loop()) {
    json["rate_per_second"] = options.rate;
    json["arrivals"] = options.arrivals == Arrivals::kPoisson ? "poisson" : "uniform";
    json["max_delay_seconds"] = absl::ToDoubleSeconds(options.max_delay);
  }
  if (options.duration != absl::InfiniteDuration()) {
    json["duration_seconds"] = absl::ToDoubleSeconds(options.duration);
  }
  if (options.requests > 0) json["requests"] = options.requests;
  json["ramp_seconds"] = absl::ToDoubleSeconds(options.ramp);
  json["warmup_seconds"] = absl::ToDoubleSeconds(options.warmup);
  json["timeout_seconds"] = absl::ToDoubleSeconds(options.timeout);
  json["shapes"] = shapes;
  json["kernels"] = kernels;
  json["batch"] = options.batch;
  json["group"] = options.group;
  json["dtype"] = std::string(client::Name(options.dtype));
  json["compute"] = std::string(client::Name(options.compute));
  json["source"] = Name(options.source);
  json["result"] = Name(options.sink);
  json["verify_fraction"] = options.verify_fraction;
  json["seed"] = options.seed;
  return json;
}

}  // namespace gemmd::ctl
