#include "client/ctl/catalogue.h"

#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/table.h"
#include "kernels/bench/report/text_layout.h"

namespace gemmd::ctl {
namespace {

// Keys in the order of their first occurrence, with the values that were added to each.
template <typename Key, typename Value>
class Ordered {
 public:
  Value& operator[](const Key& key) {
    for (auto& [known, value] : entries_) {
      if (known == key) return value;
    }
    return entries_.emplace_back(key, Value()).second;
  }
  const std::vector<std::pair<Key, Value>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<Key, Value>> entries_;
};

void AddNew(std::vector<std::string>& words, std::string word) {
  if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
}

std::string Factors(const gemm::v1::KernelTypes& types) {
  std::string text(client::Name(types.a()));
  if (types.b() != types.a()) absl::StrAppend(&text, "*", client::Name(types.b()));
  return text;
}

// Empty for the default: f64 for f64 operands, s32 for s8 ones, else f32.
std::string Arithmetic(const gemm::v1::KernelTypes& types) {
  const bool named = types.compute() == client::kComputeTF32 ||
                     types.compute() == client::kComputeF32x3 ||
                     types.compute() == client::kComputeF16;
  if (!named) return "";
  return absl::StrCat("/", client::Name(types.compute()));
}

std::string TileText(const client::KernelInfo& kernel) {
  if (kernel.tile_m() == 0) return "";
  return absl::StrCat(kernel.tile_m(), "x", kernel.tile_n(), "x", kernel.tile_k());
}

std::string ParamsText(const client::KernelInfo& kernel) {
  return absl::StrJoin(kernel.params(), " ", [](std::string* out, const auto& param) {
    absl::StrAppend(out, param.name(), "=", param.min(), "..", param.max());
  });
}

std::string DevicesText(const Kernels& kernels) {
  std::vector<std::string> devices;
  for (const auto& kernel : kernels) {
    for (const auto& device : kernel.devices()) AddNew(devices, device);
  }
  return devices.empty() ? "none" : absl::StrJoin(devices, " ");
}

size_t CountAvailable(const Kernels& kernels) {
  return static_cast<size_t>(std::count_if(kernels.begin(), kernels.end(),
                                           [](const auto& k) { return !k.devices().empty(); }));
}

std::string CountText(size_t count, const char* one, const char* many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

void PrintWrapped(std::ostream& out, const std::string& text, size_t width) {
  for (const std::string& line : gemm::bench::WrapText(text, width)) out << line << '\n';
}

// A server names the kernel in each reason ("kernel NAME needs a CUDA device"): without it, kernels
// have the same reason.
std::string ReasonOfAny(const client::KernelInfo& kernel) {
  std::string reason = kernel.unavailable_reason();
  for (const std::string& named : {absl::StrCat("kernel '", kernel.name(), "' "),
                                   absl::StrCat("kernel ", kernel.name(), " ")}) {
    absl::StrReplaceAll({{named, ""}}, &reason);
  }
  return reason;
}

// Why kernels run on no device, and for how many kernels each reason holds.
void PrintReasons(std::ostream& out, const Kernels& kernels, size_t width) {
  Ordered<std::string, size_t> reasons;
  for (const auto& kernel : kernels) {
    if (kernel.devices().empty()) ++reasons[ReasonOfAny(kernel)];
  }
  if (reasons.entries().empty()) return;
  out << '\n';
  for (const auto& [reason, count] : reasons.entries()) {
    PrintWrapped(out,
                 absl::StrCat(CountText(count, "kernel", "kernels"),
                              " on no device of this server: ", reason),
                 width);
  }
}

}  // namespace

Kernels KernelsNamed(const Kernels& kernels, const std::string& asked) {
  if (asked.empty()) return kernels;
  Kernels named;
  const auto take = [&](const std::function<bool(const client::KernelInfo&)>& wanted) {
    if (named.empty()) {
      std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(named), wanted);
    }
  };
  take([&](const auto& kernel) { return kernel.name() == asked; });
  take([&](const auto& kernel) { return kernel.family() == asked; });
  take([&](const auto& kernel) { return fnmatch(asked.c_str(), kernel.name().c_str(), 0) == 0; });
  return named;
}

std::string TypesText(const Kernels& kernels) {
  // The result types of each pair of factor types, for each arithmetic.
  Ordered<std::pair<std::string, std::string>, std::vector<std::string>> results;
  for (const auto& kernel : kernels) {
    for (const auto& types : kernel.types()) {
      AddNew(results[{Factors(types), Arithmetic(types)}],
             std::string(client::Name(types.output())));
    }
  }
  // Pairs with the same results share a word.
  Ordered<std::string, std::vector<std::string>> words;
  for (const auto& [key, outputs] : results.entries()) {
    const auto& [factors, arithmetic] = key;
    const bool same = outputs.size() == 1 && outputs.front() == factors;
    AddNew(
        words[absl::StrCat(same ? "" : ">", same ? "" : absl::StrJoin(outputs, ","), arithmetic)],
        factors);
  }
  return absl::StrJoin(words.entries(), " ", [](std::string* out, const auto& word) {
    absl::StrAppend(out, absl::StrJoin(word.second, ","), word.first);
  });
}

void PrintFamilies(std::ostream& out, const Kernels& kernels, size_t width) {
  Ordered<std::string, Kernels> families;
  for (const auto& kernel : kernels) families[kernel.family()].push_back(kernel);
  Table table({{"FAMILY"},
               {"KERNELS", Align::kRight},
               {"RUN HERE", Align::kRight},
               {"DEVICES", Align::kLeft, Fit::kWrap},
               {"TYPES", Align::kLeft, Fit::kWrap}});
  for (const auto& [family, members] : families.entries()) {
    table.Add({family, absl::StrCat(members.size()), absl::StrCat(CountAvailable(members)),
               DevicesText(members), TypesText(members)});
  }
  table.Print(out, width);
  PrintReasons(out, kernels, width);
  out << '\n';
  PrintWrapped(out,
               absl::StrCat(CountText(kernels.size(), "kernel", "kernels"), " in ",
                            CountText(families.entries().size(), "family", "families"),
                            ". `gemmctl kernels FAMILY` lists one family, `gemmctl kernels NAME` "
                            "shows one kernel in full."),
               width);
}

void PrintKernels(std::ostream& out, const Kernels& kernels, size_t width) {
  struct Property {
    const char* title;
    std::string (*text)(const client::KernelInfo&);
    Fit fit;
  };
  static constexpr Property kProperties[] = {
      {"FAMILY", [](const client::KernelInfo& k) { return k.family(); }, Fit::kKeep},
      {"TYPES", [](const client::KernelInfo& k) { return TypesText({k}); }, Fit::kWrap},
      {"DEVICES", [](const client::KernelInfo& k) { return DevicesText({k}); }, Fit::kWrap},
      {"TILE", [](const client::KernelInfo& k) { return TileText(k); }, Fit::kDrop},
      {"PARAMS", [](const client::KernelInfo& k) { return ParamsText(k); }, Fit::kDrop},
  };
  Table common = SummaryTable();
  common.Add({"KERNELS", absl::StrCat(kernels.size())});
  std::vector<Table::Column> columns = {{"NAME", Align::kLeft, Fit::kWrap}};
  std::vector<const Property*> differing;
  for (const Property& property : kProperties) {
    const std::string first = property.text(kernels.front());
    const bool same = std::all_of(kernels.begin(), kernels.end(),
                                  [&](const auto& k) { return property.text(k) == first; });
    if (same) {
      if (!first.empty()) common.Add({property.title, first});
    } else {
      columns.push_back({property.title, Align::kLeft, property.fit});
      differing.push_back(&property);
    }
  }
  Table table(columns);
  for (const auto& kernel : kernels) {
    std::vector<std::string> cells = {kernel.name()};
    for (const Property* property : differing) cells.push_back(property->text(kernel));
    table.Add(std::move(cells));
  }
  common.Print(out, width);
  out << '\n';
  table.Print(out, width);
  PrintReasons(out, kernels, width);
}

void PrintKernel(std::ostream& out, const client::KernelInfo& kernel, size_t width) {
  Table summary = SummaryTable();
  const auto count = [&](const char* label, int64_t value, const char* unit) {
    if (value > 0) summary.Add({label, absl::StrCat(value, unit)});
  };
  summary.Add({"name", kernel.name()});
  summary.Add({"family", kernel.family()});
  summary.Add({"what it is", kernel.summary()});
  summary.Add({"types", TypesText({kernel})});
  if (kernel.tile_m() > 0) summary.Add({"tile", TileText(kernel)});
  count("stages", kernel.stages(), "");
  count("threads", kernel.threads(), " a block");
  if (kernel.shared_memory_bytes() > 0) {
    summary.Add({"shared memory", BytesText(static_cast<double>(kernel.shared_memory_bytes()))});
  }
  summary.Add({"results", kernel.deterministic()
                              ? "the same bits from run to run"
                              : "may differ in their last bits from run to run"});
  summary.Add({"batches", kernel.batches() ? "yes" : "no: one product at a time"});
  summary.Add({"block scales", kernel.block_scales() ? "yes, of fp8 operands" : "no"});
  summary.Add({"row blocks", kernel.row_blocks() ? "yes: rows of D have the same bits whatever m is"
                                                 : "no: a product is computed whole"});
  summary.Add({"groups", kernel.groups() ? "in one launch, where they differ in m"
                                         : "one product after the other"});
  for (const auto& param : kernel.params()) {
    summary.Add({absl::StrCat("param ", param.name()),
                 absl::StrCat(param.min(), " to ", param.max(), ", default ", param.default_value(),
                              ": ", param.summary())});
  }
  summary.Add({"devices", kernel.devices().empty()
                              ? absl::StrCat("none: ", kernel.unavailable_reason())
                              : DevicesText({kernel})});
  summary.Print(out, width);
}

}  // namespace gemmd::ctl
