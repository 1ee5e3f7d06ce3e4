#include "tests/kernels/defects.h"

#include <algorithm>

#include "tests/kernels/emulated_kernel.h"

namespace gemm::testing {
namespace {

constexpr int64_t kKTile = 32;  // products of a k-tile
constexpr int64_t kTail = 8;    // and of the tail that is dropped
constexpr int64_t kBlock = 16;  // rows that are swapped

double Zeros(const Product&, int64_t, int64_t) { return 0; }

double SwappedBlocks(const Product& p, int64_t i, int64_t j) { return p.D(i ^ kBlock, j); }

double TailDropped(const Product& p, int64_t i, int64_t j) {
  const int64_t k = p.problem().k;
  return p.D(i, j) - p.Part(i, j, k - kTail, k);
}

int64_t MiddleTile(const Product& p) { return p.problem().k / 2 / kKTile * kKTile; }

double KTileDropped(const Product& p, int64_t i, int64_t j) {
  const int64_t from = MiddleTile(p);
  return p.D(i, j) - p.Part(i, j, from, from + kKTile);
}

double KTileTwice(const Product& p, int64_t i, int64_t j) {
  const int64_t from = MiddleTile(p);
  return p.D(i, j) + p.Part(i, j, from, from + kKTile);
}

double BiasShifted(const Product& p, int64_t i, int64_t j) {
  return p.D(i, j) - p.Bias(j) + p.Bias((j + 1) % kDefectSize);
}

double BiasLeftOut(const Product& p, int64_t i, int64_t j) { return p.D(i, j) - p.Bias(j); }

double AlphaTwice(const Product& p, int64_t i, int64_t j) {
  return p.D(i, j) + (p.problem().alpha - 1) * p.Part(i, j, 0, p.problem().k);
}

double CLeftOut(const Product& p, int64_t i, int64_t j) {
  return p.D(i, j) - p.problem().beta * p.C(i, j);
}

double LastColumnOfTheOneBefore(const Product& p, int64_t i, int64_t j) {
  return p.D(i, std::min(j, kDefectSize - 2));
}

constexpr Defect kDefects[] = {
    {.name = "all zeros", .apply = Zeros, .large = true},
    {.name = "16-row blocks swapped", .apply = SwappedBlocks, .large = true},
    {.name = "last column is the one before", .apply = LastColumnOfTheOneBefore, .large = true},
    {.name = "k-tail of 8 dropped", .apply = TailDropped},
    {.name = "k-tile of 32 dropped", .apply = KTileDropped},
    {.name = "k-tile of 32 twice", .apply = KTileTwice},
    {.name = "bias shifted by a column", .apply = BiasShifted, .epilogue = true},
    {.name = "bias left out", .apply = BiasLeftOut, .epilogue = true},
    {.name = "alpha twice", .apply = AlphaTwice, .epilogue = true, .of_alpha = true},
    {.name = "C left out", .apply = CLeftOut, .epilogue = true},
};

}  // namespace

Product::Product(const ProductCase& product, int64_t thinning) : data_(product) {
  for (int64_t i = 0; i < problem().m; ++i) {
    for (int64_t p = 0; p < problem().k; ++p) {
      if ((i + p) % thinning != 0) data_.a.Set(i, p, 0);
    }
  }
  RunEmulated(data_);
}

double Product::Part(int64_t i, int64_t j, int64_t from, int64_t to) const {
  double sum = 0;
  for (int64_t p = from; p < to; ++p) sum += data_.a.At(i, p) * data_.b.At(p, j);
  return problem().alpha * sum;
}

absl::Span<const Defect> Defects() { return kDefects; }

std::vector<std::byte> ResultOf(const Product& product, const Defect* defect) {
  const DType type = product.problem().types.d;
  std::vector<std::byte> result(kDefectSize * kDefectSize * SizeOf(type));
  for (int64_t i = 0; i < kDefectSize; ++i) {
    for (int64_t j = 0; j < kDefectSize; ++j) {
      StoreElement(result.data(), i * kDefectSize + j, type,
                   defect == nullptr ? product.D(i, j) : defect->apply(product, i, j));
    }
  }
  return result;
}

}  // namespace gemm::testing
