#include "client/cpp/products/row_block_question.h"

#include <algorithm>
#include <utility>

#include "client/cpp/calls/unary_call.h"

namespace gemmd::client {

namespace v1 = ::gemm::v1;

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

}  // namespace gemmd::client
