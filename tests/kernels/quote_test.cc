#include "gemm/quote.h"

#include <gtest/gtest.h>

#include <string>

namespace gemm {
namespace {

TEST(QuoteTest, QuotesEscapesAndCuts) {
  EXPECT_EQ(Quoted("abc"), "\"abc\"");
  EXPECT_EQ(Quoted("g\x1b[2J\n\"\xff"), R"("g\x1b[2J\n\"\xff")");
  EXPECT_EQ(Quoted(std::string(64, 'a')), "\"" + std::string(64, 'a') + "\"");
  EXPECT_EQ(Quoted(std::string(20'000, 'a')), "\"" + std::string(64, 'a') + "...\" (20000 bytes)");
}

TEST(QuoteTest, WholeMessagesArePrintableAndBounded) {
  EXPECT_EQ(Printable("it's \"so\" \\x", 100), "it's \"so\" \\x");
  EXPECT_EQ(Printable("a\tb\x80", 100), R"(a\tb\x80)");
  EXPECT_EQ(Printable(std::string(10, 'a'), 10), std::string(10, 'a'));
  EXPECT_EQ(Printable(std::string(100, 'a'), 10), "aaaaaaa...");
}

TEST(QuoteTest, OnlyControlCharactersAreEscapedForATerminal) {
  EXPECT_EQ(EscapeControls("12 µs × 3"), "12 µs × 3");
  EXPECT_EQ(EscapeControls("\x1b[2J\r\n\x7f"), R"(\x1b[2J\r\n\x7f)");
  EXPECT_EQ(EscapeControls("\xc2\x9b"), R"(\xc2\x9b)");
}

}  // namespace
}  // namespace gemm
