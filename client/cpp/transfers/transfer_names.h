// The names of the matrices that the library itself keeps on the server for one product.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/transfers/stripes.h"
#include "gemm/v1/gemm.pb.h"

namespace gemmd::client {

// Names, as an id may never come to be known: a call can end well on the server just as its
// caller gives up. All are in one folder of their own, whose matrices the server puts on one
// device. Thread-safe.
class TransferNames {
 public:
  // How the next matrix is kept, for `ttl` after its last use.
  ::gemm::v1::Keep Next(absl::Duration ttl);
  // All but the last `left` are gone.
  void Forget(size_t left);
  // All that are left.
  std::vector<::gemm::v1::MatrixRef> All();
  // Deletes what is left, in the background.
  void DeleteAll(Connection& connection);

 private:
  const std::string folder_ = NewTransferId();
  std::mutex mutex_;
  size_t made_ = 0;                 // under mutex_
  std::vector<std::string> names_;  // under mutex_
};

}  // namespace gemmd::client
