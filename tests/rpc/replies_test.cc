// What the server says of a kernel.
#include "server/rpc/codec/replies.h"

#include "gtest/gtest.h"

namespace gemmd {
namespace {

// Every row of the catalogue is deterministic; one that is not has to say so.
TEST(KernelReply, SaysWhetherResultsAreTheSame) {
  for (const bool deterministic : {true, false}) {
    const gemm::Kernel kernel{.name = "sgemm", .deterministic = deterministic};
    gemm::v1::KernelInfo info;
    info.set_deterministic(!deterministic);
    Fill(kernel, info);
    EXPECT_EQ(info.name(), "sgemm");
    EXPECT_EQ(info.deterministic(), deterministic);
  }
}

}  // namespace
}  // namespace gemmd
