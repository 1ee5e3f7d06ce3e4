// Tables line up, and quantities read as people write them.
#include "client/ctl/output/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "client/ctl/output/format.h"

namespace gemmd::ctl {
namespace {

std::string Printed(const Table& table) {
  std::ostringstream out;
  table.Print(out);
  return out.str();
}

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({{"name"}, {"bytes", Align::kRight}, {"note"}});
  table.Add({"a", "5", "x"});
  table.Add({"longer", "123456", ""});
  EXPECT_EQ(Printed(table),
            "name     bytes  note\n"
            "a            5  x\n"
            "longer  123456\n");
}

TEST(TableTest, SummariesHaveNoHeadingAndMissingCellsAreEmpty) {
  Table table = SummaryTable();
  table.Add({"kernel", "host_openblas"});
  table.Add({"reason"});
  EXPECT_EQ(Printed(table), "kernel  host_openblas\nreason\n");
}

TEST(TableTest, WidthCountsCodePointsNotBytes) {
  Table table({{"a"}, {"b"}});
  table.Add({"\xc3\xa9\xc3\xa9", "1"});
  table.Add({"xx", "2"});
  EXPECT_EQ(Printed(table), "a   b\n\xc3\xa9\xc3\xa9  1\nxx  2\n");
}

TEST(FormatTest, Bytes) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.50 KiB");
  EXPECT_EQ(BytesText(64.0 * 1024 * 1024), "64.0 MiB");
  EXPECT_EQ(BytesText(3.5 * 1024 * 1024 * 1024), "3.50 GiB");
}

TEST(FormatTest, DurationsAndNumbers) {
  EXPECT_EQ(DurationText(absl::Nanoseconds(12340)), "12.3 us");
  EXPECT_EQ(DurationText(absl::Microseconds(4567)), "4.57 ms");
  EXPECT_EQ(DurationText(absl::Seconds(90)), "90.0 s");
  EXPECT_EQ(MillisecondsText(absl::Microseconds(1500)), "1.500");
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.0012345), "0.00123");
  EXPECT_EQ(NumberText(45.678), "45.7");
  EXPECT_EQ(NumberText(12345.6), "12346");
}

TEST(TableTest, ControlCharactersOfAServerDoNotReachTheTerminal) {
  Table table({{"name"}, {"what"}});
  table.Add({"\x1b[2Jx", "µ\xc2\x9b\n"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(), "name      what\n\\x1b[2Jx  µ\\xc2\\x9b\\n\n");
}

}  // namespace
}  // namespace gemmd::ctl
