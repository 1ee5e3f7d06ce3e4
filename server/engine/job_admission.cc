#include "server/engine/job_admission.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace gemmd {
namespace {

constexpr Role kRoles[] = {Role::kA, Role::kB, Role::kC, Role::kBias};

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
  }
  return nullptr;
}

// Finds a resident operand, and takes hold of it.
absl::StatusOr<Shape> HoldResident(EngineCore& core, const OperandSpec& operand,
                                   absl::string_view name, JobInput& input) {
  absl::StatusOr<MatrixPin> pin = core.store->Pin(std::get<FromResident>(operand.source).key);
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
  // Of one row, either order is the same bytes.
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

// The devices that may take the job: the one that holds its resident operands,
// else all healthy ones, the least loaded first.
absl::StatusOr<std::vector<size_t>> Candidates(const EngineCore& core,
                                               const JobHoldings& holdings) {
  const Device* holder = nullptr;
  for (const JobInput& input : holdings.inputs) {
    if (!input.pin) continue;
    const Device* device = input.memory->device;
    if (holder != nullptr && device != holder) {
      return absl::FailedPreconditionError(
          absl::StrCat("the resident operands lie on different devices, ", holder->info().name,
                       " and ", device->info().name, ": put them on one (PutMatrix's device)"));
    }
    holder = device;
  }
  if (holder != nullptr) {
    const absl::Status health = holder->Health();
    if (!health.ok()) return health;
    return std::vector<size_t>{core.IndexOf(*holder)};
  }
  std::vector<size_t> devices = core.DevicesByLoad();
  if (devices.empty()) return absl::UnavailableError("no device of this server is healthy");
  return devices;
}

// In place where C is the job's own: D then takes its memory.
bool ResultReplacesC(const JobHoldings& holdings) {
  const JobInput& c = holdings.inputs[static_cast<size_t>(Role::kC)];
  return c.payload || c.generator.has_value();
}

absl::Status AllocateInputs(Device& device, const OperandShapes& shapes, JobHoldings& holdings) {
  for (const Role role : kRoles) {
    JobInput& input = holdings[role];
    if (!input.payload && !input.generator.has_value()) continue;
    absl::StatusOr<std::shared_ptr<MatrixMemory>> memory = AllocateMatrix(device, *shapes[role]);
    if (!memory.ok()) return memory.status();
    input.memory = *std::move(memory);
  }
  return absl::OkStatus();
}

absl::Status Allocate(EngineCore& core, const OperandShapes& shapes, AdmittedJob& job,
                      uint64_t workspace_bytes) {
  Device& device = *core.devices[job.device_index];
  JobHoldings& holdings = *job.holdings;
  absl::Status status = AllocateInputs(device, shapes, holdings);
  if (!status.ok()) return status;
  if (ResultReplacesC(holdings)) {
    holdings.result = holdings[Role::kC].memory;
  } else {
    absl::StatusOr<std::shared_ptr<MatrixMemory>> result = AllocateMatrix(device, job.plan.result);
    if (!result.ok()) return result.status();
    holdings.result = *std::move(result);
  }
  if (workspace_bytes > 0) {
    absl::StatusOr<DeviceBuffer> workspace = device.memory().Allocate(workspace_bytes);
    if (!workspace.ok()) return workspace.status();
    holdings.workspace = *std::move(workspace);
  }
  if (job.spec.keep_result.has_value()) {
    absl::StatusOr<StoreReservation> room = core.store->Reserve(
        job.device_index, job.plan.result.pitched_bytes(), *job.spec.keep_result);
    if (!room.ok()) return room.status();
    holdings.room = *std::move(room);
  }
  holdings.upload_begin = device.AcquireEvent();
  holdings.kernel_begin = device.AcquireEvent();
  if (workspace_bytes > 0) holdings.staged = device.AcquireEvent();
  holdings.kernel_end = device.AcquireEvent();
  holdings.download_end = device.AcquireEvent();
  return absl::OkStatus();
}

// Picks the kernel on one device and reserves everything there.
absl::Status Reserve(EngineCore& core, const OperandShapes& shapes, size_t device_index,
                     AdmittedJob& job) {
  job.device_index = device_index;
  gemm::Problem& problem = job.plan.problem;
  absl::StatusOr<KernelPick> pick =
      PickKernel(job.spec.kernel, problem.types, job.spec.compute.has_value(),
                 core.devices[device_index]->info().caps);
  if (!pick.ok()) return pick.status();
  problem.types.compute = pick->compute;
  job.pick = *std::move(pick);
  const auto workspace = job.pick.kernel->workspace_bytes;
  const uint64_t workspace_bytes = workspace == nullptr ? 0 : workspace(problem);

  uint64_t bytes = workspace_bytes;
  if (!ResultReplacesC(*job.holdings)) bytes += job.plan.result.pitched_bytes();
  for (const Role role : kRoles) {
    const JobInput& input = (*job.holdings)[role];
    if (input.payload || input.generator.has_value()) bytes += shapes[role]->pitched_bytes();
  }
  absl::StatusOr<AdmissionTicket> ticket = core.admission->AdmitJob(bytes);
  if (!ticket.ok()) return ticket.status();
  job.holdings->ticket = *std::move(ticket);
  return Allocate(core, shapes, job, workspace_bytes);
}

// Gives back what a device that could not take the job had reserved.
void Unreserve(JobHoldings& holdings) {
  for (JobInput& input : holdings.inputs) {
    if (!input.pin) input.memory.reset();
  }
  holdings.result.reset();
  holdings.workspace.Reset();
  holdings.room = StoreReservation();
  holdings.ticket.Reset();
}

}  // namespace

void ReleaseResidents(EngineCore& core, const JobSpec& spec, JobHoldings& holdings) {
  for (const Role role : kRoles) {
    const OperandSpec* operand = SpecOf(spec, role);
    if (operand == nullptr) continue;
    const auto* resident = std::get_if<FromResident>(&operand->source);
    if (resident != nullptr && resident->release) core.store->Forget(holdings[role].pin);
  }
}

absl::StatusOr<AdmittedJob> AdmitJob(EngineCore& core, JobSpec spec) {
  if (spec.deadline <= absl::Now()) {
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
  job.spec = std::move(spec);

  absl::StatusOr<std::vector<size_t>> candidates = Candidates(core, *job.holdings);
  if (!candidates.ok()) return candidates.status();
  absl::Status status;
  for (const size_t device_index : *candidates) {
    job.plan.problem.types = plan->problem.types;
    status = Reserve(core, shapes, device_index, job);
    if (status.ok()) break;
    Unreserve(*job.holdings);
  }
  if (!status.ok()) return status;
  return job;
}

}  // namespace gemmd
