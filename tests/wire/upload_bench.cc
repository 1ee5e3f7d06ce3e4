#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/wire/raw_channel.h"
#include "tests/wire/samples.h"
#include "tests/wire/wire_bench.h"

namespace gemmd::wire {
namespace {

using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

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

// Seconds of one upload; the answer goes to `answer`.
absl::StatusOr<double> TimeUpload(const Channels& channels, const UploadPlan& plan,
                                  gemm::v1::PutMatrixResponse* answer) {
  const auto begin = std::chrono::steady_clock::now();
  auto response = Upload(channels, plan);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (!response.ok()) return response.status();
  *answer = *std::move(response);
  return elapsed.count();
}

struct Round {
  double baseline_seconds = 0;
  double server_seconds = 0;
};

// One upload to each, and the comparison of what the server then holds.
absl::StatusOr<Round> RunRound(const Channels& baseline, const Channels& server,
                               const UploadPlan& plan) {
  gemm::v1::PutMatrixResponse answer;
  const auto raw = TimeUpload(baseline, plan, &answer);
  if (!raw.ok()) return raw.status();
  const auto put = TimeUpload(server, plan, &answer);
  if (!put.ok()) return put.status();
  if (!answer.complete()) return absl::InternalError("no call says that the upload is complete");
  const absl::Status equal = VerifyAndRelease(server[0], answer.matrix().id(), plan.data);
  if (!equal.ok()) return equal;
  return Round{*raw, *put};
}

}  // namespace

int BenchUpload(const UploadOptions& options) {
  // Each round sends another window of this memory, so that what a server kept
  // from the round before cannot pass for the new matrix.
  constexpr uint64_t kShift = 4096;
  constexpr uint64_t kRowBytes = 4096;
  const uint64_t bytes = std::max(options.bytes / kRowBytes, uint64_t{1}) * kRowBytes;
  const std::vector<std::byte> memory = RandomBytes(bytes + kShift * (options.rounds + 1));

  nlohmann::json report = {{"bytes", bytes}, {"chunk_bytes", options.chunk_bytes}};
  std::vector<Verdict> verdicts;
  std::printf("%-9s %7s %14s %14s %14s\n", "channels", "rounds", "raw GB/s", "PutMatrix GB/s",
              "ratio");
  for (const int count : options.channels) {
    const auto baseline = Connect(options.baseline, count);
    const auto server = Connect(options.server, count);
    for (const absl::Status& status : {baseline.status(), server.status()}) {
      if (status.ok()) continue;
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    Samples raw, put;
    for (int round = -1; round < options.rounds; ++round) {  // round -1 warms up
      const UploadPlan plan = {absl::MakeConstSpan(memory).subspan(kShift * (round + 1), bytes),
                               kRowBytes, options.chunk_bytes};
      const auto times = RunRound(*baseline, *server, plan);
      if (!times.ok()) {
        std::fprintf(stderr, "round %d on %d channels: %s\n", round, count,
                     times.status().ToString().c_str());
        return 1;
      }
      if (round < 0) continue;
      raw.Add(static_cast<double>(bytes) / times->baseline_seconds);
      put.Add(static_cast<double>(bytes) / times->server_seconds);
    }
    const double ratio = put.Median() / raw.Median();
    std::printf("%-9d %7d %14.2f %14.2f %14.3f\n", count, options.rounds, raw.Median() / 1e9,
                put.Median() / 1e9, ratio);
    std::fflush(stdout);
    report["channels"].push_back({{"channels", count},
                                  {"raw_gb_per_s", raw.ToJson(1e-9)},
                                  {"put_matrix_gb_per_s", put.ToJson(1e-9)},
                                  {"ratio", ratio}});
    verdicts.push_back({absl::StrCat("PutMatrix over raw upload, channels: ", count), ratio, "x",
                        /*at_most=*/false, 0.9});
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
