#include "server/identity/certificate_subject.h"

#include "absl/strings/match.h"

namespace gemmd {

size_t CountCommonNames(absl::string_view subject) {
  size_t count = 0;
  bool attribute_begins = true;
  for (size_t i = 0; i < subject.size(); ++i) {
    if (attribute_begins && absl::StartsWith(subject.substr(i), "CN=")) ++count;
    attribute_begins = subject[i] == ',' || subject[i] == '+';
    if (subject[i] == '\\') ++i;  // what it escapes belongs to a value
  }
  return count;
}

}  // namespace gemmd
