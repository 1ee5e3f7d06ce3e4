// A large product through the client library, by one transport and by another, beside the same
// bytes sent to a server that throws them away and then received from it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemmd/client/client.h"
#include "tests/wire/latency_session.h"
#include "tests/wire/raw_channel.h"
#include "tests/wire/raw_download.h"

namespace gemmd::wire {
namespace {

constexpr int kWarmUps = 3;

absl::string_view NameOf(client::Transport transport) {
  for (const LargeTransport& one : LargeTransports()) {
    if (one.transport == transport) return one.name;
  }
  return "unary";
}

// One way to get the product, and how long it takes.
class Way {
 public:
  virtual ~Way() = default;
  virtual absl::StatusOr<double> Seconds() = 0;
  // After the last call.
  virtual std::string Name() const = 0;

  Samples samples;
};

class ProductWay final : public Way {
 public:
  ProductWay(const LatencyOptions& options, std::unique_ptr<client::Client> client,
             const LargeTransport& asked, const client::HostMatrix& a, const client::HostMatrix& b)
      : options_(options), client_(std::move(client)), asked_(asked), a_(a), b_(b) {}

  absl::StatusOr<double> Seconds() override {
    std::memset(d_.data(), 0xFF, d_.bytes());
    client::Product product{.a = a_.view(), .b = b_.view()};
    product.kernel.name = options_.kernel;
    product.result.into = d_.mutable_view();
    const auto begin = Clock::now();
    const auto result = client_->Multiply(product, {.transport = asked_.transport});
    const double seconds = SecondsSince(begin);
    if (!result.ok()) return result.status();
    ran_ = NameOf(result->transport);
    kernel_ = result->report.kernel();
    const absl::Status right = CheckProduct(a_, b_, d_);
    if (!right.ok()) return right;
    return seconds;
  }
  std::string Name() const override {
    return absl::StrCat("product, ", asked_.name, ": ", ran_, " by ", kernel_);
  }

 private:
  const LatencyOptions& options_;
  const std::unique_ptr<client::Client> client_;
  const LargeTransport asked_;
  const client::HostMatrix& a_;
  const client::HostMatrix& b_;
  client::HostMatrix d_ =
      client::HostMatrix::Allocate(
          {.rows = a_.shape().rows, .cols = b_.shape().cols, .dtype = client::kF16})
          .value();
  absl::string_view ran_;
  std::string kernel_;
};

class RawWay final : public Way {
 public:
  RawWay(std::vector<std::shared_ptr<grpc::Channel>> channels, uint64_t up_bytes,
         uint64_t down_bytes)
      : channels_(std::move(channels)), up_(up_bytes), down_(down_bytes) {}

  absl::StatusOr<double> Seconds() override {
    const auto begin = Clock::now();
    const auto sent =
        Upload(channels_, {.data = up_, .row_bytes = kRowBytes, .chunk_bytes = uint64_t{1} << 20});
    if (!sent.ok()) return sent.status();
    const absl::Status received = Download(channels_, sent->matrix().id(), absl::MakeSpan(down_));
    if (!received.ok()) return received;
    return SecondsSince(begin);
  }
  std::string Name() const override { return "raw upload, then raw download"; }

 private:
  static constexpr uint64_t kRowBytes = 64;  // divides all operands of whole tiles

  const std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::byte> up_, down_;
};

absl::StatusOr<std::vector<std::unique_ptr<Way>>> WaysOn(const Session& session, int channels,
                                                         const client::HostMatrix& a,
                                                         const client::HostMatrix& b) {
  const LatencyOptions& options = session.options;
  std::vector<std::unique_ptr<Way>> ways;
  // On one channel the baseline sends all that it has.
  if (channels > 1) {
    auto raw = Connect(options.baseline, channels);
    if (!raw.ok()) return raw.status();
    const auto d_bytes = static_cast<uint64_t>(a.shape().rows * b.shape().cols) * sizeof(uint16_t);
    ways.push_back(std::make_unique<RawWay>(*std::move(raw), a.bytes() + b.bytes(), d_bytes));
  }
  for (const std::string& name : options.transports) {
    for (const LargeTransport& one : LargeTransports()) {
      if (one.name != name) continue;
      auto client =
          client::Client::Connect({.address = options.server,
                                   .channels = channels,
                                   .row_blocks_per_channel = options.row_blocks_per_channel});
      if (!client.ok()) return client.status();
      ways.push_back(std::make_unique<ProductWay>(options, *std::move(client), one, a, b));
    }
  }
  return ways;
}

absl::Status BenchOn(Session& session, int channels, const client::HostMatrix& a,
                     const client::HostMatrix& b) {
  auto ways = WaysOn(session, channels, a, b);
  if (!ways.ok()) return ways.status();
  for (int call = -kWarmUps; call < session.options.large_calls; ++call) {
    for (const std::unique_ptr<Way>& way : *ways) {
      const absl::StatusOr<double> seconds = way->Seconds();
      if (!seconds.ok()) return seconds.status();
      if (call >= 0) way->samples.Add(*seconds);
    }
  }
  const std::string size = absl::StrCat(" f16 ", a.shape().rows, "^3, ", channels, " channels");
  for (const std::unique_ptr<Way>& way : *ways) {
    session.Line(absl::StrCat(way->Name(), ",", size), way->samples);
  }
  // The first transport that was asked for, where enough connections share the wire.
  if (channels == 8 && ways->size() > 1) {
    const double product = (*ways)[1]->samples.Median(), raw = (*ways)[0]->samples.Median();
    session.verdicts.push_back({(*ways)[1]->Name() + "," + size, product * 1e3, "ms", true, 25});
    session.report["large_over_raw"] = product / raw;
    std::printf("%-72s %9.2f x\n", "over raw upload, then raw download", product / raw);
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<LargeTransport>& LargeTransports() {
  static const auto* const kAll =
      new std::vector<LargeTransport>{{"auto", client::Transport::kAuto},
                                      {"row-blocks", client::Transport::kRowBlocks},
                                      {"striped", client::Transport::kStriped},
                                      {"stream", client::Transport::kStream}};
  return *kAll;
}

absl::Status BenchLarge(Session& session, const client::HostMatrix& a,
                        const client::HostMatrix& b) {
  for (const int channels : session.options.large_channels) {
    const absl::Status status = BenchOn(session, channels, a, b);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gemmd::wire
