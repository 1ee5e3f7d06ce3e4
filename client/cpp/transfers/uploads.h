// Uploads matrices, in one RPC or in one for each stripe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "client/cpp/calls/task.h"
#include "client/cpp/calls/wire.h"
#include "client/cpp/transfers/stripes.h"
#include "gemm/v1/gemm.pb.h"
#include "gemmd/client/matrix.h"

namespace gemmd::client {

// The bytes of one operand, as the messages of a stream. Holds the lease on the
// memory until it is destroyed.
class ChunkSource {
 public:
  // Bytes [offset, offset + length) of `data`; length at least 1.
  ChunkSource(const std::byte* data, std::shared_ptr<const void> lease, uint64_t offset,
              uint64_t length, uint64_t chunk_bytes)
      : data_(data),
        lease_(std::move(lease)),
        next_(offset),
        end_(offset + length),
        chunk_bytes_(chunk_bytes) {}

  bool done() const { return next_ == end_; }
  struct Chunk {
    uint64_t offset;
    grpc::Slice payload;
  };
  // Must not be called when done.
  Chunk Next();

 private:
  const std::byte* data_;
  std::shared_ptr<const void> lease_;
  uint64_t next_;
  uint64_t end_;
  uint64_t chunk_bytes_;
};

// Uploads the view with this header, which has shape and keep. Calls `then` once the
// matrix is on the server's device. If the task fails, `then` is not called and
// nothing stays on the server. An upload that replaces a matrix may have done so, though.
// With more than one stripe it is a split upload, with all stripes at once.
void Upload(const std::shared_ptr<Task>& task, const ::gemm::v1::PutMatrixHeader& header,
            const MatrixView& view, const std::vector<Stripe>& stripes,
            std::function<void(const ::gemm::v1::MatrixInfo&)> then);

// Generates a matrix on the server with this header, which has a generator.
void UploadGenerated(const std::shared_ptr<Task>& task, const ::gemm::v1::PutMatrixHeader& header,
                     std::function<void(const ::gemm::v1::MatrixInfo&)> then);

}  // namespace gemmd::client
