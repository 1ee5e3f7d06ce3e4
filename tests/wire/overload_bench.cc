// A server under more load than it can serve: what it serves and refuses, and how soon.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/wire/device_load.h"
#include "tests/wire/raw_channel.h"
#include "tests/wire/samples.h"

namespace gemmd::wire {
namespace {

using LoadClock = std::chrono::steady_clock;

double SecondsPast(LoadClock::time_point begin) {
  return std::chrono::duration<double>(LoadClock::now() - begin).count();
}

// Resident memory of a process in MiB; 0 where it is not known.
double ResidentMib(int pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    double kib = 0;
    status >> kib;
    return kib / 1024;
  }
  return 0;
}

// How the calls of the open loop ended.
class Ends {
 public:
  void Add(const grpc::Status& status, double seconds) {
    const std::lock_guard lock(mutex_);
    --under_way_;
    switch (status.error_code()) {
      case grpc::StatusCode::OK:
        done.Add(seconds);
        break;
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        ++missed;
        break;
      case grpc::StatusCode::RESOURCE_EXHAUSTED:
        refused.Add(seconds);
        break;
      default:
        ++others;
        if (other.empty()) other = status.error_message();
    }
  }
  // False where too many are under way for another.
  bool Begin(int most) {
    const std::lock_guard lock(mutex_);
    if (under_way_ >= most) return false;
    ++under_way_;
    return true;
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return under_way_ == 0;
  }

  // Read once it is idle.
  Samples done, refused;
  uint64_t missed = 0, others = 0, unsent = 0;
  std::string other;

 private:
  std::mutex mutex_;
  int under_way_ = 0;
};

struct Call {
  grpc::ClientContext context;
  gemm::v1::MultiplyUnaryResponse response;
  LoadClock::time_point begin;
};

// Products a second with enough in flight to keep the device busy.
absl::StatusOr<double> Peak(const OverloadOptions& options, WireCaller& caller,
                            const gemm::v1::Product& product) {
  StreamLoad load(caller, product, options.peak_in_flight);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.peak_seconds / 5));
  const uint64_t before = load.done();
  const auto begin = LoadClock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.peak_seconds));
  const double peak = static_cast<double>(load.done() - before) / SecondsPast(begin);
  if (load.failed() > 0) return absl::InternalError(load.first_error());
  return peak;
}

// Calls that are due at a fixed rate, whatever becomes of those before.
void OpenLoop(const OverloadOptions& options, WireCaller& caller, double per_second,
              const gemm::v1::MultiplyUnaryRequest& request, Ends& ends, std::vector<double>& mib) {
  const auto begin = LoadClock::now();
  double next_look = 0;
  for (uint64_t i = 0;; ++i) {
    const double due = static_cast<double>(i) / per_second;
    if (due >= options.seconds) break;
    const double early = due - SecondsPast(begin);
    if (early > 0) std::this_thread::sleep_for(std::chrono::duration<double>(early));
    if (options.pid > 0 && due >= next_look) {
      mib.push_back(ResidentMib(options.pid));
      next_look = due + options.seconds / 30;
    }
    if (!ends.Begin(options.most_under_way)) {
      ++ends.unsent;
      continue;
    }
    auto* const call = new Call;
    call->begin = LoadClock::now();
    call->context.set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::microseconds(static_cast<int64_t>(options.deadline_seconds * 1e6)));
    caller.stub->async()->MultiplyUnary(&call->context, &request, &call->response,
                                        [call, &ends](const grpc::Status& status) {
                                          const double took = SecondsPast(call->begin);
                                          delete call;
                                          ends.Add(status, took);
                                        });
  }
  while (!ends.idle()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int ReportOverload(const OverloadOptions& options, double peak, const Ends& ends, double seconds,
                   const std::vector<double>& mib) {
  if (ends.done.count() == 0) {
    std::fprintf(stderr, "no product was made: %s\n", ends.other.c_str());
    return 1;
  }
  const auto done = static_cast<double>(ends.done.count());
  const double accepted = done + static_cast<double>(ends.missed);
  const double refused_p99 = ends.refused.count() == 0 ? 0 : ends.refused.Percentile(0.99);
  std::printf("peak %.1f /s; asked %.1f /s for %.0f s\n", peak, peak * options.factor, seconds);
  std::printf(
      "done %.1f /s, p50 %.1f ms, p99 %.1f ms; missed %llu; refused %zu, p99 %.2f ms; "
      "not sent %llu; other errors %llu%s%s\n",
      done / seconds, ends.done.Median() * 1e3, ends.done.Percentile(0.99) * 1e3,
      static_cast<unsigned long long>(ends.missed), ends.refused.count(), refused_p99 * 1e3,
      static_cast<unsigned long long>(ends.unsent), static_cast<unsigned long long>(ends.others),
      ends.other.empty() ? "" : ", first: ", ends.other.c_str());
  std::vector<Verdict> verdicts = {
      {"throughput to its peak", done / seconds / peak, "", false, 0.95},
      {"p99 of the accepted", ends.done.Percentile(0.99) * 1e3, "ms", true,
       options.deadline_seconds * 1e3},
      {"accepted that missed their deadline", static_cast<double>(ends.missed) / accepted * 100,
       "%", true, 1},
      {"p99 of the refusals", refused_p99 * 1e3, "ms", true, 5},
      {"other errors", static_cast<double>(ends.others), "", true, 0}};
  if (mib.size() >= 3) {
    const size_t third = mib.size() / 3;
    const double first = *std::max_element(mib.begin(), mib.begin() + static_cast<long>(third));
    const double last = *std::max_element(mib.end() - static_cast<long>(third), mib.end());
    std::printf("resident memory: %.0f MiB in the first third, %.0f in the last\n", first, last);
    verdicts.push_back({"memory of the last third to the first", last / first, "", true, 1.05});
  }
  Print(verdicts);
  const nlohmann::json report = {
      {"peak_per_second", peak}, {"factor", options.factor},
      {"seconds", seconds},      {"done_milliseconds", ends.done.ToJson(1e3)},
      {"missed", ends.missed},   {"refused", ends.refused.count()},
      {"unsent", ends.unsent},   {"others", ends.others},
      {"resident_mib", mib},     {"verdicts", ToJson(verdicts)}};
  const bool held =
      std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.held(); });
  return WriteJson(options.json, report) && (held || !options.check) ? 0 : 1;
}

absl::Status RunOverload(const OverloadOptions& options, int& exit_code) {
  auto caller = ConnectCaller(options.caller);
  if (!caller.ok()) return caller.status();
  auto product = ResidentProduct::Put(*caller, {.extent = options.extent, .inner = options.inner},
                                      options.keep_result);
  if (!product.ok()) return product.status();
  const absl::StatusOr<double> peak = Peak(options, *caller, (*product)->product());
  if (!peak.ok()) return peak.status();
  if (*peak <= 0)
    return absl::DeadlineExceededError("no product ended: --peak-seconds is too short");
  gemm::v1::MultiplyUnaryRequest request;
  *request.mutable_product() = (*product)->product();
  Ends ends;
  std::vector<double> mib;
  const auto begin = LoadClock::now();
  OpenLoop(options, *caller, *peak * options.factor, request, ends, mib);
  exit_code = ReportOverload(options, *peak, ends, SecondsPast(begin), mib);
  return absl::OkStatus();
}

}  // namespace

int BenchOverload(const OverloadOptions& options) {
  int exit_code = 1;
  const absl::Status status = RunOverload(options, exit_code);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return exit_code;
}

}  // namespace gemmd::wire
