#include "client/cpp/transfers/transfer_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls/to_proto.h"

namespace gemmd::client {

::gemm::v1::Keep TransferNames::Next(absl::Duration ttl) {
  ::gemm::v1::Keep keep;
  *keep.mutable_ttl() = ToProto(ttl);
  std::lock_guard<std::mutex> lock(mutex_);
  keep.set_name(absl::StrCat("transfer/", folder_, "/", made_++));
  names_.push_back(keep.name());
  return keep;
}

void TransferNames::Forget(size_t left) {
  std::lock_guard<std::mutex> lock(mutex_);
  names_.erase(names_.begin(),
               names_.end() - static_cast<std::ptrdiff_t>(std::min(left, names_.size())));
}

std::vector<::gemm::v1::MatrixRef> TransferNames::All() {
  std::vector<::gemm::v1::MatrixRef> all;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& name : names_) all.emplace_back().set_name(name);
  return all;
}

void TransferNames::DeleteAll(Connection& connection) {
  for (::gemm::v1::MatrixRef& matrix : All()) connection.DeleteInBackground(std::move(matrix));
}

}  // namespace gemmd::client
