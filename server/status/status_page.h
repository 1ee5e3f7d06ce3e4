// The files of page/, as they are in the program.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "server/telemetry/http_answer.h"

namespace gemmd {

// The answer for "/", "/status.js" and "/status.css"; nullopt for another path.
std::optional<HttpAnswer> StatusPage(absl::string_view path);

}  // namespace gemmd
