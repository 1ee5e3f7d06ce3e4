// Every form of a product with every feature, and with every other form: admission answers as the
// table says.
#include "server/engine/core/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gemm/catalogue.h"
#include "gemm/tuning.h"
#include "server/engine/job/coalesced_launch.h"
#include "server/engine/job/small_payload.h"
#include "tests/engine/fake_core.h"

namespace gemmd {
namespace {

using gemm::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSize = 16, kProducts = 2, kRows = 64;
// Takes every form, and is not the rank's choice.
constexpr const char* kReference = "host_reference";

OperandSpec Sent(int64_t rows, int64_t cols, DType type = DType::kF32) {
  return {Shape{rows, cols, type}, FromPayload{}};
}

constexpr Form kForms[] = {Form::kSingle, Form::kBatch, Form::kGroup, Form::kRowBlock,
                           Form::kBlockScales};
static_assert(std::size(kForms) == std::size(kFormRules));

// Makes a single product one of this form.
void Become(Form form, JobSpec& spec) {
  const auto share_b = [&spec] { spec.shared[Role::kB] = true; };
  switch (form) {
    case Form::kSingle:
      return;
    case Form::kBatch:
      spec.batch = kProducts;
      spec.a.shape->rows = kProducts * kSize;
      return share_b();
    case Form::kGroup:
      spec.group.assign(kProducts, {kSize, kSize, kSize});
      spec.a.shape->rows = kProducts * kSize;
      return share_b();
    case Form::kRowBlock:
      spec.product_rows = kRows;
      return;
    case Form::kBlockScales:
      spec.a.shape->type = spec.b.shape->type = DType::kE4M3;
      spec.scales_a = Sent(kSize, 1);
      spec.scales_b = Sent(1, kSize);
      return;
  }
}

JobSpec ProductOf(Form form, const std::string& kernel = kReference) {
  JobSpec spec;
  spec.a = spec.b = Sent(kSize, kSize);
  spec.kernel.name = kernel;
  Become(form, spec);
  return spec;
}

class FormTest : public ::testing::TestWithParam<Form> {
 protected:
  static FakeCore RoomyCore(Verify policy = Verify::kOff) {
    EngineOptions options = FakeCore::DefaultOptions();
    options.verify = policy;
    return FakeCore(options, 1, {.memory_bytes = size_t{1} << 20});
  }
  const FormRules& rules() const { return RulesOf(GetParam()); }
  std::string given() const { return Given(GetParam(), kProducts); }
};

TEST_P(FormTest, SaysWhatItsJobsShareAndLeaveInHostMemory) {
  FakeCore fake = RoomyCore();
  const auto job = AdmitJob(fake.core, ProductOf(GetParam()));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->plan.form, GetParam());
  EXPECT_EQ(CoalescingKind::Of(*job, *job->holdings).has_value(), rules().coalesced);
  EXPECT_EQ(ZeroCopy::Of(*job, *job->holdings, 64 * kKiB).payload, rules().zero_copy);
}

TEST_P(FormTest, SaysWhetherProductsAreChecked) {
  JobSpec asked = ProductOf(GetParam());
  asked.verify = Verify::kAlways;
  FakeCore fake = RoomyCore();
  const absl::Status status = AdmitJob(fake.core, asked).status();
  EXPECT_EQ(status.ok(), rules().checked) << status;
  if (!rules().checked) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("verify is always"), HasSubstr(std::string(rules().name)),
                      HasSubstr(given()), HasSubstr("leave verify out")));
  }
  FakeCore by_policy = RoomyCore(Verify::kAlways);
  const auto job = AdmitJob(by_policy.core, ProductOf(GetParam()));
  ASSERT_TRUE(job.ok()) << "a policy refuses nothing: " << job.status();
  EXPECT_EQ(job->check.plan.has_value(), rules().checked);
  EXPECT_EQ(job->check.why_not.empty(), rules().checked);
}

// The tuning table has the product, and for a block of rows the whole one.
TEST_P(FormTest, SaysWhetherTablesCount) {
  FakeCore fake = RoomyCore();
  const JobSpec open = ProductOf(GetParam(), "");
  gemm::Problem measured{.n = kSize, .k = kSize};
  if (GetParam() == Form::kBlockScales) {
    measured.types = {DType::kE4M3, DType::kE4M3, DType::kF16, gemm::Compute::kF32};
  }
  gemm::TuningTable table;
  for (const int64_t m : {kSize, kProducts * kSize, kRows}) {
    measured.m = m;
    const absl::Status put = table.Put(fake.core.devices[0]->info().machine,
                                       gemm::TunedProduct::Of(measured), {kReference, {}, 1});
    ASSERT_TRUE(put.ok()) << put;
  }
  fake.core.tuning.Set(std::make_shared<const Tuning>(table, fake.core.devices));
  const auto job = AdmitJob(fake.core, open);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->pick.tuned.has_value(), rules().tuned) << job->pick.reason;
}

bool Takes(const gemm::Kernel& kernel, absl::string_view field) {
  if (field == "batches") return kernel.batches;
  if (field == "row_blocks") return kernel.row_blocks;
  if (field == "block_scales") return kernel.block_scales;
  return field.empty();
}

TEST_P(FormTest, SaysWhichKernelsTakeIt) {
  FakeCore fake = RoomyCore();
  const DType type = ProductOf(GetParam()).a.shape->type;
  const gemm::Types types{type, type, DefaultOutput(type), gemm::Compute::kF32};
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (kernel->target != gemm::Target::kHost || !gemm::Takes(*kernel, types)) continue;
    const absl::Status status =
        AdmitJob(fake.core, ProductOf(GetParam(), std::string(kernel->name))).status();
    EXPECT_EQ(status.ok(), Takes(*kernel, rules().kernels)) << kernel->name << ": " << status;
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(given()));
    }
  }
}

TEST(Forms, ExcludeEachOther) {
  FakeCore fake(FakeCore::DefaultOptions());
  for (const Form one : kForms) {
    for (const Form other : kForms) {
      if (one == Form::kSingle || one >= other) continue;
      JobSpec spec = ProductOf(one);
      Become(other, spec);
      const absl::Status status = AdmitJob(fake.core, spec).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_EQ(status.message(),
                absl::StrCat(Given(one, kProducts), " and ", Given(other, kProducts),
                             ", but they exclude each other: leave one of them "
                             "out"));
    }
  }
}

// "blocks_of_rows"
INSTANTIATE_TEST_SUITE_P(Every, FormTest, ::testing::ValuesIn(kForms), [](const auto& form) {
  return absl::StrReplaceAll(RulesOf(form.param).name, {{" ", "_"}});
});

}  // namespace
}  // namespace gemmd
