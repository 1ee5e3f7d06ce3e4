#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/base/clock.h"
#include "server/base/serving_clock.h"
#include "server/engine/transfer/upload_impl.h"

namespace gemmd {
namespace {

bool SameKeep(const KeepSpec& x, const KeepSpec& y) {
  return x.name == y.name && x.ttl == y.ttl && x.shared == y.shared && x.replace == y.replace &&
         x.if_version == y.if_version;
}

// The device that the caller named. Else the healthy ones, those with the most room first. Matrices
// of one folder of names are likely to be used together. So the device that holds others of the
// folder comes first, while it has at least half the room of the emptiest.
absl::StatusOr<std::vector<size_t>> ChooseDevices(const EngineCore& core, const UploadSpec& spec) {
  if (!spec.device.empty()) {
    const absl::StatusOr<size_t> named = IndexOfDevice(core.devices, spec.device);
    if (!named.ok()) return named.status();
    if (absl::Status health = core.devices[*named]->Health(); !health.ok()) return health;
    return std::vector<size_t>{*named};
  }
  std::vector<std::pair<uint64_t, size_t>> devices;  // room, index
  for (const size_t i : core.DevicesByLoad()) {
    Arena& memory = core.devices[i]->memory();
    devices.emplace_back(memory.capacity() - memory.used() + core.store->idle_replica_bytes(i), i);
  }
  if (devices.empty()) return absl::UnavailableError("no device of this server is healthy");
  std::stable_sort(devices.begin(), devices.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  if (devices.size() == 1) return std::vector<size_t>{devices.front().second};
  const std::optional<size_t> together = core.store->DeviceOfFolder(spec.keep);
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const auto& device) { return device.second == together; });
  if (found != devices.end() && found->first >= devices.front().first / 2) {
    std::rotate(devices.begin(), found, found + 1);
  }
  std::vector<size_t> indices;
  for (const auto& device : devices) indices.push_back(device.second);
  return indices;
}

absl::StatusOr<std::shared_ptr<UploadGroup>> MakeGroupOn(EngineCore& core, const UploadSpec& spec,
                                                         const UploadKey& key, size_t device) {
  absl::StatusOr<StoreReservation> room =
      core.store->Reserve(device, spec.shape.pitched_bytes(), spec.keep, spec.quota);
  if (!room.ok()) return room.status();
  absl::StatusOr<std::shared_ptr<MatrixMemory>> memory =
      core.AllocateMatrix(device, spec.shape, Lifetime::kMatrix);
  if (!memory.ok()) return memory.status();
  return std::make_shared<UploadGroup>(core, spec, key, *std::move(memory), *std::move(room));
}

absl::StatusOr<std::shared_ptr<UploadGroup>> MakeGroup(EngineCore& core, const UploadSpec& spec,
                                                       const UploadKey& key) {
  const absl::StatusOr<std::vector<size_t>> devices = ChooseDevices(core, spec);
  if (!devices.ok()) return devices.status();
  absl::Status first;
  for (const size_t device : *devices) {
    absl::StatusOr<std::shared_ptr<UploadGroup>> group = MakeGroupOn(core, spec, key, device);
    if (!absl::IsResourceExhausted(group.status())) return group;
    first.Update(group.status());
  }
  return first;
}

}  // namespace

UploadGroup::UploadGroup(EngineCore& core, const UploadSpec& spec, UploadKey key,
                         std::shared_ptr<MatrixMemory> memory, StoreReservation room)
    : core_(core), device_index_(core.IndexOf(*memory->device)), spec_(spec), key_(std::move(key)) {
  pending_.id = room.id();
  pending_.name = spec.keep.name;
  pending_.owner = spec.keep.owner;
  pending_.shared = spec.keep.shared;
  pending_.shape = spec.shape;
  pending_.device = memory->device->info().name;
  pending_.created = absl::Now();
  MutexLock lock(mutex_);
  memory_ = std::move(memory);
  room_ = std::move(room);
  last_activity_ = ServingClock::Now();
}

absl::Status UploadGroup::Join(const UploadSpec& spec, ByteSpan range) {
  if (!(spec.shape == spec_.shape) || !SameKeep(spec.keep, spec_.keep) ||
      spec.device != spec_.device) {
    return absl::InvalidArgumentError(absl::StrCat(
        "upload_id ", gemm::Quoted(spec.upload_id), ": the call's shape (", ToString(spec.shape),
        "), keep or device differ from those of the upload's first call (", ToString(spec_.shape),
        ")"));
  }
  const uint64_t end = range.offset + range.length;
  MutexLock lock(mutex_);
  if (ended_) return absl::AbortedError("another call of this upload has failed");
  const auto after = claimed_.lower_bound(range.offset);
  const bool hits_after = after != claimed_.end() && after->first < end;
  const bool hits_before = after != claimed_.begin() && std::prev(after)->second > range.offset;
  if (hits_after || hits_before) {
    const auto& other = hits_after ? *after : *std::prev(after);
    return absl::InvalidArgumentError(absl::StrCat("range is bytes ", range.offset, " to ", end,
                                                   ", which overlaps another call's, bytes ",
                                                   other.first, " to ", other.second));
  }
  if (++calls_ > kMostUploadCalls) {
    return absl::InvalidArgumentError(
        absl::StrCat("upload_id ", gemm::Quoted(spec.upload_id), " has had ", kMostUploadCalls,
                     " calls, which is the most: send longer ranges"));
  }
  claimed_.emplace(range.offset, end);
  last_activity_ = ServingClock::Now();
  return absl::OkStatus();
}

absl::Status UploadGroup::AddMember(std::weak_ptr<UploadImpl> member) {
  MutexLock lock(mutex_);
  if (ended_) return absl::AbortedError("another call of this upload has failed");
  members_.push_back(std::move(member));
  return absl::OkStatus();
}

absl::StatusOr<UploadResult> UploadGroup::Land(ByteSpan range) {
  UploadResult result;
  result.bytes = range.length;
  result.matrix = pending_;
  StoreReservation room;
  std::shared_ptr<MatrixMemory> memory;
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::AbortedError("another call of this upload has failed");
    landed_ += range.length;
    result.complete = landed_ == spec_.shape.dense_bytes();
    if (!result.complete) {
      // As if the matrix were complete now: its time begins with that.
      if (spec_.keep.ttl.has_value()) result.matrix.expires = WallNow() + *spec_.keep.ttl;
      return result;
    }
    ended_ = true;
    room = std::move(room_);
    memory = std::move(memory_);
  }
  core_.uploads->Remove(key_, this);
  absl::StatusOr<MatrixRecord> added = core_.store->Add(std::move(room), std::move(memory));
  if (!added.ok()) return added.status();
  result.matrix = *std::move(added);
  return result;
}

void UploadGroup::Fail(const absl::Status& why) {
  Expire(
      absl::AbortedError(absl::StrCat("another call of this upload has failed: ", why.message())));
}

void UploadGroup::Expire(const absl::Status& why) {
  StoreReservation room;
  std::shared_ptr<MatrixMemory> memory;
  std::vector<std::weak_ptr<UploadImpl>> members;
  {
    MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    room = std::move(room_);
    memory = std::move(memory_);
    members.swap(members_);
  }
  core_.uploads->Remove(key_, this);
  for (const std::weak_ptr<UploadImpl>& weak : members) {
    if (const std::shared_ptr<UploadImpl> member = weak.lock()) member->Cancel(why);
  }
}

void UploadGroup::Received(uint64_t bytes) {
  MutexLock lock(mutex_);
  unconsumed_bytes_ += bytes;
}

void UploadGroup::Consumed(uint64_t bytes) {
  MutexLock lock(mutex_);
  unconsumed_bytes_ -= bytes;
  last_activity_ = ServingClock::Now();
}

absl::Time UploadGroup::idle_since() {
  std::vector<std::shared_ptr<UploadImpl>> members;  // outlive the lock
  MutexLock lock(mutex_);
  for (const std::weak_ptr<UploadImpl>& weak : members_) members.push_back(weak.lock());
  const bool held_back = std::any_of(members.begin(), members.end(), [](const auto& member) {
    return member != nullptr && member->held_back();
  });
  return unconsumed_bytes_ > 0 || held_back ? ServingClock::Now() : last_activity_;
}

std::shared_ptr<MatrixMemory> UploadGroup::memory() {
  MutexLock lock(mutex_);
  return memory_;
}

absl::StatusOr<std::shared_ptr<UploadGroup>> UploadGroups::Join(const UploadSpec& spec,
                                                                ByteSpan range) {
  std::shared_ptr<UploadGroup> group;
  {
    MutexLock lock(mutex_);
    const UploadKey key = {.owner = spec.keep.owner,
                           .upload_id = spec.upload_id,
                           .whole = spec.upload_id.empty() ? ++last_whole_ : 0};
    if (const auto known = by_key_.find(key); known != by_key_.end()) {
      group = known->second.group;
    } else {
      absl::StatusOr<std::shared_ptr<UploadGroup>> made = MakeGroup(core_, spec, key);
      if (!made.ok()) return made.status();
      group = *std::move(made);
      // A generated matrix awaits no bytes.
      if (!spec.generator.has_value()) Enter(key, group);
    }
  }
  absl::Status status = group->Join(spec, range);
  if (!status.ok()) return status;
  return group;
}

void UploadGroups::Enter(const UploadKey& key, std::shared_ptr<UploadGroup> group) {
  Entry& entry = by_key_[key];
  entry.group = std::move(group);
  CheckIdleAt(key, entry, SteadyNow() + core_.options.upload_timeout);
}

void UploadGroups::Remove(const UploadKey& key, const UploadGroup* group) {
  std::shared_ptr<UploadGroup> removed;  // outlives the lock
  MutexLock lock(mutex_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end() || it->second.group.get() != group) return;
  core_.timer->Cancel(it->second.idle_check);
  removed = std::move(it->second.group);
  by_key_.erase(it);
}

void UploadGroups::CheckIdleAt(const UploadKey& key, Entry& entry, absl::Time at) {
  entry.idle_check = core_.timer->Schedule(at, [this, key] { OnIdleCheck(key); });
}

void UploadGroups::OnIdleCheck(const UploadKey& key) {
  std::shared_ptr<UploadGroup> group;
  {
    MutexLock lock(mutex_);
    const auto it = by_key_.find(key);
    if (it == by_key_.end()) return;
    group = it->second.group;
    const absl::Duration idle = ServingClock::Now() - group->idle_since();
    const absl::Duration left = core_.options.upload_timeout - idle;
    if (left > absl::ZeroDuration()) return CheckIdleAt(key, it->second, SteadyNow() + left);
  }
  const std::string which = key.upload_id.empty()
                                ? "the upload"
                                : absl::StrCat("upload_id ", gemm::Quoted(key.upload_id));
  group->Expire(absl::DeadlineExceededError(
      absl::StrCat(which, " saw no byte for ", absl::FormatDuration(core_.options.upload_timeout),
                   " (--upload-timeout)")));
}

}  // namespace gemmd
