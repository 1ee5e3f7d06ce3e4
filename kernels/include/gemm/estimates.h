// How long kernels should take for a product on a model of GPU: formulas, corrected by regression
// trees that were fitted to measurements on that model.
//
// A kernel's formula (Kernel::estimated_seconds) knows tiles and the rates of a chip. Trees correct
// the rest: for each kernel, the logarithm of the ratio of measured to computed time is a sum of
// small trees over features of the product (kernels/tuning/features.h). A kernel without a formula,
// such as a library's, uses the smallest of the other kernels' formulas, since a library runs much
// the same kernels. scripts/fit_estimates.py makes the trees.
//
// The text has a first line with the version, then a line for each device, as its driver names it,
// then classes. A class has kernels for some types of A and B and a compute mode; several types
// share trees if their kernels have the same configurations. A kernel that takes several compute
// modes is in the class of its first. * in a kernel's name stands for the name of the types. A tree
// has four levels of nodes, level by level, each feature:threshold; then = and its 16 leaves. A
// product goes to the left child of a node if the feature is at most the threshold. # begins a
// comment line.
//
//   gemmd estimates 1
//   device NVIDIA H200
//   class f16:f16:f32=f16 bf16:bf16:f32=bf16
//   kernel cublaslt_*
//   tree 3:2.5 0:7.25 9:-2.2 (and 12 more) = 0.12 -0.03 0.4 (and 13 more)
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"

namespace gemm {

// A measured product: the seconds of each kernel.
struct TimedProduct {
  Problem problem;
  std::vector<std::pair<const Kernel*, double>> seconds;
};

// Immutable, so thread-safe.
class Estimates {
 public:
  // INVALID_ARGUMENT names `source`, the line, the value and what is allowed. Kernels that this
  // build does not have are no error.
  static absl::StatusOr<Estimates> Parse(absl::string_view text, absl::string_view source);

  // For a device with only a few dozen measured products of each class: a smooth function of the
  // product (kernels/tuning/gaussian_process.h) replaces the trees.
  static Estimates FromTimes(std::string device, absl::Span<const TimedProduct> products);

  Estimates(Estimates&&) noexcept;
  Estimates& operator=(Estimates&&) noexcept;
  ~Estimates();

  // The measured devices, as their drivers name them.
  const std::vector<std::string>& devices() const { return devices_; }

  // Seconds that the problem should take on devices()[device], for each of `kernels` in their
  // order. Infinity for a kernel that refuses the problem, and for one without an estimate.
  // Batches, groups and products with block scales were not measured: for them formulas alone
  // count. Takes a few microseconds.
  std::vector<double> Seconds(const Problem& problem, absl::Span<const Kernel* const> kernels,
                              size_t device) const;

 private:
  struct Class;
  class Parser;

  Estimates();
  static std::unique_ptr<Class> ClassFrom(absl::Span<const TimedProduct* const> products);
  const Class* ClassOf(const Problem& problem, size_t& types) const;
  void Correct(const Problem& problem, absl::Span<const Kernel* const> kernels, size_t device,
               std::vector<double>& seconds) const;

  std::vector<std::string> devices_;
  std::vector<std::unique_ptr<const Class>> classes_;
};

// Estimates for one device.
struct DeviceEstimates {
  const Estimates* estimates = nullptr;
  size_t device = 0;  // of estimates->devices()

  // The model that was measured, as its driver names it; empty if there are none.
  absl::string_view model() const {
    return estimates == nullptr ? absl::string_view() : estimates->devices()[device];
  }
};

// The built-in estimates for a device, found by the driver's name for it and by its capability
// (DeviceCaps). A model that was not measured gets the estimates of one with the same capability;
// `estimates` is null if there is none.
DeviceEstimates BuiltInEstimates(absl::string_view device, int capability);

// The index in `kernels` of the one that `auto` takes, given their `seconds`: the fastest whose
// scratch memory fits in `max_workspace_bytes`. Empty if none has an estimate.
std::optional<size_t> FastestOf(const Problem& problem, absl::Span<const Kernel* const> kernels,
                                absl::Span<const double> seconds, size_t max_workspace_bytes);

// Seconds by formulas alone, for a device without measurements.
std::vector<double> FormulaSeconds(const Problem& problem, absl::Span<const Kernel* const> kernels);

}  // namespace gemm
