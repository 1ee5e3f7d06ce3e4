#include <algorithm>

#include "gemm/check.h"
#include "gemm/scalars.h"
#include "kernels/check/check_plan.h"
#include "kernels/host/epilogue.h"
#include "kernels/host/pack.h"
#include "kernels/numeric/element.h"

namespace gemm {
namespace {

// Lines and elements that are widened at a time: 16 KiB.
constexpr int64_t kLinesAtOnce = 8;
constexpr int64_t kRunAtOnce = 256;
// Sums that run side by side along a line, for the vector units.
constexpr int64_t kLanes = 4;

// Adds `count` elements to the lanes of a line.
template <class Sum>
void AddRun(const double* x, const Weights& weights, int64_t first, int64_t count,
            LineAdder<Sum>* lanes) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const int64_t at = first + i + lane;
      lanes[lane].Add(x[i + lane], weights.value[at], weights.low[at], weights.magnitude[at]);
    }
  }
  for (; i < count; ++i) {
    const int64_t at = first + i;
    lanes[0].Add(x[i], weights.value[at], weights.low[at], weights.magnitude[at]);
  }
}

// The sums of each of the `lines` rows of x, which have `length` elements.
template <class Sum>
void SumRows(const OperandView& x, int64_t lines, int64_t length, const Weights& weights,
             LineSums* out) {
  double block[kLinesAtOnce * kRunAtOnce];
  for (int64_t line = 0; line < lines; line += kLinesAtOnce) {
    const int64_t rows = std::min(kLinesAtOnce, lines - line);
    LineAdder<Sum> adders[kLinesAtOnce][kLanes];
    for (int64_t first = 0; first < length; first += kRunAtOnce) {
      const int64_t count = std::min(kRunAtOnce, length - first);
      PackBlock(x, line, rows, first, count, block, kRunAtOnce);
      for (int64_t i = 0; i < rows; ++i) {
        AddRun(block + i * kRunAtOnce, weights, first, count, adders[i]);
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t lane = 1; lane < kLanes; ++lane) adders[i][0].Join(adders[i][lane].sums());
      out[line + i] = adders[i][0].sums();
    }
  }
}

void SumRows(bool pairs, const OperandView& x, int64_t lines, int64_t length,
             const Weights& weights, LineSums* out) {
  if (pairs) {
    SumRows<PairSum>(x, lines, length, weights, out);
  } else {
    SumRows<PlainSum>(x, lines, length, weights, out);
  }
}

OperandView OfType(const void* data, DType type, int64_t ld) {
  return {.data = data, .type = type, .ld = ld, .transposed = false};
}

// Fills the arrays of `memory`. Returns the sum of the norms of B's rows.
double SumAll(const Problem& p, const Operands& o, uint64_t seed, bool pairs,
              const CheckMemory& memory) {
  for (int64_t j = 0; j < p.n; ++j) memory.r[j] = SignOf(seed, j);
  std::fill_n(memory.zeros, p.n, 0.0);
  std::fill_n(memory.ones, p.n, 1.0);
  SumRows(pairs, ViewB(p, o), p.k, p.n, memory.signs(), memory.b_parts);
  double b_norms = 0;
  for (int64_t l = 0; l < p.k; ++l) {
    memory.y[l] = memory.b_parts[l].dot;
    memory.y_low[l] = memory.b_parts[l].low;
    memory.b_norms[l] = Norm(memory.b_parts[l]);
    b_norms += memory.b_norms[l];
  }
  SumRows(pairs, ViewA(p, o), p.m, p.k, memory.products(), memory.a_parts);
  SumRows(pairs, OfType(o.d, p.types.d, o.ldd), p.m, p.n, memory.signs(), memory.d);
  if (p.beta != 0) {
    SumRows(pairs, OfType(o.c, p.types.d, o.ldc), p.m, p.n, memory.signs(), memory.c);
  }
  *memory.bias = LineSums();
  if (p.bias == BiasAxis::kColumns) {
    SumRows(pairs, OfType(o.bias, p.types.d, p.n), 1, p.n, memory.signs(), memory.bias);
  }
  return b_norms;
}

}  // namespace

CheckOutcome CheckHost(const Check& check, RowResidual* rows) {
  const Problem problem = RoundScalars(check.problem);
  const Operands& operands = check.operands;
  const RowRule rule = MakeRowRule(problem, check.seed);
  CheckMemory memory;
  LayOut(problem, check.scratch, &memory);
  RowTerms terms;
  terms.b_norms = SumAll(problem, operands, check.seed, rule.pairs, memory);
  terms.bias = *memory.bias;
  CheckOutcome outcome;
  for (int64_t i = 0; i < problem.m; ++i) {
    terms.a = memory.a_parts[i];
    terms.d = memory.d[i];
    if (problem.beta != 0) terms.c = memory.c[i];
    if (problem.bias == BiasAxis::kRows) {
      VisitDType(problem.types.d, [&]<DType kD>() {
        using D = ElementTraits<kD>;
        terms.bias_element = D::Load(static_cast<const typename D::Storage*>(operands.bias)[i]);
      });
    }
    const RowResidual row = JudgeRow(rule, terms);
    if (rows != nullptr) rows[i] = row;
    TakeRow(row, i, outcome);
  }
  return outcome;
}

absl::Status FinishHost(const Problem& given, const Operands& operands, const void* accumulators) {
  const Problem problem = RoundScalars(given);
  const Problem product = AccumulatorProblem(problem);
  constexpr int64_t kRun = 256;
  const int64_t ld = AccumulatorOperands(problem, operands, nullptr).ldd;
  const auto finish = [&]<class Wide>(Wide(&values)[kRun]) {
    const OperandView s = OfType(accumulators, product.types.d, ld);
    VisitDType(problem.types.d, [&]<DType kD>() {
      for (int64_t i = 0; i < problem.m; ++i) {
        for (int64_t j = 0; j < problem.n; j += kRun) {
          const int64_t count = std::min(kRun, problem.n - j);
          PackBlock(s, i, 1, j, count, values, kRun);
          FinishRow<kD>(problem, operands, values, i, j, count);
        }
      }
    });
  };
  if (problem.types.compute == Compute::kS32) {
    WrappingS32 values[kRun];
    finish(values);
  } else if (ScalarType(problem.types.compute) == DType::kF64) {
    double values[kRun];
    finish(values);
  } else {
    float values[kRun];
    finish(values);
  }
  return absl::OkStatus();
}

}  // namespace gemm
