// A small service that keeps the contract, and breaks it on demand.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/server.h"

namespace gemmd::client {

// How the service breaks the contract.
struct Faults {
  // Called at the begin of an RPC with its name; an error ends it.
  std::function<grpc::Status(const std::string&)> refuse;
  // Uploads and products read nothing and answer nothing until cancelled.
  std::atomic<bool> stall{false};
  // Results and downloads: every chunk begins one byte late.
  std::atomic<bool> wrong_offset{false};
  // Results and downloads: the last chunk does not come.
  std::atomic<bool> lose_last_chunk{false};
  // Multiply ends without a result.
  std::atomic<bool> no_result{false};
  // Uploads are never complete.
  std::atomic<bool> never_complete{false};
  // Stripes of uploads that do not complete their matrix are answered after the one that does.
  std::atomic<bool> complete_first{false};
  // Uploads are complete, and their matrix was dropped meanwhile.
  std::atomic<bool> dropped{false};
  // Products end with this JobError.
  std::atomic<int> job_error{0};
  // Downloads end well without a message.
  std::atomic<bool> silent{false};
  // Products do not say where they have kept their result.
  std::atomic<bool> kept_unsaid{false};
  // Changes the answer to GetServerInfo.
  std::function<void(gemm::v1::GetServerInfoResponse*)> describe;
  // Downloads tell of one row more.
  std::atomic<bool> wrong_shape{false};
  // Every download tells of another id.
  std::atomic<bool> wrong_id{false};
  // Its kernel takes row blocks; else it knows nothing of RankKernels, as older servers do.
  std::atomic<bool> row_blocks{false};
  // Every second product is by another kernel.
  std::atomic<bool> other_kernel{false};
  // The results of streams are of a job that nobody sent.
  std::atomic<bool> wrong_job{false};
};

class FakeServer final : public gemm::v1::GemmService::Service {
 public:
  FakeServer();
  ~FakeServer() override;

  const std::string& address() const { return address_; }
  Faults& faults() { return faults_; }
  // Drops every connection and call.
  void Vanish();

  int calls(const std::string& method);
  // The devices that uploads asked for.
  std::set<std::string> upload_devices();
  // The most bytes of elements that one message of an upload or of a stream of products had.
  size_t largest_chunk() const { return largest_chunk_; }
  // The most jobs that a stream of products had at a time, and had in all.
  int most_live() const { return most_live_; }
  int most_jobs() const { return most_jobs_; }
  // Uploads that ended well, each stripe for itself.
  int landed() const { return landed_; }
  // Resident matrices, complete or not. An incomplete one cannot be deleted by its id.
  size_t matrices();
  // Waits up to five seconds until so many matrices are left.
  bool MatricesBecome(size_t count);

 private:
  struct Matrix {
    gemm::v1::MatrixInfo info;
    std::string elements;
    uint64_t received = 0;
  };
  using MatrixPtr = std::shared_ptr<Matrix>;

  grpc::Status Begin(const char* method, grpc::ServerContext* context);
  MatrixPtr Find(const gemm::v1::MatrixRef& ref);
  MatrixPtr Make(const gemm::v1::MatrixShape& shape, const gemm::v1::Keep& keep);
  // The matrix of an upload's first stripe, for all of its stripes.
  MatrixPtr Upload(const gemm::v1::PutMatrixHeader& header);
  // Whether all bytes of it have come.
  bool Complete(const Matrix& matrix);
  void AwaitComplete(const Matrix& matrix, grpc::ServerContext* context);
  void Forget(const std::string& id);
  void NoteChunk(const std::string& elements);
  grpc::Status Resolve(const gemm::v1::Operand& operand, std::string* elements,
                       gemm::v1::MatrixShape* shape);
  grpc::Status RunJob(gemm::v1::Product product, std::map<int, std::string> payload,
                      gemm::v1::ProductReport* report, std::string* elements,
                      gemm::v1::MatrixInfo* kept);

  // A job of a stream.
  struct StreamJob {
    gemm::v1::MultiplyHeader header;
    std::map<int, std::string> payload;
  };
  using MultiplyStream =
      grpc::ServerReaderWriter<gemm::v1::MultiplyResponse, gemm::v1::MultiplyRequest>;
  static bool HasPayload(StreamJob& job);
  void Answer(StreamJob& job, MultiplyStream& stream);

  grpc::Status Multiply(grpc::ServerContext* context, MultiplyStream* stream) override;
  grpc::Status MultiplyUnary(grpc::ServerContext* context,
                             const gemm::v1::MultiplyUnaryRequest* request,
                             gemm::v1::MultiplyUnaryResponse* response) override;
  grpc::Status PutMatrix(grpc::ServerContext* context,
                         grpc::ServerReader<gemm::v1::PutMatrixRequest>* reader,
                         gemm::v1::PutMatrixResponse* response) override;
  grpc::Status GetMatrix(grpc::ServerContext* context, const gemm::v1::GetMatrixRequest* request,
                         grpc::ServerWriter<gemm::v1::GetMatrixResponse>* writer) override;
  grpc::Status ListMatrices(grpc::ServerContext* context,
                            const gemm::v1::ListMatricesRequest* request,
                            gemm::v1::ListMatricesResponse* response) override;
  grpc::Status DeleteMatrix(grpc::ServerContext* context,
                            const gemm::v1::DeleteMatrixRequest* request,
                            gemm::v1::DeleteMatrixResponse* response) override;
  grpc::Status RankKernels(grpc::ServerContext* context,
                           const gemm::v1::RankKernelsRequest* request,
                           gemm::v1::RankKernelsResponse* response) override;
  grpc::Status Benchmark(grpc::ServerContext* context, const gemm::v1::BenchmarkRequest* request,
                         grpc::ServerWriter<gemm::v1::BenchmarkResponse>* writer) override;
  grpc::Status GetServerInfo(grpc::ServerContext* context,
                             const gemm::v1::GetServerInfoRequest* request,
                             gemm::v1::GetServerInfoResponse* response) override;

  Faults faults_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::map<std::string, int> calls_;
  std::set<std::string> upload_devices_;
  std::map<std::string, MatrixPtr> matrices_;  // by id
  std::map<std::string, MatrixPtr> uploads_;   // by upload id; they may be forgotten
  int last_id_ = 0;
  std::atomic<int> wrong_ids_{0};
  std::atomic<int> landed_{0};
  std::atomic<int> products_{0};
  std::atomic<int> most_live_{0};
  std::atomic<int> most_jobs_{0};
  std::atomic<size_t> largest_chunk_{0};
};

}  // namespace gemmd::client
