#include "tests/rpc/bad_benchmarks.h"

#include <limits>
#include <utility>

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;
using Stub = v1::GemmService::Stub;
using Request = v1::BenchmarkRequest;

// A good request with `change`.
BadTransfer Bad(std::string name, const std::function<void(Request&)>& change, StatusCode code,
                std::vector<std::string> sentence) {
  Request request;
  v1::ProductSize& size = *request.add_shapes();
  size.set_m(4);
  size.set_n(4);
  size.set_k(4);
  change(request);
  const auto call = [request = std::move(request)](Stub& stub) {
    grpc::ClientContext context;
    auto reader = stub.Benchmark(&context, request);
    v1::BenchmarkResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  };
  return {std::move(name), call, code, std::move(sentence)};
}

BadTransfer Invalid(std::string name, const std::function<void(Request&)>& change,
                    std::vector<std::string> sentence) {
  return Bad(std::move(name), change, StatusCode::INVALID_ARGUMENT, std::move(sentence));
}

void AddShapes(std::vector<BadTransfer>& rows) {
  rows.push_back(
      Invalid("BenchNoShape", [](auto& r) { r.clear_shapes(); }, {"shapes: none, and no suite"}));
  rows.push_back(Invalid("BenchTooManyShapes",
                         [](auto& r) {
                           for (int i = 0; i < 256; ++i) *r.add_shapes() = r.shapes(0);
                         },
                         {"shapes: 257", "256"}));
  rows.push_back(Invalid("BenchSuiteAndTooManyShapes",
                         [](auto& r) {
                           r.set_suite("hgemm-125");
                           for (int i = 0; i < 131; ++i) *r.add_shapes() = r.shapes(0);
                         },
                         {"shapes: 257", "256"}));
  rows.push_back(Invalid("BenchZeroRows", [](auto& r) { r.mutable_shapes(0)->set_m(0); },
                         {"shapes[0].m: 0", "1 to 16777216"}));
  rows.push_back(Invalid("BenchNegativeCols", [](auto& r) { r.mutable_shapes(0)->set_n(-3); },
                         {"shapes[0].n: -3"}));
  rows.push_back(Invalid("BenchZeroDepth",
                         [](auto& r) { *r.add_shapes() = v1::ProductSize::default_instance(); },
                         {"shapes[1].m: 0"}));
  rows.push_back(Invalid("BenchTooManyRows",
                         [](auto& r) { r.mutable_shapes(0)->set_m((int64_t{1} << 24) + 1); },
                         {"shapes[0].m: 16777217", "1 to 16777216"}));
  rows.push_back(Invalid("BenchTooManyCols",
                         [](auto& r) { r.mutable_shapes(0)->set_n(int64_t{1} << 62); },
                         {"shapes[0].n: 4611686018427387904"}));
  rows.push_back(Invalid("BenchTooDeep",
                         [](auto& r) { r.mutable_shapes(0)->set_k((int64_t{1} << 24) + 1); },
                         {"shapes[0].k: 16777217"}));
  rows.push_back(Bad("BenchUnknownSuite", [](auto& r) { r.set_suite("hgemm-126"); },
                     StatusCode::NOT_FOUND, {"\"hgemm-126\"", "hgemm-125"}));
}

void AddSelections(std::vector<BadTransfer>& rows) {
  rows.push_back(Invalid("BenchUnknownDevice", [](auto& r) { r.set_device("cuda:9"); },
                         {"device is \"cuda:9\"", "host:0"}));
  rows.push_back(Bad("BenchUnknownKernel", [](auto& r) { r.add_kernels("host_openblass"); },
                     StatusCode::NOT_FOUND, {"host_openblass", "nearest are host_openblas"}));
  rows.push_back(Bad("BenchUnknownPattern", [](auto& r) { r.add_kernels("ghost_*"); },
                     StatusCode::NOT_FOUND, {"\"ghost_*\""}));
  rows.push_back(Bad("BenchUnknownFamily", [](auto& r) { r.add_families("hots"); },
                     StatusCode::NOT_FOUND, {"\"hots\"", "there are host"}));
  rows.push_back(Invalid("BenchEmptyKernel", [](auto& r) { r.add_kernels(""); },
                         {"kernels[0]: 0 bytes", "1 to 128"}));
  rows.push_back(Invalid("BenchLongKernel", [](auto& r) { r.add_kernels(std::string(129, '*')); },
                         {"kernels[0]: 129 bytes"}));
  rows.push_back(Invalid("BenchLongFamily", [](auto& r) { r.add_families(std::string(129, 'f')); },
                         {"families[0]: 129 bytes"}));
  rows.push_back(Invalid("BenchLongSuite", [](auto& r) { r.set_suite(std::string(129, 's')); },
                         {"suite: 129 bytes"}));
  rows.push_back(Invalid("BenchLongDevice", [](auto& r) { r.set_device(std::string(129, 'd')); },
                         {"device: 129 bytes"}));
  rows.push_back(Invalid("BenchTooManyKernels",
                         [](auto& r) {
                           for (int i = 0; i < 257; ++i) r.add_kernels("*");
                         },
                         {"kernels: 257", "256"}));
  rows.push_back(Invalid("BenchTooManyFamilies",
                         [](auto& r) {
                           for (int i = 0; i < 65; ++i) r.add_families("host");
                         },
                         {"families: 65", "64"}));
  rows.push_back(Invalid("BenchUnknownType",
                         [](auto& r) { r.add_types()->set_b(static_cast<v1::DataType>(77)); },
                         {"types[0].b: 77", "DATA_TYPE_F32"}));
  rows.push_back(Invalid("BenchTooManyTypes",
                         [](auto& r) {
                           for (int i = 0; i < 65; ++i) r.add_types();
                         },
                         {"types: 65", "64"}));
  rows.push_back(Bad("BenchTypesWithoutKernel",
                     [](auto& r) {
                       r.add_kernels("host_openblas");
                       r.add_types()->set_a(v1::DATA_TYPE_S32);
                     },
                     StatusCode::NOT_FOUND, {"takes the types"}));
}

#if GEMM_HAS_CUDA
// Kernels that no host runs.
void AddGpuKernels(std::vector<BadTransfer>& rows) {
  rows.push_back(Bad("BenchKernelOfAnotherFamily",
                     [](auto& r) {
                       r.add_kernels("host_*");
                       r.add_families("simt");
                     },
                     StatusCode::NOT_FOUND, {"no kernel has both", "are of host"}));
  rows.push_back(Bad("BenchKernelOfAnotherDevice",
                     [](auto& r) {
                       r.add_kernels("host_reference");
                       r.add_kernels("cublas_f32");
                     },
                     StatusCode::FAILED_PRECONDITION, {"kernel cublas_f32 needs a CUDA device"}));
}
#endif

void AddParams(std::vector<BadTransfer>& rows) {
  const auto values = [](Request& r, const std::string& name, int count) {
    for (int i = 0; i < count; ++i) (*r.mutable_params())[name].add_values(i);
  };
  rows.push_back(Invalid("BenchParamWithoutValues", [](auto& r) { (*r.mutable_params())["x"]; },
                         {"params[\"x\"].values: none"}));
  rows.push_back(Invalid("BenchParamOfNoName", [=](auto& r) { values(r, "", 1); },
                         {"a name of params: 0 bytes"}));
  rows.push_back(Invalid("BenchParamWithTooManyValues", [=](auto& r) { values(r, "x", 65); },
                         {"params[\"x\"].values: 65", "64"}));
  rows.push_back(Invalid("BenchTooManyParams",
                         [=](auto& r) {
                           for (int i = 0; i < 17; ++i) values(r, std::to_string(i), 1);
                         },
                         {"params: 17", "16"}));
  rows.push_back(Invalid("BenchParamOfNoKernel",
                         [=](auto& r) {
                           r.add_families("host");
                           values(r, "swizzel", 1);
                         },
                         {"launch parameter \"swizzel\"", "they have none"}));
  rows.push_back(Invalid("BenchTooManyCombinations",
                         [=](auto& r) {
                           values(r, "x", 20);
                           values(r, "y", 20);
                         },
                         {"params: at least 400", "256"}));
}

void AddRules(std::vector<BadTransfer>& rows) {
  rows.push_back(Invalid("BenchNegativeWarmup", [](auto& r) { r.set_warmup(-1); },
                         {"warmup: -1", "0 to 1000"}));
  rows.push_back(Invalid("BenchLongWarmup", [](auto& r) { r.set_warmup(1001); }, {"warmup: 1001"}));
  rows.push_back(Invalid("BenchNoIterations", [](auto& r) { r.set_iterations(0); },
                         {"iterations: 0", "1 to 100000"}));
  rows.push_back(Invalid("BenchTooManyIterations", [](auto& r) { r.set_iterations(100'001); },
                         {"iterations: 100001"}));
  rows.push_back(Invalid("BenchCutoffBelowOne", [](auto& r) { r.set_cutoff(0.5); },
                         {"cutoff: 0.5", "1 to 1e+09"}));
  rows.push_back(Invalid("BenchCutoffNan",
                         [](auto& r) { r.set_cutoff(std::numeric_limits<double>::quiet_NaN()); },
                         {"cutoff: nan"}));
  rows.push_back(Invalid("BenchTooManyAlgorithms", [](auto& r) { r.set_vendor_algorithms(101); },
                         {"vendor_algorithms: 101", "0 to 100"}));
  rows.push_back(Invalid("BenchInputsWithoutDistribution",
                         [](auto& r) { r.mutable_inputs()->set_seed(3); },
                         {"inputs.distribution: not set"}));
  rows.push_back(Invalid("BenchInputsUpsideDown",
                         [](auto& r) { r.mutable_inputs()->mutable_uniform()->set_low(3); },
                         {"inputs.uniform: low 3"}));
  rows.push_back(Invalid("BenchShortBudget", [](auto& r) { r.mutable_budget()->set_nanos(1000); },
                         {"budget: 1us", "1ms"}));
  rows.push_back(Bad("BenchLongBudget", [](auto& r) { r.mutable_budget()->set_seconds(601); },
                     StatusCode::RESOURCE_EXHAUSTED,
                     {"budget: 10m1s", "10m", "--benchmark-limit"}));
}

}  // namespace

const std::vector<BadTransfer>& BadBenchmarks() {
  static const std::vector<BadTransfer>* const kRows = [] {
    auto* rows = new std::vector<BadTransfer>;
    AddShapes(*rows);
    AddSelections(*rows);
#if GEMM_HAS_CUDA
    AddGpuKernels(*rows);
#endif
    AddParams(*rows);
    AddRules(*rows);
    return rows;
  }();
  return *kRows;
}

}  // namespace gemmd
