// A name that is replaced all the time, and the callers that read it meanwhile.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using gemm::DType;
using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr char kName[] = "weights";
// More than a block of staging, so that a download takes several pieces.
const Shape kWeights{256, 160, DType::kF32};

HostMatrix Filled(const Shape& shape, float value) {
  HostMatrix matrix{shape, std::string(shape.dense_bytes(), '\0')};
  for (size_t offset = 0; offset < matrix.bytes.size(); offset += sizeof(value)) {
    std::memcpy(&matrix.bytes[offset], &value, sizeof(value));
  }
  return matrix;
}

// Whether all elements in `bytes` equal the first one.
bool IsOfOneVersion(const std::string& bytes) {
  return bytes.compare(sizeof(float), std::string::npos, bytes, 0, bytes.size() - sizeof(float)) ==
         0;
}

class NamesTest : public RpcTest {
 protected:
  static v1::Keep Replacing() {
    v1::Keep keep;
    keep.set_name(kName);
    keep.set_replace(true);
    return keep;
  }
  static v1::MatrixRef ByName() {
    v1::MatrixRef ref;
    ref.set_name(kName);
    return ref;
  }

  // Bytes [begin, end) of the matrix; with an `upload_id` as a part of a split upload.
  grpc::Status PutBytes(const HostMatrix& matrix, const v1::Keep& keep, size_t begin, size_t end,
                        const std::string& upload_id, v1::PutMatrixResponse& response) {
    grpc::ClientContext context;
    auto call = stub_->PutMatrix(&context, &response);
    v1::PutMatrixRequest request;
    v1::PutMatrixHeader& header = *request.mutable_header();
    *header.mutable_shape() = ProtoShape(matrix.shape);
    *header.mutable_keep() = keep;
    header.set_upload_id(upload_id);
    if (!upload_id.empty()) {
      header.mutable_range()->set_offset(begin);
      header.mutable_range()->set_length(end - begin);
    }
    call->Write(request);
    request.mutable_chunk()->set_offset(begin);
    request.mutable_chunk()->set_data(matrix.bytes.substr(begin, end - begin));
    call->Write(request);
    call->WritesDone();
    return call->Finish();
  }
  grpc::Status PutWhole(const HostMatrix& matrix, const v1::Keep& keep,
                        v1::PutMatrixResponse& response) {
    return PutBytes(matrix, keep, 0, matrix.bytes.size(), "", response);
  }
  grpc::Status PutSplit(const HostMatrix& matrix, const v1::Keep& keep,
                        v1::PutMatrixResponse& response) {
    const size_t half = matrix.bytes.size() / 2;
    const std::string upload_id = "upload-" + std::to_string(++uploads_);
    const grpc::Status first = PutBytes(matrix, keep, 0, half, upload_id, response);
    if (!first.ok()) return first;
    EXPECT_FALSE(response.complete());
    EXPECT_EQ(response.matrix().version(), 0u);
    return PutBytes(matrix, keep, half, matrix.bytes.size(), upload_id, response);
  }
  // Every element of the product is `value`.
  grpc::Status KeepProduct(const Shape& shape, float value, const v1::Keep& keep,
                           v1::MultiplyUnaryResponse& response) {
    grpc::ClientContext context;
    v1::MultiplyUnaryRequest request;
    *request.mutable_product()->mutable_a() = DataOperand(Filled({shape.rows, 1, shape.type}, 1));
    *request.mutable_product()->mutable_b() =
        DataOperand(Filled({1, shape.cols, shape.type}, value));
    *request.mutable_product()->mutable_result()->mutable_keep() = keep;
    return stub_->MultiplyUnary(&context, request, &response);
  }

  grpc::Status Read(const v1::MatrixRef& ref, std::string& bytes, v1::MatrixInfo& info) {
    grpc::ClientContext context;
    v1::GetMatrixRequest request;
    *request.mutable_matrix() = ref;
    auto call = stub_->GetMatrix(&context, request);
    v1::GetMatrixResponse response;
    while (call->Read(&response)) {
      if (response.has_matrix()) info = response.matrix();
      bytes += response.data();
    }
    return call->Finish();
  }
  // A row of ones times the named matrix: each element is a sum over one column.
  grpc::Status Use(const v1::MatrixRef& ref, std::string& bytes) {
    grpc::ClientContext context;
    v1::MultiplyUnaryRequest request;
    v1::MultiplyUnaryResponse response;
    *request.mutable_product()->mutable_a() =
        DataOperand(Filled({1, kWeights.rows, kWeights.type}, 1));
    *request.mutable_product()->mutable_b()->mutable_matrix() = ref;
    const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
    bytes = response.data();
    return status;
  }
  grpc::Status DeleteRef(const v1::MatrixRef& ref) {
    grpc::ClientContext context;
    v1::DeleteMatrixRequest request;
    v1::DeleteMatrixResponse response;
    *request.mutable_matrix() = ref;
    return stub_->DeleteMatrix(&context, request, &response);
  }

  std::atomic<int> uploads_ = 0;
};

TEST_F(NamesTest, ReadersBesideAThousandReplacementsSeeOneWholeVersionEach) {
  constexpr int kReplacements = 1000;
  v1::PutMatrixResponse first;
  ASSERT_TRUE(PutWhole(Filled(kWeights, 1), Replacing(), first).ok());
  std::atomic<bool> writing = true;
  std::atomic<int> reads = 0;
  const auto read = [&](bool by_product) {
    uint64_t last = 0;
    while (writing) {
      std::string bytes;
      v1::MatrixInfo info;
      const grpc::Status status = by_product ? Use(ByName(), bytes) : Read(ByName(), bytes, info);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_EQ(bytes.size(), by_product ? kWeights.cols * sizeof(float) : kWeights.dense_bytes());
      ASSERT_TRUE(IsOfOneVersion(bytes));
      if (!by_product) {
        ASSERT_GE(info.version(), last);
        last = info.version();
      }
      ++reads;
    }
  };
  std::vector<std::thread> readers;
  for (const bool by_product : {false, true, false}) readers.emplace_back(read, by_product);
  uint64_t version = first.matrix().version();
  for (int i = 0; i < kReplacements; ++i) {
    const float value = static_cast<float>(i % 1000 + 2);
    v1::PutMatrixResponse put;
    v1::MultiplyUnaryResponse product;
    const grpc::Status status = i % 3 == 0   ? PutWhole(Filled(kWeights, value), Replacing(), put)
                                : i % 3 == 1 ? PutSplit(Filled(kWeights, value), Replacing(), put)
                                             : KeepProduct(kWeights, value, Replacing(), product);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const uint64_t next = i % 3 == 2 ? product.kept().version() : put.matrix().version();
    EXPECT_GT(next, version);
    version = next;
  }
  writing = false;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(reads, 10);
  RecordProperty("reads", reads);
  EXPECT_TRUE(DeleteRef(ByName()).ok());
}

TEST_F(NamesTest, ConditionsHoldForWholeAndSplitUploadsAndProducts) {
  const HostMatrix matrix = Filled({4, 4, DType::kF32}, 2);
  v1::PutMatrixResponse put;
  v1::MultiplyUnaryResponse product;
  v1::Keep keep = Replacing();
  keep.set_if_version(0);
  ASSERT_TRUE(PutWhole(matrix, keep, put).ok());
  const uint64_t first = put.matrix().version();
  for (const uint64_t wrong : {uint64_t{0}, first - 1, first + 1}) {
    keep.set_if_version(wrong);
    for (const grpc::Status& refused : {PutWhole(matrix, keep, put), PutSplit(matrix, keep, put),
                                        KeepProduct(matrix.shape, 3, keep, product)}) {
      EXPECT_EQ(refused.error_code(), StatusCode::ABORTED);
      EXPECT_THAT(refused.error_message(),
                  HasSubstr("keep.if_version is " + std::to_string(wrong)));
      EXPECT_THAT(refused.error_message(), HasSubstr("version " + std::to_string(first)));
    }
  }
  keep.set_if_version(first);
  ASSERT_TRUE(PutSplit(matrix, keep, put).ok());
  keep.set_if_version(put.matrix().version());
  ASSERT_TRUE(KeepProduct(matrix.shape, 3, keep, product).ok());

  v1::MatrixRef ref = ByName();
  ref.set_version(first);
  std::string bytes;
  v1::MatrixInfo info;
  const grpc::Status read = Read(ref, bytes, info);
  EXPECT_EQ(read.error_code(), StatusCode::ABORTED);
  EXPECT_THAT(read.error_message(), HasSubstr("version is " + std::to_string(first)));
  EXPECT_EQ(DeleteRef(ref).error_code(), StatusCode::ABORTED);
  ref.set_version(product.kept().version());
  EXPECT_TRUE(Read(ref, bytes, info).ok());
  EXPECT_EQ(bytes, Filled(matrix.shape, 3).bytes);
  EXPECT_TRUE(DeleteRef(ref).ok());
  EXPECT_EQ(DeleteRef(ref).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(NamesTest, APutThatIsBrokenOffLeavesTheOldOne) {
  const HostMatrix old = Filled(kWeights, 1);
  v1::PutMatrixResponse put;
  ASSERT_TRUE(PutWhole(old, Replacing(), put).ok());
  const Held with_matrix = HeldNow();
  const auto begin = [&](grpc::ClientContext& context) {
    auto call = stub_->PutMatrix(&context, &put);
    v1::PutMatrixRequest request;
    *request.mutable_header()->mutable_shape() = ProtoShape(kWeights);
    *request.mutable_header()->mutable_keep() = Replacing();
    call->Write(request);
    request.mutable_chunk()->set_data(old.bytes.substr(0, 1000));
    call->Write(request);
    return call;
  };
  {
    grpc::ClientContext context;
    const auto call = begin(context);
    AwaitMatrices(with_matrix.matrices + 1);
    context.TryCancel();
    EXPECT_EQ(call->Finish().error_code(), StatusCode::CANCELLED);
  }
  {
    grpc::ClientContext context;
    const auto call = begin(context);
    call->WritesDone();
    EXPECT_EQ(call->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  }
  ExpectHolds(with_matrix);
  std::string bytes;
  v1::MatrixInfo info;
  EXPECT_TRUE(Read(ByName(), bytes, info).ok());
  EXPECT_EQ(bytes, old.bytes);
  EXPECT_TRUE(DeleteRef(ByName()).ok());
}

}  // namespace
}  // namespace gemmd
