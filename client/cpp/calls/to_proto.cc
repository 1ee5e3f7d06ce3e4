#include "client/cpp/calls/to_proto.h"

#include <cstdint>
#include <variant>

namespace gemmd::client {

namespace v1 = ::gemm::v1;

v1::Generator ToProto(const Generated& generated) {
  v1::Generator proto;
  proto.set_seed(generated.seed);
  if (const auto* uniform = std::get_if<Uniform>(&generated.distribution)) {
    proto.mutable_uniform()->set_low(uniform->low);
    proto.mutable_uniform()->set_high(uniform->high);
  } else if (const auto* normal = std::get_if<Normal>(&generated.distribution)) {
    proto.mutable_normal()->set_mean(normal->mean);
    proto.mutable_normal()->set_stddev(normal->stddev);
  }
  return proto;
}

v1::Keep ToProto(const Keep& keep) {
  v1::Keep proto;
  proto.set_name(keep.name);
  if (keep.ttl != absl::InfiniteDuration()) *proto.mutable_ttl() = ToProto(keep.ttl);
  proto.set_shared(keep.shared);
  proto.set_replace(keep.replace);
  if (keep.if_version) proto.set_if_version(*keep.if_version);
  return proto;
}

v1::MatrixRef ToProto(const Resident& resident) {
  v1::MatrixRef proto;
  if (!resident.id.empty()) proto.set_id(resident.id);
  if (!resident.name.empty()) proto.set_name(resident.name);
  proto.set_release(resident.release);
  proto.set_shared(resident.shared);
  if (resident.version) proto.set_version(*resident.version);
  if (resident.owner) proto.set_owner(*resident.owner);
  return proto;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  absl::Duration rest;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return proto;
}

}  // namespace gemmd::client
