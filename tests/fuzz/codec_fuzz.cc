// The wire scanner against protobuf itself, over any split into slices.
//
// Input: one byte that cuts the message into slices, then the message.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "gemm/v1/gemm.pb.h"
#include "server/rpc/codec/codec.h"

namespace {

using gemm::v1::MultiplyRequest;
using gemm::v1::PutMatrixRequest;

void Require(bool condition) {
  if (!condition) std::abort();
}

// Slices of 1 to 16 bytes (or all in one for 0), so that fields straddle them.
grpc::ByteBuffer Slice(const std::string& message, uint8_t cut) {
  const size_t size = cut == 0 ? message.size() + 1 : 1 + cut % 16;
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < message.size(); at += size) {
    slices.emplace_back(message.substr(at, size));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

void CompareMultiply(const grpc::ByteBuffer& bytes, const std::string& message) {
  const absl::StatusOr<gemmd::MultiplyMessage> decoded = gemmd::DecodeMultiply(bytes);
  MultiplyRequest expected;
  if (!expected.ParseFromString(message) ||
      expected.message_case() == MultiplyRequest::MESSAGE_NOT_SET) {
    return Require(!decoded.ok());
  }
  Require(decoded.ok());
  if (const auto* chunk = std::get_if<gemmd::OperandBytes>(&*decoded)) {
    Require(expected.has_chunk());
    Require(chunk->job_id == expected.chunk().job_id());
    Require(chunk->operand == static_cast<int>(expected.chunk().operand()));
    Require(chunk->offset == expected.chunk().offset());
    Require(std::string(chunk->data) == expected.chunk().data());
  } else if (const auto* header = std::get_if<gemm::v1::MultiplyHeader>(&*decoded)) {
    Require(expected.has_header());
    Require(header->SerializeAsString() == expected.header().SerializeAsString());
  } else {
    Require(expected.has_cancel());
  }
}

void ComparePutMatrix(const grpc::ByteBuffer& bytes, const std::string& message) {
  const absl::StatusOr<gemmd::PutMatrixMessage> decoded = gemmd::DecodePutMatrix(bytes);
  PutMatrixRequest expected;
  if (!expected.ParseFromString(message) ||
      expected.message_case() == PutMatrixRequest::MESSAGE_NOT_SET) {
    return Require(!decoded.ok());
  }
  Require(decoded.ok());
  if (const auto* chunk = std::get_if<gemmd::MatrixBytes>(&*decoded)) {
    Require(expected.has_chunk());
    Require(chunk->offset == expected.chunk().offset());
    Require(std::string(chunk->data) == expected.chunk().data());
  } else {
    Require(expected.has_header());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string message(reinterpret_cast<const char*>(data) + 1, size - 1);
  const grpc::ByteBuffer bytes = Slice(message, data[0]);
  CompareMultiply(bytes, message);
  ComparePutMatrix(bytes, message);
  return 0;
}
