// main of the test programs that need a GPU. Where there is none, every test skips
// itself and the program exits with 77, which is one skipped test to ctest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

constexpr int kSkipped = 77;

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const ::testing::UnitTest& unit = *::testing::UnitTest::GetInstance();
  const bool all_skipped =
      unit.test_to_run_count() > 0 && unit.skipped_test_count() == unit.test_to_run_count();
  return status == 0 && all_skipped ? kSkipped : status;
}
