// Downloads matrices, in one RPC or in one for each stripe; describes and deletes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/calls/task.h"
#include "client/cpp/calls/wire.h"
#include "client/cpp/transfers/stripes.h"
#include "gemm/v1/gemm.pb.h"
#include "gemmd/client/matrix.h"

namespace gemmd::client {

// Receives the bytes of a matrix, in order, into memory that it does not own.
class RangeSink {
 public:
  // Bytes [offset, offset + length) of the matrix at `data`.
  RangeSink(std::byte* data, uint64_t offset, uint64_t length)
      : data_(data), next_(offset), end_(offset + length) {}

  // INTERNAL where the piece is not the next one or goes past the end.
  absl::Status Take(const grpc::ByteBuffer& message, const Piece& piece);
  // INTERNAL where bytes are missing.
  absl::Status CheckComplete() const;

 private:
  std::byte* data_;
  uint64_t next_;
  uint64_t end_;
};

struct DownloadSpec {
  ::gemm::v1::MatrixRef matrix;  // `release` is `remove`'s matter
  Shape shape;                   // the server's must be the same
  std::byte* to = nullptr;
  std::vector<Stripe> stripes;
  // Delete the matrix once every stripe has its download.
  bool remove = false;
  // Set once the server has found the matrix; may be null.
  std::shared_ptr<std::atomic<bool>> found;
};

// Calls `then` once every byte has been received; not where the task fails. All
// bytes are of one matrix: for a name, the first stripe returns the id, and the
// others use that.
void Download(const std::shared_ptr<Task>& task, const DownloadSpec& spec,
              std::function<void(const ::gemm::v1::MatrixInfo&)> then);

// Gives the memory for the elements of a matrix, once its shape is known.
using Place = std::function<absl::StatusOr<std::byte*>(const ::gemm::v1::MatrixInfo&)>;

// The same in one RPC, whatever the shape: so a name means one matrix, also where others
// replace it all the time. `matrix.release` counts. An error of `place` fails the task.
void DownloadWhole(const std::shared_ptr<Task>& task, const ::gemm::v1::MatrixRef& matrix,
                   Place place, std::function<void(const ::gemm::v1::MatrixInfo&)> then);

// Deletes the matrix, if it is still there: gone by itself, or by another's hand, is gone.
void Delete(const std::shared_ptr<Task>& task, const ::gemm::v1::MatrixRef& matrix);

// The MatrixInfo of a resident matrix, from the first message of a GetMatrix call
// for its first byte.
void Stat(const std::shared_ptr<Task>& task, const ::gemm::v1::MatrixRef& matrix,
          std::function<void(const ::gemm::v1::MatrixInfo&)> then);

}  // namespace gemmd::client
