#include "server/engine/transfer/download_impl.h"

#include <utility>

#include "server/base/clock.h"

namespace gemmd {
namespace {

absl::StatusOr<ByteSpan> RangeOf(const DownloadSpec& spec, const Shape& shape) {
  const uint64_t all = shape.dense_bytes();
  if (!spec.range.has_value()) return ByteSpan{0, all};
  if (absl::Status status = CheckRange(*spec.range, all); !status.ok()) return status;
  return *spec.range;
}

}  // namespace

absl::StatusOr<std::shared_ptr<DownloadImpl>> DownloadImpl::Begin(
    EngineCore& core, DownloadSpec spec, std::shared_ptr<DownloadListener> listener) {
  if (spec.deadline <= SteadyNow()) {
    return absl::DeadlineExceededError("the deadline passed before the download began");
  }
  absl::StatusOr<AdmissionTicket> ticket = core.admission->AdmitDownload();
  if (!ticket.ok()) return ticket.status();
  absl::StatusOr<MatrixPin> pin = core.store->Pin(spec.key, spec.release);
  if (!pin.ok()) return pin.status();
  const absl::StatusOr<ByteSpan> range = RangeOf(spec, pin->memory()->shape);
  if (!range.ok()) return range.status();
  absl::Status health = pin->memory()->device->Health();
  if (!health.ok()) return health;
  if (spec.release) core.store->Forget(*pin);
  return std::make_shared<DownloadImpl>(core, spec, *range, *std::move(ticket), *std::move(pin),
                                        std::move(listener));
}

DownloadImpl::DownloadImpl(EngineCore& core, const DownloadSpec& spec, ByteSpan range,
                           AdmissionTicket ticket, MatrixPin pin,
                           std::shared_ptr<DownloadListener> listener)
    : core_(core),
      device_(*pin.memory()->device),
      range_(range),
      receiver_(spec.receiver),
      deadline_(spec.deadline),
      arrived_(SteadyNow()),
      record_(core.store->Record(pin)) {
  MutexLock lock(mutex_);
  ticket_ = std::move(ticket);
  pin_ = std::move(pin);
  listener_ = std::move(listener);
}

void DownloadImpl::Start() {
  // Lost or cancelled before this was registered: nobody else ends it.
  absl::Status ended = deadline_guard_.Begin(core_, weak_from_this(), deadline_);
  ended.Update(device_.Health());
  if (!ended.ok()) return End(ended);
  std::shared_ptr<ResultDownload> download;
  {
    MutexLock lock(mutex_);
    if (listener_ == nullptr) return;
    download = std::make_shared<ResultDownload>(
        pin_.memory(), range_.offset, range_.offset + range_.length, receiver_, *core_.answers,
        [self = shared_from_this()](ResultPiece piece) {
          std::shared_ptr<DownloadListener> listener;
          {
            MutexLock lock(self->mutex_);
            listener = self->listener_;
          }
          if (listener == nullptr || !self->gate_.Enter()) return;
          listener->OnBytes(std::move(piece));
          self->gate_.Leave();
        },
        [self = shared_from_this()](absl::StatusOr<DownloadTimes> times) {
          self->End(times.status());
        });
    download_ = download;
  }
  download->Start();
}

void DownloadImpl::Cancel(absl::Status why) { End(why); }

void DownloadImpl::End(const absl::Status& status) {
  AdmissionTicket ticket;
  MatrixPin pin;
  std::shared_ptr<ResultDownload> download;
  std::shared_ptr<DownloadListener> listener;
  {
    MutexLock lock(mutex_);
    if (listener_ == nullptr) return;
    listener = std::exchange(listener_, nullptr);
    download = std::exchange(download_, nullptr);
    pin = std::move(pin_);
    ticket = std::move(ticket_);
  }
  if (download != nullptr) download->Abort();
  download.reset();
  pin = MatrixPin();
  deadline_guard_.End(core_);
  ticket.Reset();
  if (core_.observer != nullptr) {
    core_.observer->OnTransferEnd(/*upload=*/false, status.ok() ? range_.length : 0,
                                  SteadyNow() - arrived_, status);
  }
  gate_.Close([listener = std::move(listener), status] { listener->OnDone(status); });
}

}  // namespace gemmd
