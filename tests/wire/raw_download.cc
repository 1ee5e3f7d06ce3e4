#include "tests/wire/raw_download.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/wire/raw_channel.h"

namespace gemmd::wire {
namespace {

grpc::ByteBuffer RequestOf(const std::string& matrix_id, uint64_t begin, uint64_t bytes) {
  gemm::v1::GetMatrixRequest request;
  request.mutable_matrix()->set_id(matrix_id);
  request.mutable_range()->set_offset(begin);
  request.mutable_range()->set_length(bytes);
  const grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// The bytes before the data of a GetMatrixResponse: tags and varints of `offset` and of
// the data's length. They may be spread over several slices.
struct DataHeader {
  size_t header_bytes = 0;
  uint64_t data_bytes = 0;
};

bool ReadVarint(absl::Span<const uint8_t> bytes, size_t& at, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const uint8_t byte = bytes[at++];
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ReadHeader(const std::vector<grpc::Slice>& slices, DataHeader& header) {
  constexpr uint64_t kOffsetTag = 0x10;  // GetMatrixResponse.offset
  constexpr uint64_t kDataTag = 0x7a;    // GetMatrixResponse.data
  std::array<uint8_t, 22> begin;         // the longest: two tags, two varints
  size_t size = 0;
  for (const grpc::Slice& slice : slices) {
    const size_t bytes = std::min(slice.size(), begin.size() - size);
    std::memcpy(begin.data() + size, slice.begin(), bytes);
    size += bytes;
  }
  const auto bytes = absl::MakeConstSpan(begin.data(), size);
  uint64_t tag = 0;
  while (ReadVarint(bytes, header.header_bytes, tag) &&
         ReadVarint(bytes, header.header_bytes, header.data_bytes)) {
    if (tag == kDataTag) return true;
    if (tag != kOffsetTag) return false;
  }
  return false;
}

// Copies the data of a GetMatrixResponse from gRPC's memory, and moves `left` on by as
// much. False if the message has no data, or more than there is room for.
bool TakeData(const grpc::ByteBuffer& message, absl::Span<std::byte>& left) {
  std::vector<grpc::Slice> slices;
  DataHeader header;
  if (!message.Dump(&slices).ok() || !ReadHeader(slices, header)) return false;
  if (header.data_bytes > left.size()) return false;
  if (message.Length() != header.header_bytes + header.data_bytes) return false;
  size_t skipped = header.header_bytes;
  for (const grpc::Slice& slice : slices) {
    const size_t skip = std::min(skipped, slice.size());
    skipped -= skip;
    std::memcpy(left.data(), slice.begin() + skip, slice.size() - skip);
    left.remove_prefix(slice.size() - skip);
  }
  return true;
}

// One GetMatrix call. The next message is asked for before the last one is copied.
absl::Status DownloadRange(const std::shared_ptr<grpc::Channel>& channel,
                           const grpc::ByteBuffer& request, absl::Span<std::byte> into) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto call = stub.PrepareCall(&context, "/gemm.v1.GemmService/GetMatrix", &queue);
  const auto step = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  bool ok = step();
  if (ok) {
    call->WriteLast(request, grpc::WriteOptions(), nullptr);
    ok = step();
  }
  grpc::ByteBuffer first;  // what the matrix is
  call->Read(&first, nullptr);
  ok = step() && ok;
  bool understood = true;
  grpc::ByteBuffer messages[2];
  int filling = 0;
  if (ok) call->Read(&messages[filling], nullptr);
  while (ok && step()) {
    grpc::ByteBuffer& received = messages[filling];
    filling = 1 - filling;
    call->Read(&messages[filling], nullptr);
    understood = understood && TakeData(received, into);
    received.Clear();
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  step();
  if (!status.ok()) return FromGrpc(status);
  if (!understood) return absl::DataLossError("GetMatrix: a message is not the next bytes");
  return into.empty() ? absl::OkStatus() : absl::DataLossError("GetMatrix: bytes are missing");
}

}  // namespace

absl::Status Download(const std::vector<std::shared_ptr<grpc::Channel>>& channels,
                      const std::string& matrix_id, absl::Span<std::byte> into) {
  std::vector<absl::Status> outcomes(channels.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < channels.size(); ++i) {
    threads.emplace_back([&, i] {
      const uint64_t begin = into.size() * i / channels.size();
      const uint64_t end = into.size() * (i + 1) / channels.size();
      outcomes[i] = DownloadRange(channels[i], RequestOf(matrix_id, begin, end - begin),
                                  into.subspan(begin, end - begin));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (absl::Status& outcome : outcomes) {
    if (!outcome.ok()) return std::move(outcome);
  }
  return absl::OkStatus();
}

}  // namespace gemmd::wire
