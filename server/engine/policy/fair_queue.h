// The jobs that wait for a stream of one device, and whose turn it is: deficit round robin
// over callers (M. Shreedhar and G. Varghese, "Efficient Fair Queueing Using Deficit Round
// Robin", 1996), with device time in place of bytes.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/policy/cost_model.h"

namespace gemmd {

class Runnable;

// A job's claim on the streams of a device.
struct StreamClaim {
  std::string flow;   // whose turn the job takes
  double weight = 1;  // of the flow; at least kLeastWeight, at most kMostWeight
  JobCost cost;
  absl::Time deadline = absl::InfiniteFuture();
};
inline constexpr double kLeastWeight = 1e-3;
inline constexpr double kMostWeight = 1e3;

// The turns. Each flow with waiting jobs has credit, of device time. When no flow can pay for its
// next job, each gets a quantum times its weight, again and again until one can. Of those that can
// pay, the one that was served longest ago is next. It pays by an estimate, and the difference is
// settled when the job has ended. So flows that wait get device time by their weights, whatever
// their jobs cost. A flow without a job left loses its credit, except what its running jobs have
// paid.
//
// A quick stream serves quick jobs alone. Its jobs begin in advance while another flow waits that
// has none: the other's turn does not come by it, so the flow owes the price. It may owe as much as
// the jobs on the other streams were charged, by the weights, since those were charged in advance,
// too. A flow that owes more is in debt. Quick streams pass it over, and rather stay idle, until
// the turns of the others have made up for it. This keeps both promises: a flow gets no more than
// its share and one job for each stream, and one that uses less never waits behind large jobs. Debt
// is kept in full. A flow without waiting jobs keeps it, too.
//  Within a flow, jobs are in the order of their arrival, but a band (JobCost) counts as kHeadStart
// earlier than the one above it. So a quick job does not wait for the large ones that came just
// before. A large one waits for none that comes kLastBand * kHeadStart after it, or later.
//
// Guarded by its owner's lock. It keeps as much as there are waiting jobs, and kMostDebtors flows.
class FairQueue {
 public:
  enum class Which { kAny, kQuick };
  // The price of a job that runs.
  struct Charge {
    std::string flow;
    double weight = 1;
    absl::Duration cost;
    bool paid = true;  // not where nobody else waited
  };
  struct Taken {
    std::shared_ptr<Runnable> job;
    Charge charge;
    bool quick = false;
  };

  static constexpr absl::Duration kHeadStart = absl::Milliseconds(250);
  // Far below the cost of most jobs: a flow that has just come waits for no more of it.
  static constexpr absl::Duration kQuantum = absl::Microseconds(10);
  // A flow keeps at most this much more than the cost of its next job when it has paid too much. So
  // a flow that has just come does not wait until all of it is used up.
  static constexpr absl::Duration kMostSaved = absl::Milliseconds(100);
  // Flows without waiting jobs whose debt is remembered: the last ones.
  static constexpr size_t kMostDebtors = 1024;

  // `job` is not in the queue.
  void Add(std::shared_ptr<Runnable> job, const StreamClaim& claim, absl::Time now);
  // The next job, of the quick ones alone for kQuick. nullopt: there is none.
  std::optional<Taken> Take(Which which);
  // The same where the next job is `wanted`; else nullopt, and whose turn it is stays as it was.
  std::optional<Taken> TakeIf(Which which, absl::FunctionRef<bool(const Runnable*)> wanted);
  // The job that Take would give; null: there is none.
  const Runnable* Next(Which which);
  // Charges a job that begins without waiting, as a stream for `which` is free. nullopt: its flow
  // is in debt, so the job has to wait.
  std::optional<Charge> Pass(Which which, const StreamClaim& claim);
  // The job of a charge that Take or Pass gave, for the same streams, has ended and taken `took`.
  void Settle(Which which, const Charge& charge, absl::Duration took);
  // Forgets the debt of flows without waiting jobs: there is room for everybody.
  void ForgetDebts();
  // Null where the job is not in the queue.
  std::shared_ptr<Runnable> Remove(const Runnable* job);

  // About the device time of the jobs that would run before a new one. For kQuick, on
  // streams that run quick jobs alone.
  absl::Duration Ahead(const StreamClaim& claim, Which which, absl::Time now) const;

  // Whether a quick stream would pass such a job over, behind the quick ones of its flow.
  bool InDebt(const StreamClaim& claim) const;

  bool quick_waits() const;
  int size() const { return static_cast<int>(places_.size()); }
  // The device time of all jobs.
  absl::Duration cost() const { return cost_; }
  int size_of(absl::string_view flow) const;
  int flows() const { return static_cast<int>(ring_.size()); }
  // The `most` flows with the most jobs, the most first.
  std::vector<WaitingFlow> Longest(size_t most) const;

 private:
  struct Waiting {
    std::shared_ptr<Runnable> job;
    absl::Duration cost;
    absl::Time arrived;
  };
  struct Band {
    std::list<Waiting> jobs;  // never empty
    absl::Duration cost;      // of all of them
  };
  using Bands = std::map<int, Band>;
  struct Flow {
    std::string name;
    double weight = 1;
    absl::Duration credit;
    absl::Duration cost;  // of all its jobs
    int jobs = 0;
    Bands bands;  // those with jobs

    bool has_quick() const { return bands.contains(kQuickBand); }
    // Device time of a flow of weight 1 that it has had in advance.
    absl::Duration ahead() const { return -credit / weight; }
  };
  using Ring = std::list<Flow>;
  struct Place {
    Ring::iterator flow;
    int band = 0;
    std::list<Waiting>::iterator job;
  };

  struct Turn {
    Ring::iterator flow;      // end() where no job is there
    double rounds = 0;        // that all flows are given until this one can pay
    bool in_advance = false;  // it owes the price instead
  };
  Turn NextTurn(Which which);
  // The band whose first job is next; end() where there is none.
  static Bands::iterator NextBand(Flow& flow, Which which);
  // How many quanta the flow lacks for a job.
  static double RoundsFor(const Flow& flow, absl::Duration cost);
  // How far ahead a flow with quick jobs may be. nullopt: any distance, as all flows that wait have
  // quick jobs, without regard to `own`.
  std::optional<absl::Duration> MostAhead(const Flow* own) const;
  void GiveRounds(double rounds);
  // The flow with this name, among the debtors and with this weight where it is new.
  Ring::iterator FlowOf(const std::string& name, double weight);
  // A flow without waiting jobs stays while it owes something.
  void KeepOrForget(Ring::iterator flow);
  std::shared_ptr<Runnable> Extract(const Place& place);

  Ring ring_;     // flows with waiting jobs, the one that was served longest ago first
  Ring debtors_;  // flows without, whose credit is negative; the one that stopped first first
  absl::flat_hash_map<std::string, Ring::iterator> flows_;
  absl::flat_hash_map<const Runnable*, Place> places_;
  absl::Duration cost_;
  // The prices of the jobs that run on streams for any job, each divided by its flow's weight.
  absl::Duration under_way_;
};

}  // namespace gemmd
