#include "tests/kernels/special_values.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/numeric/wrapping.h"

namespace gemm::testing {
namespace {

// alpha, beta or the slope in the arithmetic of a product.
double Rounded(double scalar, Compute compute) {
  return compute == Compute::kF64 ? scalar : static_cast<double>(static_cast<float>(scalar));
}

// Lines of a stored matrix, dense: its rows or its columns.
std::vector<double> Lines(const GuardedMatrix& matrix, bool columns) {
  const int64_t count = columns ? matrix.cols() : matrix.rows();
  const int64_t length = columns ? matrix.rows() : matrix.cols();
  std::vector<double> lines;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t p = 0; p < length; ++p) {
      lines.push_back(columns ? matrix.At(p, i) : matrix.At(i, p));
    }
  }
  return lines;
}

double Activated(Activation activation, double slope, double x) {
  if (std::isnan(x)) return x;
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kLeakyRelu:
      return x > 0 ? x : slope == 0 ? 0 : slope * x;
    case Activation::kGelu:
      break;
  }
  return x == -kInfinity ? 0 : x / 2 * std::erfc(-x / std::sqrt(2.0));
}

bool Same(const ProductData& data, double got, double wanted) {
  const double rounded = RoundedElement(wanted, data.d.type());
  if (std::isnan(rounded)) return std::isnan(got);
  if (data.product.problem.activation == Activation::kGelu && std::isfinite(rounded)) {
    return std::abs(got - rounded) <= 0.01 * std::abs(rounded) + 1e-3;
  }
  return got == rounded;
}

}  // namespace

std::vector<double> WantedD(const ProductData& data) {
  const Problem& p = data.product.problem;
  const Compute compute = p.types.compute;
  const double alpha = Rounded(p.alpha, compute), beta = Rounded(p.beta, compute);
  const std::vector<double> a = Lines(data.a, p.trans_a), b = Lines(data.b, !p.trans_b);
  std::vector<double> wanted;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double value = 0;
      if (alpha != 0) {
        value = alpha * std::inner_product(&a[static_cast<size_t>(i * p.k)],
                                           &a[static_cast<size_t>(i * p.k)] + p.k,
                                           &b[static_cast<size_t>(j * p.k)], 0.0);
      }
      if (beta != 0) value += beta * data.c.At(i, j);
      if (p.bias == BiasAxis::kColumns) value += data.bias.At(0, j);
      if (p.bias == BiasAxis::kRows) value += data.bias.At(0, i);
      if (p.types.d == DType::kS32) value = static_cast<double>(WrappingS32(value));
      wanted.push_back(Activated(p.activation, Rounded(p.leaky_slope, compute), value));
    }
  }
  return wanted;
}

std::string CheckSpecial(const Kernel& kernel, const SpecialCase& special, const Runner& run,
                         bool exact) {
  ProductData data = special.data;
  std::ostringstream wrong;
  if (const absl::Status status = run(kernel, data); !status.ok()) wrong << status << "; ";
  const Problem& problem = data.product.problem;
  int64_t count = 0;
  for (int64_t i = 0; exact && i < problem.m; ++i) {
    for (int64_t j = 0; j < problem.n; ++j) {
      const double wanted = special.wanted[static_cast<size_t>(i * problem.n + j)];
      const double got = data.d.At(i, j);
      if (Same(data, got, wanted) || ++count > 1) continue;
      wrong << "D(" << i << ", " << j << ") is " << got << ", not " << wanted << "; ";
    }
  }
  if (count > 1) wrong << count << " elements are wrong; ";
  const Agreement agreement =
      CompareWithReference(problem, data.ForReference(), Elements::kAny, 300, 1);
  if (!(agreement.worst_ratio <= 1)) {
    wrong << "the oracle disagrees at (" << agreement.worst_row << ", " << agreement.worst_col
          << "); ";
  }
  if (!data.d.GuardIntact()) wrong << "bytes beside D's elements changed; ";
  if (wrong.str().empty()) return "";
  return absl::StrCat(wrong.str(), special.name, " of kernel ", kernel.name, "\n");
}

std::string CheckRefusedScalars(const Kernel& kernel, const Types& types, const Runner& run) {
  std::vector<double> refused = {kNaN, kInfinity, -kInfinity};
  if (types.compute != Compute::kF64) refused.insert(refused.end(), {1e300, -3.5e38});
  const std::pair<const char*, double Problem::*> fields[] = {
      {"alpha", &Problem::alpha}, {"beta", &Problem::beta}, {"leaky_slope", &Problem::leaky_slope}};
  std::string wrong;
  for (const auto& [field, member] : fields) {
    for (const double value : refused) {
      ProductCase product{.problem = {.m = 5, .n = 6, .k = 7, .types = types, .beta = 1}};
      ProductData data(product);
      data.product.problem.*member = value;
      const std::vector<std::byte> before = data.d.bytes();
      const absl::Status status = run(kernel, data);
      if (!absl::IsInvalidArgument(status) || !absl::StrContains(status.message(), field) ||
          !absl::StrContains(status.message(), absl::StrCat(value))) {
        absl::StrAppend(&wrong, field, " ", value, ": ", status.ToString(), "; ");
      }
      if (data.d.bytes() != before) absl::StrAppend(&wrong, field, " ", value, ": D changed; ");
    }
  }
  return wrong.empty() ? "" : absl::StrCat(wrong, "kernel ", kernel.name, "\n");
}

}  // namespace gemm::testing
