#include "tests/client/fake_server.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "gemmd/client/matrix.h"
#include "grpcpp/server_builder.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;

constexpr uint64_t kChunk = 64 << 10;

const std::byte* Bytes(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

// Calls `send(offset, length)` for each chunk of [begin, end), with the faults.
template <typename Send>
void SendChunks(uint64_t begin, uint64_t end, const Faults& faults, Send send) {
  for (uint64_t at = begin; at < end; at += kChunk) {
    const uint64_t length = std::min(kChunk, end - at);
    if (faults.lose_last_chunk && at + length == end) return;
    send(faults.wrong_offset ? at + 1 : at, at, length);
  }
}

}  // namespace

FakeServer::FakeServer() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(16 << 20);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeServer::~FakeServer() { Vanish(); }

void FakeServer::Vanish() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

int FakeServer::calls(const std::string& method) {
  std::lock_guard<std::mutex> lock(mutex_);
  return calls_[method];
}

std::set<std::string> FakeServer::upload_devices() {
  std::lock_guard<std::mutex> lock(mutex_);
  return upload_devices_;
}

size_t FakeServer::matrices() {
  std::lock_guard<std::mutex> lock(mutex_);
  return matrices_.size();
}

bool FakeServer::MatricesBecome(size_t count) {
  for (int i = 0; i < 500 && matrices() != count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return matrices() == count;
}

grpc::Status FakeServer::Begin(const char* method, grpc::ServerContext* context) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++calls_[method];
  }
  if (faults_.refuse) {
    if (grpc::Status status = faults_.refuse(method); !status.ok()) return status;
  }
  while (faults_.stall && !context->IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return context->IsCancelled() ? grpc::Status::CANCELLED : grpc::Status::OK;
}

FakeServer::MatrixPtr FakeServer::Find(const v1::MatrixRef& ref) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, matrix] : matrices_) {
    if (ref.has_id() ? id == ref.id() : matrix->info.name() == ref.name()) return matrix;
  }
  return nullptr;
}

FakeServer::MatrixPtr FakeServer::Make(const v1::MatrixShape& shape, const v1::Keep& keep) {
  auto matrix = std::make_shared<Matrix>();
  std::lock_guard<std::mutex> lock(mutex_);
  matrix->info.set_id("m" + std::to_string(++last_id_));
  matrix->info.set_version(last_id_);
  matrix->info.set_name(keep.name());
  *matrix->info.mutable_shape() = shape;
  matrix->info.set_bytes(FromProto(shape).bytes());
  matrix->elements.resize(matrix->info.bytes());
  matrices_.emplace(matrix->info.id(), matrix);
  return matrix;
}

void FakeServer::Forget(const std::string& id) {
  std::lock_guard<std::mutex> lock(mutex_);
  matrices_.erase(id);
}

void FakeServer::NoteChunk(const std::string& elements) {
  std::lock_guard<std::mutex> lock(mutex_);
  largest_chunk_ = std::max<size_t>(largest_chunk_, elements.size());
}

grpc::Status FakeServer::Resolve(const v1::Operand& operand, std::string* elements,
                                 v1::MatrixShape* shape) {
  *shape = operand.shape();
  if (operand.source_case() == v1::Operand::kData) *elements = operand.data();
  if (operand.source_case() == v1::Operand::kGenerator) {
    elements->assign(FromProto(*shape).bytes(), '\0');
  }
  if (operand.source_case() == v1::Operand::kMatrix) {
    const MatrixPtr matrix = Find(operand.matrix());
    if (matrix == nullptr) return {grpc::StatusCode::NOT_FOUND, "no such matrix"};
    *elements = matrix->elements;
    *shape = matrix->info.shape();
    if (operand.matrix().release()) Forget(matrix->info.id());
  }
  if (elements->size() != FromProto(*shape).bytes()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "an operand is incomplete"};
  }
  return grpc::Status::OK;
}

// alpha op(A) op(B) alone, in double.
grpc::Status FakeServer::RunJob(v1::Product product, std::map<int, std::string> payload,
                                v1::ProductReport* report, std::string* elements,
                                v1::MatrixInfo* kept) {
  if (faults_.job_error != 0) {
    return {static_cast<grpc::StatusCode>(faults_.job_error.load()), "a.shape is too odd"};
  }
  std::string a = payload[v1::OPERAND_ROLE_A];
  std::string b = payload[v1::OPERAND_ROLE_B];
  v1::MatrixShape a_proto, b_proto;
  if (auto status = Resolve(product.a(), &a, &a_proto); !status.ok()) return status;
  if (auto status = Resolve(product.b(), &b, &b_proto); !status.ok()) return status;
  const Shape as = FromProto(a_proto);
  const Shape bs = FromProto(b_proto);
  const bool ta = product.transpose_a();
  const bool tb = product.transpose_b();
  const Shape result{.rows = ta ? as.cols : as.rows,
                     .cols = tb ? bs.rows : bs.cols,
                     .dtype = product.output_dtype() == 0 ? as.dtype : product.output_dtype(),
                     .layout = product.output_layout() == kColumnMajor ? kColumnMajor : kRowMajor};
  const int64_t k = ta ? as.rows : as.cols;
  elements->resize(result.bytes());
  for (int64_t i = 0; i < result.rows; ++i) {
    for (int64_t j = 0; j < result.cols; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += LoadElement(Bytes(a), ta ? as.Index(l, i) : as.Index(i, l), as.dtype) *
               LoadElement(Bytes(b), tb ? bs.Index(j, l) : bs.Index(l, j), bs.dtype);
      }
      StoreElement(reinterpret_cast<std::byte*>(elements->data()), result.Index(i, j), result.dtype,
                   sum * (product.has_alpha() ? product.alpha() : 1));
    }
  }
  report->set_kernel(products_++ % 2 == 1 && faults_.other_kernel ? "other" : "fake");
  report->set_m(result.rows);
  report->set_n(result.cols);
  report->set_k(k);
  *report->mutable_result_shape() = ToProto(result);
  if (product.result().has_keep()) {
    const MatrixPtr matrix = Make(report->result_shape(), product.result().keep());
    matrix->elements = *elements;
    matrix->received = elements->size();
    *kept = matrix->info;
  }
  return grpc::Status::OK;
}

bool FakeServer::HasPayload(StreamJob& job) {
  const v1::Product& product = job.header.product();
  for (const auto& [role, operand] :
       {std::pair(v1::OPERAND_ROLE_A, &product.a()), std::pair(v1::OPERAND_ROLE_B, &product.b()),
        std::pair(v1::OPERAND_ROLE_C, &product.c()),
        std::pair(v1::OPERAND_ROLE_BIAS, &product.bias())}) {
    if (!operand->has_payload()) continue;
    if (job.payload[role].size() < FromProto(operand->shape()).bytes()) return false;
  }
  return true;
}

void FakeServer::Answer(StreamJob& job, MultiplyStream& stream) {
  const uint64_t job_id = job.header.job_id() + (faults_.wrong_job ? 100 : 0);
  v1::MultiplyResponse last;
  std::string elements;
  v1::MatrixInfo kept;
  const grpc::Status status = RunJob(job.header.product(), std::move(job.payload),
                                     last.mutable_result()->mutable_report(), &elements, &kept);
  if (!status.ok()) {
    last.mutable_error()->set_job_id(job_id);
    last.mutable_error()->set_code(status.error_code());
    last.mutable_error()->set_message(status.error_message());
    stream.Write(last);
    return;
  }
  last.mutable_result()->set_job_id(job_id);
  if (!kept.id().empty() && !faults_.kept_unsaid) *last.mutable_result()->mutable_kept() = kept;
  if (job.header.product().result().stream()) {
    SendChunks(0, elements.size(), faults_, [&](uint64_t offset, uint64_t at, uint64_t length) {
      v1::MultiplyResponse response;
      response.mutable_chunk()->set_job_id(job_id);
      response.mutable_chunk()->set_offset(offset);
      response.mutable_chunk()->set_data(elements.substr(at, length));
      stream.Write(response);
    });
  }
  stream.Write(last);
}

// Each job is answered once its payload is there, the last ones at the stream's end.
grpc::Status FakeServer::Multiply(grpc::ServerContext* context, MultiplyStream* stream) {
  if (auto status = Begin("Multiply", context); !status.ok()) return status;
  v1::MultiplyRequest request;
  std::map<uint64_t, StreamJob> jobs;
  int begun = 0;
  while (stream->Read(&request)) {
    if (request.has_header()) {
      jobs[request.header().job_id()].header = request.header();
      most_jobs_ = std::max(most_jobs_.load(), ++begun);
      most_live_ = std::max(most_live_.load(), static_cast<int>(jobs.size()));
      continue;
    }
    if (!request.has_chunk()) continue;
    StreamJob& job = jobs[request.chunk().job_id()];
    std::string& operand = job.payload[request.chunk().operand()];
    if (request.chunk().offset() != operand.size()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "chunk out of order"};
    }
    operand += request.chunk().data();
    NoteChunk(request.chunk().data());
    if (faults_.no_result || !HasPayload(job)) continue;
    Answer(job, *stream);
    jobs.erase(request.chunk().job_id());
  }
  if (faults_.no_result) return grpc::Status::OK;
  for (auto& [id, job] : jobs) Answer(job, *stream);
  return grpc::Status::OK;
}

grpc::Status FakeServer::MultiplyUnary(grpc::ServerContext* context,
                                       const v1::MultiplyUnaryRequest* request,
                                       v1::MultiplyUnaryResponse* response) {
  if (auto status = Begin("MultiplyUnary", context); !status.ok()) return status;
  std::string elements;
  v1::MatrixInfo kept;
  grpc::Status status =
      RunJob(request->product(), {}, response->mutable_report(), &elements, &kept);
  if (!status.ok()) return status;
  if (!kept.id().empty() && !faults_.kept_unsaid) *response->mutable_kept() = kept;
  if (request->product().result().stream()) response->set_data(std::move(elements));
  return grpc::Status::OK;
}

FakeServer::MatrixPtr FakeServer::Upload(const v1::PutMatrixHeader& header) {
  if (!header.upload_id().empty()) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto known = uploads_.find(header.upload_id());
    if (known != uploads_.end()) return known->second;
  }
  const MatrixPtr made = Make(header.shape(), header.keep());
  if (header.upload_id().empty()) return made;
  std::lock_guard<std::mutex> lock(mutex_);
  // Another stripe may have been quicker.
  const auto [it, inserted] = uploads_.emplace(header.upload_id(), made);
  if (!inserted) matrices_.erase(made->info.id());
  return it->second;
}

grpc::Status FakeServer::PutMatrix(grpc::ServerContext* context,
                                   grpc::ServerReader<v1::PutMatrixRequest>* reader,
                                   v1::PutMatrixResponse* response) {
  if (auto status = Begin("PutMatrix", context); !status.ok()) return status;
  v1::PutMatrixRequest request;
  if (!reader->Read(&request)) return {grpc::StatusCode::INVALID_ARGUMENT, "no header"};
  const v1::PutMatrixHeader header = request.header();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    upload_devices_.insert(header.device());
  }
  const MatrixPtr matrix = Upload(header);
  uint64_t next = header.range().offset();
  uint64_t received = 0;
  while (reader->Read(&request)) {
    const v1::MatrixChunk& chunk = request.chunk();
    if (chunk.offset() != next || chunk.data().size() > matrix->elements.size() - next) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "chunk out of order"};
    }
    NoteChunk(chunk.data());
    std::copy(chunk.data().begin(), chunk.data().end(), matrix->elements.begin() + next);
    next += chunk.data().size();
    received += chunk.data().size();
  }
  if (context->IsCancelled()) {
    Forget(matrix->info.id());
    return grpc::Status::CANCELLED;
  }
  if (header.has_range() && received < header.range().length()) {
    // One call that fails ends the upload.
    Forget(matrix->info.id());
    return {grpc::StatusCode::INVALID_ARGUMENT, "the stream ended before the range was complete"};
  }
  if (header.has_generator()) received = matrix->elements.size();
  bool complete = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    matrix->received += received;
    complete = matrix->received == matrix->elements.size() && !faults_.never_complete;
  }
  if (faults_.complete_first && !complete) AwaitComplete(*matrix, context);
  *response->mutable_matrix() = matrix->info;
  if (!complete || faults_.dropped) response->mutable_matrix()->clear_version();
  response->set_complete(complete);
  response->set_bytes_received(received);
  ++landed_;
  return grpc::Status::OK;
}

bool FakeServer::Complete(const Matrix& matrix) {
  std::lock_guard<std::mutex> lock(mutex_);
  return matrix.received == matrix.elements.size();
}

void FakeServer::AwaitComplete(const Matrix& matrix, grpc::ServerContext* context) {
  while (!Complete(matrix) && !context->IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Time for the complete answer to arrive on its own connection.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

grpc::Status FakeServer::GetMatrix(grpc::ServerContext* context,
                                   const v1::GetMatrixRequest* request,
                                   grpc::ServerWriter<v1::GetMatrixResponse>* writer) {
  if (auto status = Begin("GetMatrix", context); !status.ok()) return status;
  const MatrixPtr matrix = Find(request->matrix());
  if (matrix == nullptr) return {grpc::StatusCode::NOT_FOUND, "no such matrix"};
  if (request->matrix().release()) Forget(matrix->info.id());
  if (faults_.silent) return grpc::Status::OK;
  v1::GetMatrixResponse first;
  *first.mutable_matrix() = matrix->info;
  if (faults_.wrong_id) first.mutable_matrix()->set_id("other" + std::to_string(wrong_ids_++));
  if (faults_.wrong_shape) first.mutable_matrix()->mutable_shape()->set_rows(12345);
  writer->Write(first);
  const uint64_t begin = request->range().offset();
  const uint64_t end =
      request->has_range() ? begin + request->range().length() : matrix->elements.size();
  SendChunks(begin, end, faults_, [&](uint64_t offset, uint64_t at, uint64_t length) {
    v1::GetMatrixResponse response;
    response.set_offset(offset);
    response.set_data(matrix->elements.substr(at, length));
    writer->Write(response);
  });
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListMatrices(grpc::ServerContext* context,
                                      const v1::ListMatricesRequest* request,
                                      v1::ListMatricesResponse* response) {
  if (auto status = Begin("ListMatrices", context); !status.ok()) return status;
  // Two on a page, so that a client has to ask again.
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = matrices_.upper_bound(request->page_token()); it != matrices_.end(); ++it) {
    if (it->second->info.name().rfind(request->name_prefix(), 0) != 0) continue;
    if (response->matrices_size() == 2) {
      response->set_next_page_token(response->matrices(1).id());
      break;
    }
    *response->add_matrices() = it->second->info;
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::DeleteMatrix(grpc::ServerContext* context,
                                      const v1::DeleteMatrixRequest* request,
                                      v1::DeleteMatrixResponse* response) {
  if (auto status = Begin("DeleteMatrix", context); !status.ok()) return status;
  const MatrixPtr matrix = Find(request->matrix());
  if (matrix == nullptr || (request->matrix().has_id() && !Complete(*matrix))) {
    return {grpc::StatusCode::NOT_FOUND, "no such matrix"};
  }
  *response->mutable_matrix() = matrix->info;
  Forget(matrix->info.id());
  return grpc::Status::OK;
}

grpc::Status FakeServer::RankKernels(grpc::ServerContext* context, const v1::RankKernelsRequest*,
                                     v1::RankKernelsResponse* response) {
  if (auto status = Begin("RankKernels", context); !status.ok()) return status;
  if (!faults_.row_blocks) return {grpc::StatusCode::UNIMPLEMENTED, "what is that"};
  v1::RankedKernel* kernel = response->add_kernels();
  kernel->set_name("fake");
  kernel->set_row_blocks(true);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Benchmark(grpc::ServerContext* context, const v1::BenchmarkRequest*,
                                   grpc::ServerWriter<v1::BenchmarkResponse>* writer) {
  if (auto status = Begin("Benchmark", context); !status.ok()) return status;
  v1::BenchmarkResponse response;
  response.mutable_header();
  writer->Write(response);
  response.mutable_end();
  writer->Write(response);
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetServerInfo(grpc::ServerContext* context,
                                       const v1::GetServerInfoRequest*,
                                       v1::GetServerInfoResponse* response) {
  if (auto status = Begin("GetServerInfo", context); !status.ok()) return status;
  response->set_version("fake");
  response->mutable_limits()->set_max_message_bytes(16 << 20);
  v1::DeviceInfo* device = response->add_devices();
  device->set_name("host:0");
  device->set_healthy(true);
  if (faults_.describe) faults_.describe(response);
  return grpc::Status::OK;
}

}  // namespace gemmd::client
