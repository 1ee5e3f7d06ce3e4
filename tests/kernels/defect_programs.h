// The judges of our programs, for the products of defects.h.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "client/ctl/checks/verify.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/measure/oracle.h"
#include "tests/kernels/defects.h"

namespace gemm::testing {

// `gemmctl multiply --verify`.
class GemmctlJudge {
 public:
  // `known`: the assumption about operands that the server generated; a caller's own are kAny.
  GemmctlJudge(const Product& product, Elements known);

  // The largest error over its bound.
  double WorstRatio(const std::vector<std::byte>& result) const;

 private:
  const Problem problem_;
  const gemmd::client::HostMatrix a_, b_, c_, bias_;
  const Elements known_;
};

// gemm_bench, which has products without an epilogue: one of drawn elements and one of -1, 0
// and 1. Borrows them.
class BenchJudge {
 public:
  BenchJudge(const Product& drawn, const Product& signs);

  // Whether a row of both results is right.
  bool IsRight(const std::vector<std::byte>& drawn, const std::vector<std::byte>& signs);

 private:
  struct Checked {
    bench::Oracle oracle;
    std::vector<std::byte> d;  // what the oracle compares
  };
  void Prepare(const Product& product, Elements elements, Checked& checked);
  bench::SampledError Compare(const std::vector<std::byte>& result, Checked& checked);

  const std::unique_ptr<bench::Backend> backend_ = bench::CreateHostBackend();
  Checked drawn_, signs_;
};

}  // namespace gemm::testing
