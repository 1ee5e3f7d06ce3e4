// The load of one stream, and the counts of all.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "server/base/mutex.h"
#include "tests/soak/problem_pool.h"

namespace gemmd::soak {

// What came of everything. Thread-safe.
struct Counts {
  std::atomic<int64_t> right{0};  // answers compared and right
  std::array<std::atomic<int64_t>, kForms> right_of_form{};
  // Blocks of rows whose kernel does not promise the bits of the whole.
  std::atomic<int64_t> blocks_refused{0};
  std::atomic<int64_t> wrong{0};
  std::atomic<int64_t> cancelled{0};          // asked for, and answered so
  std::atomic<int64_t> deadline_exceeded{0};  // likewise
  std::atomic<int64_t> unexpected{0};         // errors that nothing asked for
  std::atomic<int64_t> streams{0};            // opened, one after the other on each thread
  std::atomic<int64_t> streams_cancelled{0};
  std::atomic<int64_t> unary{0};
  std::atomic<int64_t> payload{0}, resident{0}, generated{0}, released{0};  // operands by source
  std::atomic<int64_t> kept{0};                                             // results kept
  std::atomic<int64_t> bytes_sent{0}, bytes_received{0};

  // Counts an answer by what its problem says of it.
  void Judge(PoolProblem& problem, absl::string_view answer);
  // Keeps the first few complaints for the report.
  void Complain(const std::string& text);
  std::vector<std::string> complaints() const;

 private:
  mutable Mutex mutex_;
  std::vector<std::string> complaints_ ABSL_GUARDED_BY(mutex_);
};

// A problem, the device that its resident operands share, and the ids under
// which they lie there (empty: not there).
struct LoadedProblem {
  PoolProblem* problem = nullptr;
  std::string device;
  std::array<std::string, kOperands> ids;
};

struct StreamOptions {
  int index = 0;
  uint64_t seed = 0;
  int window = 4;  // jobs in flight
  absl::Time until;
};

// Opens one Multiply stream after the other until `options.until`, with jobs of
// every kind on each; returns when the last has ended.
void RunStreamLoad(gemm::v1::GemmService::Stub& stub, const std::vector<LoadedProblem>& pool,
                   const StreamOptions& options, Counts& counts);

// Until `options.until`, one MultiplyUnary after the other of the product of `pool` with the
// smallest result: what several threads send so is alike, and may run in one launch.
void RunAlikeLoad(gemm::v1::GemmService::Stub& stub, const std::vector<LoadedProblem>& pool,
                  const StreamOptions& options, Counts& counts);

// Uploads `operand` in one PutMatrix call. `ttl` infinite: until deleted.
absl::StatusOr<std::string> PutOperand(gemm::v1::GemmService::Stub& stub,
                                       const PoolOperand& operand, const std::string& device,
                                       absl::Duration ttl);

// Downloads a matrix and lets go of it.
absl::StatusOr<std::string> TakeMatrix(gemm::v1::GemmService::Stub& stub, const std::string& id);

}  // namespace gemmd::soak
