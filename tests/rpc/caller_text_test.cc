// Names of all lengths and bytes, in every field that an answer repeats.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::HasSubstr;

const char kEscape[] = "\x1b]0;owned\x07\r\n\x1b[2J\x7f";

bool IsPlain(const std::string& message) {
  return message.size() < 2048 && std::all_of(message.begin(), message.end(), [](char c) {
           return absl::ascii_isprint(static_cast<unsigned char>(c));
         });
}

// One field of one call that takes a name.
struct Place {
  const char* field;
  std::function<grpc::Status(v1::GemmService::Stub&, const std::string& name)> call;
};

v1::Product SmallProduct() {
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({4, 4, gemm::DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({4, 4, gemm::DType::kF32}, 2);
  return product;
}

Place InProduct(const char* field,
                const std::function<void(v1::Product&, const std::string&)>& set) {
  return {field, [set](v1::GemmService::Stub& stub, const std::string& name) {
            grpc::ClientContext context;
            v1::MultiplyUnaryRequest request;
            *request.mutable_product() = SmallProduct();
            set(*request.mutable_product(), name);
            v1::MultiplyUnaryResponse response;
            return stub.MultiplyUnary(&context, request, &response);
          }};
}

Place InPutHeader(const char* field,
                  const std::function<void(v1::PutMatrixHeader&, const std::string&)>& set) {
  return {field, [set](v1::GemmService::Stub& stub, const std::string& name) {
            grpc::ClientContext context;
            v1::PutMatrixResponse response;
            const auto call = stub.PutMatrix(&context, &response);
            v1::PutMatrixRequest request;
            *request.mutable_header()->mutable_shape() = ProtoShape({4, 4, gemm::DType::kF32});
            set(*request.mutable_header(), name);
            call->Write(request);
            call->WritesDone();
            return call->Finish();
          }};
}

template <typename Request, typename Response>
Place InUnary(const char* field,
              grpc::Status (v1::GemmService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
              const std::function<void(Request&, const std::string&)>& set) {
  return {field, [method, set](v1::GemmService::Stub& stub, const std::string& name) {
            grpc::ClientContext context;
            Request request;
            set(request, name);
            Response response;
            return (stub.*method)(&context, request, &response);
          }};
}

Place InRanking(const char* field,
                const std::function<void(v1::RankKernelsRequest&, const std::string&)>& set) {
  return InUnary<v1::RankKernelsRequest, v1::RankKernelsResponse>(
      field, &v1::GemmService::Stub::RankKernels,
      [set](v1::RankKernelsRequest& request, const std::string& name) {
        request.mutable_size()->set_m(8);
        request.mutable_size()->set_n(8);
        request.mutable_size()->set_k(8);
        request.mutable_types()->set_a(v1::DATA_TYPE_F32);
        set(request, name);
      });
}

Place InBenchmark(const char* field,
                  const std::function<void(v1::BenchmarkRequest&, const std::string&)>& set) {
  return {field, [set](v1::GemmService::Stub& stub, const std::string& name) {
            grpc::ClientContext context;
            v1::BenchmarkRequest request;
            v1::ProductSize& shape = *request.add_shapes();
            shape.set_m(8);
            shape.set_n(8);
            shape.set_k(8);
            set(request, name);
            const auto call = stub.Benchmark(&context, request);
            v1::BenchmarkResponse response;
            while (call->Read(&response)) {
            }
            return call->Finish();
          }};
}

std::vector<Place> Places() {
  using Stub = v1::GemmService::Stub;
  return {
      InProduct("product.kernel.name",
                [](v1::Product& p, const std::string& n) { p.mutable_kernel()->set_name(n); }),
      InProduct("product.kernel.family",
                [](v1::Product& p, const std::string& n) { p.mutable_kernel()->set_family(n); }),
      InProduct("product.kernel.params",
                [](v1::Product& p, const std::string& n) {
                  p.mutable_kernel()->set_name("host_reference");
                  (*p.mutable_kernel()->mutable_params())[n] = 1;
                }),
      InProduct(
          "product.a.matrix.id",
          [](v1::Product& p, const std::string& n) { p.mutable_a()->mutable_matrix()->set_id(n); }),
      InProduct("product.b.matrix.name",
                [](v1::Product& p, const std::string& n) {
                  p.mutable_b()->mutable_matrix()->set_name(n);
                }),
      InProduct("product.result.keep.name",
                [](v1::Product& p, const std::string& n) {
                  p.mutable_result()->mutable_keep()->set_name(n);
                }),
      InPutHeader("header.device",
                  [](v1::PutMatrixHeader& h, const std::string& n) { h.set_device(n); }),
      InPutHeader("header.keep.name", [](v1::PutMatrixHeader& h,
                                         const std::string& n) { h.mutable_keep()->set_name(n); }),
      InUnary<v1::DeleteMatrixRequest, v1::DeleteMatrixResponse>(
          "matrix.name", &Stub::DeleteMatrix,
          [](v1::DeleteMatrixRequest& r, const std::string& n) {
            r.mutable_matrix()->set_name(n);
          }),
      InUnary<v1::DeleteMatrixRequest, v1::DeleteMatrixResponse>(
          "matrix.owner", &Stub::DeleteMatrix,
          [](v1::DeleteMatrixRequest& r, const std::string& n) {
            r.mutable_matrix()->set_name("x");
            r.mutable_matrix()->set_owner(n);
          }),
      InUnary<v1::ListMatricesRequest, v1::ListMatricesResponse>(
          "page_token", &Stub::ListMatrices,
          [](v1::ListMatricesRequest& r, const std::string& n) { r.set_page_token(n); }),
      InUnary<v1::ListKernelsRequest, v1::ListKernelsResponse>(
          "family", &Stub::ListKernels,
          [](v1::ListKernelsRequest& r, const std::string& n) { r.set_family(n); }),
      InRanking("device", [](v1::RankKernelsRequest& r, const std::string& n) { r.set_device(n); }),
      InRanking("family", [](v1::RankKernelsRequest& r, const std::string& n) { r.set_family(n); }),
      InBenchmark("device", [](v1::BenchmarkRequest& r, const std::string& n) { r.set_device(n); }),
      InBenchmark("suite", [](v1::BenchmarkRequest& r, const std::string& n) { r.set_suite(n); }),
      InBenchmark("kernels[0]",
                  [](v1::BenchmarkRequest& r, const std::string& n) { r.add_kernels(n); }),
      InBenchmark("families[0]",
                  [](v1::BenchmarkRequest& r, const std::string& n) { r.add_families(n); }),
      InBenchmark("params", [](v1::BenchmarkRequest& r,
                               const std::string& n) { (*r.mutable_params())[n].add_values(1); }),
  };
}

class NamesTest : public RpcTest {
 protected:
  static ServerOptions Options() {
    ServerOptions options = SmallServer();
    options.rpc.max_message_bytes = 8 * kMiB;
    return options;
  }
  NamesTest() : RpcTest(Options()) {}

  void DeleteNamed(const std::string& name) {
    grpc::ClientContext context;
    v1::DeleteMatrixRequest request;
    request.mutable_matrix()->set_name(name);
    v1::DeleteMatrixResponse response;
    stub_->DeleteMatrix(&context, request, &response);
  }
};

TEST_F(NamesTest, OfAnyLengthGetACleanAnswer) {
  for (const Place& place : Places()) {
    for (const size_t bytes : {65u, 129u, 20'000u, 5'000'000u}) {
      const grpc::Status status = place.call(*stub_, std::string(bytes, 'x'));
      EXPECT_TRUE(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                  status.error_code() == grpc::StatusCode::NOT_FOUND ||
                  (status.ok() && bytes < 128))
          << place.field << " of " << bytes << ": " << status.error_code() << " "
          << status.error_message();
      EXPECT_TRUE(IsPlain(status.error_message())) << place.field << ": " << status.error_message();
      if (status.ok()) DeleteNamed(std::string(bytes, 'x'));
    }
  }
}

TEST_F(NamesTest, ControlCharactersAreEscaped) {
  for (const Place& place : Places()) {
    const grpc::Status status = place.call(*stub_, kEscape);
    EXPECT_TRUE(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                status.error_code() == grpc::StatusCode::NOT_FOUND)
        << place.field << ": " << status.error_code() << " " << status.error_message();
    EXPECT_TRUE(IsPlain(status.error_message())) << place.field << ": " << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("\\x1b]0;owned")) << place.field;
  }
}

TEST_F(NamesTest, AStreamGoesOnAfterAJobWithALongName) {
  StreamClient stream(*stub_);
  v1::Product product = SmallProduct();
  product.mutable_kernel()->set_name(std::string(5'000'000, 'x'));
  stream.Header(1, product);
  const JobOutcome refused = stream.Wait(1);
  EXPECT_EQ(refused.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error->message(), HasSubstr("product.kernel.name: 5000000 bytes"));
  product.mutable_kernel()->set_name(kEscape);
  stream.Header(2, product);
  const JobOutcome escaped = stream.Wait(2);
  EXPECT_EQ(escaped.code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(IsPlain(escaped.error->message())) << escaped.error->message();
  stream.Header(3, SmallProduct());
  EXPECT_TRUE(stream.Wait(3).result.has_value());
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(NamesTest, PageTokensThatNoAnswerHadAreRefused) {
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(Put(RandomMatrix({4, 4, gemm::DType::kF32}, 1)));
  const auto list = [this](const std::string& token, const std::string& prefix,
                           v1::ListMatricesResponse& response) {
    grpc::ClientContext context;
    v1::ListMatricesRequest request;
    request.set_page_size(1);
    request.set_page_token(token);
    request.set_name_prefix(prefix);
    return stub_->ListMatrices(&context, request, &response);
  };
  v1::ListMatricesResponse page;
  ASSERT_TRUE(list("", "", page).ok());
  const std::string token = page.next_page_token();
  EXPECT_TRUE(list(token, "", page).ok());
  std::string changed = token;
  changed.back() = changed.back() == '0' ? '1' : '0';
  for (const std::string& forged :
       {ids[0], ids[0] + ".", std::string("zzz"), changed, token + "0", std::string("m00000000")}) {
    const grpc::Status status = list(forged, "", page);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << forged;
    EXPECT_THAT(status.error_message(), HasSubstr("page_token: ")) << forged;
  }
  EXPECT_EQ(list(token, "other", page).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  for (const std::string& id : ids) Delete(id);
}

}  // namespace
}  // namespace gemmd
