#include "tests/rpc/bad_jobs.h"

#include <cmath>
#include <limits>
#include <utility>

#include "gemm/catalogue.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The good product with one thing changed.
BadJob Header(std::string name, ProductChange change, StatusCode code,
              std::vector<std::string> sentence) {
  return BadProduct(std::move(name), std::move(change), code, std::move(sentence));
}

BadJob Invalid(std::string name, ProductChange change, std::vector<std::string> sentence) {
  return Header(std::move(name), std::move(change), StatusCode::INVALID_ARGUMENT,
                std::move(sentence));
}

// The good product's header, then something wrong in the payload.
BadJob Payload(std::string name, std::function<void(StreamClient&, const World&)> send,
               std::vector<std::string> sentence, bool at_half_close = false) {
  const auto with_header = [send = std::move(send)](StreamClient& stream, const World& world) {
    stream.Header(kBadJob, world.good);
    send(stream, world);
  };
  return {std::move(name), with_header, StatusCode::INVALID_ARGUMENT, std::move(sentence),
          at_half_close};
}

void AddShapes(std::vector<BadJob>& jobs) {
  jobs.push_back(Invalid("ZeroRows",
                         [](auto& p, auto&) { p.mutable_a()->mutable_shape()->set_rows(0); },
                         {"product.a.shape.rows is 0", "at least 1"}));
  jobs.push_back(Invalid("NegativeColumns",
                         [](auto& p, auto&) { p.mutable_b()->mutable_shape()->set_cols(-3); },
                         {"product.b.shape.cols is -3", "at least 1"}));
  jobs.push_back(
      Invalid("SmallestDimension",
              [](auto& p, auto&) { p.mutable_b()->mutable_shape()->set_cols(INT64_MIN); },
              {"product.b.shape.cols is -9223372036854775808"}));
  jobs.push_back(Invalid("OverflowingDimensions",
                         [](auto& p, auto&) {
                           p.mutable_a()->mutable_shape()->set_rows(int64_t{1} << 40);
                           p.mutable_a()->mutable_shape()->set_cols(int64_t{1} << 40);
                         },
                         {"product.a.shape", "1099511627776x1099511627776", "2^60"}));
  jobs.push_back(
      Invalid("LargestDimension",
              [](auto& p, auto&) { p.mutable_a()->mutable_shape()->set_rows(INT64_MAX); },
              {"product.a.shape", "2^60"}));
  jobs.push_back(
      Invalid("OverflowingResult",
              [](auto& p, auto&) {
                *p.mutable_a() = GeneratedOperand({int64_t{1} << 40, 1, gemm::DType::kF32}, 1);
                *p.mutable_b() = GeneratedOperand({1, int64_t{1} << 40, gemm::DType::kF32}, 1);
              },
              {"result", "2^60"}));
  jobs.push_back(Invalid("InnerDimensionsDiffer",
                         [](auto& p, auto&) { p.mutable_b()->mutable_shape()->set_rows(5); },
                         {"inner dimensions", "8x4", "5x6"}));
  jobs.push_back(Invalid("NoA", [](auto& p, auto&) { p.clear_a(); }, {"product.a: not set"}));
  jobs.push_back(Invalid("NoB", [](auto& p, auto&) { p.clear_b(); }, {"product.b: not set"}));
  jobs.push_back(Invalid("NoSource", [](auto& p, auto&) { p.mutable_a()->clear_source(); },
                         {"product.a.source: not set", "payload, data, matrix or generator"}));
  jobs.push_back(Invalid("NoShape", [](auto& p, auto&) { p.mutable_a()->clear_shape(); },
                         {"a.shape is missing"}));
  jobs.push_back(Invalid("DataWithoutShape",
                         [](auto& p, auto&) {
                           p.mutable_a()->clear_shape();
                           p.mutable_a()->set_data("data");
                         },
                         {"product.a.shape: not set"}));
  jobs.push_back(Invalid("DataOfTheWrongSize",
                         [](auto& p, auto&) { p.mutable_a()->set_data("seven b"); },
                         {"product.a.data: 7 bytes", "128"}));
}

void AddEnums(std::vector<BadJob>& jobs) {
  jobs.push_back(Invalid("NoType",
                         [](auto& p, auto&) { p.mutable_a()->mutable_shape()->clear_dtype(); },
                         {"product.a.shape.dtype: not set", "DATA_TYPE_BF16"}));
  jobs.push_back(Invalid("UnknownType",
                         [](auto& p, auto&) {
                           p.mutable_b()->mutable_shape()->set_dtype(static_cast<v1::DataType>(99));
                         },
                         {"product.b.shape.dtype: 99", "DATA_TYPE_F64"}));
  jobs.push_back(Invalid("UnknownLayout",
                         [](auto& p, auto&) {
                           p.mutable_b()->mutable_shape()->set_layout(static_cast<v1::Layout>(-1));
                         },
                         {"product.b.shape.layout: -1", "LAYOUT_COLUMN_MAJOR"}));
  jobs.push_back(Invalid("UnknownOutputType",
                         [](auto& p, auto&) { p.set_output_dtype(static_cast<v1::DataType>(50)); },
                         {"product.output_dtype: 50"}));
  jobs.push_back(Invalid("UnknownOutputLayout",
                         [](auto& p, auto&) { p.set_output_layout(static_cast<v1::Layout>(3)); },
                         {"product.output_layout: 3"}));
  jobs.push_back(Invalid("UnknownActivation",
                         [](auto& p, auto&) { p.set_activation(static_cast<v1::Activation>(9)); },
                         {"product.activation: 9", "ACTIVATION_GELU"}));
  jobs.push_back(Invalid("UnknownComputeMode",
                         [](auto& p, auto&) { p.set_compute(static_cast<v1::ComputeMode>(12)); },
                         {"product.compute: 12", "COMPUTE_MODE_TF32"}));
  jobs.push_back(Invalid("UnknownVerify",
                         [](auto& p, auto&) { p.set_verify(static_cast<v1::Verify>(4)); },
                         {"product.verify: 4", "VERIFY_ALWAYS"}));
}

void AddEpilogues(std::vector<BadJob>& jobs) {
  jobs.push_back(Invalid("ScaleOfZero", [](auto& p, auto&) { p.set_scale_a(0); },
                         {"product.scale_a", "0", "above 0"}));
  jobs.push_back(
      Invalid("ScaleInfinite",
              [](auto& p, auto&) { p.set_scale_b(std::numeric_limits<double>::infinity()); },
              {"product.scale_b", "inf", "finite"}));
  jobs.push_back(Invalid("ScalesBeyondRange",
                         [](auto& p, auto&) {
                           p.set_scale_a(1e300);
                           p.set_scale_b(1e300);
                         },
                         {"alpha * scale_a * scale_b is inf", "finite"}));
  jobs.push_back(Invalid("ScaledAlphaBeyondF32",
                         [](auto& p, auto&) {
                           p.set_alpha(1e30);
                           p.set_scale_b(1e30);
                         },
                         {"alpha * scale_a * scale_b is 1e+60", "3.40282e+38", "f32"}));
  jobs.push_back(Invalid("AlphaBeyondF32", [](auto& p, auto&) { p.set_alpha(-1e300); },
                         {"alpha is -1e+300", "-3.40282e+38 to 3.40282e+38", "f32"}));
  jobs.push_back(Invalid("BetaBeyondF32",
                         [](auto& p, auto&) {
                           p.set_beta(1e39);
                           *p.mutable_c() = GeneratedOperand({8, 6, gemm::DType::kF32}, 1);
                         },
                         {"beta is 1e+39", "3.40282e+38", "f32"}));
  jobs.push_back(Invalid("LeakySlopeBeyondF32", [](auto& p, auto&) { p.set_leaky_slope(1e300); },
                         {"leaky_slope is 1e+300", "3.40282e+38", "f32"}));
  jobs.push_back(Invalid("AlphaNotANumber", [](auto& p, auto&) { p.set_alpha(kNan); },
                         {"alpha is nan", "finite"}));
  jobs.push_back(Invalid("InfiniteBeta",
                         [](auto& p, auto&) {
                           p.set_beta(kInfinity);
                           *p.mutable_c() = GeneratedOperand({8, 6, gemm::DType::kF32}, 1);
                         },
                         {"beta is inf", "finite"}));
  jobs.push_back(Invalid("InfiniteLeakySlope",
                         [](auto& p, auto&) { p.set_leaky_slope(-kInfinity); },
                         {"leaky_slope is -inf", "finite"}));
  jobs.push_back(Invalid("CWithoutBeta",
                         [](auto& p, auto&) {
                           *p.mutable_c() = GeneratedOperand({8, 6, gemm::DType::kF32}, 1);
                         },
                         {"c is given", "beta is 0"}));
  jobs.push_back(
      Invalid("BetaWithoutC", [](auto& p, auto&) { p.set_beta(2); }, {"beta is 2", "no c"}));
  jobs.push_back(Invalid("CShapedOtherwise",
                         [](auto& p, auto&) {
                           p.set_beta(1);
                           *p.mutable_c() = GeneratedOperand({6, 8, gemm::DType::kF32}, 1);
                         },
                         {"c is 6x8", "8x6"}));
  jobs.push_back(Invalid("BiasShapedOtherwise",
                         [](auto& p, auto&) {
                           *p.mutable_bias() = GeneratedOperand({1, 8, gemm::DType::kF32}, 1);
                         },
                         {"bias is 1x8", "1x6"}));
}

void AddKernels(std::vector<BadJob>& jobs) {
  jobs.push_back(Header("UnknownKernel",
                        [](auto& p, auto&) { p.mutable_kernel()->set_name("host_openbals"); },
                        StatusCode::NOT_FOUND, {"host_openbals", "host_openblas"}));
  jobs.push_back(Header("UnknownFamily",
                        [](auto& p, auto&) { p.mutable_kernel()->set_family("hots"); },
                        StatusCode::NOT_FOUND, {"hots", "host"}));
  jobs.push_back(Invalid("TooManyLaunchParameters",
                         [](auto& p, auto&) {
                           auto& params = *p.mutable_kernel()->mutable_params();
                           for (int i = 0; i < 17; ++i) params[std::to_string(i)] = i;
                         },
                         {"product.kernel.params: 17 of them", "up to 16"}));
  jobs.push_back(Invalid("UnknownLaunchParameter",
                         [](auto& p, auto&) {
                           p.mutable_kernel()->set_name("host_openblas");
                           (*p.mutable_kernel()->mutable_params())["split_k"] = 4;
                         },
                         {"split_k", "host_openblas"}));
  jobs.push_back(
      Invalid("LaunchParameterWithoutKernel",
              [](auto& p, auto&) { (*p.mutable_kernel()->mutable_params())["split_k"] = 4; },
              {"split_k", "kernel"}));
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (kernel->target == gemm::Target::kHost) continue;
    jobs.push_back(Header(
        "KernelThatTheDeviceLacks",
        [kernel](auto& p, auto&) { p.mutable_kernel()->set_name(std::string(kernel->name)); },
        StatusCode::FAILED_PRECONDITION,
        {std::string(kernel->name), "CUDA", "the nearest kernel that can is host_openblas"}));
    break;
  }
  jobs.push_back(
      Invalid("TypesThatNoKernelTakes",
              [](auto& p, auto&) { p.mutable_b()->mutable_shape()->set_dtype(v1::DATA_TYPE_F16); },
              {"a=f32", "b=f16"}));
  const auto of_integers = [](v1::Product& p) {
    p.mutable_a()->mutable_shape()->set_dtype(v1::DATA_TYPE_S8);
    p.mutable_b()->mutable_shape()->set_dtype(v1::DATA_TYPE_S8);
  };
  jobs.push_back(Invalid("IntegersAndHalves",
                         [](auto& p, auto&) {
                           p.mutable_a()->mutable_shape()->set_dtype(v1::DATA_TYPE_S8);
                           p.mutable_b()->mutable_shape()->set_dtype(v1::DATA_TYPE_F16);
                         },
                         {"a=s8", "b=f16", "result=s32", "compute=s32"}));
  jobs.push_back(Invalid("AFactorOfIntegers",
                         [of_integers](auto& p, auto&) {
                           of_integers(p);
                           p.set_alpha(0.5);
                         },
                         {"alpha is 0.5", "0 or 1", "f16"}));
  jobs.push_back(Invalid("AScaleOfIntegers",
                         [of_integers](auto& p, auto&) {
                           of_integers(p);
                           p.set_scale_b(0.25);
                         },
                         {"alpha * scale_a * scale_b is 0.25", "0 or 1"}));
  jobs.push_back(Invalid("AGeluOfIntegers",
                         [of_integers](auto& p, auto&) {
                           of_integers(p);
                           p.set_activation(v1::ACTIVATION_GELU);
                         },
                         {"activation is gelu", "none or relu"}));
  jobs.push_back(Invalid("ComputeModeThatTheTypesLack",
                         [](auto& p, auto&) { p.set_compute(v1::COMPUTE_MODE_F16); },
                         {"compute=f16"}));
}

void AddMatrices(std::vector<BadJob>& jobs) {
  jobs.push_back(Header("UnknownMatrixId",
                        [](auto& p, auto&) { *p.mutable_a() = ResidentOperand("m-unknown"); },
                        StatusCode::NOT_FOUND, {"a: ", "m-unknown"}));
  jobs.push_back(Header("UnknownMatrixName",
                        [](auto& p, auto&) {
                          p.mutable_b()->mutable_matrix()->set_name("nobody");
                          p.mutable_b()->clear_shape();
                        },
                        StatusCode::NOT_FOUND, {"b: ", "nobody"}));
  jobs.push_back(Header(
      "DeletedMatrix",
      [](auto& p, const World& world) { *p.mutable_a() = ResidentOperand(world.deleted_id); },
      StatusCode::NOT_FOUND, {"deleted"}));
  jobs.push_back(Invalid("MatrixWithoutKey",
                         [](auto& p, auto&) { p.mutable_a()->mutable_matrix(); },
                         {"product.a.matrix", "id", "name"}));
  jobs.push_back(Invalid("MatrixOfAnotherShape",
                         [](auto& p, const World& world) {
                           p.mutable_a()->mutable_matrix()->set_id(world.resident_id);
                         },
                         {"a.shape is 8x4", "8x8"}));
}

void AddGenerators(std::vector<BadJob>& jobs) {
  jobs.push_back(Invalid("GeneratorWithoutDistribution",
                         [](auto& p, auto&) { p.mutable_a()->mutable_generator()->set_seed(1); },
                         {"product.a.generator.distribution", "uniform or normal"}));
  jobs.push_back(Invalid("UniformOfNothing",
                         [](auto& p, auto&) {
                           auto& uniform = *p.mutable_a()->mutable_generator()->mutable_uniform();
                           uniform.set_low(2);
                           uniform.set_high(2);
                         },
                         {"product.a.generator.uniform: low 2, high 2"}));
  jobs.push_back(Invalid(
      "NegativeDeviation",
      [](auto& p, auto&) { p.mutable_a()->mutable_generator()->mutable_normal()->set_stddev(-1); },
      {"product.a.generator.normal", "stddev -1"}));
  jobs.push_back(Invalid("GeneratorBeyondItsType",
                         [](auto& p, auto&) {
                           p.mutable_a()->mutable_shape()->set_dtype(v1::DATA_TYPE_F16);
                           p.mutable_a()->mutable_generator()->mutable_uniform()->set_high(65520);
                         },
                         {"product.a.generator.uniform.high: 65520", "f16", "65504"}));
  jobs.push_back(Invalid("GeneratorBeyondF32",
                         [](auto& p, auto&) {
                           p.mutable_a()->mutable_shape()->set_dtype(v1::DATA_TYPE_F64);
                           p.mutable_a()->mutable_generator()->mutable_normal()->set_mean(1e300);
                           p.mutable_a()->mutable_generator()->mutable_normal()->set_stddev(1);
                         },
                         {"product.a.generator.normal.mean: 1e+300", "f32", "3.40282e+38"}));
}

void AddResults(std::vector<BadJob>& jobs) {
  jobs.push_back(Invalid("ResultGoesNowhere", [](auto& p, auto&) { p.mutable_result(); },
                         {"result", "stream", "keep"}));
  jobs.push_back(
      Invalid("NameWithASpace",
              [](auto& p, auto&) { p.mutable_result()->mutable_keep()->set_name("two words"); },
              {"product.result.keep.name: \"two words\"", "at byte 3"}));
  jobs.push_back(Invalid(
      "NameTooLong",
      [](auto& p, auto&) { p.mutable_result()->mutable_keep()->set_name(std::string(129, 'n')); },
      {"product.result.keep.name: 129 bytes", "1 to 128"}));
  jobs.push_back(Header(
      "NameTaken", [](auto& p, auto&) { p.mutable_result()->mutable_keep()->set_name("resident"); },
      StatusCode::ALREADY_EXISTS, {"resident"}));
  jobs.push_back(Invalid(
      "TimeToLiveTooShort",
      [](auto& p, auto&) { p.mutable_result()->mutable_keep()->mutable_ttl()->set_nanos(999'999); },
      {"product.result.keep.ttl", "1ms"}));
  jobs.push_back(Header("StoreIsFull",
                        [](auto& p, auto&) {
                          *p.mutable_a() = GeneratedOperand({1024, 4, gemm::DType::kF32}, 1);
                          *p.mutable_b() = GeneratedOperand({4, 1024, gemm::DType::kF32}, 1);
                          p.mutable_result()->mutable_keep();
                        },
                        StatusCode::RESOURCE_EXHAUSTED, {"4194304 bytes", "2097152"}));
  jobs.push_back(Header("JobTooLarge",
                        [](auto& p, auto&) {
                          *p.mutable_a() = GeneratedOperand({2048, 1024, gemm::DType::kF32}, 1);
                          *p.mutable_b() = GeneratedOperand({1024, 2048, gemm::DType::kF32}, 1);
                        },
                        StatusCode::RESOURCE_EXHAUSTED, {"--max-job-bytes", "16777216"}));
}

void AddTimes(std::vector<BadJob>& jobs) {
  jobs.push_back(Invalid("TimeoutTooShort",
                         [](auto& p, auto&) { p.mutable_timeout()->set_nanos(999); },
                         {"product.timeout", "1us"}));
  jobs.push_back(Invalid("NegativeTimeout",
                         [](auto& p, auto&) { p.mutable_timeout()->set_seconds(-1); },
                         {"product.timeout: -1s"}));
  jobs.push_back(Invalid("TimeoutThatIsNone",
                         [](auto& p, auto&) { p.mutable_timeout()->set_seconds(INT64_MIN); },
                         {"product.timeout", "seconds must be from -315576000000 to"}));
  jobs.push_back({"DeadlineInTransfer",
                  [](StreamClient& stream, const World& world) {
                    v1::Product product = world.good;
                    product.mutable_timeout()->set_nanos(20'000'000);
                    stream.Header(kBadJob, product);
                    stream.Payload(kBadJob, v1::OPERAND_ROLE_A, world.operands.a);
                  },
                  StatusCode::DEADLINE_EXCEEDED,
                  {"deadline passed"}});
  jobs.push_back({"CancelledByTheCaller",
                  [](StreamClient& stream, const World& world) {
                    stream.Header(kBadJob, world.good);
                    stream.Cancel(kBadJob);
                  },
                  StatusCode::CANCELLED,
                  {"cancelled"}});
}

void AddPayloads(std::vector<BadJob>& jobs) {
  const auto a = v1::OPERAND_ROLE_A;
  jobs.push_back(Payload(
      "PayloadShort",
      [](auto& stream, const World& world) {
        stream.Payload(kBadJob, v1::OPERAND_ROLE_A, world.operands.a);
        stream.Chunk(kBadJob, v1::OPERAND_ROLE_B, 0, "0123456789");
      },
      {"payload ended", "138", "224"}, /*at_half_close=*/true));
  jobs.push_back(Payload(
      "PayloadNone", [](auto&, auto&) {}, {"payload ended", "0 bytes"},
      /*at_half_close=*/true));
  jobs.push_back(
      Payload("PayloadLong",
              [a](auto& stream, auto&) { stream.Chunk(kBadJob, a, 0, std::string(129, 'x')); },
              {"a: ", "129 bytes", "128"}));
  jobs.push_back(Payload("PayloadWithAGap",
                         [a](auto& stream, auto&) { stream.Chunk(kBadJob, a, 16, "0123456789"); },
                         {"a: ", "offset is 16", "byte 0 is next"}));
  jobs.push_back(Payload("PayloadOverlapping",
                         [a](auto& stream, auto&) {
                           stream.Chunk(kBadJob, a, 0, "0123456789");
                           stream.Chunk(kBadJob, a, 4, "0123456789");
                         },
                         {"a: ", "offset is 4", "byte 10 is next", "overlap"}));
  jobs.push_back(Payload("PayloadAtTheLargestOffset",
                         [a](auto& stream, auto&) { stream.Chunk(kBadJob, a, UINT64_MAX, "0123"); },
                         {"18446744073709551615"}));
  jobs.push_back(Payload("EmptyChunk",
                         [a](auto& stream, auto&) { stream.Chunk(kBadJob, a, 0, ""); },
                         {"chunk.data: empty"}));
  jobs.push_back(Payload("UnknownRole",
                         [](auto& stream, auto&) {
                           stream.Chunk(kBadJob, static_cast<v1::OperandRole>(9), 0, "0123");
                         },
                         {"chunk.operand: 9", "OPERAND_ROLE_BIAS"}));
  jobs.push_back(
      Payload("OperandThatTheJobLacks",
              [](auto& stream, auto&) { stream.Chunk(kBadJob, v1::OPERAND_ROLE_C, 0, "0123"); },
              {"c: ", "not payload"}));
  jobs.push_back({"ChunkForNoJob",
                  [a](StreamClient& stream, const World&) { stream.Chunk(kBadJob, a, 0, "0123"); },
                  StatusCode::NOT_FOUND,
                  {"chunk.job_id: no job 7"}});
  jobs.push_back({"CancelForNoJob",
                  [](StreamClient& stream, const World&) { stream.Cancel(kBadJob); },
                  StatusCode::NOT_FOUND,
                  {"cancel.job_id: no job 7"}});
  jobs.push_back({"ChunkOverTheMessageLimit",
                  [a](StreamClient& stream, const World& world) {
                    stream.Header(kBadJob, world.good);
                    stream.Chunk(kBadJob, a, 0, std::string(kMiB + 1, 'x'));
                  },
                  StatusCode::RESOURCE_EXHAUSTED,
                  {"chunk: a message of 10485", "1048576", "--max-message-bytes"}});
  jobs.push_back(Header("HeaderOverTheMessageLimit",
                        [](auto& p, auto&) { p.mutable_a()->set_data(std::string(kMiB + 1, 'x')); },
                        StatusCode::RESOURCE_EXHAUSTED,
                        {"header: a message of 10486", "1048576", "--max-message-bytes"}));
  jobs.push_back({"HeaderWithoutProduct",
                  [](StreamClient& stream, const World&) {
                    v1::MultiplyRequest request;
                    request.mutable_header()->set_job_id(kBadJob);
                    stream.Write(request);
                  },
                  StatusCode::INVALID_ARGUMENT,
                  {"header.product: not set"}});
}

}  // namespace

BadJob BadProduct(std::string name, ProductChange change, StatusCode code,
                  std::vector<std::string> sentence) {
  const auto send = [change = std::move(change)](StreamClient& stream, const World& world) {
    v1::Product product = world.good;
    change(product, world);
    stream.Header(kBadJob, product);
    // As a client does that does not wait for an answer.
    stream.Payload(kBadJob, v1::OPERAND_ROLE_A, world.operands.a);
    stream.Payload(kBadJob, v1::OPERAND_ROLE_B, world.operands.b);
  };
  return {std::move(name), send, code, std::move(sentence)};
}

ServerOptions BoundedServer() {
  ServerOptions options = SmallServer();
  options.engine.max_job_bytes = 16 * kMiB;
  options.engine.store_bytes = 2 * kMiB;
  return options;
}

const std::vector<BadJob>& BadJobs() {
  static const std::vector<BadJob>* const kJobs = [] {
    auto* jobs = new std::vector<BadJob>;
    AddShapes(*jobs);
    AddBatches(*jobs);
    AddRowBlocks(*jobs);
    AddBlockScales(*jobs);
    AddGroups(*jobs);
    AddEnums(*jobs);
    AddEpilogues(*jobs);
    AddKernels(*jobs);
    AddMatrices(*jobs);
    AddGenerators(*jobs);
    AddResults(*jobs);
    AddTimes(*jobs);
    AddPayloads(*jobs);
    return jobs;
  }();
  return *kJobs;
}

}  // namespace gemmd
