#include "kernels/bench/measure/oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"

namespace gemm::bench {
namespace {

// The most elements that are held of each operand, in its lines; two lines may be more.
constexpr int64_t kMaxHeld = int64_t{1} << 24;

// As many lines as asked for, unless they are too long.
int LinesOfLength(int64_t k, int wanted) {
  return static_cast<int>(std::clamp<int64_t>(kMaxHeld / k, 2, std::max(wanted, 2)));
}

// `count` of the numbers below `size`, always with both ends.
std::vector<int64_t> DrawLines(int64_t size, int count, uint64_t seed) {
  std::set<int64_t> lines = {0, size - 1};
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> line(0, size - 1);
  const auto wanted = static_cast<size_t>(std::min<int64_t>(count, size));
  while (lines.size() < wanted) lines.insert(line(random));
  return {lines.begin(), lines.end()};
}

// A matrix as the device holds it, line by line.
struct Stored {
  const void* data;
  int64_t ld;
  DType type;
};

// Lines of `length` elements, one after the other: rows of the stored matrix, or columns if
// `across`.
absl::StatusOr<std::vector<std::byte>> ReadLines(Backend& backend, const Stored& matrix,
                                                 const std::vector<int64_t>& lines, int64_t length,
                                                 bool across,
                                                 const std::function<absl::Status()>& step) {
  const size_t size = SizeOf(matrix.type);
  const size_t pitch = static_cast<size_t>(matrix.ld) * size;
  const size_t line_bytes = static_cast<size_t>(length) * size;
  std::vector<std::byte> out(lines.size() * line_bytes);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (absl::Status stopped = step(); !stopped.ok()) return stopped;
    const auto index = static_cast<size_t>(lines[i]);
    const auto* from = static_cast<const std::byte*>(matrix.data) + index * (across ? size : pitch);
    std::byte* const to = out.data() + i * line_bytes;
    const absl::Status status =
        across ? backend.Read(from, pitch, size, static_cast<size_t>(length), to)
               : backend.Read(from, pitch, line_bytes, 1, to);
    if (!status.ok()) return status;
  }
  return out;
}

// The scales of `lines`, line by line, as ScaleBlocks::kLines has them. Empty if there are none.
absl::StatusOr<std::vector<float>> ReadScales(Backend& backend, ScaleBlocks blocks,
                                              const ScaleView& scales,
                                              const std::vector<int64_t>& lines, int64_t k) {
  if (blocks == ScaleBlocks::kNone) return std::vector<float>{};
  const auto count = static_cast<size_t>(ScaleBlockCount(k));
  std::vector<float> out(lines.size() * count);
  for (size_t i = 0; i < lines.size(); ++i) {
    const int64_t line = blocks == ScaleBlocks::kTiles ? lines[i] / kScaleBlock : lines[i];
    const absl::Status status = backend.Read(scales.data + line * scales.line_step,
                                             static_cast<size_t>(scales.block_step) * sizeof(float),
                                             sizeof(float), count, out.data() + i * count);
    if (!status.ok()) return status;
  }
  return out;
}

// An infinite element is right if the exact one may be beyond D's type.
double OfBound(const Expected& expected, double actual, DType type) {
  const bool overflows = std::abs(expected.value) + expected.tolerance >= LargestFinite(type);
  if (overflows && std::isinf(actual) && std::signbit(actual) == std::signbit(expected.value)) {
    return 0;
  }
  const double error = std::abs(actual - expected.value);
  if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  return error == 0 ? 0 : error / expected.tolerance;
}

constexpr int kLines = 8;

// The largest k for which sums of products of -1, 0 and 1 are exact in any order. f16 has every
// integer up to 2048, and the tensor cores' sums of fp8 have more. A sum exceeds that by chance
// once in 10^15, at eight standard deviations of sqrt(4 k / 9). f32 has every integer up to 2^24.
int64_t LargestExactDepth(const Types& types) {
  const bool fp8 = SizeOf(types.a) == 1 && types.compute != Compute::kS32;
  const bool narrow = types.compute == Compute::kF16 || fp8;
  return narrow ? 140'000 : int64_t{1} << 24;
}

}  // namespace

absl::Status Oracle::Prepare(Backend& backend, const Problem& problem, const Operands& device,
                             Elements known, int lines, const std::function<absl::Status()>& step) {
  problem_ = problem;
  device_ = device;
  lines = LinesOfLength(problem.k, lines);
  rows_ = DrawLines(problem.m, lines, /*seed=*/1);
  cols_ = DrawLines(problem.n, lines, /*seed=*/2);
  const auto a = ReadLines(backend, {device.a, device.lda, problem.types.a}, rows_, problem.k,
                           problem.trans_a, step);
  if (!a.ok()) return a.status();
  const auto b = ReadLines(backend, {device.b, device.ldb, problem.types.b}, cols_, problem.k,
                           !problem.trans_b, step);
  if (!b.ok()) return b.status();
  // The product of those lines alone.
  Problem small = problem;
  small.m = static_cast<int64_t>(rows_.size());
  small.n = static_cast<int64_t>(cols_.size());
  small.trans_a = false;
  small.trans_b = true;
  Operands host = {.a = a->data(), .lda = problem.k, .b = b->data(), .ldb = problem.k};
  const auto scales_a = ReadScales(backend, problem.scales_a, device.scales_a, rows_, problem.k);
  if (!scales_a.ok()) return scales_a.status();
  const auto scales_b = ReadScales(backend, problem.scales_b, device.scales_b, cols_, problem.k);
  if (!scales_b.ok()) return scales_b.status();
  if (!scales_a->empty()) small.scales_a = ScaleBlocks::kLines;
  if (!scales_b->empty()) small.scales_b = ScaleBlocks::kLines;
  host.scales_a = {
      .data = scales_a->data(), .line_step = ScaleBlockCount(problem.k), .block_step = 1};
  host.scales_b = {
      .data = scales_b->data(), .line_step = ScaleBlockCount(problem.k), .block_step = 1};
  expected_.clear();
  ExpectedElements elements(small, host, known);
  for (int64_t i = 0; i < small.m; ++i) {
    for (int64_t j = 0; j < small.n; ++j) {
      if (absl::Status stopped = step(); !stopped.ok()) return stopped;
      expected_.push_back(elements.At(i, j));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SampledError> Oracle::Compare(Backend& backend) const {
  const DType type = problem_.types.d;
  const size_t size = SizeOf(type);
  std::vector<double> actual;  // as expected_
  for (const int64_t row : rows_) {
    for (const int64_t col : cols_) {
      const auto* const from = static_cast<const std::byte*>(device_.d) +
                               static_cast<size_t>(row * device_.ldd + col) * size;
      alignas(double) std::array<std::byte, sizeof(double)> bytes{};
      if (absl::Status read = backend.Read(from, size, size, 1, bytes.data()); !read.ok()) {
        return read;
      }
      actual.push_back(LoadElement(bytes.data(), 0, type));
    }
  }
  SampledError error = {.first = actual.front(), .last = actual.back()};
  for (size_t i = 0; i < actual.size(); ++i) {
    error.of_bound = std::max(error.of_bound, OfBound(expected_[i], actual[i], type));
    error.absolute = std::max(error.absolute, std::abs(actual[i] - expected_[i].value));
  }
  return error;
}

absl::Status ExactCheck::Prepare(Backend& backend, OperandSets& sets, const Problem& problem,
                                 int lines, const std::function<absl::Status()>& step) {
  missing_.clear();
  if (const int64_t most = LargestExactDepth(problem.types); problem.k > most) {
    missing_ = absl::StrCat("not compared exactly: k of ", problem.k, ", at most ", most);
    return absl::OkStatus();
  }
  const absl::StatusOr<Operands> operands = sets.Signs(problem);
  if (absl::IsResourceExhausted(operands.status())) {
    missing_ = "not compared exactly: no memory for operands of -1, 0 and 1";
    return absl::OkStatus();
  }
  if (!operands.ok()) return operands.status();
  operands_ = *operands;
  return oracle_.Prepare(backend, problem, operands_, Elements::kExact, std::min(lines, kLines),
                         step);
}

}  // namespace gemm::bench
