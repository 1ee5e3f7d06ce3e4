#include "tests/wire/device_load.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/wire/raw_channel.h"

namespace gemmd::wire {
namespace {

std::string FileText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

absl::StatusOr<WireCaller> ConnectCaller(const CallerOptions& options) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!options.ca.empty()) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = FileText(options.ca);
    credentials = grpc::SslCredentials(tls);
    if (!options.token_file.empty()) {
      const std::string token = FileText(options.token_file);
      credentials = grpc::CompositeChannelCredentials(
          credentials, grpc::AccessTokenCredentials(std::string(absl::StripSuffix(token, "\n"))));
    }
  }
  auto channels = Connect(options.server, 1, credentials);
  if (!channels.ok()) return channels.status();
  WireCaller caller;
  caller.channel = channels->front();
  caller.stub = gemm::v1::GemmService::NewStub(caller.channel);
  return caller;
}

absl::StatusOr<std::unique_ptr<ResidentProduct>> ResidentProduct::Put(WireCaller& caller,
                                                                      ResidentSizes sizes,
                                                                      bool keep_result) {
  const auto [extent, k, batch] = sizes;
  const int64_t inner = k == 0 ? extent : k;
  auto resident = std::unique_ptr<ResidentProduct>(new ResidentProduct(caller));
  const auto side = static_cast<double>(extent);
  resident->flops_ = 2 * side * side * static_cast<double>(inner * batch);
  gemm::v1::Product& product = resident->product_;
  for (gemm::v1::Operand* operand : {product.mutable_a(), product.mutable_b()}) {
    grpc::ClientContext context;
    gemm::v1::PutMatrixResponse response;
    const auto writer = caller.stub->PutMatrix(&context, &response);
    gemm::v1::PutMatrixRequest request;
    gemm::v1::PutMatrixHeader* header = request.mutable_header();
    const bool first = resident->ids_.empty();
    header->mutable_shape()->set_rows(batch * (first ? extent : inner));
    header->mutable_shape()->set_cols(first ? inner : extent);
    header->mutable_shape()->set_dtype(gemm::v1::DATA_TYPE_F32);
    header->mutable_generator()->set_seed(resident->ids_.size() + 1);
    header->mutable_generator()->mutable_uniform();
    writer->Write(request);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpc(status);
    resident->ids_.push_back(response.matrix().id());
    operand->mutable_matrix()->set_id(response.matrix().id());
  }
  if (batch > 1) product.set_batch_count(static_cast<int32_t>(batch));
  if (keep_result) {
    product.mutable_result()->mutable_keep()->mutable_ttl()->set_nanos(1'000'000);
  } else {
    product.mutable_result()->set_stream(true);
  }
  return resident;
}

ResidentProduct::~ResidentProduct() {
  for (const std::string& id : ids_) DeleteMatrix(caller_.channel, id).IgnoreError();
}

StreamLoad::StreamLoad(WireCaller& caller, const gemm::v1::Product& product, int in_flight)
    : product_(product), stream_(caller.stub->Multiply(&context_)), to_send_(in_flight) {
  writer_ = std::thread([this] { Write(); });
  reader_ = std::thread([this] { Read(); });
}

StreamLoad::~StreamLoad() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  context_.TryCancel();
  writer_.join();
  reader_.join();
  (void)stream_->Finish();
}

std::string StreamLoad::first_error() const {
  const std::lock_guard lock(mutex_);
  return first_error_;
}

// A thread of its own: the server stops reading while nobody reads its answers.
void StreamLoad::Write() {
  gemm::v1::MultiplyRequest request;
  *request.mutable_header()->mutable_product() = product_;
  for (uint64_t id = 1;; ++id) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return to_send_ > 0 || stopping_; });
      if (stopping_) return;
      --to_send_;
    }
    request.mutable_header()->set_job_id(id);
    if (!stream_->Write(request)) return;
  }
}

void StreamLoad::Read() {
  gemm::v1::MultiplyResponse response;
  while (stream_->Read(&response)) {
    if (response.has_chunk()) continue;
    if (response.has_result()) ++done_;
    const std::lock_guard lock(mutex_);
    if (response.has_error()) {
      if (failed_++ == 0) first_error_ = response.error().message();
    }
    ++to_send_;
    changed_.notify_one();
  }
  const std::lock_guard lock(mutex_);
  if (!stopping_ && first_error_.empty()) {
    ++failed_;
    first_error_ = "the stream ended";
  }
}

}  // namespace gemmd::wire
