// Admits a job: decides and reserves everything before its first payload byte is held.
// That is its operands, device, kernel, memory, and its share of the bounds.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/engine/core/core.h"
#include "server/engine/job/dispatcher.h"
#include "server/engine/job/job.h"
#include "server/engine/job/plan.h"
#include "server/engine/job/result_check.h"
#include "server/engine/store/matrix_memory.h"
#include "server/engine/store/store.h"

namespace gemmd {

// One operand of an admitted job.
struct JobInput {
  std::shared_ptr<MatrixMemory> memory;  // null: the job has no such operand
  MatrixPin pin;                         // for a resident one
  ReplicaPin replica;  // where that lies on another device: `memory` is the replica's
  std::optional<gemm::GeneratorSpec> generator;
  bool payload = false;  // its bytes come through Append
};

// The resources that a job holds. Shared by the job and its pending device work, so that
// the memory of a job that ends early is kept only until the device no longer uses it.
struct JobHoldings {
  AdmissionTicket ticket;  // first, so that it goes last
  PlacedWork::Share work;  // until the job has left its device
  ByRole<JobInput> inputs;
  std::shared_ptr<MatrixMemory> result;
  DeviceBuffer workspace;
  DeviceBuffer check_memory;  // of a checked product: CheckPlan::bytes
  StoreReservation room;      // for a result that is kept
  // For generated operands, and where the kernel may transpose, the first and the second.
  EventPtr upload_begin, transposed;
  EventPtr kernel_begin, kernel_end;
  EventPtr check_end;  // where the product is checked

  JobInput& operator[](Role role) { return inputs[role]; }
};

struct AdmittedJob {
  JobSpec spec;
  Plan plan;
  KernelPick pick;
  CheckWish check_wish;
  CheckDecision check;
  size_t device_index = 0;
  JobWork work;
  StreamClaim claim;
  uint64_t payload_bytes = 0;  // that Append will bring
  std::shared_ptr<JobHoldings> holdings;
};

// The codes are those of Engine::Admit.
absl::StatusOr<AdmittedJob> AdmitJob(EngineCore& core, JobSpec spec);

// Deletes the resident operands that the job is to release; `holdings` still pins them.
// The one that the result is to replace keeps its name until then.
void ReleaseResidents(EngineCore& core, const JobSpec& spec, JobHoldings& holdings);

}  // namespace gemmd
