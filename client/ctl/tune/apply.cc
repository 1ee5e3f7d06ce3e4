#include "client/ctl/tune/apply.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/output/table.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

void PrintLoad(const Context& context, const client::ReloadTuningResponse& read) {
  Table summary = SummaryTable();
  summary.Add({"entries", absl::StrCat(read.entries())});
  summary.Add({"used here", absl::StrCat(read.used())});
  if (read.other_versions() > 0) {
    summary.Add({"of other versions", absl::StrCat(read.other_versions())});
  }
  if (read.skipped() > 0) {
    const bool all = read.skipped() == read.skipped_kernels_size();
    summary.Add(
        {"skipped", absl::StrCat(read.skipped(), " kernels that the server cannot run: ",
                                 absl::StrJoin(read.skipped_kernels(), ", "), all ? "" : ", ...")});
  }
  summary.Print(context.out, context.width);
}

}  // namespace

int ApplyTables(const Context& context) {
  const auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const auto read = (*client)->ReloadTuning(Call(context));
  if (!read.ok()) return Fail(context, read.status());
  if (context.global.json) {
    const auto& skipped = read->skipped_kernels();
    PrintJson(context,
              {{"entries", read->entries()},
               {"used", read->used()},
               {"other_versions", read->other_versions()},
               {"skipped", read->skipped()},
               {"skipped_kernels", std::vector<std::string>(skipped.begin(), skipped.end())}});
  } else {
    PrintLoad(context, *read);
  }
  return kExitOk;
}

}  // namespace gemmd::ctl
