#include "client/cpp/products/row_blocks.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/to_proto.h"
#include "client/cpp/products/product_plan.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;

namespace v1 = ::gemm::v1;
using google::protobuf::Duration;

absl::Duration TimeOf(const Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

std::string KernelText(const v1::ProductReport& report) {
  const std::map<std::string, int64_t> params(report.params().begin(), report.params().end());
  return absl::StrCat(report.kernel(), " (", absl::StrJoin(params, ", ", absl::PairFormatter(" ")),
                      ")");
}

void Longest(const Duration& one, Duration& of_all) {
  if (TimeOf(of_all) < TimeOf(one)) of_all = one;
}

void Add(const Duration& one, Duration& of_all) { of_all = ToProto(TimeOf(of_all) + TimeOf(one)); }

void AddPhases(const v1::PhaseTimes& block, v1::PhaseTimes& all) {
  Longest(block.receive(), *all.mutable_receive());
  Longest(block.queue(), *all.mutable_queue());
  Longest(block.host_to_device(), *all.mutable_host_to_device());
  Longest(block.device_to_host(), *all.mutable_device_to_host());
  Longest(block.send(), *all.mutable_send());
  Longest(block.total(), *all.mutable_total());
  Add(block.kernel(), *all.mutable_kernel());
  if (block.has_transpose()) Add(block.transpose(), *all.mutable_transpose());
  if (block.has_check()) Add(block.check(), *all.mutable_check());
  if (block.has_device_to_device()) {
    Longest(block.device_to_device(), *all.mutable_device_to_device());
  }
}

// A server's policy may check some of the blocks: the rows of the others are not covered.
void AddCheck(const v1::ProductReport& block, v1::ProductReport& all) {
  const v1::ResultCheck& one = block.check();
  v1::ResultCheck& check = *all.mutable_check();
  const bool checked = one.result() != v1::CHECK_RESULT_UNSPECIFIED;
  check.set_uncovered_rows(check.uncovered_rows() + (checked ? one.uncovered_rows() : block.m()));
  check.set_result(std::max(check.result(), one.result()));
  if (check.result() == v1::CHECK_RESULT_PASSED && check.uncovered_rows() > 0) {
    check.set_result(v1::CHECK_RESULT_PARTIAL);
  }
  check.set_of_bound(std::max(check.of_bound(), one.of_bound()));
  check.set_before_activation(check.before_activation() || one.before_activation());
  if (check.failed_kernel().empty()) check.set_failed_kernel(one.failed_kernel());
  if (check.not_checked().empty()) check.set_not_checked(one.not_checked());
}

// The copies of an operand from another device: one made it, the others used it.
void AddCopies(const v1::ProductReport& block, v1::ProductReport& all) {
  for (const v1::OperandCopy& copy : block.copies()) {
    const auto same = std::find_if(
        all.mutable_copies()->begin(), all.mutable_copies()->end(),
        [&](const v1::OperandCopy& known) { return known.operand() == copy.operand(); });
    if (same == all.mutable_copies()->end()) {
      *all.add_copies() = copy;
    } else if (!copy.reused()) {
      *same = copy;
    }
  }
}

}  // namespace

v1::RankKernelsRequest RowBlockQuestion(const ProductPlan& plan, const std::string& device) {
  const v1::Product& product = plan.product;
  const v1::MatrixShape& b = product.b().shape();
  v1::RankKernelsRequest request;
  request.set_device(device);
  request.mutable_size()->set_m(plan.result_shape->rows);
  request.mutable_size()->set_n(plan.result_shape->cols);
  request.mutable_size()->set_k(product.a().shape().cols());
  request.mutable_types()->set_a(product.a().shape().dtype());
  request.mutable_types()->set_b(b.dtype());
  request.mutable_types()->set_output(product.output_dtype());
  request.mutable_types()->set_compute(product.compute());
  // A is row-major and not transposed.
  request.mutable_layout()->set_transpose_b(product.transpose_b() !=
                                            (b.layout() == v1::LAYOUT_COLUMN_MAJOR));
  request.set_epilogue(product.has_c() || product.has_bias() ||
                       product.activation() > v1::ACTIVATION_NONE);
  request.set_family(product.kernel().family());
  return request;
}

bool PromisesRowBlocks(const std::string& name, const v1::RankKernelsResponse& ranking) {
  const auto& kernels = ranking.kernels();
  // The first is the choice.
  const auto chosen =
      name.empty() || name == "auto"
          ? kernels.begin()
          : std::find_if(kernels.begin(), kernels.end(),
                         [&name](const v1::RankedKernel& one) { return one.name() == name; });
  return chosen != kernels.end() && chosen->row_blocks();
}

void AskForRowBlocks(const std::shared_ptr<Task>& task, const ProductPlan& plan,
                     const std::string& device, std::function<void(bool)> then) {
  CallUnary(task, &AsyncStub::RankKernels, RowBlockQuestion(plan, device),
            [name = plan.product.kernel().name(), then = std::move(then)](
                const absl::Status& status, v1::RankKernelsResponse& answer) {
              then(status.ok() && PromisesRowBlocks(name, answer));
            });
}

absl::StatusOr<v1::ProductReport> MergeReports(const std::vector<v1::ProductReport>& blocks) {
  v1::ProductReport all = blocks.front();
  all.set_m(0);
  all.clear_phases();
  all.clear_check();
  all.clear_copies();
  const bool any_check = std::any_of(blocks.begin(), blocks.end(),
                                     [](const auto& block) { return block.has_check(); });
  for (const v1::ProductReport& block : blocks) {
    if (KernelText(block) != KernelText(all)) {
      return absl::FailedPreconditionError(
          absl::StrCat("blocks of rows of one product were computed by ", KernelText(all), " and ",
                       KernelText(block)));
    }
    all.set_m(all.m() + block.m());
    AddPhases(block.phases(), *all.mutable_phases());
    if (any_check) AddCheck(block, all);
    AddCopies(block, all);
  }
  all.mutable_result_shape()->set_rows(all.m());
  // 2 m n k of all rows; nothing where alpha is 0, as each block says.
  const double seconds = absl::ToDoubleSeconds(TimeOf(all.phases().kernel()));
  const double flops = 2.0 * static_cast<double>(all.m()) * static_cast<double>(all.n()) *
                       static_cast<double>(all.k());
  all.set_tflops(all.tflops() > 0 && seconds > 0 ? flops / seconds / 1e12 : 0);
  return all;
}

}  // namespace gemmd::client
