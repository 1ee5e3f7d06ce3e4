// Decoding agrees with protobuf's own parser, however a message is cut.
#include "server/rpc/codec/codec.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::HasSubstr;

grpc::ByteBuffer Cut(const std::string& bytes, const std::vector<size_t>& cuts) {
  std::vector<grpc::Slice> slices;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    slices.emplace_back(bytes.data() + begin, cut - begin);
    begin = cut;
  }
  slices.emplace_back(bytes.data() + begin, bytes.size() - begin);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string Field(uint32_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }
std::string Field(uint32_t field, const std::string& bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + bytes;
}

// The result that DecodeMultiply must give, by protobuf alone.
void ExpectAsProtobuf(const std::string& bytes, const grpc::ByteBuffer& message) {
  v1::MultiplyRequest expected;
  const bool valid = expected.ParseFromString(bytes) &&
                     expected.message_case() != v1::MultiplyRequest::MESSAGE_NOT_SET;
  const absl::StatusOr<MultiplyMessage> decoded = DecodeMultiply(message);
  ASSERT_EQ(decoded.ok(), valid) << decoded.status();
  if (!valid) {
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
  } else if (expected.has_chunk()) {
    const auto* chunk = std::get_if<OperandBytes>(&*decoded);
    ASSERT_NE(chunk, nullptr);
    EXPECT_EQ(chunk->job_id, expected.chunk().job_id());
    EXPECT_EQ(chunk->operand, static_cast<int>(expected.chunk().operand()));
    EXPECT_EQ(chunk->offset, expected.chunk().offset());
    EXPECT_EQ(std::string(chunk->data), expected.chunk().data());
  } else if (expected.has_header()) {
    const auto* header = std::get_if<v1::MultiplyHeader>(&*decoded);
    ASSERT_NE(header, nullptr);
    EXPECT_EQ(header->SerializeAsString(), expected.header().SerializeAsString());
  } else {
    const auto* cancel = std::get_if<v1::CancelJob>(&*decoded);
    ASSERT_NE(cancel, nullptr);
    EXPECT_EQ(cancel->job_id(), expected.cancel().job_id());
  }
}

v1::MultiplyRequest SomeChunk(size_t bytes) {
  v1::MultiplyRequest request;
  request.mutable_chunk()->set_job_id(123456789012345);
  request.mutable_chunk()->set_operand(v1::OPERAND_ROLE_BIAS);
  request.mutable_chunk()->set_offset(1ull << 40);
  std::string& data = *request.mutable_chunk()->mutable_data();
  for (size_t i = 0; i < bytes; ++i) data += static_cast<char>(i * 7);
  return request;
}

TEST(Decode, EveryCutInTwoAndThree) {
  const std::string bytes = SomeChunk(40).SerializeAsString();
  for (size_t i = 0; i <= bytes.size(); ++i) {
    for (size_t j = i; j <= bytes.size(); ++j) ExpectAsProtobuf(bytes, Cut(bytes, {i, j}));
  }
}

TEST(Decode, EveryTruncationIsJudgedAsProtobufDoes) {
  const std::string bytes = SomeChunk(40).SerializeAsString();
  for (size_t i = 0; i <= bytes.size(); ++i) {
    ExpectAsProtobuf(bytes.substr(0, i), Cut(bytes.substr(0, i), {i / 2}));
  }
}

TEST(Decode, PayloadIsReferredToAndOutlivesTheMessage) {
  v1::MultiplyRequest request = SomeChunk(300'000);
  const std::string bytes = request.SerializeAsString();
  absl::Cord data;
  uintptr_t begin;
  {
    grpc::Slice slice(bytes);
    begin = reinterpret_cast<uintptr_t>(slice.begin());
    const absl::StatusOr<MultiplyMessage> decoded = DecodeMultiply(grpc::ByteBuffer(&slice, 1));
    ASSERT_TRUE(decoded.ok());
    data = std::get<OperandBytes>(*decoded).data;
  }
  ASSERT_TRUE(data.TryFlat().has_value());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data.TryFlat()->data()), begin + bytes.size() - 300'000)
      << "copied, not referred to";
  EXPECT_EQ(std::string(data), request.chunk().data());
}

TEST(Decode, FieldsInAnyOrderAndUnknownOnesBetween) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> fields = {
        Field(1, random()),
        Field(2, random() % 6),
        Field(3, random()),
        Field(15, std::string(random() % 2000, 'x')),
        Field(9, random()),                                       // unknown varint
        Field(77, std::string(random() % 20, 'u')),               // unknown bytes
        Varint(20 << 3 | 5) + "abcd",                             // unknown fixed32
        Varint(21 << 3 | 1) + "abcdefgh",                         // unknown fixed64
        Varint(22 << 3 | 3) + Field(1, 5) + Varint(22 << 3 | 4),  // unknown group
        Field(1, random()),                                       // again: the last one wins
        Field(15, "again"),
        Field(3, std::string("a number's field holding bytes")),
    };
    std::shuffle(fields.begin(), fields.end(), random);
    fields.resize(random() % (fields.size() + 1));
    std::string chunk;
    for (const std::string& field : fields) chunk += field;
    std::vector<std::string> outer = {Field(2, chunk), Field(99, random()),
                                      Field(98, std::string("unknown"))};
    if (round % 3 == 0) outer.push_back(Field(2, Field(1, 4) + Field(15, "merged")));
    if (round % 5 == 0) outer.push_back(Field(3, Field(1, 9)));
    if (round % 7 == 0) outer.push_back(Field(1, Field(1, 8)));
    std::shuffle(outer.begin(), outer.end(), random);
    std::string bytes;
    for (const std::string& field : outer) bytes += field;
    size_t cut = random() % (bytes.size() + 1);
    ExpectAsProtobuf(bytes, Cut(bytes, {cut}));
    if (testing::Test::HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(Decode, FlippedBytesAreJudgedAsProtobufDoes) {
  std::mt19937 random(2);
  const std::string good = SomeChunk(64).SerializeAsString();
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int flips = random() % 4 + 1; flips > 0; --flips) {
      bytes[random() % std::min<size_t>(bytes.size(), 40)] = static_cast<char>(random());
    }
    ExpectAsProtobuf(bytes, Cut(bytes, {random() % bytes.size()}));
    if (testing::Test::HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(Decode, RandomBytesAreJudgedAsProtobufDoes) {
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 30, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ExpectAsProtobuf(bytes, Cut(bytes, {bytes.size() / 3}));
    if (testing::Test::HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(Decode, SaysWhatIsWrong) {
  const grpc::Slice empty;
  EXPECT_THAT(DecodeMultiply(grpc::ByteBuffer(&empty, 1)).status().message(),
              HasSubstr("none of header, chunk and cancel"));
  EXPECT_THAT(DecodePutMatrix(grpc::ByteBuffer(&empty, 1)).status().message(),
              HasSubstr("neither header nor chunk"));
  EXPECT_THAT(DecodeMultiply(Cut("\xff\xff\xff", {})).status().message(), HasSubstr("3 bytes"));
}

TEST(Decode, PutMatrixChunkAndHeader) {
  v1::PutMatrixRequest request;
  request.mutable_chunk()->set_offset(77);
  request.mutable_chunk()->set_data(std::string(5000, 'p'));
  std::string bytes = request.SerializeAsString();
  for (size_t cut = 0; cut <= bytes.size(); cut += 100) {
    const absl::StatusOr<PutMatrixMessage> decoded = DecodePutMatrix(Cut(bytes, {cut}));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(std::get<MatrixBytes>(*decoded).offset, 77u);
    EXPECT_EQ(std::string(std::get<MatrixBytes>(*decoded).data), request.chunk().data());
  }
  request.mutable_header()->set_device("host:0");
  const absl::StatusOr<PutMatrixMessage> decoded =
      DecodePutMatrix(Cut(request.SerializeAsString(), {}));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<v1::PutMatrixHeader>(*decoded).device(), "host:0");
}

// A piece of `bytes` bytes that reports its release.
ResultPiece Piece(std::string& bytes, bool& released) {
  return {
      .offset = 1ull << 33,
      .bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()), bytes.size()),
      .owner = std::shared_ptr<StagingBlock>(new StagingBlock, [&released](StagingBlock* block) {
        released = true;
        delete block;
      })};
}

std::string Joined(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string joined;
  for (const grpc::Slice& slice : slices) {
    joined.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return joined;
}

TEST(Encode, ShortPiecesAreCopiedAndLongOnesHeldUntilSent) {
  for (const size_t size : {1u, 127u, 16u * 1024, 16u * 1024 + 1, 1u << 20}) {
    std::string bytes(size, 'r');
    bytes.front() = 'f';
    bool released = false;
    grpc::ByteBuffer message = EncodeResultChunk(42, Piece(bytes, released));
    EXPECT_EQ(released, size <= 16 * 1024);
    v1::MultiplyResponse response;
    ASSERT_TRUE(response.ParseFromString(Joined(message)));
    EXPECT_EQ(response.chunk().job_id(), 42u);
    EXPECT_EQ(response.chunk().offset(), 1ull << 33);
    EXPECT_EQ(response.chunk().data(), bytes);
    message.Clear();
    EXPECT_TRUE(released);

    released = false;
    message = EncodeMatrixData(Piece(bytes, released));
    v1::GetMatrixResponse data;
    ASSERT_TRUE(data.ParseFromString(Joined(message)));
    EXPECT_EQ(data.offset(), 1ull << 33);
    EXPECT_EQ(data.data(), bytes);
    message.Clear();
    EXPECT_TRUE(released);
  }
}

TEST(Encode, LargestNumbersFitTheHeader) {
  std::string bytes(20'000, 'r');
  bool released = false;
  ResultPiece piece = Piece(bytes, released);
  piece.offset = UINT64_MAX;
  v1::MultiplyResponse response;
  ASSERT_TRUE(response.ParseFromString(Joined(EncodeResultChunk(UINT64_MAX, std::move(piece)))));
  EXPECT_EQ(response.chunk().job_id(), UINT64_MAX);
  EXPECT_EQ(response.chunk().offset(), UINT64_MAX);
}

TEST(Serialize, ReadsBack) {
  v1::MatrixInfo info;
  EXPECT_EQ(Joined(Serialize(info)), "");
  info.set_id("m1");
  v1::MatrixInfo parsed;
  ASSERT_TRUE(Parse(Serialize(info), parsed));
  EXPECT_EQ(parsed.id(), "m1");
}

}  // namespace
}  // namespace gemmd
