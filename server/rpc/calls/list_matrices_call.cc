#include "server/rpc/calls/list_matrices_call.h"

#include <functional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

constexpr int kMaxPageSize = 1000;

// A page token is the id that the last page ended with, and what only this server
// can make of it and of the prefix.
std::string TokenOf(absl::string_view id, absl::string_view name_prefix) {
  static const std::string* const kSecret = [] {
    std::random_device random;
    return new std::string(absl::StrCat(random(), "/", random()));
  }();
  const size_t mark = std::hash<std::string>()(absl::StrCat(*kSecret, "/", id, "/", name_prefix));
  return absl::StrCat(id, ".", absl::Hex(mark, absl::kZeroPad16));
}

// The id of a token. INVALID_ARGUMENT for one that TokenOf did not make.
absl::StatusOr<std::string> ParseToken(absl::string_view token, absl::string_view name_prefix) {
  const absl::string_view id = token.substr(0, token.find('.'));
  if (token.empty() || token == TokenOf(id, name_prefix)) return std::string(id);
  return FieldError("page_token", absl::StrCat(gemm::Quoted(token),
                                               "; it must be the next_page_token of an answer of "
                                               "this server to the same name_prefix"));
}

}  // namespace

absl::Status ListMatrices(ServiceContext& context, const v1::ListMatricesRequest& request,
                          v1::ListMatricesResponse& response) {
  const int page_size = request.page_size() == 0 ? kMaxPageSize : request.page_size();
  if (page_size < 1 || page_size > kMaxPageSize) {
    return FieldError("page_size",
                      absl::StrCat(page_size, "; it must be 1 to ", kMaxPageSize, ", or 0"));
  }
  if (!request.name_prefix().empty()) {
    const absl::Status prefix = CheckNameBytes(request.name_prefix(), "name_prefix");
    if (!prefix.ok()) return prefix;
  }
  const absl::StatusOr<std::string> after = ParseToken(request.page_token(), request.name_prefix());
  if (!after.ok()) return after.status();
  absl::StatusOr<MatrixPage> page =
      context.engine.ListMatrices(request.name_prefix(), page_size, *after);
  if (!page.ok()) return page.status();
  for (const MatrixRecord& matrix : page->matrices) Fill(matrix, *response.add_matrices());
  if (!page->next_token.empty()) {
    response.set_next_page_token(TokenOf(page->next_token, request.name_prefix()));
  }
  return absl::OkStatus();
}

}  // namespace gemmd
