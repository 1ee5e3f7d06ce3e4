#include "client/ctl/load/workload.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/ctl/checks/verify.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/render.h"
#include "client/ctl/parsing/operand_spec.h"

namespace gemmd::ctl {
namespace {

// Workers beyond this number use the operands of others. Enough sets that operands
// do not stay in a cache; few enough to fit in memory.
constexpr size_t kMaxOperandSets = 8;

// The time to live of the test's matrices on the server, in case the test is killed.
constexpr absl::Duration kOperandTtl = absl::Minutes(10);
constexpr absl::Duration kResultTtl = absl::Minutes(1);

// One round of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t Scramble(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

client::DataType ResultType(client::DataType operands) {
  return operands == client::kS8 ? client::kS32 : operands;
}

double Elements(int64_t rows, int64_t cols) {
  return static_cast<double>(rows) * static_cast<double>(cols);
}

// The bytes of A and B of one request.
double BytesOfFactors(const LoadOptions& options, const ProductShape& shape) {
  return (options.batch * Elements(shape.m, shape.k) +
          options.products() * Elements(shape.k, shape.n)) *
         static_cast<double>(client::SizeOf(options.dtype));
}

// The least memory that a request takes on the server. Generated operands count for the job. Sent
// operands may lie in the store: the client chooses how a large product goes.
double BytesOfRequest(const LoadOptions& options, const ProductShape& shape) {
  const double factors = options.source == Source::kResident ? 0 : BytesOfFactors(options, shape);
  if (options.keeps() || options.source != Source::kGenerated) return factors;
  return factors + options.batch * Elements(shape.m, shape.n) *
                       static_cast<double>(client::SizeOf(ResultType(options.dtype)));
}

// Refuses before operands are made for it what the server would refuse.
absl::Status CheckLimits(const ::gemm::v1::Limits& limits, const LoadOptions& options) {
  struct Row {
    const char* option;
    int32_t products;
    int32_t most;
  };
  for (const auto& [option, products, most] :
       {Row{"--batch", options.batch, limits.max_batch_count()},
        Row{"--group", options.group, limits.max_group_count()}}) {
    if (products <= 1 || products <= most) continue;
    return most == 0 ? absl::UnimplementedError(
                           absl::StrCat(option, " is ", products, ", but the server takes none"))
                     : absl::InvalidArgumentError(absl::StrCat(option, " is ", products,
                                                               "; the server takes 1 to ", most));
  }
  for (const WeightedShape& shape : options.shapes) {
    const bool sent = options.source == Source::kSent;
    const double bytes = BytesOfRequest(options, shape.shape);
    const auto most = static_cast<double>(limits.max_job_bytes()) +
                      (sent ? static_cast<double>(limits.store_bytes()) : 0);
    if (limits.max_job_bytes() == 0 || bytes <= most) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("--shape is ", shape.text, ": a request has matrices of ", BytesText(bytes),
                     " on the server, which has at most ", BytesText(most), " for one (",
                     sent ? "--max-job-bytes and --store-bytes" : "--max-job-bytes", ")"));
  }
  return absl::OkStatus();
}

std::vector<int> Weights(const LoadOptions& options) {
  std::vector<int> weights;
  for (const WeightedShape& shape : options.shapes) {
    for (const Weighted& kernel : options.kernels) weights.push_back(shape.weight * kernel.weight);
  }
  return weights;
}

// Tests that one caller of the server runs at once have different ones.
std::string NewRunName() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

}  // namespace

// In each step the credit of every choice grows by its weight. The choice with the
// most credit is taken, and loses the sum of all weights.
Mix::Mix(const std::vector<int>& weights) {
  int divisor = 0;
  for (int weight : weights) divisor = std::gcd(divisor, weight);
  std::vector<int64_t> credit(weights.size());
  const int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t{0}) / divisor;
  for (int64_t step = 0; step < total; ++step) {
    for (size_t i = 0; i < weights.size(); ++i) credit[i] += weights[i] / divisor;
    const size_t richest =
        static_cast<size_t>(std::max_element(credit.begin(), credit.end()) - credit.begin());
    credit[richest] -= total;
    cycle_.push_back(richest);
  }
}

// Sends one worker's requests. Used only by that worker's thread.
class Workload::ProductCaller : public Caller {
 public:
  static absl::StatusOr<std::unique_ptr<ProductCaller>> Make(Workload& workload, size_t worker) {
    std::unique_ptr<ProductCaller> caller(new ProductCaller(workload, worker));
    const LoadOptions& options = workload.options_;
    for (const WeightedShape& shape : options.shapes) {
      client::HostMatrix result;
      if (options.streams()) {
        auto allocated = client::HostMatrix::Allocate({.rows = options.batch * shape.shape.m,
                                                       .cols = shape.shape.n,
                                                       .dtype = ResultType(options.dtype)});
        if (!allocated.ok()) return allocated.status();
        result = *std::move(allocated);
      }
      caller->results_.push_back(std::move(result));
    }
    for (size_t choice = 0; choice < options.shapes.size() * options.kernels.size(); ++choice) {
      caller->products_.push_back(caller->ProductOf(choice));
    }
    return caller;
  }

  ~ProductCaller() override {
    if (may_have_kept_) workload_.Remove(client::Resident::ByName(kept_name_));
  }

  Outcome Call(const Slot& slot) override {
    return Make(workload_.client_, workload_.mix_.Choice(slot.index));
  }

  size_t ChoiceOf(const Slot& slot) const override { return workload_.mix_.Choice(slot.index); }

  Verdict Finish(const Slot& slot) override {
    const size_t choice = workload_.mix_.Choice(slot.index);
    const bool first = seen_.insert(choice).second;
    if (IsSampled(slot.index) || (first && workload_.options_.verify_fraction > 0)) {
      return Check(choice);
    }
    return {};
  }

  // Sends one request of this choice, outside the mix.
  absl::Status TryOne(size_t choice) { return Make(workload_.patient_, choice).status; }

 private:
  ProductCaller(Workload& workload, size_t worker)
      : workload_(workload),
        set_(workload.sets_[worker % workload.sets_.size()]),
        kept_name_(absl::StrCat("loadtest-", workload.run_, "-", worker)) {}

  client::Product ProductOf(size_t choice) {
    const LoadOptions& options = workload_.options_;
    const size_t shape = workload_.ShapeOf(choice);
    client::Product product{.a = set_[shape].a, .b = set_[shape].b, .batch_count = options.batch};
    product.group = workload_.GroupOf(shape);
    product.compute = options.compute;
    product.kernel.name = options.kernels[workload_.KernelOf(choice)].value;
    product.result.fetch = options.streams();
    if (options.streams()) product.result.into = results_[shape].mutable_view();
    if (options.keeps()) {
      product.result.keep = client::Keep{.name = kept_name_, .ttl = kResultTtl, .replace = true};
    }
    return product;
  }

  Outcome Make(client::Client& client, size_t choice) {
    may_have_kept_ = workload_.options_.keeps();
    const auto result = client.Multiply(products_[choice], workload_.Call());
    Outcome outcome{.status = result.status()};
    if (!result.ok()) return outcome;
    const ProductShape& shape = workload_.options_.shapes[workload_.ShapeOf(choice)].shape;
    outcome.flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                    static_cast<double>(shape.k) * workload_.options_.batch;
    outcome.bytes_sent = result->bytes_sent;
    outcome.bytes_received = result->bytes_received;
    outcome.phases = PhasesOf(result->report);
    compute_ = result->report.compute();
    if (result->kept.has_value()) kept_ = client::Resident::Of(*result->kept);
    return outcome;
  }

  bool IsSampled(uint64_t index) const {
    const uint64_t draw = Scramble(workload_.options_.seed ^ Scramble(index));
    return static_cast<double>(draw >> 11) * 0x1p-53 < workload_.options_.verify_fraction;
  }

  Verdict Check(size_t choice) {
    const LoadOptions& options = workload_.options_;
    const size_t shape = workload_.ShapeOf(choice);
    client::MatrixView elements = results_[shape].view();
    if (!options.streams()) {
      auto fetched = ElementsOf(workload_.patient_, *kept_, workload_.Call());
      if (!fetched.ok()) {
        return {.fetched =
                    absl::Status(fetched.status().code(),
                                 absl::StrCat("the result that was kept could not be fetched: ",
                                              fetched.status().message()))};
      }
      elements = *std::move(fetched);
    }
    const auto agreement = CheckProduct(products_[choice], set_[shape].elements, compute_, elements,
                                        options.verify_samples, Scramble(options.seed + checks_++));
    if (!agreement.ok()) {
      return {.checked = true, .right = false, .explanation = agreement.status().ToString()};
    }
    return {.checked = true,
            .right = IsRight(*agreement),
            .explanation = absl::StrCat(options.shapes[shape].text, " with kernel ",
                                        products_[choice].kernel.name, ": ", Explain(*agreement))};
  }

  Workload& workload_;
  const std::vector<OperandPair>& set_;
  const std::string kept_name_;  // of each result, which takes the place of the one before
  std::vector<client::HostMatrix> results_;  // by shape; empty where not streamed
  std::vector<client::Product> products_;    // by choice
  std::set<size_t> seen_;                    // choices that this worker has made
  client::ComputeMode compute_ = client::kDefaultCompute;
  std::optional<client::Resident> kept_;  // by the last request that ended well
  bool may_have_kept_ = false;
  uint64_t checks_ = 0;
};

Workload::Workload(client::Client& client, client::Client& patient, const LoadOptions& options)
    : client_(client),
      patient_(patient),
      options_(options),
      mix_(Weights(options)),
      run_(NewRunName()) {}

absl::StatusOr<std::unique_ptr<Workload>> Workload::Prepare(
    client::Client& client, client::Client& patient, const LoadOptions& options,
    absl::FunctionRef<void(double)> making) {
  absl::Status status = CheckLimits(client.server().limits(), options);
  if (!status.ok()) return status;
  std::unique_ptr<Workload> workload(new Workload(client, patient, options));
  // One set is enough where the server holds the operands: nothing is read here.
  const size_t sets = options.source == Source::kResident
                          ? 1
                          : std::min(kMaxOperandSets, static_cast<size_t>(options.concurrency));
  if (options.source == Source::kSent || options.verify_fraction > 0) {
    double bytes = 0;
    for (const WeightedShape& shape : options.shapes) bytes += BytesOfFactors(options, shape.shape);
    making(bytes * static_cast<double>(sets));
  }
  for (size_t set = 0; set < sets; ++set) {
    std::vector<OperandPair>& pairs = workload->sets_.emplace_back();
    for (size_t shape = 0; shape < options.shapes.size(); ++shape) {
      auto pair = workload->MakePair(set, shape);
      if (!pair.ok()) return pair.status();
      pairs.push_back(*std::move(pair));
    }
  }
  return workload;
}

Workload::~Workload() {
  for (const client::Resident& matrix : resident_) Remove(matrix);
}

void Workload::Remove(const client::Resident& matrix) {
  if (!may_remove_) return;
  const absl::Status status = patient_.DeleteMatrix(matrix, Call()).status();
  // A server that is gone is not waited for once for each matrix.
  may_remove_ = !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
}

std::vector<client::ProductSize> Workload::GroupOf(size_t shape) const {
  if (options_.group == 0) return {};
  const ProductShape& size = options_.shapes[shape].shape;
  // Between two cuts are the rows of one product.
  std::vector<int64_t> cuts = {0, size.m};
  for (int32_t i = 1; i < options_.group; ++i) {
    const uint64_t draw =
        Scramble(options_.seed + Scramble(shape + Scramble(static_cast<uint64_t>(i))));
    cuts.push_back(static_cast<int64_t>(draw % static_cast<uint64_t>(size.m + 1)));
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<client::ProductSize> sizes;
  for (size_t i = 1; i < cuts.size(); ++i) {
    sizes.push_back({.m = cuts[i] - cuts[i - 1], .n = size.n, .k = size.k});
  }
  return sizes;
}

absl::StatusOr<OperandPair> Workload::MakePair(size_t set, size_t shape) {
  const ProductShape& size = options_.shapes[shape].shape;
  const uint64_t seed = Scramble(options_.seed + Scramble(set * options_.shapes.size() + shape));
  const client::Uniform around_zero =
      options_.dtype == client::kS8 ? kWholeOfS8 : client::Uniform{.low = -1, .high = 1};
  const auto drawn = [&](int64_t rows, int64_t cols, uint64_t of_seed) {
    return client::Generated{.shape = {.rows = rows, .cols = cols, .dtype = options_.dtype},
                             .seed = of_seed,
                             .distribution = around_zero};
  };
  const client::Generated left = drawn(options_.batch * size.m, size.k, seed);
  const client::Generated right = drawn(options_.products() * size.k, size.n, seed + 1);
  OperandPair pair;
  pair.elements.known = WhatIsKnown(left, right);
  auto a = MakeOperand(left, pair.elements.a);
  if (!a.ok()) return a.status();
  pair.a = *std::move(a);
  auto b = MakeOperand(right, pair.elements.b);
  if (!b.ok()) return b.status();
  pair.b = *std::move(b);
  return pair;
}

absl::StatusOr<client::Operand> Workload::MakeOperand(const client::Generated& drawn,
                                                      client::MatrixView& elements) {
  if (options_.source == Source::kSent || options_.verify_fraction > 0) {
    const auto matrix = DrawHere(drawn);
    if (!matrix.ok()) return matrix.status();
    elements = matrix->view();
  }
  if (options_.source == Source::kSent) return elements;
  if (options_.source == Source::kGenerated) return drawn;
  const auto info = patient_.PutGenerated(drawn, {.keep = {.ttl = kOperandTtl}}, Call());
  if (!info.ok()) return info.status();
  resident_.push_back(client::Resident::Of(*info));
  return resident_.back();
}

absl::StatusOr<std::vector<std::unique_ptr<Caller>>> Workload::MakeCallers() {
  std::vector<std::unique_ptr<Caller>> callers;
  for (size_t worker = 0; worker < static_cast<size_t>(options_.concurrency); ++worker) {
    auto caller = ProductCaller::Make(*this, worker);
    if (!caller.ok()) return caller.status();
    callers.push_back(*std::move(caller));
  }
  return callers;
}

absl::Status Workload::Try(Caller& caller) {
  auto& product_caller = static_cast<ProductCaller&>(caller);
  for (size_t choice = 0; choice < options_.shapes.size() * options_.kernels.size(); ++choice) {
    absl::Status status = product_caller.TryOne(choice);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gemmd::ctl
