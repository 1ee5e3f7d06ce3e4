// Callers by token: who may call which RPC, and whose matrices are whose. Every RPC comes
// from the contract's descriptor, so that one of tomorrow is tried, too.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "server/identity/method_rules.h"
#include "server/rpc/context/method.h"
#include "tests/identity/certificates.h"
#include "tests/net/loopback.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr char kServicePath[] = "/gemm.v1.GemmService/";

// A token is the caller's name with "-token" behind it.
std::string Line(const std::string& name, const std::string& roles) {
  const TokenHash hash = HashToken(name + "-token");
  std::string hex;
  for (const uint8_t byte : hash) absl::StrAppend(&hex, absl::Hex(byte, absl::kZeroPad2));
  return absl::StrCat(name, " ", roles, " sha256:", hex, "\n");
}

std::string CallersPath() {
  return absl::StrCat(testing::TempDir(), "/callers_rpc_test.",
                      testing::UnitTest::GetInstance()->current_test_info()->name());
}

ServerOptions WithCallers() {
  ServerOptions options = SmallServer();
  options.metrics_address = "127.0.0.1:0";
  options.identity.callers_file = CallersPath();
  WriteFileAtOnce(
      options.identity.callers_file,
      absl::StrCat(Line("alice", "call,matrices"), Line("bob", "call,matrices"),
                   Line("carol", "call"), Line("scraper", "metrics"), Line("root", "all")));
  return options;
}

v1::Operand Generated() { return GeneratedOperand({8, 8, gemm::DType::kF32}, 1); }

v1::Product WholeProduct() {
  v1::Product product;
  *product.mutable_a() = Generated();
  *product.mutable_b() = Generated();
  *product.mutable_c() = Generated();
  *product.mutable_bias() = GeneratedOperand({1, 8, gemm::DType::kF32}, 1);
  product.set_beta(1);
  return product;
}

// A right request of each method that refers to matrices, where the other fields stand.
// A method that is not here and has a MatrixRef turns the test red.
std::map<std::string, std::string> RightRequests() {
  std::map<std::string, std::string> requests;
  v1::MultiplyRequest multiply;
  multiply.mutable_header()->set_job_id(1);
  *multiply.mutable_header()->mutable_product() = WholeProduct();
  requests["Multiply"] = multiply.SerializeAsString();
  v1::MultiplyUnaryRequest unary;
  *unary.mutable_product() = WholeProduct();
  requests["MultiplyUnary"] = unary.SerializeAsString();
  requests["GetMatrix"] = "";
  requests["DeleteMatrix"] = "";
  return requests;
}

// Calls `use` with each field of the message's type that holds a MatrixRef, set in turn
// in a copy of the message.
using Use = std::function<void(const std::string& path)>;
void ForEachRef(Message& root, Message& message, const std::string& path, const v1::MatrixRef& ref,
                const Use& use) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) continue;
    const std::string name = absl::StrCat(path, ".", field->name());
    if (field->message_type() == v1::MatrixRef::descriptor()) {
      const std::string before = message.SerializeAsString();
      reflection.MutableMessage(&message, field)->CopyFrom(ref);
      use(name);
      message.ParseFromString(before);
    } else if (field->message_type()->file() == root.GetDescriptor()->file() &&
               reflection.HasField(message, field)) {
      ForEachRef(root, *reflection.MutableMessage(&message, field), name, ref, use);
    }
  }
}

bool HasRef(const google::protobuf::Descriptor* type, std::set<std::string>& seen) {
  if (type == v1::MatrixRef::descriptor()) return true;
  if (!seen.insert(type->full_name()).second) return false;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        HasRef(field->message_type(), seen))
      return true;
  }
  return false;
}

const google::protobuf::MethodDescriptor& MethodNamed(const std::string& name) {
  return *v1::MultiplyRequest::descriptor()
              ->file()
              ->FindServiceByName("GemmService")
              ->FindMethodByName(name);
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

v1::MatrixRef ById(const std::string& id) {
  v1::MatrixRef ref;
  ref.set_id(id);
  return ref;
}

v1::MatrixRef ByName(const std::string& name, bool shared = false) {
  v1::MatrixRef ref;
  ref.set_name(name);
  ref.set_shared(shared);
  return ref;
}

std::vector<std::string> EveryPath() {
  std::vector<std::string> paths;
  for (const std::string& method : MethodNames()) paths.push_back(kServicePath + method);
  paths.push_back("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  paths.push_back("/grpc.channelz.v1.Channelz/GetServers");
  paths.push_back("/no.such.Service/Method");
  return paths;
}

TEST_F(CallersRpcTest, EveryRpcWantsAKnownToken) {
  for (const std::string& path : EveryPath()) {
    EXPECT_EQ(Call(path, "", ""), StatusCode::UNAUTHENTICATED) << path;
    EXPECT_THAT(message_, HasSubstr("Bearer TOKEN"));
    EXPECT_EQ(Call(path, "", "alice-tokem"), StatusCode::UNAUTHENTICATED) << path;
    EXPECT_THAT(message_, Not(HasSubstr("tokem")));
  }
  EXPECT_EQ(Call("/grpc.health.v1.Health/Check", "", ""), StatusCode::OK);
  EXPECT_EQ(Call("/grpc.health.v1.Health/Watch", "", ""), StatusCode::UNAUTHENTICATED);
}

TEST_F(CallersRpcTest, EveryRpcWantsItsRole) {
  for (const std::string& method : MethodNames()) {
    const std::string path = kServicePath + method;
    EXPECT_EQ(Call(path, "", "scraper-token"), StatusCode::PERMISSION_DENIED) << path;
    EXPECT_THAT(message_, HasSubstr("needs the role"));
    const StatusCode code = Call(path, "", "root-token");
    EXPECT_NE(code, StatusCode::PERMISSION_DENIED) << path;
    EXPECT_NE(code, StatusCode::UNAUTHENTICATED) << path;
  }
  EXPECT_EQ(Call("/grpc.channelz.v1.Channelz/GetServers", "", "alice-token"),
            StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Call("/grpc.channelz.v1.Channelz/GetServers", "", "root-token"), StatusCode::OK);
}

TEST_F(CallersRpcTest, RefusedCallsAreCounted) {
  Call(absl::StrCat(kServicePath, "Multiply"), "", "");
  Call(absl::StrCat(kServicePath, "Multiply"), "", "scraper-token");
  const std::string metrics = HttpGet(server_->metrics_address(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("gemmd_refused_calls_total{outcome=\"UNAUTHENTICATED\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("gemmd_refused_calls_total{outcome=\"PERMISSION_DENIED\"} 1"));
}

TEST_F(CallersRpcTest, FilesThatAreNotInForceAreShown) {
  const auto metrics = [this] { return HttpGet(server_->metrics_address(), "/metrics"); };
  EXPECT_THAT(metrics(), HasSubstr("gemmd_identity_current{what=\"callers\"} 1"));
  Install("nonsense\n");
  EXPECT_THAT(metrics(), HasSubstr("gemmd_identity_current{what=\"callers\"} 0"));
  EXPECT_THAT(metrics(),
              HasSubstr("gemmd_identity_reloads_total{taken=\"false\",what=\"callers\"} 1"));
  Install(Line("root", "all"));
  EXPECT_THAT(metrics(), HasSubstr("gemmd_identity_current{what=\"callers\"} 1"));
}

TEST_F(CallersRpcTest, TheServerSaysWhoCalls) {
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(
      Ask(&v1::GemmService::Stub::GetServerInfo, "alice", v1::GetServerInfoRequest(), info).ok());
  EXPECT_EQ(info.caller().name(), "alice");
  EXPECT_THAT(info.caller().roles(), ElementsAre("call", "matrices"));
}

TEST_F(CallersRpcTest, AnotherCallersMatrixDoesNotExistThroughAnyRpc) {
  const v1::MatrixInfo secret = Put("alice", "secret");
  const auto requests = RightRequests();
  int tried = 0;
  for (const std::string& method : MethodNames()) {
    std::set<std::string> seen;
    if (!HasRef(MethodNamed(method).input_type(), seen)) continue;
    ASSERT_EQ(requests.count(method), 1) << "RightRequests needs a request of " << method;
    const std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                               ->GetPrototype(MethodNamed(method).input_type())
                                               ->New());
    ASSERT_TRUE(request->ParseFromString(requests.at(method)));
    for (const v1::MatrixRef& ref : {ById(secret.id()), ByName("secret"), ByName("secret", true)}) {
      ForEachRef(*request, *request, method, ref, [&](const std::string& field) {
        ++tried;
        EXPECT_EQ(Call(kServicePath + method, request->SerializeAsString(), "bob-token"),
                  StatusCode::NOT_FOUND)
            << field << " of " << ref.ShortDebugString();
      });
    }
  }
  EXPECT_EQ(tried, 3 * (4 + 4 + 1 + 1));
  EXPECT_THAT(List("alice"), ElementsAre("alice:secret")) << "and it is still there";
  EXPECT_EQ(Delete("alice", ByName("secret")), StatusCode::OK);
}

TEST_F(CallersRpcTest, NamesAreACallersOwn) {
  const v1::MatrixInfo hers = Put("alice", "w");
  const v1::MatrixInfo his = Put("bob", "w");
  EXPECT_NE(hers.id(), his.id());
  EXPECT_EQ(his.owner(), "bob");
  Put("bob", "w", /*shared=*/false, StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(List("alice"), ElementsAre("alice:w"));
  EXPECT_THAT(List("bob"), ElementsAre("bob:w"));
  EXPECT_EQ(Delete("bob", ByName("w")), StatusCode::OK);
  EXPECT_EQ(Delete("bob", ByName("w")), StatusCode::NOT_FOUND);
  EXPECT_EQ(Delete("alice", ById(hers.id())), StatusCode::OK);
}

TEST_F(CallersRpcTest, UploadIdsAreACallersOwn) {
  const auto put_half = [this](const std::string& caller, uint64_t offset) {
    RawCall call(channel_, absl::StrCat(kServicePath, "PutMatrix"), caller + "-token");
    v1::PutMatrixRequest request;
    v1::PutMatrixHeader& header = *request.mutable_header();
    *header.mutable_shape() = ProtoShape({2, 1, gemm::DType::kF32});
    header.set_upload_id("same");
    header.mutable_keep()->set_name("halves");
    header.mutable_range()->set_offset(offset);
    header.mutable_range()->set_length(4);
    call.Write(request.SerializeAsString());
    request.mutable_chunk()->set_offset(offset);
    request.mutable_chunk()->set_data("abcd");
    call.Write(request.SerializeAsString());
    call.WritesDone();
    std::string bytes;
    v1::PutMatrixResponse response;
    EXPECT_TRUE(call.Read(bytes) && response.ParseFromString(bytes)) << caller;
    EXPECT_TRUE(call.Finish().ok());
    return response.complete();
  };
  EXPECT_FALSE(put_half("alice", 0));
  EXPECT_FALSE(put_half("bob", 4)) << "it is no half of alice's";
  EXPECT_TRUE(put_half("alice", 4));
  EXPECT_TRUE(put_half("bob", 0));
  EXPECT_EQ(Delete("alice", ByName("halves")), StatusCode::OK);
  EXPECT_EQ(Delete("bob", ByName("halves")), StatusCode::OK);
}

TEST_F(CallersRpcTest, SharedMatricesAreReadByAllAndDeletedByTheirOwner) {
  const v1::MatrixInfo shared = Put("alice", "w", /*shared=*/true);
  Put("alice", "w");
  Put("bob", "w", /*shared=*/true, StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(List("bob", /*shared=*/true), ElementsAre("alice:w"));
  EXPECT_THAT(List("bob"), IsEmpty());
  EXPECT_THAT(List("alice"), ElementsAre("alice:w"));
  for (const v1::MatrixRef& ref : {ById(shared.id()), ByName("w", true)}) {
    v1::GetMatrixRequest get;
    *get.mutable_matrix() = ref;
    const std::string path = absl::StrCat(kServicePath, "GetMatrix");
    EXPECT_EQ(Call(path, get.SerializeAsString(), "bob-token"), StatusCode::OK);
    get.mutable_matrix()->set_release(true);
    EXPECT_EQ(Call(path, get.SerializeAsString(), "bob-token"), StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(Delete("bob", ref), StatusCode::PERMISSION_DENIED);
  }
  v1::MultiplyUnaryRequest multiply;
  *multiply.mutable_product() = WholeProduct();
  *multiply.mutable_product()->mutable_a()->mutable_matrix() = ByName("w", true);
  const std::string path = absl::StrCat(kServicePath, "MultiplyUnary");
  EXPECT_EQ(Call(path, multiply.SerializeAsString(), "carol-token"), StatusCode::OK);
  multiply.mutable_product()->mutable_a()->mutable_matrix()->set_release(true);
  EXPECT_EQ(Call(path, multiply.SerializeAsString(), "bob-token"), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Delete("alice", ByName("w", true)), StatusCode::OK);
  EXPECT_EQ(Delete("alice", ByName("w")), StatusCode::OK);
}

TEST_F(CallersRpcTest, SharedMatricesAreReplacedByTheirOwnerAlone) {
  Put("alice", "w", /*shared=*/true);
  for (const char* other : {"bob", "root"}) {
    Put(other, "w", /*shared=*/true, StatusCode::PERMISSION_DENIED, /*replace=*/true);
  }
  Put("alice", "w", /*shared=*/true, StatusCode::OK, /*replace=*/true);
  Put("bob", "w", /*shared=*/false, StatusCode::OK, /*replace=*/true);
  EXPECT_THAT(List("root", /*shared=*/true), ElementsAre("alice:w"));
  EXPECT_EQ(Delete("alice", ByName("w", true)), StatusCode::OK);
  EXPECT_EQ(Delete("bob", ByName("w")), StatusCode::OK);
}

// Whoever comes first has the shared name; a reader says whose it means.
TEST_F(CallersRpcTest, AReaderOfASharedNameSaysWhoseItMeans) {
  Put("bob", "base", /*shared=*/true);
  v1::MatrixRef ref = ByName("base", true);
  const auto read = [&] {
    v1::GetMatrixRequest get;
    *get.mutable_matrix() = ref;
    const StatusCode got =
        Call(absl::StrCat(kServicePath, "GetMatrix"), get.SerializeAsString(), "root-token");
    v1::MultiplyUnaryRequest multiply;
    *multiply.mutable_product() = WholeProduct();
    *multiply.mutable_product()->mutable_b()->mutable_matrix() = ref;
    const StatusCode used = Call(absl::StrCat(kServicePath, "MultiplyUnary"),
                                 multiply.SerializeAsString(), "root-token");
    EXPECT_EQ(got, used);
    return got;
  };
  EXPECT_EQ(read(), StatusCode::OK);
  ref.set_owner("bob");
  EXPECT_EQ(read(), StatusCode::OK);
  ref.set_owner("alice");
  EXPECT_EQ(read(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Delete("bob", ref), StatusCode::NOT_FOUND);
  ref.set_owner("");
  EXPECT_EQ(read(), StatusCode::NOT_FOUND) << "the empty name is a caller's, too";
  EXPECT_EQ(Delete("bob", ByName("base", true)), StatusCode::OK);
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

// How the job ends that this stream begins.
StatusCode RunJob(RawCall& stream, uint64_t job_id) {
  v1::MultiplyRequest request;
  request.mutable_header()->set_job_id(job_id);
  *request.mutable_header()->mutable_product() = WholeProduct();
  stream.Write(request.SerializeAsString());
  std::string bytes;
  v1::MultiplyResponse response;
  while (stream.Read(bytes) && response.ParseFromString(bytes)) {
    if (response.has_result()) return StatusCode::OK;
    if (response.has_error()) return static_cast<StatusCode>(response.error().code());
  }
  return StatusCode::UNKNOWN;
}

TEST_F(CallersRpcTest, AGeneratedUploadBeginsNothingForATokenThatIsGone) {
  RawCall upload(channel_, absl::StrCat(kServicePath, "PutMatrix"), "alice-token");
  v1::PutMatrixRequest put;
  *put.mutable_header()->mutable_shape() = ProtoShape({8, 8, gemm::DType::kF32});
  *put.mutable_header()->mutable_generator() = Generated().generator();
  upload.Write(put.SerializeAsString());
  // The header came before these on the same connection, so it has been handled.
  for (int i = 0; i < 20; ++i) EXPECT_THAT(List("alice"), IsEmpty());
  Install(Line("root", "all"));
  upload.WritesDone();
  EXPECT_EQ(upload.Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(List("root", false, /*every_owner=*/true), IsEmpty());
}

TEST_F(CallersRpcTest, AnOpenStreamBeginsNothingForATokenThatIsGone) {
  RawCall upload(channel_, absl::StrCat(kServicePath, "PutMatrix"), "alice-token");
  RawCall stream(channel_, absl::StrCat(kServicePath, "Multiply"), "carol-token");
  EXPECT_EQ(RunJob(stream, 1), StatusCode::OK);
  Install(Line("carol", "metrics"));
  EXPECT_EQ(RunJob(stream, 2), StatusCode::PERMISSION_DENIED);
  Install(Line("root", "all"));
  EXPECT_EQ(RunJob(stream, 3), StatusCode::UNAUTHENTICATED);
  v1::PutMatrixRequest put;
  *put.mutable_header()->mutable_shape() = ProtoShape({8, 8, gemm::DType::kF32});
  *put.mutable_header()->mutable_generator() = Generated().generator();
  upload.Write(put.SerializeAsString());
  upload.WritesDone();
  EXPECT_EQ(upload.Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(List("root", false, /*every_owner=*/true), IsEmpty());
  Install(Line("carol", "call"));
  EXPECT_EQ(RunJob(stream, 4), StatusCode::OK) << "the stream is still open";
  stream.WritesDone();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(CallersRpcTest, AdministratorsSeeAndDeleteWhatOthersLeft) {
  const v1::MatrixInfo left = Put("alice", "left");
  Put("bob", "shared", /*shared=*/true);
  EXPECT_THAT(List("root"), IsEmpty());
  EXPECT_THAT(List("root", false, /*every_owner=*/true),
              UnorderedElementsAre("alice:left", "bob:shared"));
  v1::ListMatricesRequest request;
  request.set_every_owner(true);
  v1::ListMatricesResponse response;
  EXPECT_EQ(Ask(&v1::GemmService::Stub::ListMatrices, "alice", request, response).error_code(),
            StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Delete("root", ByName("left")), StatusCode::NOT_FOUND) << "names are alice's own";
  EXPECT_EQ(Delete("root", ById(left.id())), StatusCode::OK);
  EXPECT_EQ(Delete("root", ByName("shared", true)), StatusCode::OK);
}

}  // namespace
}  // namespace gemmd
