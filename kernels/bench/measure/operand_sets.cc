#include "kernels/bench/measure/operand_sets.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemm/reference.h"

namespace gemm::bench {
namespace {

constexpr size_t kOperandAlignment = 256;
// Bytes used between two uses of a set, as a multiple of the cache's size.
constexpr size_t kCacheTimes = 3;
// Small products need few sets: launches of a batch are fewer.
constexpr int64_t kMaxSets = 256;
// Share of the free memory that further sets may take.
constexpr double kMemoryShare = 0.5;
// Elements that are drawn; larger slabs repeat them. A prime, so that no step from row to
// row comes back to the same elements any sooner.
constexpr int64_t kDrawn = (int64_t{1} << 20) + 4117;

// Maps numbers from -1 to 1 to all values of s8, each as often.
double OverS8(double x) { return std::floor(128 * x); }

// Maps numbers from -1 to 2 to 1/2, 1 and 2, each as often.
double PowerOfTwo(double x) { return std::exp2(std::floor(x)); }

// Elements of `type`: those that `spec` draws, each mapped by `of`.
absl::StatusOr<std::vector<std::byte>> Draw(GeneratorSpec spec, uint64_t seed, DType type,
                                            double (*of)(double) = nullptr) {
  spec.seed = seed;
  std::vector<double> values(kDrawn);
  const absl::Status status =
      GenerateHost(spec, {.data = values.data(),
                          .type = DType::kF64,
                          .rows = 1,
                          .cols = kDrawn,
                          .pitch_bytes = kDrawn * static_cast<int64_t>(sizeof(double))});
  if (!status.ok()) return status;
  std::vector<std::byte> elements(values.size() * SizeOf(type));
  for (int64_t i = 0; i < kDrawn; ++i) {
    const double x = values[static_cast<size_t>(i)];
    StoreElement(elements.data(), i, type, of == nullptr ? x : of(x));
  }
  return elements;
}

// -1, 0 and 1, each as often.
absl::StatusOr<std::vector<std::byte>> DrawSigns(uint64_t seed, DType type) {
  return Draw({.low_or_mean = -1, .high_or_stddev = 2}, seed, type, std::floor);
}

// Scales from 1/2 to 3/2.
absl::StatusOr<std::vector<std::byte>> DrawScales(uint64_t seed) {
  return Draw({.low_or_mean = 0.5, .high_or_stddev = 1.5}, seed, DType::kF32);
}

// Scales by which sums of integers stay exact.
absl::StatusOr<std::vector<std::byte>> DrawExactScales(uint64_t seed) {
  return Draw({.low_or_mean = -1, .high_or_stddev = 2}, seed, DType::kF32, PowerOfTwo);
}

}  // namespace

OperandSets::Matrix OperandSets::Describe(int64_t rows, int64_t cols, DType type) {
  const int64_t pitch = PitchBytes(cols, type);
  const size_t bytes = static_cast<size_t>(rows * pitch);
  return {.ld = pitch / static_cast<int64_t>(SizeOf(type)),
          .bytes = (bytes + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment};
}

OperandSets::Matrix OperandSets::DescribeScales(ScaleBlocks blocks, int64_t outer, int64_t k) {
  if (blocks == ScaleBlocks::kNone) return {};
  if (blocks == ScaleBlocks::kTiles) {
    return Describe(ScaleBlockCount(outer), ScaleBlockCount(k), DType::kF32);
  }
  Matrix scales = Describe(ScaleBlockCount(k), outer, DType::kF32);
  scales.by_block = true;
  return scales;
}

absl::Status OperandSets::Prepare(const Problem& p) {
  known_ = IsSymmetric(inputs_) && p.k <= kDrawn ? Elements::kDrawn : Elements::kAny;
  a_ = Describe(p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k, p.types.a);
  b_ = Describe(p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n, p.types.b);
  d_ = Describe(p.m, p.n, p.types.d);
  scales_a_ = DescribeScales(p.scales_a, p.m, p.k);
  scales_b_ = DescribeScales(p.scales_b, p.n, p.k);
  const size_t set = a_.bytes + b_.bytes + d_.bytes + scales_a_.bytes + scales_b_.bytes;
  size_t held = 0;
  for (const auto& [key, slab] : slabs_) held += slab.bytes;
  const auto room =
      static_cast<size_t>(kMemoryShare * static_cast<double>(backend_.free_bytes() + held));
  // At least two, even if one is large: its D may lie in the cache when it is written again.
  const size_t wanted = std::max<size_t>(2, kCacheTimes * backend_.cache_bytes() / set + 1);
  count_ = std::clamp<int64_t>(static_cast<int64_t>(std::min(wanted, room / set)), 1, kMaxSets);
  absl::Status status = PlaceAll(p.types);
  if (absl::IsResourceExhausted(status)) {
    // Slabs of other types are in the way; they can be made again.
    slabs_.clear();
    status = PlaceAll(p.types);
  }
  return status;
}

absl::Status OperandSets::PlaceAll(const Types& types) {
  absl::Status status = Place(kA, types.a, count_, a_);
  if (status.ok()) status = Place(kB, types.b, count_, b_);
  if (status.ok()) status = Place(kD, types.d, count_, d_);
  if (status.ok()) status = Place(kScalesA, DType::kF32, count_, scales_a_);
  if (status.ok()) status = Place(kScalesB, DType::kF32, count_, scales_b_);
  return status;
}

absl::StatusOr<Operands> OperandSets::Signs(const Problem& p) {
  Operands operands = At(0);
  Matrix a = a_, b = b_, scales_a = scales_a_, scales_b = scales_b_;
  absl::Status status = Place(kSignsA, p.types.a, 1, a);
  if (status.ok()) status = Place(kSignsB, p.types.b, 1, b);
  if (status.ok()) status = Place(kExactScalesA, DType::kF32, 1, scales_a);
  if (status.ok()) status = Place(kExactScalesB, DType::kF32, 1, scales_b);
  if (!status.ok()) return status;
  operands.a = a.data;
  operands.b = b.data;
  operands.scales_a = ScalesAt(scales_a, 0);
  operands.scales_b = ScalesAt(scales_b, 0);
  return operands;
}

absl::Status OperandSets::Place(Role role, DType type, int64_t count, Matrix& matrix) {
  Slab& slab = slabs_[{role, type}];
  const size_t bytes = matrix.bytes * static_cast<size_t>(count);
  if (slab.bytes < bytes) {
    slab.data.reset();
    slab.bytes = 0;
    absl::StatusOr<Buffer> data = backend_.Allocate(bytes);
    if (!data.ok()) return data.status();
    slab.data = *std::move(data);
    slab.bytes = bytes;
    if (role != kD) {
      const absl::Status status = FillRandomly(role, type, slab);
      if (!status.ok()) return status;
    }
  }
  matrix.data = static_cast<std::byte*>(slab.data.get());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> OperandSets::DrawFor(Role role, DType type) const {
  const uint64_t seed = inputs_.seed + role;
  switch (role) {
    case kSignsA:
    case kSignsB:
      return DrawSigns(seed, type);
    case kScalesA:
    case kScalesB:
      return DrawScales(seed);
    case kExactScalesA:
    case kExactScalesB:
      return DrawExactScales(seed);
    default:
      return Draw(inputs_, seed, type, type == DType::kS8 ? OverS8 : nullptr);
  }
}

absl::Status OperandSets::FillRandomly(Role role, DType type, Slab& slab) {
  if (slab.drawn.empty()) {
    absl::StatusOr<std::vector<std::byte>> drawn = DrawFor(role, type);
    if (!drawn.ok()) return drawn.status();
    slab.drawn = *std::move(drawn);
  }
  auto* const data = static_cast<std::byte*>(slab.data.get());
  for (size_t offset = 0; offset < slab.bytes; offset += slab.drawn.size()) {
    const absl::Status uploaded = backend_.Upload(data + offset, slab.drawn.data(),
                                                  std::min(slab.drawn.size(), slab.bytes - offset));
    if (!uploaded.ok()) return uploaded;
  }
  return backend_.Synchronize();
}

Operands OperandSets::At(int64_t index) const {
  const auto set = static_cast<size_t>(index % count_);
  return {.a = a_.data + set * a_.bytes,
          .lda = a_.ld,
          .b = b_.data + set * b_.bytes,
          .ldb = b_.ld,
          .d = d_.data + set * d_.bytes,
          .ldd = d_.ld,
          .scales_a = ScalesAt(scales_a_, set),
          .scales_b = ScalesAt(scales_b_, set)};
}

ScaleView OperandSets::ScalesAt(const Matrix& scales, size_t set) {
  return {.data = reinterpret_cast<const float*>(scales.data + set * scales.bytes),
          .line_step = scales.by_block ? 1 : scales.ld,
          .block_step = scales.by_block ? scales.ld : 1};
}

}  // namespace gemm::bench
