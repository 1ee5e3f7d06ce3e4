#include "kernels/bench/spec/shape.h"

#include <cmath>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gemm/quote.h"

namespace gemm::bench {
namespace {

// The contract's bound for a server's benchmarks.
constexpr int64_t kMaxDim = int64_t{1} << 24;

absl::Status NoShape(absl::string_view word) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is no shape: write MxNxK, such as 4096x4096x512, or one number ",
                   "for a cube, each 1 to ", kMaxDim));
}

absl::StatusOr<Shape> ParseShape(absl::string_view word) {
  std::vector<int64_t> dims;
  for (const absl::string_view part : absl::StrSplit(word, absl::ByAnyChar("xX"))) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 1 || dim > kMaxDim) return NoShape(word);
    dims.push_back(dim);
  }
  if (dims.size() == 1) return Shape{dims[0], dims[0], dims[0]};
  if (dims.size() == 3) return Shape{dims[0], dims[1], dims[2]};
  return NoShape(word);
}

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

// A linear layer: its outputs and inputs.
struct Layer {
  int64_t n, k;
};

// Linear layers as the configurations say that the models' authors publish (config.json or paper):
// hidden, intermediate and vocabulary sizes, heads. Queries, keys and values are one layer where
// implementations join them; gate and up likewise.
constexpr Layer kLayers[] = {
    // Qwen2.5 7B: 3,584 hidden, 18,944 intermediate, 4 of 28 heads for keys, 152,064 words.
    {4608, 3584},
    {3584, 3584},
    {37888, 3584},
    {3584, 18944},
    {152064, 3584},
    // Mistral 7B: 4,096 hidden, 14,336 intermediate, 32,000 words.
    {6144, 4096},
    {28672, 4096},
    {4096, 14336},
    {32000, 4096},
    // Phi-3 mini: 3,072 hidden, 8,192 intermediate, 32,064 words.
    {9216, 3072},
    {3072, 3072},
    {16384, 3072},
    {3072, 8192},
    {32064, 3072},
    // Llama 3.1 70B, a quarter of each layer on one of four GPUs: 8,192 hidden, 28,672
    // intermediate.
    {2560, 8192},
    {8192, 2048},
    {14336, 8192},
    {8192, 7168},
    // DeepSeek-V3: 7,168 hidden, experts of 2,048, latent queries of 1,536.
    {1536, 7168},
    {24576, 1536},
    {4096, 7168},
    {7168, 2048},
    // GPT-2 medium: 1,024 hidden, 50,257 words.
    {3072, 1024},
    {4096, 1024},
    {50257, 1024},
    // BERT base: 768 hidden, 30,522 words.
    {768, 768},
    {3072, 768},
    {768, 3072},
    {30522, 768},
    // Whisper large: 1,280 hidden, 51,866 words.
    {1280, 1280},
    {5120, 1280},
    {51866, 1280},
    // ViT-H/14: 1,280 hidden, patches of 588 numbers, 1,000 classes.
    {1280, 588},
    {1000, 1280},
    // Wide & Deep and DLRM for MLPerf: 13 dense features, 479 and 415 interactions.
    {512, 13},
    {256, 512},
    {1024, 479},
    {512, 415},
    // VGG-16, the last layers.
    {4096, 25088},
    {1000, 4096},
};

// Typical numbers of tokens, images or samples at once on a server: one, decoding in batches, a
// picture's patches (197 and 257 with the class token), a prompt.
constexpr int64_t kLayerRows[] = {1,   2,   8,   16,  24,  33,   48,   64,   100,
                                  128, 197, 257, 400, 512, 1000, 1500, 2048, 3000};

// Each layer gets three numbers of rows, in turn, so that every number occurs with layers of each
// size.
std::vector<Shape> LayerShapes() {
  constexpr size_t kEach = 3, kCount = std::size(kLayerRows);
  std::vector<Shape> shapes;
  for (size_t i = 0; i < std::size(kLayers); ++i) {
    for (size_t j = 0; j < kEach; ++j) {
      const int64_t m = kLayerRows[(i * 5 + j * (kCount / kEach) + i / kCount) % kCount];
      shapes.push_back({m, kLayers[i].n, kLayers[i].k});
    }
  }
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
      {"layers", "linear layers of public models, with 1 to 3,000 rows", LayerShapes()},
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

double Flops(const Shape& shape) {
  return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
         static_cast<double>(shape.k);
}

double CubeEdge(const Shape& shape) { return std::cbrt(Flops(shape) / 2); }

std::string ShapeName(const Shape& shape) {
  return absl::StrCat(shape.m, "x", shape.n, "x", shape.k);
}

absl::StatusOr<std::vector<Shape>> ParseShapes(absl::string_view text) {
  std::vector<Shape> shapes;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const absl::StatusOr<Shape> shape = ParseShape(absl::StripAsciiWhitespace(word));
    if (!shape.ok()) return shape.status();
    shapes.push_back(*shape);
  }
  return shapes;
}

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
