// The built-in estimates against measurements on shapes that were not fitted (docs/results/timings:
// linear layers of public models, and random sizes). How fast is the kernel that they rank first?
#include "gemm/estimates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gemm/catalogue.h"

namespace gemm {
namespace {

using ::testing::TestWithParam;

struct ClassOfProducts {
  const char* name;  // of the file
  Types types;
  bool trans_a, trans_b;
  // The least mean speed of the first kernel by estimate, as a share of the fastest measured one,
  // cuBLASLt's eight algorithms included.
  double least_mean;
  // Kernels of this class take the products, too: the file of those.
  const char* also = nullptr;
};

constexpr DType kF16 = DType::kF16, kBF16 = DType::kBF16, kE4M3 = DType::kE4M3, kF32 = DType::kF32,
                kF64 = DType::kF64, kS8 = DType::kS8;

constexpr ClassOfProducts kClasses[] = {
    {"f16-nt", {kF16, kF16, kF16, Compute::kF32}, false, true, 0.95},
    {"f16-nn", {kF16, kF16, kF16, Compute::kF32}, false, false, 0.95},
    {"bf16-nt", {kBF16, kBF16, kBF16, Compute::kF32}, false, true, 0.95},
    {"bf16-nn", {kBF16, kBF16, kBF16, Compute::kF32}, false, false, 0.95},
    {"bf16-tn", {kBF16, kBF16, kBF16, Compute::kF32}, true, false, 0.94},
    {"e4m3-nt", {kE4M3, kE4M3, kF16, Compute::kF32}, false, true, 0.96},
    {"e4m3-tn", {kE4M3, kE4M3, kF16, Compute::kF32}, true, false, 0.95},
    {"tf32-nt", {kF32, kF32, kF32, Compute::kTF32}, false, true, 0.95},
    {"tf32-nn", {kF32, kF32, kF32, Compute::kTF32}, false, false, 0.92},
    {"s8-nt", {kS8, kS8, DType::kS32, Compute::kS32}, false, true, 0.95},
    {"f64-nt", {kF64, kF64, kF64, Compute::kF64}, false, true, 0.85},
    {"f64-nn", {kF64, kF64, kF64, Compute::kF64}, false, false, 0.92},
    {"f32x3-nt", {kF32, kF32, kF32, Compute::kF32x3}, false, true, 0.93, "f32-nt"},
    {"f32x3-nn", {kF32, kF32, kF32, Compute::kF32x3}, false, false, 0.93, "f32-nn"},
    {"f32-nt", {kF32, kF32, kF32, Compute::kF32}, false, true, 0.94},
    {"f32-nn", {kF32, kF32, kF32, Compute::kF32}, false, false, 0.94},
};

// A line of a file: a shape, and its times.
struct Measured {
  Problem problem;
  double best = std::numeric_limits<double>::infinity();
  std::vector<double> micros;  // of each kernel that may be chosen; infinite: not measured
};

struct Measurements {
  std::vector<const Kernel*> kernels;
  std::vector<Measured> lines;
};

// Adds a file's times to the lines of `all`. Lines that the file lacks are removed, except for the
// first file. Adds nothing if the build lacks the kernels.
void Add(const std::string& path, const ClassOfProducts& products, Measurements& all) {
  const bool first_file = all.kernels.empty();
  std::ifstream file(path);
  std::string line;
  EXPECT_TRUE(std::getline(file, line)) << path;
  const std::vector<std::string> heads = absl::StrSplit(line, ',');
  constexpr size_t kFirst = 3;  // behind m, n and k
  std::vector<int> place(heads.size(), -1);
  std::vector<bool> counts(heads.size(), false);
  for (size_t i = kFirst; i < heads.size(); ++i) {
    const std::string name = heads[i].substr(0, heads[i].find(':'));
    const auto kernel = FindKernel(name);
    // A baseline in another mode does not count.
    if (!kernel.ok() || !Takes(**kernel, products.types)) continue;
    counts[i] = true;
    if (absl::StrContains(heads[i], ':') && !absl::EndsWith(heads[i], ":0")) continue;
    const auto known = std::find(all.kernels.begin(), all.kernels.end(), *kernel);
    place[i] = static_cast<int>(known - all.kernels.begin());
    if (known == all.kernels.end()) all.kernels.push_back(*kernel);
  }
  std::map<std::tuple<int64_t, int64_t, int64_t>, Measured> by_shape;
  for (Measured& one : all.lines) {
    const Problem& p = one.problem;
    by_shape[{p.m, p.n, p.k}] = std::move(one);
  }
  all.lines.clear();
  while (std::getline(file, line)) {
    const std::vector<std::string> words = absl::StrSplit(line, ',');
    Measured one;
    one.problem.types = products.types;
    one.problem.trans_a = products.trans_a;
    one.problem.trans_b = products.trans_b;
    Problem& p = one.problem;
    EXPECT_TRUE(absl::SimpleAtoi(words[0], &p.m) && absl::SimpleAtoi(words[1], &p.n) &&
                absl::SimpleAtoi(words[2], &p.k))
        << line;
    if (!first_file) {
      const auto known = by_shape.find({p.m, p.n, p.k});
      if (known == by_shape.end()) continue;
      one = std::move(known->second);
    }
    one.micros.resize(all.kernels.size(), std::numeric_limits<double>::infinity());
    for (size_t i = kFirst; i < words.size(); ++i) {
      double micros = 0;
      if (!counts[i] || !absl::SimpleAtod(words[i], &micros)) continue;
      one.best = std::min(one.best, micros);
      if (place[i] < 0) continue;
      double& of_kernel = one.micros[static_cast<size_t>(place[i])];
      of_kernel = std::min(of_kernel, micros);
    }
    if (std::isfinite(one.best)) all.lines.push_back(std::move(one));
  }
}

Measurements Read(const std::string& folder, const ClassOfProducts& products) {
  Measurements all;
  Add(absl::StrCat(GEMM_TIMINGS, "/", folder, "/", products.name, ".csv"), products, all);
  if (products.also != nullptr && !all.kernels.empty()) {
    Add(absl::StrCat(GEMM_TIMINGS, "/", folder, "/", products.also, ".csv"), products, all);
  }
  return all;
}

// The speed of the estimates' choice as a share of the best, as a geometric mean. Prints the
// figures of docs/results/estimates.md.
double MeanShare(const DeviceEstimates& estimates, const std::string& folder,
                 const ClassOfProducts& products) {
  const Measurements all = Read(folder, products);
  EXPECT_GE(all.lines.size(), 50u);
  double logs = 0, worst = 1, best_sum = 0, taken_sum = 0;
  int below = 0;
  const auto started = std::chrono::steady_clock::now();
  std::vector<size_t> picks;
  for (const Measured& line : all.lines) {
    const std::vector<double> seconds =
        estimates.estimates->Seconds(line.problem, all.kernels, estimates.device);
    picks.push_back(
        static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin()));
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - started;
  for (size_t i = 0; i < picks.size(); ++i) {
    const Measured& line = all.lines[i];
    const double taken = line.micros[picks[i]];
    // One that was not measured would be left out of the mean.
    EXPECT_TRUE(std::isfinite(taken)) << all.kernels[picks[i]]->name;
    const double share = line.best / taken;
    logs += std::log(share);
    worst = std::min(worst, share);
    below += share < 0.9 ? 1 : 0;
    best_sum += line.best;
    taken_sum += taken;
  }
  const auto count = static_cast<double>(picks.size());
  std::printf("| %s | %s | %zu | %.3f | %.3f | %.2f | %d | %.1f |\n", folder.c_str(), products.name,
              picks.size(), std::exp(logs / count), best_sum / taken_sum, worst, below,
              took.count() / count);
  return std::exp(logs / count);
}

bool IsMeasured(const std::string& folder, const ClassOfProducts& products) {
  return static_cast<bool>(
      std::ifstream(absl::StrCat(GEMM_TIMINGS, "/", folder, "/", products.name, ".csv")));
}

class BuiltInEstimates : public TestWithParam<std::tuple<const char*, ClassOfProducts>> {};

TEST_P(BuiltInEstimates, TheFirstIsNearlyTheFastest) {
  const auto& [folder, products] = GetParam();
  if (!IsMeasured(folder, products)) GTEST_SKIP() << "not measured there";
  const DeviceEstimates known = gemm::BuiltInEstimates(
      absl::StartsWith(folder, "h200") ? "NVIDIA H200" : "NVIDIA H100 80GB HBM3", 90);
  if (known.estimates == nullptr) GTEST_SKIP() << "a build without CUDA has no estimates";
  EXPECT_GE(MeanShare(known, folder, products), products.least_mean);
}

INSTANTIATE_TEST_SUITE_P(Classes, BuiltInEstimates,
                         ::testing::Combine(::testing::Values("h200-judge", "h200-judge-2",
                                                              "h100-judge-2", "h200-judge-3",
                                                              "h100-judge"),
                                            ::testing::ValuesIn(kClasses)),
                         [](const auto& info) {
                           std::string name = absl::StrCat(std::get<0>(info.param), "_",
                                                           std::get<1>(info.param).name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Does as a server on a model that was not measured: takes 96 products of each types that are quick
// to measure, out of those meant for trees.
Estimates FromAFewTimes(const std::string& folder) {
  constexpr size_t kProducts = 96;
  constexpr double kMostFlops = 3e10;
  std::map<std::string, std::vector<const ClassOfProducts*>> by_types;
  for (const ClassOfProducts& products : kClasses) {
    by_types[absl::StrCat(Name(products.types.a), " ", Name(products.types.compute))].push_back(
        &products);
  }
  std::vector<TimedProduct> times;
  for (const auto& [types, layouts] : by_types) {
    for (const ClassOfProducts* products : layouts) {
      Measurements all;
      Add(absl::StrCat(GEMM_TIMINGS, "/", folder, "/", products->name, ".csv"), *products, all);
      std::erase_if(all.lines, [](const Measured& line) {
        const Problem& p = line.problem;
        return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                       static_cast<double>(p.k) >
                   kMostFlops ||
               std::min({p.m, p.n, p.k}) < 8;
      });
      const size_t wanted = kProducts / layouts.size();
      const size_t step = std::max<size_t>(1, all.lines.size() / wanted);
      for (size_t i = 0; i < all.lines.size(); i += step) {
        TimedProduct one{.problem = all.lines[i].problem};
        for (size_t at = 0; at < all.kernels.size(); ++at) {
          const double micros = all.lines[i].micros[at];
          const bool own_mode = all.kernels[at]->types.front().compute == products->types.compute;
          if (own_mode && std::isfinite(micros)) {
            one.seconds.emplace_back(all.kernels[at], micros * 1e-6);
          }
        }
        times.push_back(std::move(one));
      }
    }
  }
  return Estimates::FromTimes("measured at the start", times);
}

class StartEstimates : public TestWithParam<ClassOfProducts> {};

// A GPU without data of its model.
TEST_P(StartEstimates, TheFirstIsOftenTheFastest) {
  if (gemm::BuiltInEstimates("NVIDIA H200", 90).estimates == nullptr) {
    GTEST_SKIP() << "a build without CUDA has no kernels for them";
  }
  static const Estimates* const estimates = new Estimates(FromAFewTimes("h100-fit"));
  EXPECT_GE(MeanShare({.estimates = estimates}, "h100-judge", GetParam()), 0.85);
}

INSTANTIATE_TEST_SUITE_P(Classes, StartEstimates, ::testing::ValuesIn(kClasses),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A tree of one decision.
std::string TreeOf(const std::string& node, const std::string& left, const std::string& right) {
  std::string text = absl::StrCat("tree ", node);
  for (int i = 0; i < 14; ++i) absl::StrAppend(&text, " 0:0");
  absl::StrAppend(&text, " =");
  for (int i = 0; i < 16; ++i) absl::StrAppend(&text, " ", i < 8 ? left : right);
  return text;
}

// Twice the formula up to k = 1024, half of it beyond.
std::string Small() {
  return absl::StrCat(
      "gemmd estimates 1\n# a comment\ndevice A\ndevice B\nclass f32:f32:f32=f32\n"
      "kernel host_openblas\n",
      TreeOf("2:10", "0.6931", "-0.6931"), "\n");
}

TEST(Estimates, CorrectTheLeastFormulaByTheirTrees) {
  const auto estimates = Estimates::Parse(Small(), "small");
  ASSERT_TRUE(estimates.ok()) << estimates.status();
  EXPECT_EQ(estimates->devices(), (std::vector<std::string>{"A", "B"}));
  const Kernel* const openblas = *FindKernel("host_openblas");
  const Kernel* const reference = *FindKernel("host_reference");
  Problem p{.m = 8, .n = 8, .k = 1024};
  const double shallow = estimates->Seconds(p, {openblas, reference}, 0)[0];
  EXPECT_TRUE(std::isinf(estimates->Seconds(p, {openblas, reference}, 0)[1]))
      << "nothing is known of it";
  p.k = 1025;
  const double deep = estimates->Seconds(p, {openblas}, 0)[0];
  // Neither has a formula: both start from the same, which changes little.
  EXPECT_NEAR(shallow / deep, 4, 0.1);
  p.batch = 2;
  EXPECT_TRUE(std::isinf(estimates->Seconds(p, {openblas}, 0)[0])) << "batches were not measured";
}

TEST(Estimates, AnotherModelOfAMeasuredGenerationHasThoseOfOne) {
  if (gemm::BuiltInEstimates("NVIDIA H200", 90).estimates == nullptr) {
    GTEST_SKIP() << "a build without CUDA has no estimates";
  }
  EXPECT_NE(gemm::BuiltInEstimates("NVIDIA GH200", 90).estimates, nullptr);
  EXPECT_EQ(gemm::BuiltInEstimates("NVIDIA A100", 80).estimates, nullptr) << "another generation";
  EXPECT_EQ(gemm::BuiltInEstimates("NVIDIA B200", 100).estimates, nullptr);
}

TEST(Estimates, WhatIsWrongInTheTextIsNamed) {
  const auto error = [](const std::string& text) {
    return std::string(Estimates::Parse(text, "file").status().message());
  };
  const std::string head =
      "gemmd estimates 1\ndevice A\nclass f32:f32:f32=f32\nkernel host_openblas\n";
  EXPECT_EQ(error("estimates"),
            "file, line 1: the first line is \"estimates\"; it must be gemmd estimates 1");
  EXPECT_EQ(error("gemmd estimates 1\n"), "file: no line names a device");
  EXPECT_EQ(error(head + "branch"),
            "file, line 5: the first word is \"branch\"; it must be device, class, kernel or tree");
  EXPECT_EQ(error("gemmd estimates 1\nclass f32=f32"),
            "file, line 2: a class is \"f32=f32\"; it must be A:B:COMPUTE=NAME");
  EXPECT_THAT(error("gemmd estimates 1\ntree = 1"), ::testing::HasSubstr("behind a kernel"));
  EXPECT_THAT(error(head + TreeOf("2", "1", "2")), ::testing::HasSubstr("a node is \"2\""));
  EXPECT_THAT(error(head + TreeOf("2:x", "1", "2")), ::testing::HasSubstr("a node is \"2:x\""));
  EXPECT_THAT(error(head + TreeOf("99:10", "1", "2")), ::testing::HasSubstr("a feature below"));
  EXPECT_THAT(error(head + TreeOf("-1:10", "1", "2")), ::testing::HasSubstr("a feature below"));
  EXPECT_THAT(error(head + "tree 2:10 = 1"), ::testing::HasSubstr("1 nodes and 1 leaves"));
  EXPECT_THAT(error(head + TreeOf("2:10 0:0", "1", "2")), ::testing::HasSubstr("16 nodes"));
  EXPECT_THAT(error(head + TreeOf("2:10", "1", "nan")), ::testing::HasSubstr("a leaf is \"nan\""));
}

}  // namespace
}  // namespace gemm
