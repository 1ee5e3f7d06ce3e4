// How callers slow each other down: one with many large products beside one with small ones, and
// several with weights.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/wire/device_load.h"
#include "tests/wire/raw_channel.h"
#include "tests/wire/samples.h"

namespace gemmd::wire {
namespace {

using FairClock = std::chrono::steady_clock;

double SecondsFrom(FairClock::time_point begin) {
  return std::chrono::duration<double>(FairClock::now() - begin).count();
}

gemm::v1::MultiplyUnaryRequest SentProduct(int64_t extent) {
  gemm::v1::MultiplyUnaryRequest request;
  for (gemm::v1::Operand* operand :
       {request.mutable_product()->mutable_a(), request.mutable_product()->mutable_b()}) {
    operand->mutable_shape()->set_rows(extent);
    operand->mutable_shape()->set_cols(extent);
    operand->mutable_shape()->set_dtype(gemm::v1::DATA_TYPE_F32);
    operand->set_data(std::string(static_cast<size_t>(extent * extent) * sizeof(float), '\0'));
  }
  return request;
}

absl::Status TimeCall(WireCaller& caller, const gemm::v1::MultiplyUnaryRequest& request,
                      Samples& samples) {
  grpc::ClientContext context;
  gemm::v1::MultiplyUnaryResponse response;
  const auto begin = FairClock::now();
  const grpc::Status status = caller.stub->MultiplyUnary(&context, request, &response);
  samples.Add(SecondsFrom(begin));
  return FromGrpc(status);
}

class Fairness {
 public:
  explicit Fairness(const FairnessOptions& options)
      : options_(options), small_request_(SentProduct(options.small_extent)) {}

  absl::Status Run() {
    for (auto [caller, options] :
         {std::pair(&large_, &options_.large), {&small_, &options_.small}}) {
      auto connected = ConnectCaller(*options);
      if (!connected.ok()) return connected.status();
      *caller = *std::move(connected);
    }
    auto product = ResidentProduct::Put(
        large_, {.extent = options_.large_extent, .batch = options_.large_batch},
        options_.keep_result);
    if (!product.ok()) return product.status();
    product_ = *std::move(product);
    absl::Status status = WarmUp();
    // In turns, since a machine is not the same machine all the time.
    for (int round = 0; status.ok() && round < options_.rounds; ++round) {
      status = SmallFor(options_.seconds, alone_);
      if (status.ok()) status = LargeOneByOne();
      if (status.ok()) status = LargeAlone();
      if (status.ok()) status = Beside();
    }
    return status;
  }

  int Report() {
    const double large_time = large_time_.Median();
    const double jobs_alone = large_alone_.Median();
    const double jobs_beside = large_beside_.Median();
    const double small_flops = SmallFlops() * small_per_second_.Median();
    const double whole = jobs_beside * product_->flops() + small_flops;
    std::printf("%-44s %10.3f ms\n", "large product, one at a time, p50", large_time * 1e3);
    std::printf("%-44s %10.3f ms, p99 %.3f\n", "small, alone, p50", alone_.Median() * 1e3,
                alone_.Percentile(0.99) * 1e3);
    std::printf("%-44s %10.3f ms, p99 %.3f\n",
                absl::StrCat("small, beside ", options_.in_flight, " large, p50").c_str(),
                beside_.Median() * 1e3, beside_.Percentile(0.99) * 1e3);
    std::printf("%-44s %10.1f /s\n", "large, alone", jobs_alone);
    std::printf("%-44s %10.1f /s, and %.1f /s small\n", "large, beside the small ones", jobs_beside,
                small_per_second_.Median());
    const std::vector<Verdict> verdicts = {
        {"small p99 beside, less alone and one large",
         (beside_.Percentile(0.99) - alone_.Percentile(0.99) - large_time) * 1e3, "ms", true, 1},
        {"operations of both to large alone", whole / (jobs_alone * product_->flops()), "", false,
         0.97}};
    Print(verdicts);
    const nlohmann::json report = {{"in_flight", options_.in_flight},
                                   {"large_extent", options_.large_extent},
                                   {"large_batch", options_.large_batch},
                                   {"small_extent", options_.small_extent},
                                   {"large_milliseconds", large_time_.ToJson(1e3)},
                                   {"small_alone_milliseconds", alone_.ToJson(1e3)},
                                   {"small_beside_milliseconds", beside_.ToJson(1e3)},
                                   {"large_alone_per_second", large_alone_.ToJson(1)},
                                   {"large_beside_per_second", large_beside_.ToJson(1)},
                                   {"small_beside_per_second", small_per_second_.ToJson(1)},
                                   {"verdicts", ToJson(verdicts)}};
    const bool held =
        std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.held(); });
    return WriteJson(options_.json, report) && (held || !options_.check) ? 0 : 1;
  }

 private:
  double SmallFlops() const {
    const auto side = static_cast<double>(options_.small_extent);
    return 2 * side * side * side;
  }

  absl::Status WarmUp() {
    Samples dropped;
    absl::Status status = SmallFor(0.2, dropped);
    if (status.ok()) status = LargeOneByOne();
    large_time_ = Samples();
    return status;
  }

  absl::Status SmallFor(double seconds, Samples& samples) {
    const auto begin = FairClock::now();
    for (int calls = 1; SecondsFrom(begin) < seconds; ++calls) {
      const absl::Status status = TimeCall(small_, small_request_, samples);
      if (!status.ok()) return status;
      if (options_.small_rate > 0) {
        std::this_thread::sleep_until(begin +
                                      std::chrono::duration<double>(calls / options_.small_rate));
      }
    }
    return absl::OkStatus();
  }

  // The time of one, with nothing beside it.
  absl::Status LargeOneByOne() {
    gemm::v1::MultiplyUnaryRequest request;
    *request.mutable_product() = product_->product();
    request.mutable_product()->clear_result();
    request.mutable_product()->mutable_result()->mutable_keep()->mutable_ttl()->set_nanos(
        1'000'000);
    for (int i = 0; i < 20; ++i) {
      const absl::Status status = TimeCall(large_, request, large_time_);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Jobs a second, from where all are in flight on.
  absl::Status WithLoad(Samples& per_second, const std::function<absl::Status()>& beside) {
    StreamLoad load(large_, product_->product(), options_.in_flight);
    const auto warm = FairClock::now();
    while (load.done() < 8 && load.failed() == 0 && SecondsFrom(warm) < 60) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.seconds / 5));
    const uint64_t before = load.done();
    const auto begin = FairClock::now();
    const absl::Status status = beside();
    per_second.Add(static_cast<double>(load.done() - before) / SecondsFrom(begin));
    if (load.failed() > 0) return absl::InternalError(load.first_error());
    return status;
  }

  absl::Status LargeAlone() {
    return WithLoad(large_alone_, [this] {
      std::this_thread::sleep_for(std::chrono::duration<double>(options_.seconds));
      return absl::OkStatus();
    });
  }

  absl::Status Beside() {
    return WithLoad(large_beside_, [this] {
      const size_t before = beside_.count();
      const auto begin = FairClock::now();
      const absl::Status status = SmallFor(options_.seconds, beside_);
      small_per_second_.Add(static_cast<double>(beside_.count() - before) / SecondsFrom(begin));
      return status;
    });
  }

  const FairnessOptions& options_;
  const gemm::v1::MultiplyUnaryRequest small_request_;
  WireCaller large_, small_;
  std::unique_ptr<ResidentProduct> product_;
  Samples alone_, beside_, large_time_, large_alone_, large_beside_, small_per_second_;
};

}  // namespace

int BenchFairness(const FairnessOptions& options) {
  Fairness fairness(options);
  const absl::Status status = fairness.Run();
  if (status.ok()) return fairness.Report();
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

namespace {

// The same products of every caller at the same time: what each gets done is its share.
absl::Status MeasureShares(const SharesOptions& options, std::vector<double>& per_second) {
  std::vector<WireCaller> callers(options.callers.size());
  std::vector<std::unique_ptr<ResidentProduct>> products;
  for (size_t i = 0; i < callers.size(); ++i) {
    auto connected = ConnectCaller(options.callers[i].caller);
    if (!connected.ok()) return connected.status();
    callers[i] = *std::move(connected);
    auto product =
        ResidentProduct::Put(callers[i], {.extent = options.extent}, options.keep_result);
    if (!product.ok()) return product.status();
    products.push_back(*std::move(product));
  }
  std::vector<std::unique_ptr<StreamLoad>> loads;
  for (size_t i = 0; i < callers.size(); ++i) {
    loads.push_back(
        std::make_unique<StreamLoad>(callers[i], products[i]->product(), options.in_flight));
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 5));
  std::vector<uint64_t> before;
  for (const auto& load : loads) before.push_back(load->done());
  const auto begin = FairClock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  for (size_t i = 0; i < loads.size(); ++i) {
    per_second.push_back(static_cast<double>(loads[i]->done() - before[i]) / SecondsFrom(begin));
    if (loads[i]->failed() > 0) return absl::InternalError(loads[i]->first_error());
  }
  return absl::OkStatus();
}

}  // namespace

int BenchShares(const SharesOptions& options) {
  std::vector<double> per_second;
  const absl::Status status = MeasureShares(options, per_second);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  double all = 0, weights = 0;
  for (const double one : per_second) all += one;
  for (const WeightedCaller& caller : options.callers) weights += caller.weight;
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < per_second.size(); ++i) {
    const double due = options.callers[i].weight / weights;
    const std::string name =
        absl::StrCat("caller ", i + 1, ", weight ", options.callers[i].weight, ", off its share");
    std::printf("caller %zu: %.1f products/s, %.2f%% of all, due %.2f%%\n", i + 1, per_second[i],
                per_second[i] / all * 100, due * 100);
    verdicts.push_back({name, std::abs(per_second[i] / all / due - 1) * 100, "%", true, 5});
  }
  Print(verdicts);
  const bool held =
      std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.held(); });
  const nlohmann::json report = {{"per_second", per_second}, {"verdicts", ToJson(verdicts)}};
  return WriteJson(options.json, report) && (held || !options.check) ? 0 : 1;
}

}  // namespace gemmd::wire
