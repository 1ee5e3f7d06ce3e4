#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.pb.h"
#include "tests/wire/raw_channel.h"
#include "tests/wire/raw_download.h"
#include "tests/wire/samples.h"
#include "tests/wire/wire_bench.h"

namespace gemmd::wire {
namespace {

using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

// Each round sends another window of the memory, so that the matrix of the round before
// cannot pass for the new one.
constexpr uint64_t kShift = 4096;
constexpr uint64_t kRowBytes = 4096;

// Random bytes; all threads there are, for a gigabyte is long for one.
std::vector<std::byte> RandomBytes(uint64_t count) {
  std::vector<std::byte> bytes(count);
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned part = 0; part < parts; ++part) {
    threads.emplace_back([&, part] {
      const uint64_t end = count * (part + 1) / parts;
      uint64_t state = part;
      for (uint64_t at = count * part / parts; at < end; at += 8) {
        state += 0x9E3779B97F4A7C15;
        uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        std::memcpy(&bytes[at], &z, std::min<uint64_t>(8, end - at));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return bytes;
}

double SecondsOf(const std::function<absl::Status()>& run, absl::Status& status) {
  const auto begin = std::chrono::steady_clock::now();
  status = run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A server, and the bytes per second of its transfers on the channels it has now.
struct Measured {
  Endpoint endpoint;
  bool baseline = false;  // keeps nothing and sends anything
  Channels channels;
  Samples up, down;

  // One transfer each way, and the comparison of what came back.
  absl::Status RunRound(const UploadPlan& plan, std::vector<std::byte>& into, bool keep) {
    gemm::v1::PutMatrixResponse answer;
    absl::Status status;
    const double up_seconds = SecondsOf(
        [&] {
          auto response = Upload(channels, plan);
          if (response.ok()) answer = *std::move(response);
          return response.status();
        },
        status);
    if (!status.ok()) return status;
    if (!baseline && !answer.complete()) {
      return absl::InternalError("no call says that the upload is complete");
    }
    const std::string& id = answer.matrix().id();
    const double down_seconds =
        SecondsOf([&] { return Download(channels, id, absl::MakeSpan(into)); }, status);
    if (!status.ok()) return status;
    if (keep) {
      up.Add(static_cast<double>(into.size()) / up_seconds);
      down.Add(static_cast<double>(into.size()) / down_seconds);
    }
    if (baseline) return absl::OkStatus();
    status = DeleteMatrix(channels[0], id);
    if (status.ok() && std::memcmp(plan.data.data(), into.data(), into.size()) != 0) {
      status = absl::DataLossError("the matrix came back changed");
    }
    return status;
  }
};

absl::Status RunRounds(const TransferOptions& options, const std::vector<std::byte>& memory,
                       std::vector<std::byte>& into, std::vector<Measured>& all) {
  for (int round = -1; round < options.rounds; ++round) {  // round -1 warms up
    const UploadPlan plan = {absl::MakeConstSpan(memory).subspan(kShift * (round + 1), into.size()),
                             kRowBytes, options.chunk_bytes};
    for (Measured& one : all) {
      const absl::Status status = one.RunRound(plan, into, round >= 0);
      if (status.ok()) continue;
      return absl::Status(status.code(),
                          absl::StrCat(one.endpoint.name, ", round ", round, " on ",
                                       one.channels.size(), " channels: ", status.message()));
    }
  }
  return absl::OkStatus();
}

// The rows of one number of channels, and the verdicts on the first server.
void Report(const std::vector<Measured>& all, nlohmann::json& report,
            std::vector<Verdict>& verdicts) {
  struct Direction {
    const char* name;
    const Samples Measured::*samples;
  };
  const size_t channels = all[0].channels.size();
  for (const Direction& direction :
       {Direction{"up", &Measured::up}, Direction{"down", &Measured::down}}) {
    double strongest = 0;
    for (const Measured& one : all) {
      if (one.baseline) strongest = std::max(strongest, (one.*direction.samples).Median());
    }
    bool judged = false;
    for (const Measured& one : all) {
      const Samples& samples = one.*direction.samples;
      const double ratio = samples.Median() / strongest;
      std::printf("%-9zu %-5s %-22s %10.2f %10.2f %10.2f %10.3f\n", channels, direction.name,
                  one.endpoint.name.c_str(), samples.Median() / 1e9, samples.Percentile(0) / 1e9,
                  samples.Percentile(1) / 1e9, ratio);
      report["rows"].push_back({{"channels", channels},
                                {"direction", direction.name},
                                {"name", one.endpoint.name},
                                {"baseline", one.baseline},
                                {"gb_per_s", samples.ToJson(1e-9)},
                                {"of_strongest_baseline", ratio}});
      if (one.baseline || judged) continue;
      judged = true;
      verdicts.push_back({absl::StrCat(one.endpoint.name, " over the strongest baseline, ",
                                       direction.name, ", channels: ", channels),
                          ratio, "x", /*at_most=*/false, 0.9});
    }
  }
  std::fflush(stdout);
}

absl::StatusOr<std::vector<Measured>> ConnectAll(const TransferOptions& options, int channels) {
  std::vector<Measured> all;
  for (const bool baseline : {true, false}) {
    for (const Endpoint& endpoint : baseline ? options.baselines : options.servers) {
      auto connected = Connect(endpoint.address, channels);
      if (!connected.ok()) return connected.status();
      all.push_back({endpoint, baseline, *std::move(connected), {}, {}});
    }
  }
  return all;
}

}  // namespace

int BenchTransfers(const TransferOptions& options) {
  const uint64_t bytes = std::max(options.bytes / kRowBytes, uint64_t{1}) * kRowBytes;
  const std::vector<std::byte> memory = RandomBytes(bytes + kShift * (options.rounds + 1));
  std::vector<std::byte> into(bytes, std::byte{0xFF});

  nlohmann::json report = {{"bytes", bytes}, {"chunk_bytes", options.chunk_bytes}};
  std::vector<Verdict> verdicts;
  std::printf("%-9s %-5s %-22s %10s %10s %10s %10s\n", "channels", "way", "GB/s of", "median",
              "min", "max", "ratio");
  for (const int channels : options.channels) {
    auto all = ConnectAll(options, channels);
    const absl::Status status = all.ok() ? RunRounds(options, memory, into, *all) : all.status();
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    Report(*all, report, verdicts);
  }
  Print(verdicts);
  std::printf("every matrix came back equal\n");
  report["verdicts"] = ToJson(verdicts);
  if (!WriteJson(options.json, report)) return 1;
  const bool held = std::all_of(verdicts.begin(), verdicts.end(),
                                [](const Verdict& verdict) { return verdict.held(); });
  return options.check && !held ? 1 : 0;
}

}  // namespace gemmd::wire
