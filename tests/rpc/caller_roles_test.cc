// Callers by token: who may call which RPC. A running server lists its RPCs, so that a new one,
// also of another service, is tried without a change here.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/method_rules.h"
#include "server/rpc/context/method.h"
#include "tests/net/loopback.h"
#include "tests/rpc/callers_fixture.h"
#include "tests/rpc/served_methods.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST_F(CallersRpcTest, EveryServiceOfTheServerHasARuleForEachMethod) {
  const std::vector<std::string> paths = ServedMethods(channel_, "root-token");
  for (const std::string& path : paths) {
    EXPECT_NE(RuleForPath(path, ServiceRules()).who, MethodRule::Who::kNobody)
        << path << " has no rule in server/identity/method_rules.cc: who may call it?";
  }
  // Nothing was left out.
  EXPECT_THAT(paths, IsSupersetOf({"/grpc.health.v1.Health/Watch",
                                   "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                   "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}));
  for (const std::string& method : MethodNames()) {
    EXPECT_THAT(paths, ::testing::Contains(kServicePath + method));
  }
  for (const std::string& method : InferenceMethodNames()) {
    EXPECT_THAT(paths, ::testing::Contains("/inference.GRPCInferenceService/" + method));
  }
}

TEST_F(CallersRpcTest, WhatNoRuleNamesIsRefusedToEverybody) {
  for (const char* path : {"/no.such.Service/Method", "/gemm.v1.GemmService/Forgotten"}) {
    EXPECT_EQ(Call(path, "", "root-token"), StatusCode::UNIMPLEMENTED) << path;
    EXPECT_THAT(message_, HasSubstr("has no rule for this method")) << "gRPC was asked";
    EXPECT_EQ(Call(path, "", ""), StatusCode::UNAUTHENTICATED) << path;
  }
}

TEST_F(CallersRpcTest, EveryRpcWantsAKnownToken) {
  for (const std::string& path : ServedMethods(channel_, "root-token")) {
    EXPECT_EQ(Call(path, "", ""), StatusCode::UNAUTHENTICATED) << path;
    EXPECT_THAT(message_, HasSubstr("Bearer TOKEN"));
    EXPECT_EQ(Call(path, "", "alice-tokem"), StatusCode::UNAUTHENTICATED) << path;
    EXPECT_THAT(message_, Not(HasSubstr("tokem")));
  }
}

TEST_F(CallersRpcTest, EveryRpcWantsItsRole) {
  for (const std::string& method : MethodNames()) {
    const std::string path = kServicePath + method;
    if (method == "GetServerInfo") {
      EXPECT_EQ(Call(path, "", "scraper-token"), StatusCode::OK) << "every client begins with it";
      continue;
    }
    EXPECT_EQ(Call(path, "", "scraper-token"), StatusCode::PERMISSION_DENIED) << path;
    EXPECT_THAT(message_, HasSubstr("needs the role"));
    const StatusCode code = Call(path, "", "root-token");
    EXPECT_NE(code, StatusCode::PERMISSION_DENIED) << path;
    EXPECT_NE(code, StatusCode::UNAUTHENTICATED) << path;
  }
}

TEST_F(CallersRpcTest, RefusedCallsAreCounted) {
  Call(absl::StrCat(kServicePath, "Multiply"), "", "");
  Call(absl::StrCat(kServicePath, "Multiply"), "", "scraper-token");
  const std::string metrics = HttpGet(server_->metrics_address(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("gemmd_refused_calls_total{outcome=\"UNAUTHENTICATED\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("gemmd_refused_calls_total{outcome=\"PERMISSION_DENIED\"} 1"));
}

TEST_F(CallersRpcTest, TheServerSaysWhoCalls) {
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(
      Ask(&v1::GemmService::Stub::GetServerInfo, "alice", v1::GetServerInfoRequest(), info).ok());
  EXPECT_EQ(info.caller().name(), "alice");
  EXPECT_THAT(info.caller().roles(), ElementsAre("call", "matrices"));
}

TEST_F(CallersRpcTest, KeepingAndReleasingInAProductNeedTheRoleMatrices) {
  v1::MultiplyUnaryRequest request;
  *request.mutable_product() = WholeProduct();
  const std::string path = absl::StrCat(kServicePath, "MultiplyUnary");
  EXPECT_EQ(Call(path, request.SerializeAsString(), "carol-token"), StatusCode::OK);
  request.mutable_product()->mutable_result()->mutable_keep()->set_name("kept");
  EXPECT_EQ(Call(path, request.SerializeAsString(), "carol-token"), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(message_, HasSubstr("product.result.keep"));
  EXPECT_EQ(Call(path, request.SerializeAsString(), "alice-token"), StatusCode::OK);
  EXPECT_THAT(List("alice"), ElementsAre("alice:kept"));
  Install(Line("alice", "call") + Line("root", "all"));
  *request.mutable_product() = WholeProduct();
  v1::MatrixRef& a = *request.mutable_product()->mutable_a()->mutable_matrix();
  a = ByName("kept");
  a.set_release(true);
  EXPECT_EQ(Call(path, request.SerializeAsString(), "alice-token"), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(List("root", false, /*every_owner=*/true), ElementsAre("alice:kept"));
  Install(Line("alice", "call,matrices"));
  EXPECT_EQ(Call(path, request.SerializeAsString(), "alice-token"), StatusCode::OK);
  EXPECT_THAT(List("alice"), IsEmpty());
}

}  // namespace
}  // namespace gemmd
