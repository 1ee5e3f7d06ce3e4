// Loads a running gemmd with many streams of mixed work for a while, checks
// every product, and then that the server is as it was: memory level, nothing
// allocated from the driver since warm-up, nothing left.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "nlohmann/json.hpp"
#include "tests/soak/monitor.h"
#include "tests/soak/problem_pool.h"
#include "tests/soak/stream_load.h"

namespace gemmd::soak {
namespace {

namespace pb = ::gemm::v1;

struct Options {
  std::string server;
  std::string metrics;
  int pid = 0;
  int streams = 64;
  int channels = 8;
  int problems = 48;
  int64_t largest = 1024;
  int warmup_seconds = 30;
  int seconds = 300;
  double memory_tolerance = 0.02;
  bool coalesces = false;
  uint64_t seed = 1;
  std::string json;
};

// One stream in so many sends what others send, too.
constexpr int kAlike = 8;

// Something that must be so at the end.
struct Claim {
  std::string text;
  bool held = false;
};

class Soak {
 public:
  explicit Soak(Options options) : options_(std::move(options)) {}

  absl::StatusOr<bool> Run();

 private:
  absl::Status Connect();
  absl::Status Prepare();
  void Load();
  // Until the server has no work and only `matrices` matrices, or 30 seconds.
  absl::StatusOr<pb::Load> Settle(uint32_t matrices);
  absl::Status Conclude();
  void Claims(const pb::Load& load, const Sample& after);
  void Report(const std::vector<Sample>& samples) const;

  const Options options_;
  std::vector<std::unique_ptr<pb::GemmService::Stub>> stubs_;
  std::vector<std::unique_ptr<PoolProblem>> pool_;
  std::vector<LoadedProblem> loaded_;
  std::vector<std::string> devices_;
  std::unique_ptr<Monitor> monitor_;
  std::vector<Sample> samples_;
  uint32_t matrices_before_ = 0;
  Sample before_;  // nothing sent yet
  Sample warm_;
  Sample end_of_load_;
  absl::Time begin_, end_;
  Counts counts_;
  std::vector<Claim> claims_;
  double first_window_bytes_ = 0, last_window_bytes_ = 0;
};

absl::StatusOr<bool> Soak::Run() {
  if (const absl::Status status = Connect(); !status.ok()) return status;
  if (const absl::Status status = Prepare(); !status.ok()) return status;
  Load();
  if (const absl::Status status = Conclude(); !status.ok()) return status;
  Report(samples_);
  bool held = true;
  for (const Claim& claim : claims_) held = held && claim.held;
  return held;
}

absl::Status Soak::Connect() {
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(10);
  for (int i = 0; i < options_.channels; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel =
        grpc::CreateCustomChannel(options_.server, grpc::InsecureChannelCredentials(), arguments);
    if (!channel->WaitForConnected(deadline)) {
      return absl::UnavailableError(absl::StrCat("--server: nobody answers at ", options_.server));
    }
    stubs_.push_back(pb::GemmService::NewStub(channel));
  }
  monitor_ = std::make_unique<Monitor>(options_.metrics, options_.pid);
  auto now = monitor_->Now();
  if (!now.ok()) return now.status();
  before_ = *std::move(now);
  grpc::ClientContext context;
  pb::GetServerInfoResponse info;
  const grpc::Status status = stubs_[0]->GetServerInfo(&context, {}, &info);
  if (!status.ok()) return absl::UnavailableError(status.error_message());
  matrices_before_ = info.load().matrices();
  for (const pb::DeviceInfo& device : info.devices()) {
    devices_.push_back(device.name());
    std::printf("%s: %s\n", device.name().c_str(), device.model().c_str());
  }
  return absl::OkStatus();
}

// Draws the problems and uploads the operands of every other one.
absl::Status Soak::Prepare() {
  pool_ = MakePool(options_.problems, options_.largest, options_.seed);
  for (size_t i = 0; i < pool_.size(); ++i) {
    // The host's own choice does not promise the bits that a block of rows needs.
    if (pool_[i]->form() == Form::kRowBlock && absl::StartsWith(devices_[0], "host")) {
      pool_[i]->ChooseKernel("host_reference");
    }
    LoadedProblem loaded{pool_[i].get(), devices_[i % devices_.size()], {}};
    for (int role = 0; role < kOperands && i % 2 == 0; ++role) {
      if (!loaded.problem->operand(role)) continue;
      auto id = PutOperand(*stubs_[0], *loaded.problem->operand(role), loaded.device,
                           absl::InfiniteDuration());
      if (!id.ok()) return id.status();
      loaded.ids[role] = *std::move(id);
    }
    loaded_.push_back(std::move(loaded));
  }
  std::printf("%zu problems, extents up to %lld; %d streams over %d channels; seed %llu\n",
              pool_.size(), static_cast<long long>(options_.largest), options_.streams,
              options_.channels, static_cast<unsigned long long>(options_.seed));
  std::fflush(stdout);
  return absl::OkStatus();
}

void Soak::Load() {
  begin_ = absl::Now() + absl::Seconds(options_.warmup_seconds);
  end_ = begin_ + absl::Seconds(options_.seconds);
  std::vector<std::thread> streams;
  for (int i = 0; i < options_.streams; ++i) {
    streams.emplace_back([this, i] {
      const StreamOptions options = {
          .index = i, .seed = options_.seed * 1000003 + i, .until = end_};
      const auto run = i % kAlike == 0 ? RunAlikeLoad : RunStreamLoad;
      run(*stubs_[i % stubs_.size()], loaded_, options, counts_);
    });
  }
  absl::SleepFor(begin_ - absl::Now());
  if (auto warm = monitor_->Now(); warm.ok()) warm_ = *std::move(warm);
  for (absl::Time tick = begin_; tick < end_; tick += absl::Seconds(30)) {
    absl::SleepFor(std::min(tick + absl::Seconds(30), end_) - absl::Now());
    std::printf("%4.0f s: %lld right, %lld wrong, %lld unexpected\n",
                absl::ToDoubleSeconds(absl::Now() - begin_), static_cast<long long>(counts_.right),
                static_cast<long long>(counts_.wrong), static_cast<long long>(counts_.unexpected));
    std::fflush(stdout);
  }
  for (std::thread& stream : streams) stream.join();
}

absl::StatusOr<pb::Load> Soak::Settle(uint32_t matrices) {
  pb::GetServerInfoResponse info;
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  do {
    grpc::ClientContext context;
    const grpc::Status status = stubs_[0]->GetServerInfo(&context, {}, &info);
    if (!status.ok()) return absl::UnavailableError(status.error_message());
    const pb::Load& load = info.load();
    if (load.jobs() == 0 && load.admitted_bytes() == 0 && load.matrices() == matrices) break;
    absl::SleepFor(absl::Milliseconds(100));
  } while (absl::Now() < limit);
  return info.load();
}

absl::Status Soak::Conclude() {
  auto end = monitor_->Now();
  if (!end.ok()) return end.status();
  end_of_load_ = *std::move(end);
  samples_ = monitor_->Stop();
  for (const LoadedProblem& loaded : loaded_) {
    for (const std::string& id : loaded.ids) {
      if (id.empty()) continue;
      grpc::ClientContext context;
      pb::DeleteMatrixRequest request;
      request.mutable_matrix()->set_id(id);
      pb::DeleteMatrixResponse response;
      const grpc::Status status = stubs_[0]->DeleteMatrix(&context, request, &response);
      if (!status.ok()) return absl::InternalError("DeleteMatrix: " + status.error_message());
    }
  }
  const auto load = Settle(matrices_before_);
  if (!load.ok()) return load.status();
  auto after = monitor_->Now();
  if (!after.ok()) return after.status();
  Claims(*load, *after);
  return absl::OkStatus();
}

void Soak::Claims(const pb::Load& load, const Sample& after) {
  const auto claim = [this](std::string text, bool held) {
    claims_.push_back({std::move(text), held});
  };
  const auto metric = [](const Sample& sample, const std::string& name) {
    const auto at = sample.metrics.find(name);
    return at == sample.metrics.end() ? -1 : at->second;
  };
  claim(absl::StrCat(counts_.wrong.load(), " wrong of ",
                     counts_.right.load() + counts_.wrong.load(), " answers"),
        counts_.wrong == 0 && counts_.right > 0);
  const auto& forms = counts_.right_of_form;
  claim(absl::StrCat("right: ", forms[0].load(), " products, ", forms[1].load(), " batches, ",
                     forms[2].load(), " groups, ", forms[3].load(), " blocks of rows (",
                     counts_.blocks_refused.load(), " refused)"),
        std::all_of(forms.begin(), forms.end(), [](const auto& right) { return right > 0; }));
  claim(absl::StrCat(counts_.unexpected.load(), " unexpected errors"), counts_.unexpected == 0);
  claim(absl::StrCat("jobs were cancelled (", counts_.cancelled.load(), ") and ran out of time (",
                     counts_.deadline_exceeded.load(), ")"),
        counts_.cancelled > 0 && counts_.deadline_exceeded > 0);

  const std::string coalesced = "gemmd_coalesced_jobs_total";
  claim(absl::StrCat("jobs that shared a launch: ", metric(after, coalesced)),
        metric(after, coalesced) > 0 || !options_.coalesces);

  const absl::Duration window = absl::Seconds(std::min(60, std::max(1, options_.seconds / 3)));
  first_window_bytes_ = MedianResidentBytes(samples_, begin_, begin_ + window);
  last_window_bytes_ = MedianResidentBytes(samples_, end_ - window, end_);
  const double growth = first_window_bytes_ > 0 ? last_window_bytes_ / first_window_bytes_ - 1 : 1;
  claim(absl::StrCat("resident memory, first against last ", absl::FormatDuration(window), ": ",
                     static_cast<int64_t>(first_window_bytes_ / 1e6), " MB, ",
                     static_cast<int64_t>(last_window_bytes_ / 1e6), " MB, ", growth * 100, "%"),
        std::abs(growth) <= options_.memory_tolerance);

  const std::string allocations = "gemmd_driver_allocations_total";
  claim(absl::StrCat("driver allocations after warm-up ", metric(warm_, allocations),
                     ", at the end ", metric(end_of_load_, allocations)),
        metric(warm_, allocations) >= 0 &&
            metric(warm_, allocations) == metric(end_of_load_, allocations));

  claim(absl::StrCat("left: ", load.jobs(), " jobs, ", load.queued(), " queued, ",
                     load.admitted_bytes(), " admitted bytes, ", load.matrices(),
                     " matrices (before: ", matrices_before_, ")"),
        load.jobs() == 0 && load.queued() == 0 && load.admitted_bytes() == 0 &&
            load.matrices() == matrices_before_);
  for (const char* name : {"gemmd_device_memory_bytes", "gemmd_store_bytes", "gemmd_staging_bytes",
                           "gemmd_streams_in_use"}) {
    claim(absl::StrCat(name, " before ", metric(before_, name), ", after ", metric(after, name)),
          metric(after, name) >= 0 && metric(after, name) == metric(before_, name));
  }
}

void Soak::Report(const std::vector<Sample>& samples) const {
  const double seconds = absl::ToDoubleSeconds(end_ - begin_) + options_.warmup_seconds;
  size_t variants = 0;
  for (const auto& problem : pool_) variants += problem->variants();
  nlohmann::json report = {{"seed", options_.seed},
                           {"streams", options_.streams},
                           {"warmup_seconds", options_.warmup_seconds},
                           {"seconds", options_.seconds},
                           {"answers_right", counts_.right.load()},
                           {"answers_wrong", counts_.wrong.load()},
                           {"batches_right", counts_.right_of_form[1].load()},
                           {"groups_right", counts_.right_of_form[2].load()},
                           {"row_blocks_right", counts_.right_of_form[3].load()},
                           {"row_blocks_refused", counts_.blocks_refused.load()},
                           {"answers_per_second", static_cast<double>(counts_.right) / seconds},
                           {"distinct_right_answers", variants},
                           {"cancelled", counts_.cancelled.load()},
                           {"deadline_exceeded", counts_.deadline_exceeded.load()},
                           {"unexpected", counts_.unexpected.load()},
                           {"streams_opened", counts_.streams.load()},
                           {"streams_cut_off", counts_.streams_cancelled.load()},
                           {"unary_calls", counts_.unary.load()},
                           {"operands",
                            {{"payload", counts_.payload.load()},
                             {"resident", counts_.resident.load()},
                             {"generated", counts_.generated.load()},
                             {"released", counts_.released.load()}}},
                           {"results_kept", counts_.kept.load()},
                           {"bytes_sent", counts_.bytes_sent.load()},
                           {"bytes_received", counts_.bytes_received.load()},
                           {"resident_bytes_first_window", first_window_bytes_},
                           {"resident_bytes_last_window", last_window_bytes_},
                           {"missed_samples", monitor_->misses()},
                           {"complaints", counts_.complaints()}};
  for (const Claim& claim : claims_) {
    report["claims"].push_back({{"text", claim.text}, {"held", claim.held}});
  }
  for (const Sample& sample : samples) {
    report["resident_mb_by_second"].push_back(std::lround(sample.resident_bytes / 1e6));
  }
  for (const std::string& complaint : counts_.complaints()) {
    std::printf("! %s\n", complaint.c_str());
  }
  std::printf(
      "%lld answers, %.0f a second; %lld streams, %lld of them cut off; %.2f GB out, "
      "%.2f GB in\n",
      static_cast<long long>(counts_.right), static_cast<double>(counts_.right) / seconds,
      static_cast<long long>(counts_.streams), static_cast<long long>(counts_.streams_cancelled),
      static_cast<double>(counts_.bytes_sent) / 1e9,
      static_cast<double>(counts_.bytes_received) / 1e9);
  for (const Claim& claim : claims_) {
    std::printf("%-6s %s\n", claim.held ? "held" : "FAILED", claim.text.c_str());
  }
  if (!options_.json.empty()) std::ofstream(options_.json) << report.dump(1) << "\n";
}

}  // namespace
}  // namespace gemmd::soak

int main(int argc, char** argv) {
  gemmd::soak::Options options;
  CLI::App app{"Loads a running gemmd with many streams and checks all that comes back"};
  app.add_option("--server", options.server, "address of gemmd")->required();
  app.add_option("--metrics", options.metrics, "host:port of its metrics")->required();
  app.add_option("--pid", options.pid, "its process, on this machine")->required();
  app.add_option("--streams", options.streams, "streams at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--channels", options.channels, "connections that carry them")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--problems", options.problems, "different products")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--largest", options.largest, "the largest extent")
      ->check(CLI::Range(8, 8192))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup_seconds, "seconds of load that do not count")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "seconds of load after that")
      ->check(CLI::Range(3, 1000000))
      ->capture_default_str();
  app.add_option("--memory-tolerance", options.memory_tolerance,
                 "how much resident memory may differ, as a fraction")
      ->capture_default_str();
  app.add_flag("--coalesces", options.coalesces,
               "the server runs small jobs that are alike in one launch: some must have been");
  app.add_option("--seed", options.seed, "of problems and load")->capture_default_str();
  app.add_option("--json", options.json, "write the results here");
  CLI11_PARSE(app, argc, argv);
  const auto held = gemmd::soak::Soak(options).Run();
  if (!held.ok()) {
    std::fprintf(stderr, "%s\n", held.status().ToString().c_str());
    return 1;
  }
  return *held ? 0 : 1;
}
