// Compares kernels on one shape: on the same operands, in turns.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/measure/candidate.h"
#include "kernels/bench/measure/operand_sets.h"
#include "kernels/bench/measure/oracle.h"
#include "kernels/bench/result/row.h"
#include "kernels/bench/spec/rules.h"

namespace gemm::bench {

// The name in rows of the fastest candidate of the vendor's libraries: an algorithm of cuBLASLt, or
// one of the libraries' kernels that are measured, too.
inline constexpr absl::string_view kTunedVendor = "cublaslt_best";

// The speed that each candidate last reached and the size of that shape, by the
// candidate's kernel, types, layout and parameters.
struct Speed {
  double tflops = 0;
  double flops = 0;
};
using SpeedRecord = std::map<std::string, Speed>;

struct Deadlines {
  // After it no sample and no warm-up begins. A kernel that is known to be slow does not begin its
  // first run either, if that would end after it.
  absl::Time soft = absl::InfiniteFuture();
  // After it nothing runs.
  absl::Time hard = absl::InfiniteFuture();
};

// Measures candidates of the same types and layout. Interleaves their samples, so
// that a change of the device's clock affects all of them alike.
class Comparison {
 public:
  // Both are called throughout. `step` gets the name of the next step; an error that it returns
  // ends the comparison.
  struct Hooks {
    std::function<absl::Time()> now;
    std::function<absl::Status(absl::string_view)> step;
  };

  Comparison(Backend& backend, OperandSets& sets, SpeedRecord& record, const ComparisonRules& rules,
             Hooks hooks);

  // Rows in the order of the candidates, then the baselines. An error means that the device is lost
  // or that `step` returned it. If a kernel refuses the product, its row's note says why.
  absl::StatusOr<std::vector<Row>> Run(const Shape& shape, const std::vector<Candidate>& candidates,
                                       const Deadlines& deadlines);

 private:
  struct TimedCandidate {
    Candidate spec;  // without a kernel for an algorithm of cuBLASLt
    std::string name;
    std::string family;
    bool baseline = false;
    LaunchFn launch;
    bool scaled = false;  // whether it multiplies with the problem's block scales
    size_t workspace_bytes = 0;
    // Why it is left out, or has fewer samples; empty for most.
    std::string note;
    bool out = false;
    double expected_seconds = 0;  // of a launch, by its first run
    int most_samples = 0;
    std::vector<double> samples;   // seconds
    std::optional<double> joules;  // of a launch
    SampledError error;
  };

  // An unmeasured row for every candidate.
  std::vector<Row> RowsWithout(absl::string_view why);
  // Whether the kernel multiplies with the problem's block scales.
  bool IsScaled(const Kernel& kernel) const;
  LaunchFn LaunchOf(const Candidate& spec) const;
  TimedCandidate MakeTimedCandidate(const Candidate& spec) const;
  void AddBaseline();
  // What is right, for candidates with the problem's block scales and for those without.
  absl::Status PrepareChecks();
  // Draws the operands. Frees scratch memory if there is no room for them.
  absl::Status PrepareOperands();
  // cuBLASLt's algorithms as candidates like the others, all named kTunedVendor: they have the
  // same rounds, so that neither side is chosen by fewer samples.
  absl::Status AddAlgorithms();
  // Replaces the algorithms by the fastest measured candidate of the vendor's libraries.
  void KeepFastestOfLibrary();
  void ReserveWorkspace();

  absl::Status FirstRun(TimedCandidate& candidate);
  absl::Status CompareExactly(TimedCandidate& candidate, double seconds);
  absl::Status FirstRunInTime(TimedCandidate& candidate);
  // Why there is no time for its first run; empty if there is time.
  std::string NoTimeFor(const TimedCandidate& candidate) const;
  // Seconds that a run is expected to take; empty: unknown.
  std::optional<double> ForeseenSeconds(const TimedCandidate& candidate) const;
  // Whether it ran on an earlier shape. An algorithm of cuBLASLt belongs to a shape.
  bool HasRun(const TimedCandidate& candidate) const;
  void ApplyCutoff();
  absl::Status TakeSamples();
  absl::Status TakeSample(TimedCandidate& candidate);
  // The warm-ups that there is time for.
  int LaunchesOf(const TimedCandidate& candidate) const;  // in a sample
  int WarmupsOf(const TimedCandidate& candidate) const;
  void NoteMissingSamples();
  // Called after the samples, if the rules ask for energy. Measures each kernel that has all of its
  // runs. Notes why there is no figure.
  absl::Status MeasureEnergies();
  absl::Status MeasureEnergy(TimedCandidate& candidate);
  // Joules a launch, from batches of launches back to back. `stopped`: the error of `step`, if that
  // ended it.
  absl::StatusOr<double> RunForJoules(const TimedCandidate& candidate, int batch,
                                      absl::Status& stopped);
  static void AddNote(TimedCandidate& candidate, absl::string_view note);

  absl::Status Enqueue(const TimedCandidate& candidate, const Operands& operands);
  // Seconds a launch, of `count` launches on the operand sets in turn.
  absl::StatusOr<double> TimeLaunches(const TimedCandidate& candidate, int count);
  // Leaves the candidate out because of `status`; an error if the device is lost.
  absl::Status TakeOut(TimedCandidate& candidate, const absl::Status& status);
  // An error that names the candidate that ran, if the device is lost.
  absl::Status CheckDevice(const TimedCandidate& candidate);

  std::vector<Row> MakeRows() const;
  Row MakeRow(const TimedCandidate& candidate) const;
  double TflopsOf(const TimedCandidate& candidate) const;
  // Empty where there is no such candidate, or it is left out.
  std::optional<double> TflopsOf(absl::string_view name) const;
  // The fewest joules of a baseline; empty if none has them.
  std::optional<double> BaselineJoules() const;

  Backend& backend_;
  OperandSets& sets_;
  SpeedRecord& record_;
  const ComparisonRules rules_;
  const Hooks hooks_;
  // What is right, by whether block scales are multiplied with.
  struct Checks {
    Oracle oracle;
    ExactCheck exact;
  };
  std::map<bool, Checks> checks_;
  Buffer workspace_{nullptr, nullptr};
  size_t workspace_bytes_ = 0;

  // The comparison under way.
  Shape shape_;
  Problem problem_;
  Deadlines deadlines_;
  std::vector<TimedCandidate> candidates_;
  std::string vendor_;    // the candidate that is the vendor's row; empty: none
  int64_t launches_ = 0;  // turns the operand sets
};

}  // namespace gemm::bench
