// The callers file: what is accepted is bounded and consistent, and an error quotes no
// credential.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "server/identity/callers.h"
#include "server/identity/lines.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<gemmd::Callers> callers = gemmd::Callers::Parse(text);
  if (!callers.ok()) {
    const absl::string_view message = callers.status().message();
    Require(message.size() < 1024);
    // No message has a word of its own that is as long as a token.
    for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\n"))) {
      Require(word.size() < 32 || !absl::StrContains(message, word));
    }
    return 0;
  }
  Require(callers->size() <= gemmd::kMaxFileLines);
  // Every credential has a line of its own.
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  Require(callers->size() <= lines.size());
  if (const gemmd::CallerPtr caller = callers->FindCertificate("somebody")) {
    Require(gemmd::CheckCallerName(caller->name).ok());
  }
  return 0;
}
