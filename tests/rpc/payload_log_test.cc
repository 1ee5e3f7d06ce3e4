// No element of a matrix in the log, whatever becomes of its call.
#include <signal.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/flags/flags.h"
#include "tests/rpc/faulty_server.h"
#include "tests/rpc/raw_client.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The bytes of an f32, 949.084: printable, so that no escape of the log hides them.
constexpr char kElement[] = "gEmD";
constexpr int64_t kSize = 16;

float ElementOf(const std::string& bytes) {
  float value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

HostMatrix Secret(int64_t rows = kSize, int64_t cols = kSize) {
  HostMatrix matrix{{rows, cols, gemm::DType::kF32}, ""};
  for (int64_t i = 0; i < rows * cols; ++i) matrix.bytes += kElement;
  return matrix;
}

// How a log might show elements that are all these four bytes.
std::vector<std::string> FormsOf(const std::string& element) {
  const double value = ElementOf(element);
  const std::string little = absl::BytesToHexString(element);
  const std::string big = absl::BytesToHexString(std::string(element.rbegin(), element.rend()));
  std::vector<std::string> forms = {element,
                                    absl::CHexEscape(element),
                                    little,
                                    absl::AsciiStrToUpper(little),
                                    big,
                                    absl::AsciiStrToUpper(big),
                                    absl::StrFormat("%.5g", value),
                                    absl::StrFormat("%.6e", value).substr(0, 7),
                                    absl::StrFormat("%.0f", value) + "."};
  for (const char* separator : {" ", ":", ",", ", "}) {
    forms.push_back(absl::StrJoin(element, separator, [](std::string* out, char byte) {
      absl::StrAppend(out, static_cast<int>(static_cast<uint8_t>(byte)));
    }));
    forms.push_back(absl::StrJoin(element, separator, [](std::string* out, char byte) {
      absl::StrAppend(out, absl::Hex(static_cast<uint8_t>(byte), absl::kZeroPad2));
    }));
  }
  // Six bytes from each byte of an element on: whatever the log begins with.
  for (size_t first = 0; first < element.size(); ++first) {
    forms.push_back(absl::Base64Escape((element + element + element).substr(first, 6)));
  }
  return forms;
}

class PayloadLog : public ::testing::Test {
 protected:
  // Faults of launches, counted from 0: one is refused, one product is wrong, and one is wrong
  // twice.
  PayloadLog()
      : server_("faulty:1",
                "host:0 launch refused 3;host:0 launch wrong 4;host:0 launch wrong 6;"
                "host:0 launch wrong 7",
                {"--log-level=debug", "--verify=always"}) {}

  // A product of secrets whose operands come with the request; the result's bytes.
  std::string Unary(StatusCode wanted, const v1::Product& change = {}) {
    v1::MultiplyUnaryRequest request;
    *request.mutable_product()->mutable_a() = DataOperand(Secret());
    *request.mutable_product()->mutable_b() = DataOperand(Secret());
    if (change.has_b()) request.mutable_product()->clear_b();
    request.mutable_product()->MergeFrom(change);
    grpc::ClientContext context;
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = server_.stub().MultiplyUnary(&context, request, &response);
    EXPECT_EQ(status.error_code(), wanted) << status.error_message();
    said_ += status.error_message();
    return response.data();
  }

  // An upload whose chunks begin at these bytes and are as long as the matrix says.
  void Put(StatusCode wanted, const std::vector<uint64_t>& offsets, const std::string& name) {
    grpc::ClientContext context;
    v1::PutMatrixResponse response;
    auto call = server_.stub().PutMatrix(&context, &response);
    v1::PutMatrixRequest request;
    *request.mutable_header()->mutable_shape() = ProtoShape(Secret().shape);
    request.mutable_header()->mutable_keep()->set_name(name);
    call->Write(request);
    for (const uint64_t offset : offsets) {
      request.mutable_chunk()->set_offset(offset);
      request.mutable_chunk()->set_data(Secret().bytes);
      call->Write(request);
    }
    call->WritesDone();
    const grpc::Status status = call->Finish();
    EXPECT_EQ(status.error_code(), wanted) << status.error_message();
    said_ += status.error_message();
  }

  // A job with sent operands; `spoil` sends more, or other, messages in between.
  template <typename Spoil>
  JobOutcome Stream(const Spoil& spoil) {
    v1::Product product;
    *product.mutable_a() = PayloadOperand(Secret());
    *product.mutable_b() = PayloadOperand(Secret());
    StreamClient stream(server_.stub(), absl::Seconds(120));
    stream.Header(1, product);
    stream.Payload(1, v1::OPERAND_ROLE_A, Secret());
    spoil(stream);
    stream.Payload(1, v1::OPERAND_ROLE_B, Secret());
    JobOutcome outcome = stream.Wait(1);
    if (outcome.error.has_value()) said_ += outcome.error->message();
    return outcome;
  }

  void ServeProducts();
  void RefuseRequests();
  void FailProducts();

  FaultyServer server_;
  std::string result_;  // an element of it
  std::string said_;    // to callers
};

void PayloadLog::ServeProducts() {
  const JobOutcome sent = Stream([](StreamClient&) {});
  ASSERT_TRUE(sent.result.has_value());
  result_ = sent.data.substr(0, 4);
  EXPECT_EQ(Unary(StatusCode::OK).substr(0, 4), result_);
  Put(StatusCode::OK, {0}, "weights");
  v1::Product resident;
  resident.mutable_b()->mutable_matrix()->set_name("weights");
  EXPECT_EQ(Unary(StatusCode::OK, resident).substr(0, 4), result_);
  grpc::ClientContext context;
  v1::GetMatrixRequest request;
  request.mutable_matrix()->set_name("weights");
  auto call = server_.stub().GetMatrix(&context, request);
  v1::GetMatrixResponse response;
  while (call->Read(&response)) {
  }
  EXPECT_TRUE(call->Finish().ok());
}

void PayloadLog::FailProducts() {
  Unary(StatusCode::INTERNAL);
  const double right = ElementOf(result_);
  EXPECT_NEAR(ElementOf(Unary(StatusCode::OK)), right, 1e-5 * right) << "by the second kernel";
  Unary(StatusCode::DATA_LOSS);
}

void PayloadLog::RefuseRequests() {
  v1::Product change;
  change.set_alpha(std::numeric_limits<double>::quiet_NaN());
  Unary(StatusCode::INVALID_ARGUMENT, change);
  change = {};
  *change.mutable_b() = DataOperand(Secret());
  change.mutable_b()->mutable_shape()->set_cols(kSize + 1);  // more than the bytes
  Unary(StatusCode::INVALID_ARGUMENT, change);
  change = {};
  *change.mutable_b() = DataOperand(Secret());
  change.mutable_b()->mutable_shape()->set_dtype(v1::DATA_TYPE_S8);
  change.mutable_b()->set_data(Secret(kSize, kSize / 4).bytes);
  Unary(StatusCode::INVALID_ARGUMENT, change);
  change = {};
  change.mutable_b()->mutable_matrix()->set_name("nothing");
  Unary(StatusCode::NOT_FOUND, change);
  Put(StatusCode::ALREADY_EXISTS, {0}, "weights");
  Put(StatusCode::INVALID_ARGUMENT, {4}, "beyond");
  Put(StatusCode::INVALID_ARGUMENT, {0, 0}, "twice");
  Put(StatusCode::INVALID_ARGUMENT, {}, "missing");
  EXPECT_NE(Stream([](StreamClient& stream) {
              stream.Chunk(1, v1::OPERAND_ROLE_A, 512, Secret().bytes);
            }).code(),
            0);
  EXPECT_NE(Stream([](StreamClient& stream) { stream.Cancel(1); }).code(), 0);
  // Not a message at all.
  RawCall garbage(server_.channel(), "/gemm.v1.GemmService/MultiplyUnary");
  garbage.Write(Secret().bytes);
  garbage.WritesDone();
  const grpc::Status status = garbage.Finish();
  EXPECT_FALSE(status.ok());
  said_ += status.error_message();
}

TEST_F(PayloadLog, HasNoElementOfAMatrix) {
  ASSERT_NO_FATAL_FAILURE(ServeProducts());
  FailProducts();
  RefuseRequests();
  server_.process().Signal(SIGTERM);
  const std::string log = server_.process().ReadAll();
  EXPECT_EQ(server_.process().ExitCode(), kExitOk);
  // The log has lines of all that.
  EXPECT_THAT(log, AllOf(HasSubstr(R"("msg":"upload")"), HasSubstr(R"("msg":"download")"),
                         HasSubstr(R"("msg":"job")"), HasSubstr(R"("method":"PutMatrix")"),
                         HasSubstr("injected"), HasSubstr("another's was delivered"),
                         HasSubstr("two kernels gave a wrong product"),
                         HasSubstr(R"("code":"INVALID_ARGUMENT")")));
  for (const std::string& element : {std::string(kElement), result_}) {
    for (const std::string& form : FormsOf(element)) {
      EXPECT_THAT(log, Not(HasSubstr(form)));
      EXPECT_THAT(said_, Not(HasSubstr(form))) << "an error of a call";
    }
  }
}

}  // namespace
}  // namespace gemmd
