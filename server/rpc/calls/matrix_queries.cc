#include <functional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/rpc/calls/queries.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/context/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

namespace {

constexpr int kMaxPageSize = 1000;

// A page token is the id that the last page ended with, and what only this server
// can make of it and of what was asked.
std::string TokenOf(absl::string_view id, const MatrixQuery& query) {
  static const std::string* const kSecret = [] {
    std::random_device random;
    return new std::string(absl::StrCat(random(), "/", random()));
  }();
  const size_t mark =
      std::hash<std::string>()(absl::StrCat(*kSecret, "/", id, "/", query.shared, query.every_owner,
                                            "/", query.caller, "/", query.name_prefix));
  return absl::StrCat(id, ".", absl::Hex(mark, absl::kZeroPad16));
}

// The id of a token. INVALID_ARGUMENT for one that TokenOf did not make.
absl::StatusOr<std::string> ParseToken(absl::string_view token, const MatrixQuery& query) {
  const absl::string_view id = token.substr(0, token.find('.'));
  if (token.empty() || token == TokenOf(id, query)) return std::string(id);
  return FieldError("page_token", absl::StrCat(gemm::Quoted(token),
                                               "; it must be the next_page_token of an answer of "
                                               "this server to the same request"));
}

}  // namespace

absl::Status ListMatrices(ServiceContext& context, const Caller& caller,
                          const v1::ListMatricesRequest& request,
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
  if (request.every_owner() && !caller.roles.Has(CallerRole::kAdmin)) {
    return absl::PermissionDeniedError(absl::StrCat("every_owner: needs the role ",
                                                    Name(CallerRole::kAdmin), ", which the caller ",
                                                    gemm::Quoted(caller.name), " does not have"));
  }
  MatrixQuery query = {.caller = caller.name,
                       .shared = request.shared(),
                       .every_owner = request.every_owner(),
                       .name_prefix = request.name_prefix(),
                       .page_size = page_size};
  absl::StatusOr<std::string> after = ParseToken(request.page_token(), query);
  if (!after.ok()) return after.status();
  query.page_token = *std::move(after);
  absl::StatusOr<MatrixPage> page = context.engine.ListMatrices(query);
  if (!page.ok()) return page.status();
  for (const MatrixRecord& matrix : page->matrices) Fill(matrix, *response.add_matrices());
  if (!page->next_token.empty()) {
    response.set_next_page_token(TokenOf(page->next_token, query));
  }
  return absl::OkStatus();
}

absl::Status DeleteMatrix(ServiceContext& context, const Caller& caller,
                          const v1::DeleteMatrixRequest& request,
                          v1::DeleteMatrixResponse& response) {
  absl::StatusOr<MatrixKey> key = ParseKey(request.matrix(), caller, "matrix");
  if (!key.ok()) return key.status();
  key->any_owner = caller.roles.Has(CallerRole::kAdmin);
  const absl::StatusOr<MatrixRecord> matrix = context.engine.DeleteMatrix(*key);
  if (!matrix.ok()) return matrix.status();
  Fill(*matrix, *response.mutable_matrix());
  return absl::OkStatus();
}

}  // namespace gemmd
