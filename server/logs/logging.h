// Log lines on stderr: a message for people, and fields for programs.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;
};

struct LogField {
  LogField(absl::string_view name, absl::string_view text) : key(name), value(std::string(text)) {}
  LogField(absl::string_view name, const char* text) : LogField(name, absl::string_view(text)) {}
  LogField(absl::string_view name, const std::string& text)
      : LogField(name, absl::string_view(text)) {}
  LogField(absl::string_view name, double number) : key(name), value(number) {}
  LogField(absl::string_view name, bool flag) : key(name), value(flag) {}
  LogField(absl::string_view name, std::integral auto number)
      : key(name), value(static_cast<int64_t>(number)) {}

  absl::string_view key;
  std::variant<std::string, int64_t, double, bool> value;
};

// Call once, before the first line. Lines of spdlog, gRPC and protobuf are logged in the
// same way, of gRPC's and of protobuf's at most 100 a minute each: the next one has the number of
// those before it that were not written, as "left_out".
//   text  2026-11-21T12:00:00.000Z info serving address=127.0.0.1:50051
//   json  {"time":"2026-11-21T12:00:00.000Z","level":"info","msg":"serving","address":...}
void SetUpLogging(const LogOptions& options);

// Whether a line of this level would be written.
bool LogEnabled(LogLevel level);

// Thread-safe.
void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields = {});

// A bound on log lines that others cause.
struct LineLimitOptions {
  int64_t lines;          // in a period
  absl::Duration period;  // begins with its first line
};

// Thread-safe.
class LineLimit {
 public:
  explicit LineLimit(const LineLimitOptions& options) : options_(options) {}

  // Whether a line may be written `now`, and then how many before it might not. nullopt: it
  // may not, and is counted.
  std::optional<int64_t> Take(absl::Time now);

 private:
  const LineLimitOptions options_;
  Mutex mutex_;
  absl::Time begin_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // since begin_
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
