// Every call becomes a closure on the stream's thread.
#include "server/engine/device/host/host_stream.h"

#include <sys/resource.h>

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemm/run.h"
#include "server/base/thread_name.h"
#include "server/engine/device/copy_plan.h"

namespace gemmd {
namespace {

void CopyLines(std::byte* to, size_t to_pitch, const std::byte* from, size_t from_pitch,
               const CopyRect& rect) {
  for (size_t line = 0; line < rect.height; ++line) {
    std::memcpy(to + line * to_pitch, from + line * from_pitch, rect.width);
  }
}

// Lowers the calling thread's priority, so that quick products, copies and answers get the cores
// first. If that fails, all threads are alike.
void YieldToOthers() {
  constexpr int kNicer = 10;
  const int own = getpriority(PRIO_PROCESS, 0);  // 0: of the thread, in Linux
  setpriority(PRIO_PROCESS, 0, own + kNicer);
}

}  // namespace

void HostMark::Reach() {
  MutexLock lock(mutex_);
  time_ = Clock::now();
  reached_ = true;
  changed_.NotifyAll();
}

void HostMark::AwaitReached() {
  MutexLock lock(mutex_);
  awaited_ = true;
  while (!reached_) changed_.Wait(mutex_);
}

bool HostMark::reached() const {
  MutexLock lock(mutex_);
  return reached_;
}

bool HostMark::awaited() const {
  MutexLock lock(mutex_);
  return awaited_;
}

HostMark::Clock::time_point HostMark::time() const {
  MutexLock lock(mutex_);
  return time_;
}

HostStream::HostStream(const std::string& thread_name, Use use, CompletionQueue& completions,
                       const DeviceHealth& health)
    : use_(use), completions_(completions), health_(health), thread_([this, thread_name] {
        SetThreadName(thread_name);
        if (use_ == Use::kCompute) YieldToOthers();
        Run();
      }) {}

HostStream::~HostStream() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyOne();
  thread_.join();
}

void HostStream::Enqueue(Work work) {
  EnqueueAlways([this, work = std::move(work)]() mutable {
    if (!health_.lost()) work();
  });
}

void HostStream::EnqueueAlways(Work work) {
  MutexLock lock(mutex_);
  work_.push_back(std::move(work));
}

void HostStream::Run() {
  while (true) {
    std::deque<Work> works;
    {
      MutexLock lock(mutex_);
      running_ = false;
      while (work_.empty() && !stopping_) changed_.Wait(mutex_);
      if (work_.empty()) return;
      works.swap(work_);
      running_ = true;
    }
    for (; !works.empty(); works.pop_front()) works.front()();
  }
}

absl::Status HostStream::Upload(const std::byte* staging, const Pitched& to, size_t offset,
                                size_t bytes) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckRange(to, offset, bytes); !status.ok()) return status;
  Enqueue([=] {
    for (const CopyRect& rect : PlanCopy(to, offset, bytes)) {
      CopyLines(to.data + rect.matrix_offset, rect.matrix_pitch, staging + rect.dense_offset,
                rect.dense_pitch, rect);
    }
  });
  return absl::OkStatus();
}

absl::Status HostStream::Download(const Pitched& from, size_t offset, size_t bytes,
                                  std::byte* staging) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckRange(from, offset, bytes); !status.ok()) return status;
  Enqueue([=] {
    for (const CopyRect& rect : PlanCopy(from, offset, bytes)) {
      CopyLines(staging + rect.dense_offset, rect.dense_pitch, from.data + rect.matrix_offset,
                rect.matrix_pitch, rect);
    }
  });
  return absl::OkStatus();
}

absl::Status HostStream::CheckComputes() const {
  if (use_ != Use::kCopies) return absl::OkStatus();
  return absl::InternalError("a shared stream only copies: its errors would have no owner");
}

absl::Status HostStream::Generate(const gemm::GeneratorSpec& spec,
                                  const gemm::GeneratorTarget& target, StopFlag stop) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckComputes(); !status.ok()) return status;
  if (absl::Status status = gemm::CheckGenerated(target.type); !status.ok()) return status;
  Enqueue([this, spec, target, stop = std::move(stop)] {
    Remember(gemm::GenerateHost(spec, target, stop.get()));
  });
  return absl::OkStatus();
}

absl::Status HostStream::Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                                const gemm::Operands& operands, gemm::Workspace workspace,
                                const gemm::LaunchParams& params, const LaunchHow& how) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckComputes(); !status.ok()) return status;
  if (kernel.target != gemm::Target::kHost) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel.name, " does not run on the host"));
  }
  std::vector<int64_t> extents(problem.extents.begin(), problem.extents.end());
  Enqueue([this, &kernel, problem, extents = std::move(extents), operands, workspace, params,
           stop = how.stop] {
    gemm::Problem own = problem;
    own.extents = extents;
    Remember(gemm::RunProduct(kernel, {.problem = own,
                                       .operands = operands,
                                       .workspace = workspace,
                                       .params = params,
                                       .stop = stop.get()}));
  });
  return absl::OkStatus();
}

absl::Status HostStream::Check(const gemm::Check& check) {
  if (absl::Status status = CheckComputes(); !status.ok()) return status;
  Enqueue([this, check] { outcome_ = gemm::CheckHost(check); });
  return absl::OkStatus();
}

absl::Status HostStream::Finish(const gemm::Problem& problem, const gemm::Operands& operands,
                                void* accumulators) {
  if (absl::Status status = CheckComputes(); !status.ok()) return status;
  Enqueue([this, problem, operands, accumulators] {
    Remember(gemm::FinishHost(problem, operands, accumulators));
  });
  return absl::OkStatus();
}

absl::Status HostStream::Record(Event& event) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  auto mark = std::make_shared<HostMark>(this);
  static_cast<HostEvent&>(event).set_mark(mark);
  // Also of a lost device: a stream may wait for it.
  EnqueueAlways([mark = std::move(mark)] { mark->Reach(); });
  return absl::OkStatus();
}

absl::Status HostStream::Wait(const Event& event) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  // The mark was enqueued before this call, on a stream that waits only for
  // marks enqueued earlier still: no cycle.
  if (auto mark = static_cast<const HostEvent&>(event).mark(); mark != nullptr) {
    if (HostStream* const recorded_on = mark->stream()) recorded_on->changed_.NotifyOne();
    Enqueue([mark = std::move(mark)] { mark->AwaitReached(); });
    changed_.NotifyOne();
  }
  return absl::OkStatus();
}

void HostStream::Notify(CompletionCallback done, const Notice&) {
  {
    MutexLock lock(mutex_);
    notices_.push_back(std::move(done));
    work_.push_back([this] { EndNotice(); });
  }
  changed_.NotifyOne();
  if (health_.lost()) TellOfLoss();
}

void HostStream::EndNotice() {
  absl::Status status = std::exchange(first_error_, absl::OkStatus());
  MutexLock lock(mutex_);
  // With the lock: a notice that came after the loss is not to be told of success.
  if (health_.lost()) status = health_.status();
  if (notices_.empty()) return;  // told of the loss
  completions_.Post(std::move(notices_.front()), std::move(status));
  notices_.pop_front();
}

void HostStream::TellOfLoss() {
  {
    MutexLock lock(mutex_);
    for (CompletionCallback& done : notices_) completions_.Post(std::move(done), health_.status());
    notices_.clear();
  }
  changed_.NotifyOne();  // what was enqueued goes, too
}

bool HostStream::Idle() {
  MutexLock lock(mutex_);
  return work_.empty() && !running_;
}

}  // namespace gemmd
