// The contest of kernels on one shape: same operands, taking turns.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/bench/backend.h"
#include "kernels/bench/candidate.h"
#include "kernels/bench/operand_sets.h"
#include "kernels/bench/oracle.h"
#include "kernels/bench/row.h"
#include "kernels/bench/rules.h"

namespace gemm::bench {

// The name under which the best of cuBLASLt's algorithms stands in rows.
inline constexpr absl::string_view kTunedVendor = "cublaslt_best";

// What candidates last reached, and on a shape of how many operations, by what
// they are.
struct Speed {
  double tflops = 0;
  double flops = 0;
};
using SpeedRecord = std::map<std::string, Speed>;

struct Deadlines {
  // Past it no sample is begun and no warm-up; of kernels that are known to be slow,
  // not even a first run that would pass it.
  absl::Time soft = absl::InfiniteFuture();
  // Past it nothing is run.
  absl::Time hard = absl::InfiniteFuture();
};

// Measures candidates that have types and layout in common. Interleaves their
// samples, so that a change of the device's clock meets all of them.
class Contest {
 public:
  // `now` and `step` are called throughout; `step` gets the name of what runs
  // next and ends the contest with the status it returns.
  struct Hooks {
    std::function<absl::Time()> now;
    std::function<absl::Status(absl::string_view)> step;
  };

  Contest(Backend& backend, OperandSets& sets, SpeedRecord& record, const ContestRules& rules,
          Hooks hooks);

  // Rows in the order of the candidates, then the baselines. An error means that the
  // device is lost or `step` ended it; what one kernel refuses is its row's note.
  absl::StatusOr<std::vector<Row>> Run(const Shape& shape, const std::vector<Candidate>& candidates,
                                       const Deadlines& deadlines);

 private:
  struct Entrant {
    Candidate candidate;  // without a kernel for the tuned vendor
    std::string name;
    std::string family;
    bool baseline = false;
    LaunchFn launch;
    size_t workspace_bytes = 0;
    // Why it is out, or has fewer samples; empty for most.
    std::string note;
    bool out = false;
    double expected_seconds = 0;  // by its first run
    int most_samples = 0;
    std::vector<double> samples;  // seconds
    SampledError error;
  };

  // Of every entrant, none of them measured.
  std::vector<Row> RowsWithout(absl::string_view why);
  Entrant MakeEntrant(const Candidate& candidate) const;
  void EnterBaseline();
  // Draws the operands, at the cost of scratch memory where there is no room.
  absl::Status PrepareOperands();
  absl::Status EnterTunedVendor();
  // As far as there is time: the first round up to the hard deadline, more up to
  // the soft one.
  absl::Status TimeAlgorithms(std::vector<Entrant>& algorithms);
  void ReserveWorkspace();

  absl::Status FirstRun(Entrant& entrant);
  absl::Status FirstRunInTime(Entrant& entrant);
  // Why there is no time for its first run; empty where there is.
  std::string NoTimeFor(const Entrant& entrant) const;
  // Seconds that a run is known to take, or thought to; empty: nobody knows.
  std::optional<double> ForeseenSeconds(const Entrant& entrant) const;
  // On a shape before; cuBLASLt's chosen algorithm has, when it was chosen.
  bool HasRun(const Entrant& entrant) const;
  void LimitTheHopeless();
  absl::Status TakeSamples();
  absl::Status TakeSample(Entrant& entrant);
  // Warm-ups that there is time for.
  int WarmupsOf(const Entrant& entrant) const;
  void NoteMissingSamples();

  // Seconds a launch of `count`, on operand sets in turn.
  absl::StatusOr<double> TimeLaunches(const Entrant& entrant, int count);
  // Takes the entrant out for `status`; an error where the device is lost.
  absl::Status TakeOut(Entrant& entrant, const absl::Status& status);

  std::vector<Row> MakeRows() const;
  Row MakeRow(const Entrant& entrant) const;
  double TflopsOf(const Entrant& entrant) const;
  // Empty where there is no such entrant, or it is out.
  std::optional<double> TflopsOf(absl::string_view name) const;

  Backend& backend_;
  OperandSets& sets_;
  SpeedRecord& record_;
  const ContestRules rules_;
  const Hooks hooks_;
  Oracle oracle_;
  Buffer workspace_{nullptr, nullptr};
  size_t workspace_bytes_ = 0;

  // Of the contest that runs.
  Shape shape_;
  Problem problem_;
  Deadlines deadlines_;
  std::vector<Entrant> entrants_;
  std::string vendor_;    // the entrant that is the vendor's row; empty: none
  int64_t launches_ = 0;  // turns the operand sets
};

}  // namespace gemm::bench
