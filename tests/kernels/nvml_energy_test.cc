// The energy counter of a GPU, with a library that stands in for NVML.
#include "kernels/bench/backend/nvml_energy.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gemm::bench {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<EnergyCounter>> Open(const std::string& bus) {
  return OpenNvmlEnergy(bus, GEMM_FAKE_NVML);
}

void ExpectUnavailable(const absl::Status& status, const std::string& why) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

TEST(NvmlEnergy, IsInJoules) {
  const auto counter = Open("0000:01:00.0");
  ASSERT_TRUE(counter.ok()) << counter.status();
  const double before = (*counter)->Joules().value();
  EXPECT_NEAR((*counter)->Joules().value(), before + 0.25, 1e-9);
}

TEST(NvmlEnergy, CanBeOpenedSeveralTimes) {
  auto one = Open("0000:01:00.0"), two = Open("0000:01:00.0");
  ASSERT_TRUE(one.ok() && two.ok());
  one->reset();
  EXPECT_TRUE((*two)->Joules().ok());
}

TEST(NvmlEnergy, SaysWhyThereIsNone) {
  ExpectUnavailable(Open("0000:04:00.0").status(), "NVML and the GPU at 0000:04:00.0: Not Found");
  ExpectUnavailable(Open("0000:02:00.0").status(), "NVML's energy counter: Not Supported");
  ExpectUnavailable(OpenNvmlEnergy("0000:01:00.0", "libno-such-library.so.1").status(),
                    "NVML cannot be loaded: libno-such-library.so.1: ");
  ExpectUnavailable(OpenNvmlEnergy("0000:01:00.0", "libm.so.6").status(),
                    "NVML has no function nvmlInit_v2");
}

TEST(NvmlEnergy, IsShutDownAtTheEnd) {
  // It stays loaded meanwhile, and so keeps its counts.
  void* const library = dlopen(GEMM_FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto users = reinterpret_cast<int (*)()>(dlsym(library, "FakeNvmlUsers"));
  {
    const auto counter = Open("0000:01:00.0");
    EXPECT_EQ(users(), 1);
  }
  EXPECT_EQ(users(), 0);
  EXPECT_FALSE(Open("0000:02:00.0").ok());
  EXPECT_FALSE(Open("0000:04:00.0").ok());
  EXPECT_EQ(users(), 0);
  dlclose(library);
}

TEST(NvmlEnergy, ReadingsMayFailLater) {
  const auto counter = Open("0000:03:00.0");
  ASSERT_TRUE(counter.ok()) << counter.status();
  ExpectUnavailable((*counter)->Joules().status(), "NVML's energy counter: Not Supported");
}

}  // namespace
}  // namespace gemm::bench
