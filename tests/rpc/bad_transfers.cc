#include "tests/rpc/bad_transfers.h"

#include <utility>

#include "tests/rpc/host_matrix.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;
using Stub = v1::GemmService::Stub;

using Requests = std::vector<v1::PutMatrixRequest>;

v1::PutMatrixRequest PutHeader(const std::function<void(v1::PutMatrixHeader&)>& change = {}) {
  v1::PutMatrixRequest request;
  *request.mutable_header()->mutable_shape() = ProtoShape({8, 8, gemm::DType::kF32});
  if (change) change(*request.mutable_header());
  return request;
}

v1::PutMatrixRequest PutChunk(uint64_t offset, size_t bytes) {
  v1::PutMatrixRequest request;
  request.mutable_chunk()->set_offset(offset);
  request.mutable_chunk()->set_data(std::string(bytes, 'x'));
  return request;
}

BadTransfer Put(std::string name, Requests requests, StatusCode code,
                std::vector<std::string> sentence) {
  const auto call = [requests = std::move(requests)](Stub& stub) {
    grpc::ClientContext context;
    v1::PutMatrixResponse response;
    auto stream = stub.PutMatrix(&context, &response);
    for (const v1::PutMatrixRequest& request : requests) stream->Write(request);
    stream->WritesDone();
    return stream->Finish();
  };
  return {std::move(name), call, code, std::move(sentence)};
}

BadTransfer InvalidPut(std::string name, Requests requests, std::vector<std::string> sentence) {
  return Put(std::move(name), std::move(requests), StatusCode::INVALID_ARGUMENT,
             std::move(sentence));
}

BadTransfer InvalidHeader(std::string name, const std::function<void(v1::PutMatrixHeader&)>& change,
                          std::vector<std::string> sentence) {
  return InvalidPut(std::move(name), {PutHeader(change), PutChunk(0, 256)}, std::move(sentence));
}

void AddUploadHeaders(std::vector<BadTransfer>& rows) {
  rows.push_back(InvalidPut("PutNothing", {}, {"header", "without"}));
  rows.push_back(InvalidPut("PutWithoutHeader", {PutChunk(0, 256)}, {"chunk", "first message"}));
  rows.push_back(InvalidPut("PutTwoHeaders", {PutHeader(), PutHeader()}, {"header", "message 1"}));
  rows.push_back(InvalidPut("PutEmptyMessage", {v1::PutMatrixRequest()},
                            {"message 0 of the stream is not a PutMatrixRequest"}));
  rows.push_back(InvalidHeader("PutWithoutShape", [](auto& h) { h.clear_shape(); },
                               {"header.shape: not set"}));
  rows.push_back(InvalidHeader("PutZeroRows", [](auto& h) { h.mutable_shape()->set_rows(0); },
                               {"header.shape.rows is 0"}));
  rows.push_back(InvalidHeader("PutOverflowingShape",
                               [](auto& h) {
                                 h.mutable_shape()->set_rows(int64_t{1} << 40);
                                 h.mutable_shape()->set_cols(int64_t{1} << 40);
                               },
                               {"header.shape", "2^60"}));
  rows.push_back(InvalidHeader("PutBadName", [](auto& h) { h.mutable_keep()->set_name("a?b"); },
                               {"header.keep.name: \"a?b\""}));
  rows.push_back(InvalidHeader("PutOnUnknownDevice", [](auto& h) { h.set_device("cuda:9"); },
                               {"cuda:9", "host:0"}));
  rows.push_back(InvalidHeader("PutRangeWithoutUpload",
                               [](auto& h) { h.mutable_range()->set_length(8); },
                               {"range", "upload_id"}));
  rows.push_back(InvalidHeader("PutRangePastTheEnd",
                               [](auto& h) {
                                 h.set_upload_id("u1");
                                 h.mutable_range()->set_offset(250);
                                 h.mutable_range()->set_length(7);
                               },
                               {"range", "250", "256 bytes"}));
  rows.push_back(InvalidHeader("PutRangeThatOverflows",
                               [](auto& h) {
                                 h.set_upload_id("u1");
                                 h.mutable_range()->set_offset(8);
                                 h.mutable_range()->set_length(UINT64_MAX);
                               },
                               {"range", "18446744073709551615"}));
  rows.push_back(InvalidHeader("PutUploadIdTooLong",
                               [](auto& h) { h.set_upload_id(std::string(129, 'u')); },
                               {"header.upload_id: 129 bytes"}));
  rows.push_back(InvalidHeader("PutChunkForAGenerator",
                               [](auto& h) { h.mutable_generator()->mutable_uniform(); },
                               {"chunk", "generat"}));
  rows.push_back(Put("PutTakenName",
                     {PutHeader([](auto& h) { h.mutable_keep()->set_name("resident"); })},
                     StatusCode::ALREADY_EXISTS, {"resident"}));
  rows.push_back(InvalidHeader("PutReplacesNoName",
                               [](auto& h) { h.mutable_keep()->set_replace(true); },
                               {"header.keep.replace", "without a name"}));
  rows.push_back(InvalidHeader("PutIfVersionWithoutReplace",
                               [](auto& h) {
                                 h.mutable_keep()->set_name("resident");
                                 h.mutable_keep()->set_if_version(0);
                               },
                               {"header.keep.if_version", "without replace"}));
  rows.push_back(Put("PutReplacesAnotherVersion", {PutHeader([](auto& h) {
                       h.mutable_keep()->set_name("resident");
                       h.mutable_keep()->set_replace(true);
                       h.mutable_keep()->set_if_version(7);
                     })},
                     StatusCode::ABORTED, {"keep.if_version is 7", "\"resident\" has version"}));
  rows.push_back(Put("PutPastTheStore", {PutHeader([](auto& h) {
                       h.mutable_shape()->set_rows(1024);
                       h.mutable_shape()->set_cols(1024);
                     })},
                     StatusCode::RESOURCE_EXHAUSTED, {"4194304 bytes", "2097152"}));
}

void AddUploadChunks(std::vector<BadTransfer>& rows) {
  rows.push_back(InvalidPut("PutShort", {PutHeader(), PutChunk(0, 255)}, {"255", "256"}));
  rows.push_back(InvalidPut("PutLong", {PutHeader(), PutChunk(0, 257)}, {"257 bytes", "256"}));
  rows.push_back(InvalidPut("PutMoreThanAll", {PutHeader(), PutChunk(0, 256), PutChunk(256, 1)},
                            {"chunk of 1 bytes at offset 256", "past byte 256"}));
  rows.push_back(InvalidPut("PutWithAGap", {PutHeader(), PutChunk(0, 100), PutChunk(101, 155)},
                            {"offset is 101", "byte 100 is next"}));
  rows.push_back(InvalidPut("PutOverlapping", {PutHeader(), PutChunk(0, 100), PutChunk(99, 157)},
                            {"offset is 99", "byte 100 is next"}));
  rows.push_back(InvalidPut("PutEmptyChunk", {PutHeader(), PutChunk(0, 0)}, {"chunk.data: empty"}));
  rows.push_back(Put("PutOverTheMessageLimit", {PutHeader(), PutChunk(0, (1 << 20) + 1)},
                     StatusCode::RESOURCE_EXHAUSTED, {"1048576", "--max-message-bytes"}));
}

BadTransfer Get(std::string name, const v1::GetMatrixRequest& request, StatusCode code,
                std::vector<std::string> sentence) {
  const auto call = [request](Stub& stub) {
    grpc::ClientContext context;
    auto stream = stub.GetMatrix(&context, request);
    v1::GetMatrixResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  };
  return {std::move(name), call, code, std::move(sentence)};
}

v1::GetMatrixRequest Ranged(uint64_t offset, uint64_t length) {
  v1::GetMatrixRequest request;
  request.mutable_matrix()->set_name("resident");
  request.mutable_range()->set_offset(offset);
  request.mutable_range()->set_length(length);
  return request;
}

void AddDownloads(std::vector<BadTransfer>& rows) {
  v1::GetMatrixRequest unknown;
  unknown.mutable_matrix()->set_name("nobody");
  rows.push_back(Get("GetUnknown", unknown, StatusCode::NOT_FOUND, {"nobody"}));
  rows.push_back(Get("GetWithoutKey", {}, StatusCode::INVALID_ARGUMENT, {"matrix", "id", "name"}));
  const auto invalid = StatusCode::INVALID_ARGUMENT;
  rows.push_back(Get("GetPastTheEnd", Ranged(250, 7), invalid, {"range", "250", "256"}));
  rows.push_back(Get("GetNothing", Ranged(0, 0), invalid, {"range", "at least 1"}));
  rows.push_back(Get("GetOverflowing", Ranged(8, UINT64_MAX), invalid, {"range", "256"}));
}

void AddQuestions(std::vector<BadTransfer>& rows) {
  rows.push_back({"DeleteUnknown",
                  [](Stub& stub) {
                    grpc::ClientContext context;
                    v1::DeleteMatrixRequest request;
                    v1::DeleteMatrixResponse response;
                    request.mutable_matrix()->set_id("m-unknown");
                    return stub.DeleteMatrix(&context, request, &response);
                  },
                  StatusCode::NOT_FOUND,
                  {"m-unknown"}});
  rows.push_back({"DeleteWithoutKey",
                  [](Stub& stub) {
                    grpc::ClientContext context;
                    v1::DeleteMatrixResponse response;
                    return stub.DeleteMatrix(&context, {}, &response);
                  },
                  StatusCode::INVALID_ARGUMENT,
                  {"matrix"}});
  for (const int page_size : {-1, 1001}) {
    rows.push_back({page_size < 0 ? "ListNegativePage" : "ListPageTooLarge",
                    [page_size](Stub& stub) {
                      grpc::ClientContext context;
                      v1::ListMatricesRequest request;
                      v1::ListMatricesResponse response;
                      request.set_page_size(page_size);
                      return stub.ListMatrices(&context, request, &response);
                    },
                    StatusCode::INVALID_ARGUMENT,
                    {"page_size: " + std::to_string(page_size), "1 to 1000"}});
  }
}

}  // namespace

const std::vector<BadTransfer>& BadTransfers() {
  static const std::vector<BadTransfer>* const kRows = [] {
    auto* rows = new std::vector<BadTransfer>;
    AddUploadHeaders(*rows);
    AddUploadChunks(*rows);
    AddDownloads(*rows);
    AddQuestions(*rows);
    return rows;
  }();
  return *kRows;
}

}  // namespace gemmd
