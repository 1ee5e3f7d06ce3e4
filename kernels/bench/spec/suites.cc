#include "kernels/bench/spec/suites.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/quote.h"

namespace gemm::bench {
namespace {

using Dims = std::vector<int64_t>;

// Every m with every n with every k, k fastest.
std::vector<Shape> Grid(const Dims& ms, const Dims& ns, const Dims& ks) {
  std::vector<Shape> shapes;
  for (const int64_t m : ms) {
    for (const int64_t n : ns) {
      for (const int64_t k : ks) shapes.push_back({m, n, k});
    }
  }
  return shapes;
}

std::vector<Shape> Cubes(int64_t first, int64_t last, int64_t step) {
  std::vector<Shape> shapes;
  for (int64_t edge = first; edge <= last; edge += step) shapes.push_back({edge, edge, edge});
  return shapes;
}

std::vector<Suite> MakeSuites() {
  const Dims large = {4096, 8192, 16384};
  const Dims small = {64, 128, 256, 512, 1024};
  const Dims wide = {1024, 2048, 4096, 8192, 16384};
  return {
      {"sgemm-8", "M, N in 2048, 4096; K in 512, 1024",
       Grid({2048, 4096}, {2048, 4096}, {512, 1024})},
      {"hgemm-27", "M, N in 4096, 8192, 16384; K in 2048, 4096, 8192",
       Grid(large, large, {2048, 4096, 8192})},
      {"hgemm-125", "M, N in 1024 to 16384, K in 512 to 8192, by powers of two",
       Grid(wide, wide, {512, 1024, 2048, 4096, 8192})},
      {"triton-31", "cubes of 256 to 4096 in steps of 128", Cubes(256, 4096, 128)},
      {"skinny-72", "M in 1 to 128, by powers of two; N, K in 4096, 8192, 14336",
       Grid({1, 2, 4, 8, 16, 32, 64, 128}, {4096, 8192, 14336}, {4096, 8192, 14336})},
      {"small-125", "M, N, K in 64 to 1024, by powers of two", Grid(small, small, small)},
      {"article", "cubes of 1024 to 4096 in steps of 512", Cubes(1024, 4096, 512)},
      {"odd",
       "primes, vectors and sizes one beside those of tiles",
       {{1021, 1019, 1013},
        {2039, 2053, 2063},
        {4093, 4091, 4099},
        {1023, 1025, 1027},
        {2049, 2047, 513},
        {4097, 4095, 33},
        {129, 127, 4097},
        {17, 4099, 4093},
        {4099, 17, 4093},
        {1, 4096, 4096},
        {4096, 1, 4096},
        {3001, 2999, 1}}},
  };
}

}  // namespace

absl::Span<const Suite> Suites() {
  static const auto* const suites = new std::vector<Suite>(MakeSuites());
  return *suites;
}

absl::StatusOr<const Suite*> FindSuite(absl::string_view name) {
  for (const Suite& suite : Suites()) {
    if (suite.name == name) return &suite;
  }
  return absl::NotFoundError(absl::StrCat(
      "no suite is named ", Quoted(name), "; there are ",
      absl::StrJoin(Suites(), ", ",
                    [](std::string* out, const Suite& s) { absl::StrAppend(out, s.name); })));
}

}  // namespace gemm::bench
