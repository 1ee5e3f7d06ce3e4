#include "tests/wire/small_load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "grpcpp/generic/generic_stub.h"
#include "tests/wire/raw_channel.h"

namespace gemmd::wire {
namespace {

using Clock = std::chrono::steady_clock;

// Whether the last bytes of a message are these.
bool EndsWith(const grpc::ByteBuffer& message, const std::string& end) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return false;
  size_t left = end.size();
  for (auto slice = slices.rbegin(); slice != slices.rend() && left > 0; ++slice) {
    const size_t bytes = std::min(left, slice->size());
    left -= bytes;
    if (std::memcmp(slice->end() - bytes, end.data() + left, bytes) != 0) return false;
  }
  return left == 0;
}

// The first tag of a message; 0: it is empty.
uint8_t FirstByte(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return 0;
  for (const grpc::Slice& slice : slices) {
    if (slice.size() > 0) return *slice.begin();
  }
  return 0;
}

absl::Status WrongElements() { return absl::DataLossError("an answer has other elements"); }

// Counts the answers, and says whether the load goes on. Thread-safe.
class Tally {
 public:
  void Add() { done_.fetch_add(1, std::memory_order_relaxed); }
  void Fail(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    status_.Update(status);
    stopping_ = true;
  }
  bool stopping() const { return stopping_; }

  // A tenth of the time passes first, so that all are under way.
  Rate Measure(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 10));
    const auto begin = Clock::now();
    const uint64_t before = done_;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const uint64_t after = done_;
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    stopping_ = true;
    return {static_cast<double>(after - before) / took, absl::OkStatus()};
  }

  void Begin() {
    const std::lock_guard lock(mutex_);
    ++live_;
  }
  void End() {
    const std::lock_guard lock(mutex_);
    if (--live_ == 0) ended_.notify_all();
  }
  absl::Status Await() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return live_ == 0; });
    return status_;
  }

 private:
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable ended_;
  int live_ = 0;
  absl::Status status_;
};

// One who calls again as soon as an answer has come.
class UnaryCaller {
 public:
  UnaryCaller(const std::shared_ptr<grpc::Channel>& channel, const SmallProduct& product,
              Tally& tally)
      : stub_(channel), product_(product), tally_(tally) {
    gemm::v1::MultiplyUnaryRequest request;
    *request.mutable_product() = product.product;
    request_ = Serialize(request);
    tally_.Begin();
  }

  void Call() {
    context_ = std::make_unique<grpc::ClientContext>();
    answer_.Clear();
    stub_.UnaryCall(context_.get(), "/gemm.v1.GemmService/MultiplyUnary", grpc::StubOptions(),
                    &request_, &answer_, [this](const grpc::Status& status) { Done(status); });
  }

 private:
  void Done(const grpc::Status& status) {
    if (!status.ok()) tally_.Fail(FromGrpc(status));
    if (status.ok() && !EndsWith(answer_, product_.expected)) tally_.Fail(WrongElements());
    tally_.Add();
    if (tally_.stopping()) return tally_.End();
    Call();
  }

  grpc::GenericStub stub_;
  const SmallProduct& product_;
  Tally& tally_;
  grpc::ByteBuffer request_, answer_;
  std::unique_ptr<grpc::ClientContext> context_;
};

// Jobs of one stream. A write and a read are under way at a time.
class JobStream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  JobStream(const std::shared_ptr<grpc::Channel>& channel, int in_flight,
            const SmallProduct& product, Tally& tally)
      : stub_(channel), product_(product), tally_(tally), unsent_(in_flight) {
    const std::string bytes = product.product.SerializeAsString();
    // MultiplyHeader{job_id, product}. The product is the same in all of them.
    std::string prefix(1, '\x12');
    AppendVarint(bytes.size(), &prefix);
    product_slice_ = grpc::Slice(prefix + bytes);
    tally_.Begin();
    stub_.PrepareBidiStreamingCall(&context_, "/gemm.v1.GemmService/Multiply", grpc::StubOptions(),
                                   this);
    StartCall();
    StartRead(&answer_);
    OnWriteDone(true);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;
    bool end = false;
    {
      const std::lock_guard lock(mutex_);
      end = tally_.stopping();  // nothing is written behind the end
      writing_ = end || unsent_ > 0;
      if (!writing_) return;
      --unsent_;
    }
    if (end) {
      StartWritesDone();
    } else {
      Send();
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    const uint8_t kind = FirstByte(answer_);
    if (kind == kChunk && !EndsWith(answer_, product_.expected)) tally_.Fail(WrongElements());
    if (kind == kError) tally_.Fail(absl::InternalError("a job of the stream failed"));
    if (kind != kChunk) JobDone();
    StartRead(&answer_);
  }

  void OnDone(const grpc::Status& status) override {
    if (!status.ok()) tally_.Fail(FromGrpc(status));
    tally_.End();
  }

 private:
  // First bytes of MultiplyResponse.
  static constexpr uint8_t kChunk = 0x0a, kError = 0x1a;

  static void AppendVarint(uint64_t value, std::string* out) {
    for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
    out->push_back(static_cast<char>(value));
  }

  void JobDone() {
    tally_.Add();
    {
      const std::lock_guard lock(mutex_);
      ++unsent_;
      if (writing_) return;
      writing_ = true;
    }
    OnWriteDone(true);
  }

  void Send() {
    std::string job_id(1, '\x08');
    AppendVarint(++last_job_, &job_id);
    std::string prefix(1, '\x0a');  // MultiplyRequest.header
    AppendVarint(job_id.size() + product_slice_.size(), &prefix);
    const grpc::Slice slices[] = {grpc::Slice(prefix + job_id), product_slice_};
    message_ = grpc::ByteBuffer(slices, 2);
    StartWrite(&message_);
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  const SmallProduct& product_;
  Tally& tally_;
  grpc::Slice product_slice_;
  grpc::ByteBuffer message_, answer_;
  uint64_t last_job_ = 0;  // of the one who writes
  std::mutex mutex_;
  int unsent_;
  bool writing_ = true;
};

}  // namespace

Rate UnaryRate(const std::vector<std::shared_ptr<grpc::Channel>>& channels, int callers,
               const SmallProduct& product, double seconds) {
  Tally tally;
  std::vector<std::unique_ptr<UnaryCaller>> all;
  for (int i = 0; i < callers; ++i) {
    const auto& channel = channels[static_cast<size_t>(i) % channels.size()];
    all.push_back(std::make_unique<UnaryCaller>(channel, product, tally));
  }
  for (const auto& caller : all) caller->Call();
  Rate rate = tally.Measure(seconds);
  rate.status = tally.Await();
  return rate;
}

Rate StreamRate(const std::shared_ptr<grpc::Channel>& channel, int in_flight,
                const SmallProduct& product, double seconds) {
  Tally tally;
  JobStream stream(channel, in_flight, product, tally);
  Rate rate = tally.Measure(seconds);
  rate.status = tally.Await();
  return rate;
}

}  // namespace gemmd::wire
