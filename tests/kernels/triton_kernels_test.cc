// Reasons to refuse a folder of Triton's kernels. To run them needs a GPU.
#include "kernels/bench/measure/triton_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace gemm::bench {
namespace {

using ::testing::HasSubstr;

class TritonKernelsTest : public ::testing::Test {
 protected:
  TritonKernelsTest() { std::filesystem::create_directories(folder_); }
  ~TritonKernelsTest() override { std::filesystem::remove_all(folder_); }

  // The status of loading a folder with such a list.
  absl::Status Load(const std::string& list) {
    std::ofstream(folder_ + "/kernels.json") << list;
    return LoadTritonKernels(folder_).status();
  }

  const std::string folder_ = ::testing::TempDir() + "/triton_kernels_test";
};

TEST_F(TritonKernelsTest, SaysWhatIsWrongWithTheFolder) {
  const char* const kNoTile =
      R"([{"name": "x", "type": "f16", "tile_m": 0, "tile_n": 8, "threads": 32, "shared_bytes": 0}])";
  EXPECT_EQ(LoadTritonKernels(folder_).status(),
            absl::NotFoundError("cannot read " + folder_ + "/kernels.json"));
  for (const char* list : {"[{", "[{}]", "[7]", kNoTile, R"([{"name": "x", "type": "f17"}])"}) {
    EXPECT_EQ(Load(list).code(), absl::StatusCode::kInvalidArgument) << list;
  }
  EXPECT_THAT(Load(R"([{"name": "x", "type": "f17"}])").message(),
              HasSubstr("no type is named \"f17\""));
}

}  // namespace
}  // namespace gemm::bench
