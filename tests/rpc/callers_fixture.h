// A server with callers by token, and their calls.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/identity/callers.h"
#include "tests/identity/certificates.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {

namespace v1 = gemm::v1;
using grpc::StatusCode;

inline constexpr char kServicePath[] = "/gemm.v1.GemmService/";

// A token is the caller's name with "-token" behind it.
inline std::string Line(const std::string& name, const std::string& roles) {
  const TokenHash hash = HashToken(name + "-token");
  std::string hex;
  for (const uint8_t byte : hash) absl::StrAppend(&hex, absl::Hex(byte, absl::kZeroPad2));
  return absl::StrCat(name, " ", roles, " sha256:", hex, "\n");
}

inline std::string CallersPath() {
  return absl::StrCat(testing::TempDir(), "/callers_rpc.",
                      testing::UnitTest::GetInstance()->current_test_info()->name());
}

inline ServerOptions WithCallers() {
  ServerOptions options = SmallServer();
  options.metrics_address = "127.0.0.1:0";
  options.identity.callers_file = CallersPath();
  WriteFileAtOnce(
      options.identity.callers_file,
      absl::StrCat(Line("alice", "call,matrices"), Line("bob", "call,matrices"),
                   Line("carol", "call"), Line("scraper", "metrics"), Line("root", "all")));
  return options;
}

inline v1::Operand Generated() { return GeneratedOperand({8, 8, gemm::DType::kF32}, 1); }

inline v1::Product WholeProduct() {
  v1::Product product;
  *product.mutable_a() = Generated();
  *product.mutable_b() = Generated();
  *product.mutable_c() = Generated();
  *product.mutable_bias() = GeneratedOperand({1, 8, gemm::DType::kF32}, 1);
  product.set_beta(1);
  return product;
}

class CallersRpcTest : public RpcTest {
 protected:
  CallersRpcTest() : RpcTest(WithCallers()) {}

  // How a call with one message ends; a job's error for Multiply.
  StatusCode Call(const std::string& path, const std::string& request, const std::string& token) {
    RawCall call(channel_, path, token);
    call.Write(request);
    call.WritesDone();
    StatusCode job = StatusCode::OK;
    std::string bytes;
    while (call.Read(bytes)) {
      v1::MultiplyResponse response;
      if (!absl::EndsWith(path, "/Multiply") || !response.ParseFromString(bytes)) continue;
      if (response.has_error()) job = static_cast<StatusCode>(response.error().code());
    }
    const grpc::Status status = call.Finish();
    message_ = status.error_message();
    return status.ok() ? job : status.error_code();
  }

  template <typename Response, typename Request>
  grpc::Status Ask(grpc::Status (v1::GemmService::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                   const std::string& caller, const Request& request, Response& response) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + caller + "-token");
    return (stub_.get()->*method)(&context, request, &response);
  }

  v1::MatrixInfo Put(const std::string& caller, const std::string& name, bool shared = false,
                     StatusCode want = StatusCode::OK, bool replace = false) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + caller + "-token");
    v1::PutMatrixResponse response;
    auto call = stub_->PutMatrix(&context, &response);
    v1::PutMatrixRequest request;
    v1::PutMatrixHeader& header = *request.mutable_header();
    *header.mutable_shape() = ProtoShape({8, 8, gemm::DType::kF32});
    *header.mutable_generator() = Generated().generator();
    header.mutable_keep()->set_name(name);
    header.mutable_keep()->set_shared(shared);
    header.mutable_keep()->set_replace(replace);
    call->Write(request);
    call->WritesDone();
    const grpc::Status status = call->Finish();
    EXPECT_EQ(status.error_code(), want) << status.error_message();
    return response.matrix();
  }

  StatusCode Delete(const std::string& caller, const v1::MatrixRef& ref) {
    v1::DeleteMatrixRequest request;
    *request.mutable_matrix() = ref;
    v1::DeleteMatrixResponse response;
    return Ask(&v1::GemmService::Stub::DeleteMatrix, caller, request, response).error_code();
  }

  std::vector<std::string> List(const std::string& caller, bool shared = false,
                                bool every_owner = false) {
    v1::ListMatricesRequest request;
    request.set_shared(shared);
    request.set_every_owner(every_owner);
    v1::ListMatricesResponse response;
    const grpc::Status status =
        Ask(&v1::GemmService::Stub::ListMatrices, caller, request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<std::string> names;
    for (const auto& matrix : response.matrices()) {
      names.push_back(absl::StrCat(matrix.owner(), ":", matrix.name()));
    }
    return names;
  }

  void Install(const std::string& lines) {
    WriteFileAtOnce(CallersPath(), lines);
    server_->ReloadIdentity();
  }

  std::string message_;
};

inline v1::MatrixRef ById(const std::string& id) {
  v1::MatrixRef ref;
  ref.set_id(id);
  return ref;
}

inline v1::MatrixRef ByName(const std::string& name, bool shared = false) {
  v1::MatrixRef ref;
  ref.set_name(name);
  ref.set_shared(shared);
  return ref;
}

}  // namespace gemmd
