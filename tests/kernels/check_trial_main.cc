// Writes the tables that docs/results/result-checks.md sums up: which flipped bits of a result the
// check catches, how large a change it needs, and whether right products ever fail.
//
//   check_trial --flips 10000 --clean 1000000 --threads 16 --out result-checks.md
//
// Exit code 1 if a flip above the row's tolerance was missed, or a right product failed.
#include <cblas.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <future>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/kernels/check_trial.h"

namespace gemm::testing {
namespace {

struct TrialOptions {
  int64_t flips = 10'000;
  int64_t clean = 1'000'000;
  int64_t threads = 1;
  uint64_t seed = 1;
  std::string out;
};

struct Parts {
  int mantissa;
  int exponent;
};

Parts PartsOf(DType type) {
  switch (type) {
    case DType::kF64:
      return {52, 11};
    case DType::kF32:
      return {23, 8};
    case DType::kF16:
      return {10, 5};
    default:
      return {7, 8};
  }
}

std::string BitName(DType type, int bit) {
  const Parts parts = PartsOf(type);
  if (bit == parts.mantissa + parts.exponent) return "sign";
  if (bit >= parts.mantissa) return absl::StrCat("exponent ", bit - parts.mantissa);
  return absl::StrCat("mantissa ", bit);
}

std::string Share(int64_t part, int64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.1f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

double Quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(at * static_cast<double>(values.size() - 1))];
}

std::string Page(const FlipTrial& flips, const CleanTrial& clean, const TrialOptions& options) {
  std::string page = absl::StrCat(
      "# Checked results: what the check catches\n\n"
      "Written by `check_trial --flips ",
      flips.flips, " --clean ", clean.products, " --threads ", options.threads, " --seed ",
      options.seed,
      "` (tests/kernels/check_trial_main.cc). Products of 1 to 130 rows and columns and sums "
      "of 1 to 700 terms, of ",
      TrialTypes().size(),
      " combinations of types, with alpha, beta, bias, transposes and "
      "padded rows; elements uniform, positive, normal, constant, sparse, or over eight powers of "
      "two; computed by both kernels of the host and by the emulated arithmetic of the GPU's.\n\n"
      "## Flipped bits\n\n"
      "One bit of one element of the result is flipped. The tolerance of a row is twice its likely "
      "bound (`gemm/check.h`): a change above it is caught whatever the signs are. **",
      flips.flips, " flips, ", flips.missed,
      " above the row's tolerance were missed.** \"Certain\" is beyond the possible bound too, "
      "which no right kernel exceeds for any operands.\n");
  for (const auto& [type, bits] : flips.table) {
    absl::StrAppend(&page, "\n### ", Name(type), " results\n\n");
    if (const auto found = flips.tolerances.find(type); found != flips.tolerances.end()) {
      absl::StrAppend(&page,
                      absl::StrFormat("The tolerance of a row, as a multiple of the root mean "
                                      "square of its elements: median "
                                      "%.2g, from %.2g (1 in 100) to %.2g (99 in 100).\n\n",
                                      Quantile(found->second, 0.5), Quantile(found->second, 0.01),
                                      Quantile(found->second, 0.99)));
    }
    absl::StrAppend(&page,
                    "| bit | flips | above the tolerance | of those caught | caught | certain |\n",
                    "| --- | --- | --- | --- | --- | --- |\n");
    for (int bit = static_cast<int>(bits.size()) - 1; bit >= 0; --bit) {
      const BitCounts& c = bits[static_cast<size_t>(bit)];
      if (c.flips == 0) continue;
      absl::StrAppend(&page, "| ", BitName(type, bit), " | ", c.flips, " | ",
                      Share(c.above, c.flips), " | ", Share(c.above - c.missed, c.above), " | ",
                      Share(c.caught, c.flips), " | ", Share(c.certain, c.flips), " |\n");
    }
  }
  absl::StrAppend(
      &page, absl::StrFormat(
                 "\n## Right products\n\n"
                 "| products | beyond the likely bound | beyond the possible bound | with rows "
                 "that are not "
                 "covered | largest residual, of the likely bound | of the possible bound |\n"
                 "| --- | --- | --- | --- | --- | --- |\n"
                 "| %d | %d | %d | %d | %.3f | %.3f |\n",
                 clean.products, clean.beyond_likely, clean.beyond_possible,
                 clean.with_uncovered_rows, clean.largest_of_likely, clean.largest_of_possible));
  return page;
}

}  // namespace

// Each thread draws its own products.
CleanTrial TryCleanInThreads(const TrialOptions& options) {
  std::vector<std::future<CleanTrial>> parts;
  for (int64_t i = 0; i < options.threads; ++i) {
    const int64_t products =
        options.clean * (i + 1) / options.threads - options.clean * i / options.threads;
    const uint64_t seed = options.seed + 1 + static_cast<uint64_t>(i);
    parts.push_back(std::async(std::launch::async, [=] { return TryClean(products, seed); }));
  }
  CleanTrial all;
  for (std::future<CleanTrial>& part : parts) {
    const CleanTrial one = part.get();
    all.products += one.products;
    all.beyond_likely += one.beyond_likely;
    all.beyond_possible += one.beyond_possible;
    all.with_uncovered_rows += one.with_uncovered_rows;
    all.largest_of_likely = std::max(all.largest_of_likely, one.largest_of_likely);
    all.largest_of_possible = std::max(all.largest_of_possible, one.largest_of_possible);
    if (all.first_beyond.empty()) all.first_beyond = one.first_beyond;
  }
  return all;
}

int RunTrial(const TrialOptions& options) {
  // Products are small, and there is one to each core already.
  openblas_set_num_threads(1);
  const FlipTrial flips = TryFlips(options.flips, options.seed);
  const CleanTrial clean = TryCleanInThreads(options);
  const std::string page = Page(flips, clean, options);
  if (options.out.empty()) {
    std::cout << page;
  } else if (std::ofstream file(options.out); !(file << page) || !file.flush()) {
    std::cerr << "cannot write " << options.out << "\n";
    return 1;
  }
  if (flips.missed > 0) std::cerr << "missed: " << flips.first_missed << "\n";
  if (clean.beyond_likely > 0) std::cerr << "failed: " << clean.first_beyond << "\n";
  return flips.missed > 0 || clean.beyond_likely > 0 || clean.beyond_possible > 0 ? 1 : 0;
}

}  // namespace gemm::testing

int main(int argc, char** argv) {
  gemm::testing::TrialOptions options;
  CLI::App app("Tries the check of results on flipped bits and on right products");
  app.add_option("--flips", options.flips, "Flipped bits");
  app.add_option("--clean", options.clean, "Right products");
  app.add_option("--threads", options.threads, "That try right products, each with its own")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seed", options.seed, "Of both");
  app.add_option("--out", options.out, "The file. Default: standard output");
  CLI11_PARSE(app, argc, argv);
  return gemm::testing::RunTrial(options);
}
