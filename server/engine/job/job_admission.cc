#include "server/engine/job/job_admission.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "gemm/scalars.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"
#include "server/engine/transfer/replica_copy.h"

namespace gemmd {
namespace {

const OperandSpec* SpecOf(const JobSpec& spec, Role role) {
  switch (role) {
    case Role::kA:
      return &spec.a;
    case Role::kB:
      return &spec.b;
    case Role::kC:
      return spec.c.has_value() ? &*spec.c : nullptr;
    case Role::kBias:
      return spec.bias.has_value() ? &*spec.bias : nullptr;
    case Role::kScalesA:
      return spec.scales_a.has_value() ? &*spec.scales_a : nullptr;
    case Role::kScalesB:
      return spec.scales_b.has_value() ? &*spec.scales_b : nullptr;
  }
  return nullptr;
}

// Finds a resident operand, and takes hold of it.
absl::StatusOr<Shape> HoldResident(EngineCore& core, const OperandSpec& operand,
                                   absl::string_view name, JobInput& input) {
  const auto& resident = std::get<FromResident>(operand.source);
  absl::StatusOr<MatrixPin> pin = core.store->Pin(resident.key, resident.release);
  if (!pin.ok()) {
    return absl::Status(pin.status().code(), absl::StrCat(name, ": ", pin.status().message()));
  }
  input.pin = *std::move(pin);
  input.memory = input.pin.memory();
  const Shape& shape = input.memory->shape;
  if (operand.shape.has_value() && !(*operand.shape == shape)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ".shape is ", ToString(*operand.shape),
                                                   ", but the resident matrix is ", ToString(shape),
                                                   ": leave the shape out"));
  }
  return shape;
}

absl::StatusOr<Shape> ResolveOperand(EngineCore& core, const OperandSpec& operand, Role role,
                                     JobInput& input) {
  const absl::string_view name = Name(role);
  if (std::holds_alternative<FromResident>(operand.source)) {
    return HoldResident(core, operand, name, input);
  }
  if (!operand.shape.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".shape is missing: only a resident matrix brings its own"));
  }
  Shape shape = *operand.shape;
  absl::Status status = CheckShape(shape, absl::StrCat(name, ".shape"));
  if (!status.ok()) return status;
  // A single row has the same bytes in either order.
  if (role == Role::kBias && shape.rows == 1) shape.column_major = false;
  if (const auto* generated = std::get_if<FromGenerator>(&operand.source)) {
    status = CheckGenerator(shape, absl::StrCat(name, ".generator"));
    if (!status.ok()) return status;
    input.generator = generated->spec;
  } else {
    input.payload = true;
  }
  return shape;
}

uint64_t BytesOf(const OperandShapes& shapes) {
  uint64_t bytes = 0;
  for (const std::optional<Shape>& shape : shapes) {
    if (shape.has_value()) bytes += shape->pitched_bytes();
  }
  return bytes;
}

// The bytes and the time that bring the job's resident operands to a device.
struct Bringing {
  uint64_t bytes = 0;
  absl::Duration time;
};

// nullopt: an operand cannot be brought there, as the device that has it is lost.
std::optional<Bringing> BringingTo(const EngineCore& core, const JobHoldings& holdings,
                                   size_t device_index) {
  Device& device = *core.devices[device_index];
  std::set<const MatrixMemory*> seen;  // an operand may be two at once
  Bringing bringing;
  for (const JobInput& input : holdings.inputs) {
    if (!input.pin || !seen.insert(input.pin.memory().get()).second) continue;
    const std::optional<uint64_t> missing = core.store->MissingBytes(input.pin, device_index);
    if (!missing.has_value()) return std::nullopt;
    bringing.bytes += *missing;
    const CopyRoute route =
        device.CanCopyFrom(*input.pin.memory()->device) ? CopyRoute::kPeer : CopyRoute::kHost;
    bringing.time += core.copy_times.Estimate(route, *missing);
  }
  return bringing;
}

// The claim on a device before a kernel is chosen.
StreamClaim RoughClaim(const JobSpec& spec, const Plan& plan, const OperandShapes& shapes,
                       const CostModel& costs) {
  JobWork work{.flops = gemm::Flops(plan.problem), .products = plan.products()};
  work.bytes = static_cast<double>(plan.result.pitched_bytes() + BytesOf(shapes));
  return {.flow = spec.flow,
          .weight = spec.quota == nullptr ? 1 : spec.quota->weight,
          .cost = costs.Estimate(work)};
}

// Whether a product has the same kernel and bits on both devices.
bool AreAlike(const Device& x, const Device& y) {
  return x.info().model == y.info().model && x.info().machine == y.info().machine;
}

// The devices that may take the job, the best first (RankByEnd): all healthy ones. With resident
// operands those that hold one, and those that are like one of these: elsewhere the kernel might be
// another one, and the bits of the product with it.
absl::StatusOr<std::vector<size_t>> Candidates(const EngineCore& core, const AdmittedJob& job,
                                               const OperandShapes& shapes) {
  absl::Status health;  // of the devices that hold operands
  std::vector<const Device*> holders;
  for (const JobInput& input : job.holdings->inputs) {
    if (!input.pin) continue;
    holders.push_back(input.pin.memory()->device);
    health.Update(holders.back()->Health());
  }
  std::vector<Placement> options;
  for (const size_t i : core.DevicesByLoad()) {
    const bool is_alike =
        holders.empty() || std::any_of(holders.begin(), holders.end(), [&](const Device* holder) {
          return AreAlike(*holder, *core.devices[i]);
        });
    if (!is_alike) continue;
    const std::optional<Bringing> bringing = BringingTo(core, *job.holdings, i);
    if (!bringing.has_value()) continue;
    const StreamClaim claim = RoughClaim(job.spec, job.plan, shapes, *core.costs[i]);
    const bool quick = claim.cost.quick() && !core.devices[i]->quick_streams().empty();
    options.push_back({.device_index = i,
                       .backlog = core.placed[i]->backlog(quick),
                       .copy = bringing->time,
                       .run = claim.cost.device_time,
                       .missing_bytes = bringing->bytes});
  }
  if (options.empty()) {
    if (!health.ok()) return health;
    return absl::UnavailableError(holders.empty()
                                      ? "no device of this server is healthy"
                                      : "the device that holds an operand was lost just now");
  }
  RankByEnd(options);
  std::vector<size_t> best;
  for (const Placement& option : options) best.push_back(option.device_index);
  return best;
}

// Takes hold of the replicas that stand in for operands on other devices.
absl::Status HoldReplicas(EngineCore& core, size_t device_index, JobHoldings& holdings) {
  const Device* device = core.devices[device_index].get();
  for (const Role role : kRoles) {
    JobInput& input = holdings[role];
    if (!input.pin || input.pin.memory()->device == device) continue;
    absl::StatusOr<ReplicaPin> replica = PinReplica(core, input.pin, device_index);
    if (!replica.ok()) {
      absl::Status refused(
          replica.status().code(),
          absl::StrCat(Name(role), ": its copy from ", input.pin.memory()->device->info().name,
                       " to ", device->info().name, ": ", replica.status().message()));
      replica.status().ForEachPayload(
          [&refused](absl::string_view type, const absl::Cord& details) {
            refused.SetPayload(type, details);
          });
      return refused;
    }
    input.replica = *std::move(replica);
    input.memory = input.replica.replica()->memory();
  }
  return absl::OkStatus();
}

// In place where C is the job's own: D then takes its memory. Not where the product is checked,
// against C as it was, or may be computed again; nor where several products share C.
bool ResultReplacesC(const AdmittedJob& job) {
  const JobInput& c = (*job.holdings)[Role::kC];
  return (c.payload || c.generator.has_value()) && !job.check.plan.has_value() &&
         !job.plan.Shares(Role::kC);
}

// A kept result's memory is a matrix's, also if it takes the memory of C.
Lifetime LifetimeOf(const AdmittedJob& job, Role role) {
  return role == Role::kC && job.spec.keep_result.has_value() ? Lifetime::kMatrix : Lifetime::kJob;
}

absl::Status AllocateInputs(EngineCore& core, const OperandShapes& shapes, AdmittedJob& job) {
  for (const Role role : kRoles) {
    JobInput& input = (*job.holdings)[role];
    if (!input.payload && !input.generator.has_value()) continue;
    absl::StatusOr<std::shared_ptr<MatrixMemory>> memory =
        core.AllocateMatrix(job.device_index, *shapes[role], LifetimeOf(job, role));
    if (!memory.ok()) return memory.status();
    input.memory = *std::move(memory);
  }
  return absl::OkStatus();
}

bool HasGenerator(const JobHoldings& holdings) {
  return std::any_of(holdings.inputs.begin(), holdings.inputs.end(),
                     [](const JobInput& input) { return input.generator.has_value(); });
}

absl::Status Allocate(EngineCore& core, const OperandShapes& shapes, AdmittedJob& job,
                      uint64_t workspace_bytes) {
  Device& device = *core.devices[job.device_index];
  JobHoldings& holdings = *job.holdings;
  absl::Status status = HoldReplicas(core, job.device_index, holdings);
  if (status.ok()) status = AllocateInputs(core, shapes, job);
  if (!status.ok()) return status;
  if (ResultReplacesC(job)) {
    holdings.result = holdings[Role::kC].memory;
  } else {
    absl::StatusOr<std::shared_ptr<MatrixMemory>> result =
        core.AllocateMatrix(job.device_index, job.plan.result,
                            job.spec.keep_result.has_value() ? Lifetime::kMatrix : Lifetime::kJob);
    if (!result.ok()) return result.status();
    holdings.result = *std::move(result);
  }
  if (workspace_bytes > 0) {
    absl::StatusOr<DeviceBuffer> workspace =
        core.Allocate(job.device_index, workspace_bytes, Lifetime::kJob);
    if (!workspace.ok()) return workspace.status();
    holdings.workspace = *std::move(workspace);
  }
  if (job.check.plan.has_value()) {
    absl::StatusOr<DeviceBuffer> memory =
        core.Allocate(job.device_index, job.check.plan->bytes(), Lifetime::kJob);
    if (!memory.ok()) return memory.status();
    holdings.check_memory = *std::move(memory);
    holdings.check_end = device.AcquireEvent();
  }
  if (job.spec.keep_result.has_value()) {
    absl::StatusOr<StoreReservation> room = core.store->Reserve(
        job.device_index, job.plan.result.pitched_bytes(), *job.spec.keep_result, job.spec.quota);
    if (!room.ok()) return room.status();
    holdings.room = *std::move(room);
  }
  if (HasGenerator(holdings)) holdings.upload_begin = device.AcquireEvent();
  if (workspace_bytes > 0) holdings.transposed = device.AcquireEvent();
  holdings.kernel_begin = device.AcquireEvent();
  holdings.kernel_end = device.AcquireEvent();
  return absl::OkStatus();
}

// The job's work on its device.
JobWork WorkOf(const AdmittedJob& job, const OperandShapes& shapes, uint64_t workspace_bytes) {
  const gemm::Problem& problem = job.plan.problem;
  JobWork work{
      .kernel = job.pick.kernel,
      .types = problem.types,
      .flops = gemm::RoundScalars(problem).alpha == 0 ? 0 : gemm::Flops(problem),
      .products = job.plan.products(),
      .launches = gemm::TakesInOneLaunch(*job.pick.kernel, problem) ? 1 : job.plan.products(),
      .generates = HasGenerator(*job.holdings),
      .checked = job.check.plan.has_value(),
      .caller = absl::HashOf(job.spec.flow)};
  work.bytes =
      static_cast<double>(workspace_bytes + job.plan.result.pitched_bytes() + BytesOf(shapes));
  return work;
}

// Device memory for the job's operands and its result, without resident matrices. A result that is
// to be checked does not replace C: after the check is planned it may be more than before.
uint64_t MatrixBytes(const OperandShapes& shapes, AdmittedJob& job) {
  uint64_t bytes = ResultReplacesC(job) ? 0 : job.plan.result.pitched_bytes();
  for (const Role role : kRoles) {
    const JobInput& input = (*job.holdings)[role];
    if (input.payload || input.generator.has_value()) bytes += shapes[role]->pitched_bytes();
  }
  return bytes;
}

// Picks the kernel on one device and reserves everything there.
absl::Status Reserve(EngineCore& core, const Tuning& tuning, const OperandShapes& shapes,
                     size_t device_index, AdmittedJob& job) {
  job.device_index = device_index;
  gemm::Problem& problem = job.plan.problem;
  job.check = {};  // of the device tried before
  // Blocks of rows must agree, whatever each has of A: they ask as RankKernels does.
  const gemm::Problem whole = job.plan.WholeProblem();
  const bool row_block = job.plan.form == Form::kRowBlock;
  const uint64_t unchecked_bytes = row_block ? SentBytes(whole) : MatrixBytes(shapes, job);
  const size_t max_job_bytes = core.options.max_job_bytes;
  const Device& device = *core.devices[device_index];
  const DeviceInfoRecord& info = device.info();
  // A kernel that the request names has to take the block alone.
  absl::StatusOr<KernelPick> pick = PickKernel(
      job.spec.kernel, NamesKernel(job.spec.kernel) ? problem : whole, job.spec.compute.has_value(),
      {.device = info.caps,
       .tuned = tuning.For(device_index),
       .estimates = device.estimates(),
       .max_workspace_bytes = max_job_bytes - std::min(max_job_bytes, unchecked_bytes)},
      tuning.ChoicesOn(device_index));
  if (!pick.ok()) return pick.status();
  problem.types.compute = pick->compute;
  job.pick = *std::move(pick);
  uint64_t workspace_bytes = gemm::WorkspaceBytes(*job.pick.kernel, problem);
  absl::StatusOr<CheckDecision> check =
      PlanCheck(job.check_wish, job.spec.kernel, job.plan.form, problem, job.pick, info.caps);
  if (!check.ok()) return check.status();
  job.check = *std::move(check);
  uint64_t bytes = MatrixBytes(shapes, job);
  if (const std::optional<CheckPlan>& plan = job.check.plan; plan.has_value()) {
    job.pick = plan->first;
    workspace_bytes = plan->workspace_bytes;
    bytes += plan->bytes();
  }
  if (row_block) {
    absl::Status promised = ChooseForRowBlock(*job.plan.product_rows, job.pick);
    if (!promised.ok()) return promised;
  }
  bytes += workspace_bytes;
  job.work = WorkOf(job, shapes, workspace_bytes);
  job.claim = {.flow = job.spec.flow,
               .weight = job.spec.quota == nullptr ? 1 : job.spec.quota->weight,
               .cost = core.costs[device_index]->Estimate(job.work),
               .deadline = job.spec.deadline};
  absl::Status wait = core.schedulers[device_index]->CheckWait(job.claim);
  if (!wait.ok()) return wait;
  absl::StatusOr<AdmissionTicket> ticket = core.admission->AdmitJob(bytes, job.spec.quota);
  if (!ticket.ok()) return ticket.status();
  job.holdings->ticket = *std::move(ticket);
  // All at once: the first pieces would drop replicas for a job whose last ones find no room.
  absl::Status room = core.CheckRoom(device_index, bytes);
  if (!room.ok()) return room;
  absl::Status allocated = Allocate(core, shapes, job, workspace_bytes);
  if (!allocated.ok()) return allocated;
  const JobCost& cost = job.claim.cost;
  job.holdings->work = core.placed[device_index]->Add(cost.device_time, cost.quick());
  return absl::OkStatus();
}

// Gives back the reservations on a device that could not take the job.
void Unreserve(JobHoldings& holdings) {
  for (JobInput& input : holdings.inputs) {
    input.replica = ReplicaPin();
    if (input.pin) {
      input.memory = input.pin.memory();
    } else {
      input.memory.reset();
    }
  }
  holdings.result.reset();
  holdings.workspace.Reset();
  holdings.check_memory.Reset();
  holdings.check_end.reset();
  holdings.room = StoreReservation();
  holdings.ticket.Reset();
}

// Whether the job was refused for the device memory that it needs.
bool IsForMemory(const absl::Status& status) {
  const std::optional<ReachedBound> reached = ReachedBoundOf(status);
  if (!reached.has_value()) return false;
  const absl::string_view bound = reached->bound;
  return bound == "max-job-bytes" || bound == "max-admitted-bytes" || bound == "admitted-bytes" ||
         bound == "device-memory-bytes";
}

// On the first of the devices that takes the job; else the first one's error.
absl::Status ReserveOnOneOf(EngineCore& core, const std::vector<size_t>& candidates,
                            const gemm::Types& types, const OperandShapes& shapes,
                            AdmittedJob& job) {
  const std::shared_ptr<const Tuning> tuning = core.tuning.Get();
  absl::Status status;
  for (const size_t device_index : candidates) {
    job.plan.problem.types = types;
    const absl::Status reserved = Reserve(core, *tuning, shapes, device_index, job);
    if (reserved.ok()) return reserved;
    status.Update(reserved);
    Unreserve(*job.holdings);
  }
  return status;
}

// Whether the job's result takes the name of this operand, and deletes it with that.
bool IsToBeReplaced(const JobSpec& spec, const MatrixPin& operand) {
  if (!spec.keep_result.has_value() || !spec.keep_result->replace) return false;
  const KeepSpec& keep = *spec.keep_result;
  const MatrixRecord& record = operand.matrix().record;
  return !keep.name.empty() && record.name == keep.name && record.shared == keep.shared &&
         record.owner == keep.owner;
}

}  // namespace

void ReleaseResidents(EngineCore& core, const JobSpec& spec, JobHoldings& holdings) {
  for (const Role role : kRoles) {
    const OperandSpec* operand = SpecOf(spec, role);
    if (operand == nullptr) continue;
    const auto* resident = std::get_if<FromResident>(&operand->source);
    if (resident == nullptr || !resident->release) continue;
    const MatrixPin& pin = holdings[role].pin;
    if (!IsToBeReplaced(spec, pin)) core.store->Forget(pin);
  }
}

absl::StatusOr<AdmittedJob> AdmitJob(EngineCore& core, JobSpec spec) {
  if (spec.deadline <= SteadyNow()) {
    return absl::DeadlineExceededError("the deadline passed before the job was admitted");
  }
  if (!spec.stream_result && !spec.keep_result.has_value()) {
    return absl::InvalidArgumentError(
        "result asks for neither stream nor keep: the product would be lost");
  }
  AdmittedJob job;
  job.holdings = std::make_shared<JobHoldings>();
  OperandShapes shapes;
  for (const Role role : kRoles) {
    const OperandSpec* operand = SpecOf(spec, role);
    if (operand == nullptr) continue;
    absl::StatusOr<Shape> shape = ResolveOperand(core, *operand, role, (*job.holdings)[role]);
    if (!shape.ok()) return shape.status();
    shapes[role] = *shape;
    if ((*job.holdings)[role].payload) job.payload_bytes += shape->dense_bytes();
  }
  absl::StatusOr<Plan> plan = MakePlan(spec, shapes);
  if (!plan.ok()) return plan.status();
  if (const auto check = std::exchange(spec.check_result, nullptr)) {
    if (absl::Status status = check(plan->result); !status.ok()) return status;
  }
  job.plan = *plan;
  spec.group = {};  // the plan has what is needed of it
  job.spec = std::move(spec);
  job.check_wish = WishFor(job.spec.verify, core.options);

  absl::StatusOr<std::vector<size_t>> candidates = Candidates(core, job, shapes);
  if (!candidates.ok()) return candidates.status();
  const gemm::Types types = job.plan.problem.types;
  absl::Status status = ReserveOnOneOf(core, *candidates, types, shapes, job);
  // The server's policy is no reason to refuse a job that there is room for without its check.
  if (IsForMemory(status) && job.check.plan.has_value() && !job.check_wish.by_request) {
    job.check_wish.wanted = false;
    status = ReserveOnOneOf(core, *candidates, types, shapes, job);
    job.check.why_not = "there is no device memory for the check";
  }
  if (!status.ok()) return status;
  return job;
}

}  // namespace gemmd
