#include "gemm/quote.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gemm {
namespace {

constexpr size_t kQuotedBytes = 64;
constexpr absl::string_view kCut = "...";

}  // namespace

std::string Quoted(absl::string_view text) {
  const std::string quoted = absl::CHexEscape(text.substr(0, kQuotedBytes));
  if (text.size() <= kQuotedBytes) return absl::StrCat("\"", quoted, "\"");
  return absl::StrCat("\"", quoted, kCut, "\" (", text.size(), " bytes)");
}

std::string Printable(absl::string_view text, size_t max_bytes) {
  std::string printable;
  size_t kept = 0;  // of `printable`, with room for kCut
  for (const char c : text) {
    if (absl::ascii_isprint(static_cast<unsigned char>(c))) {
      printable += c;
    } else {
      printable += absl::CHexEscape(absl::string_view(&c, 1));
    }
    if (printable.size() > max_bytes) return absl::StrCat(printable.substr(0, kept), kCut);
    if (printable.size() + kCut.size() <= max_bytes) kept = printable.size();
  }
  return printable;
}

std::string EscapeControls(absl::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, which some terminals obey, are C2 80 to C2 9F.
    const bool c1 = c == 0xc2 && i + 1 < text.size() &&
                    (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (absl::ascii_iscntrl(c) || c1) {
      absl::StrAppend(&escaped, absl::CHexEscape(text.substr(i, c1 ? 2 : 1)));
      i += c1 ? 1 : 0;
    } else {
      escaped += text[i];
    }
  }
  return escaped;
}

}  // namespace gemm
