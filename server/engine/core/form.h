// The form of a product, and what each form can have: choices, refusals and the table of
// docs/reference.md follow from the one below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gemm/problem.h"

namespace gemmd {

// A product has exactly one.
enum class Form : uint8_t { kSingle, kBatch, kGroup, kRowBlock, kBlockScales };

struct FormRules {
  absl::string_view name;
  // The part of a request that asks for it, as errors say it. # stands for the number of products.
  absl::string_view given;
  absl::string_view kernels;  // the field of KernelInfo of those that take it; empty: all do
  bool checked = false;       // Product.verify and --verify
  bool tuned = false;         // has entries in tuning tables, and counts as traffic without one
  bool coalesced = false;     // small ones may share a launch (CoalescingKind)
  bool zero_copy = false;     // kernels may read a small payload in host memory (ZeroCopy)
};

// In the order of Form.
inline constexpr FormRules kFormRules[] = {
    {.name = "single products",
     .checked = true,
     .tuned = true,
     .coalesced = true,
     .zero_copy = true},
    {.name = "batches", .given = "batch_count is #", .kernels = "batches"},
    {.name = "groups", .given = "group has # products"},
    {.name = "blocks of rows",
     .given = "row_block is set",
     .kernels = "row_blocks",
     .checked = true,
     .tuned = true,
     .zero_copy = true},
    {.name = "products with block scales",
     .given = "scales_a and scales_b are given",
     .kernels = "block_scales",
     .zero_copy = true},
};

constexpr const FormRules& RulesOf(Form form) { return kFormRules[static_cast<size_t>(form)]; }

// As a kernel sees it, to which a block of rows is a single product.
constexpr Form FormOf(const gemm::Problem& problem) {
  if (problem.grouped != gemm::GroupedBy::kNothing) return Form::kGroup;
  if (problem.batch > 1) return Form::kBatch;
  return gemm::HasBlockScales(problem) ? Form::kBlockScales : Form::kSingle;
}

// The products of a batch or a group; else 1.
constexpr int64_t ProductCount(const gemm::Problem& problem) {
  return problem.grouped == gemm::GroupedBy::kNothing
             ? problem.batch
             : static_cast<int64_t>(problem.extents.size());
}

// "batch_count is 3"
inline std::string Given(Form form, int64_t products) {
  return absl::StrReplaceAll(RulesOf(form).given, {{"#", absl::StrCat(products)}});
}

}  // namespace gemmd
