// A device without threads: its work ends when the test says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/device/device.h"
#include "server/engine/store/matrix.h"
#include "server/engine/store/matrix_memory.h"

namespace gemmd {

// Not thread-safe: for one thread at a time.
class FakeStream final : public Stream {
 public:
  // The status that the next calls return.
  absl::Status error;
  // Dense bytes that were asked for, in order.
  std::vector<ByteSpan> uploads, downloads;
  // The pieces that a product takes, of one launch each, and those that were enqueued.
  int64_t pieces = 1;
  std::vector<int64_t> launches;
  int records = 0;
  // The flag of the last launch, or generator.
  StopFlag stop;
  // How the ends are waited for.
  std::vector<Urgency> urgencies;

  // Byte `offset` of a matrix, as a download brings it.
  static std::byte DenseByte(size_t offset) { return static_cast<std::byte>(offset % 251); }

  size_t waiting() const { return callbacks_.size(); }
  // The oldest work that was not told of ends.
  void EndOne(absl::Status status = absl::OkStatus()) {
    auto done = std::move(callbacks_.front());
    callbacks_.pop_front();
    done(std::move(status));
  }
  // All work ends, also work that is enqueued meanwhile.
  void EndAll(const absl::Status& status = absl::OkStatus()) {
    while (waiting() > 0) EndOne(status);
  }

  absl::Status Upload(const std::byte*, const Pitched&, size_t offset, size_t bytes) override {
    uploads.push_back({offset, bytes});
    return error;
  }
  absl::Status Download(const Pitched&, size_t offset, size_t bytes, std::byte* staging) override {
    downloads.push_back({offset, bytes});
    for (size_t i = 0; i < bytes; ++i) staging[i] = DenseByte(offset + i);
    return error;
  }
  absl::Status Generate(const gemm::GeneratorSpec&, const gemm::GeneratorTarget&,
                        StopFlag to_stop) override {
    stop = std::move(to_stop);
    return error;
  }
  absl::Status Launch(const gemm::Kernel&, const gemm::Problem&, const gemm::Operands&,
                      gemm::Workspace, const gemm::LaunchParams&, const LaunchHow& how) override {
    launches.push_back(how.piece == nullptr ? 0 : how.piece->next);
    if (how.piece != nullptr)
      how.piece->next = launches.back() + 1 < pieces ? launches.back() + 1 : 0;
    stop = how.stop;
    return error;
  }
  absl::Status Check(const gemm::Check&) override { return error; }
  gemm::CheckOutcome check_outcome() const override { return {}; }
  absl::Status Finish(const gemm::Problem&, const gemm::Operands&, void*) override { return error; }
  absl::Status Record(Event&) override {
    ++records;
    return error;
  }
  absl::Status Wait(const Event&) override { return error; }
  void Notify(absl::AnyInvocable<void(absl::Status)> done, const Notice& how) override {
    callbacks_.push_back(std::move(done));
    urgencies.push_back(how.urgency);
  }

 private:
  std::deque<absl::AnyInvocable<void(absl::Status)>> callbacks_;
};

class FakeDevice final : public Device {
 public:
  struct Options {
    std::string name = "fake:0";
    int streams = 1;
    int quick_streams = 0;
    size_t memory_bytes = 64 * kKiB;
    size_t block_bytes = 64;
    size_t blocks = 32;  // of each direction
    gemm::DeviceCaps caps;
  };

  FakeDevice() : FakeDevice(Options()) {}
  explicit FakeDevice(const Options& options)
      : bytes_(options.memory_bytes), staging_(2 * options.block_bytes * options.blocks) {
    info_.name = options.name;
    info_.memory_bytes = options.memory_bytes;
    info_.caps = options.caps;
    memory_ = std::make_unique<Arena>(bytes_.data(), bytes_.size());
    upload_staging_ =
        std::make_unique<StagingPool>(staging_.data(), options.block_bytes, options.blocks);
    download_staging_ = std::make_unique<StagingPool>(staging_.data() + staging_.size() / 2,
                                                      options.block_bytes, options.blocks);
    upload_stream_ = std::make_unique<FakeStream>();
    download_stream_ = std::make_unique<FakeStream>();
    for (int i = 0; i < options.streams; ++i) {
      compute_streams_.push_back(std::make_unique<FakeStream>());
    }
    for (int i = 0; i < options.quick_streams; ++i) {
      quick_streams_.push_back(std::make_unique<FakeStream>());
    }
  }

  FakeStream& uploads() { return static_cast<FakeStream&>(*upload_stream_); }
  FakeStream& downloads() { return static_cast<FakeStream&>(*download_stream_); }
  FakeStream& compute(size_t i) { return static_cast<FakeStream&>(*compute_streams_[i]); }
  FakeStream& quick(size_t i) { return static_cast<FakeStream&>(*quick_streams_[i]); }

  absl::Status health;
  mutable int healthy_looks = -1;  // that are left before it is lost; below 0: any number
  bool busy = false;
  int asked_whether_busy = 0;  // calls of CompletionThreadIsBusy
  absl::Duration elapsed = absl::Milliseconds(5);
  int events = 0;    // not yet recycled
  int executed = 0;  // calls of Execute

  // A matrix in this device's memory.
  std::shared_ptr<MatrixMemory> MakeMatrix(const Shape& shape) {
    auto matrix = std::make_shared<MatrixMemory>();
    matrix->device = this;
    matrix->buffer = *memory().Allocate(shape.pitched_bytes(), Lifetime::kMatrix);
    matrix->shape = shape;
    return matrix;
  }

  EventPtr AcquireEvent() override {
    ++events;
    return EventPtr(new FakeEvent, EventRecycler{this});
  }
  absl::Duration Elapsed(const Event&, const Event&) override { return elapsed; }
  void Execute(absl::AnyInvocable<void()> function) override {
    ++executed;
    function();
  }
  absl::Status Health() const override {
    if (healthy_looks == 0) return absl::UnavailableError("lost");
    if (healthy_looks > 0) --healthy_looks;
    return health;
  }
  void Lose(absl::string_view why) override { health = absl::UnavailableError(why); }
  bool Idle() override { return true; }
  int64_t driver_allocations() const override { return 0; }
  bool CompletionThreadIsBusy() override {
    ++asked_whether_busy;
    return busy;
  }

 private:
  class FakeEvent final : public Event {};
  void RecycleEvent(Event* event) override {
    --events;
    delete event;
  }

  std::vector<std::byte> bytes_, staging_;
};

}  // namespace gemmd
