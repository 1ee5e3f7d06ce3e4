#include "kernels/bench/backend/backend.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace gemm::bench {
namespace {

// In the order in which "auto" tries them.
constexpr BackendKind kKinds[] = {
#if GEMM_HAS_CUDA
    {.name = "cuda", .numbered = true, .create = CreateCudaBackend},
#endif
    {.name = "host",
     .create = [](int) -> absl::StatusOr<std::unique_ptr<Backend>> { return CreateHostBackend(); }},
};

absl::StatusOr<std::unique_ptr<Backend>> CreateFirst() {
  absl::StatusOr<std::unique_ptr<Backend>> created = absl::UnavailableError("there is no device");
  for (const BackendKind& kind : kKinds) {
    created = kind.create(0);
    if (created.ok() || !absl::IsUnavailable(created.status())) break;
  }
  return created;
}

std::string Names() {
  std::vector<std::string> names = {"auto"};
  for (const BackendKind& kind : kKinds) {
    names.emplace_back(kind.name);
    if (kind.numbered) names.push_back(absl::StrCat(kind.name, ":1"));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

absl::Status Backend::Repeat(const std::function<absl::Status(int)>& enqueue, int count,
                             const std::function<bool()>& again) {
  do {
    for (int i = 0; i < count; ++i) {
      if (const absl::Status status = enqueue(i); !status.ok()) return status;
    }
    if (const absl::Status status = Synchronize(); !status.ok()) return status;
  } while (again());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(absl::string_view name) {
  if (name == "auto") return CreateFirst();
  for (const BackendKind& kind : kKinds) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, kind.name)) continue;
    if (rest.empty()) return kind.create(0);
    int ordinal = 0;
    if (kind.numbered && absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &ordinal) &&
        ordinal >= 0) {
      return kind.create(ordinal);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no device of this build; allowed: ", Names()));
}

}  // namespace gemm::bench
