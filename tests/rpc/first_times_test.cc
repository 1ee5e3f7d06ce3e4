#include "server/benchmark/first_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gemm/catalogue.h"
#include "tests/engine/fake_device.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr gemm::DeviceCaps kGpu = {gemm::Target::kCuda, 80};

// A device, and which devices were told of.
class FirstTimesTest : public ::testing::Test {
 protected:
  Device& Add(const gemm::DeviceCaps& caps) {
    devices_.push_back(
        std::make_unique<FakeDevice>(FakeDevice::Options{.name = "cuda:99", .caps = caps}));
    return *devices_.back();
  }
  void Set(EstimatesFrom from) {
    SetEstimates(devices_, from, {}, [this](const FirstTimes& times) {
      told_.emplace_back(times.device);
      EXPECT_FALSE(times.status.ok()) << "there is no such GPU";
    });
  }

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::string> told_;
};

TEST_F(FirstTimesTest, HostDevicesAreNotMeasured) {
  Add({gemm::Target::kHost, 0});
  Set(EstimatesFrom::kModel);
  Set(EstimatesFrom::kMeasured);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(FirstTimesTest, AGpuOfAnUnknownModelIsMeasured) {
  const Device& device = Add(kGpu);
  Set(EstimatesFrom::kModel);
  EXPECT_THAT(told_, ElementsAre("cuda:99"));
  EXPECT_EQ(device.estimates().estimates, nullptr) << "it could not be measured";
}

TEST_F(FirstTimesTest, OneOfAKnownModelIsMeasuredOnlyWhereThatIsAskedFor) {
  Device& device = Add(kGpu);
  const gemm::Kernel* const kernel = gemm::Catalogue().front();
  const std::vector<gemm::TimedProduct> times = {
      {.problem = {.m = 8, .n = 8, .k = 8}, .seconds = {{kernel, 1e-6}}}};
  device.UseEstimates(gemm::Estimates::FromTimes("known", times));
  Set(EstimatesFrom::kModel);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(device.estimates().model(), "known");
  Set(EstimatesFrom::kMeasured);
  EXPECT_THAT(told_, ElementsAre("cuda:99"));
}

TEST_F(FirstTimesTest, NoneLeavesFormulasAndRanks) {
  Device& device = Add(kGpu);
  device.UseEstimates(gemm::Estimates::FromTimes("known", {}));
  Set(EstimatesFrom::kNone);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(device.estimates().estimates, nullptr);
}

}  // namespace
}  // namespace gemmd
