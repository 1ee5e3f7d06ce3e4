// Callers by token: whose matrices are whose, through every RPC that the contract has.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "server/rpc/context/method.h"
#include "tests/rpc/callers_fixture.h"
#include "tests/rpc/raw_client.h"

namespace gemmd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

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

// Calls `use` with each field of the message's type that holds a MatrixRef, set in turn
// in a copy of the message.
using Use = std::function<void(const std::string& path)>;
void ForEachRef(Message& root, Message& message, const std::string& path, const v1::MatrixRef& ref,
                const Use& use) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string name = absl::StrCat(path, ".", field->name());
    if (field->is_repeated()) {
      std::set<std::string> seen;
      EXPECT_FALSE(HasRef(field->message_type(), seen)) << name << " is not tried";
      continue;
    }
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

TEST_F(CallersRpcTest, AnotherCallersMatrixDoesNotExistThroughAnyRpc) {
  const v1::MatrixInfo secret = Put("alice", "secret");
  const auto requests = RightRequests();
  int tried = 0;
  for (const std::string& method : MethodNames()) {
    const std::unique_ptr<Message> request = NewRequestOf(method);
    std::set<std::string> seen;
    if (!HasRef(request->GetDescriptor(), seen)) continue;
    ASSERT_EQ(requests.count(method), 1) << "RightRequests needs a request of " << method;
    ASSERT_TRUE(request->ParseFromString(requests.at(method)));
    for (const v1::MatrixRef& ref : {ById(secret.id()), ByName("secret"), ByName("secret", true)}) {
      ForEachRef(*request, *request, method, ref, [&](const std::string& field) {
        ++tried;
        EXPECT_EQ(Call(kServicePath + method, request->SerializeAsString(), "bob-token"),
                  StatusCode::NOT_FOUND)
            << field << " of " << ref.ShortDebugString();
        // A bias has another shape, and a deleted matrix is gone for the next reference.
        if (method == "DeleteMatrix" || ref.shared() || absl::StrContains(field, "bias")) return;
        EXPECT_EQ(Call(kServicePath + method, request->SerializeAsString(), "alice-token"),
                  StatusCode::OK)
            << "the same request of its owner: " << field;
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

// A shared name belongs to the first who takes it; a reader says whose matrix it means.
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
