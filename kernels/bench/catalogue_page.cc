#include "kernels/bench/catalogue_page.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/bench/spec/selection.h"
#include "nlohmann/json.hpp"

namespace gemm::bench {
namespace {

// A column of the table: its title, and a kernel's cell.
struct Column {
  std::string title;
  std::function<std::string(const Kernel&)> cell;
};

absl::Status Unreadable(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", why));
}

std::string TileText(const Kernel& kernel) {
  if (kernel.tile_m == 0) return "the library's";
  return absl::StrCat(kernel.tile_m, "x", kernel.tile_n, "x", kernel.tile_k);
}

std::string CountText(int64_t count) { return count == 0 ? "" : absl::StrCat(count); }

// "9.0", "8.0 and up", "no GPU".
std::string NeedsText(const Kernel& kernel) {
  if (kernel.target == Target::kHost) return "no GPU";
  const auto [min, max] = kernel.capability;
  if (min == 0) return "any GPU";
  const std::string from = absl::StrCat("sm_", min);
  if (max == min) return absl::StrCat(from, " exactly");
  return absl::StrCat(from, " and up");
}

std::string ParamsText(const Kernel& kernel) {
  return absl::StrJoin(kernel.params, ", ", [](std::string* out, const ParamSpec& spec) {
    absl::StrAppend(out, spec.name, " ", spec.min, " to ", spec.max);
  });
}

std::string TypesText(const Kernel& kernel) {
  return absl::StrJoin(kernel.types, ", ", [](std::string* out, const Types& types) {
    absl::StrAppend(out, TypesName(types));
  });
}

std::vector<Column> Columns(const CatalogueNotes& notes) {
  std::vector<Column> columns = {
      {"kernel", [](const Kernel& k) { return absl::StrCat("`", k.name, "`"); }},
      {"what it is", [](const Kernel& k) { return std::string(k.summary); }},
      {"A:B:D:compute", TypesText},
      {"tile", TileText},
      {"stages", [](const Kernel& k) { return CountText(k.stages); }},
      {"threads", [](const Kernel& k) { return CountText(k.threads); }},
      {"shared memory, bytes",
       [](const Kernel& k) { return CountText(static_cast<int64_t>(k.shared_memory_bytes)); }},
      {"parameters", ParamsText},
      {"needs", NeedsText},
  };
  if (!notes.registers.empty()) {
    columns.push_back({absl::StrCat("registers, sm_", notes.architecture), [&](const Kernel& k) {
                         const auto found = notes.registers.find(std::string(k.name));
                         return found == notes.registers.end() ? "" : CountText(found->second);
                       }});
  }
  if (!notes.standings.empty()) {
    const auto standing = [&](const Kernel& k) {
      const auto found = notes.standings.find(std::string(k.name));
      return found == notes.standings.end() ? CatalogueNotes::Standing{} : found->second;
    };
    columns.push_back({"TFLOPS", [=](const Kernel& k) {
                         const double tflops = standing(k).tflops;
                         return tflops == 0 ? "" : absl::StrFormat("%.1f", tflops);
                       }});
    columns.push_back({"of cuBLAS", [=](const Kernel& k) {
                         const double share = standing(k).of_vendor;
                         return share == 0 ? "" : absl::StrFormat("%.3f", share);
                       }});
  }
  return columns;
}

std::string Line(const std::vector<std::string>& cells) {
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

}  // namespace

absl::Status ReadRegisters(const std::string& path, CatalogueNotes& notes) {
  std::ifstream file(path);
  if (!file) return Unreadable(path, "no such file");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int architecture = 0, registers = 0;
    if (!(words >> name >> architecture >> registers)) return Unreadable(path, line);
    if (architecture < notes.architecture) continue;
    if (architecture > notes.architecture) notes.registers.clear();
    notes.architecture = architecture;
    // A row may have a kernel for each output type: the largest counts.
    int& most = notes.registers[name];
    most = std::max(most, registers);
  }
  return absl::OkStatus();
}

absl::Status ReadStandings(const std::string& path, CatalogueNotes& notes) {
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.contains("kernels")) {
    return Unreadable(path, "it is no result of gemm_bench --json");
  }
  for (const auto& means : json["kernels"]) {
    if (means["baseline"].get<bool>() || means["shapes"].get<int>() == 0) continue;
    const double of_vendor = means["of_vendor"].is_null() ? 0 : means["of_vendor"].get<double>();
    notes.standings.try_emplace(means["kernel"].get<std::string>(),
                                CatalogueNotes::Standing{means["tflops"].get<double>(), of_vendor});
  }
  return absl::OkStatus();
}

std::string CataloguePage(absl::Span<const Kernel* const> kernels, const CatalogueNotes& notes) {
  const std::vector<Column> columns = Columns(notes);
  std::string page;
  absl::string_view family;
  for (const Kernel* kernel : kernels) {
    if (kernel->family != family) {
      family = kernel->family;
      absl::StrAppend(&page, page.empty() ? "" : "\n", "## ", family, "\n\n");
      std::vector<std::string> titles;
      for (const Column& column : columns) titles.push_back(column.title);
      absl::StrAppend(&page, Line(titles), Line(std::vector<std::string>(columns.size(), "---")));
    }
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(column.cell(*kernel));
    absl::StrAppend(&page, Line(cells));
  }
  return page;
}

}  // namespace gemm::bench
