#include "server/logs/logging.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"
#include "nlohmann/json.hpp"
#include "server/base/clock.h"
#include "server/logs/patient_sink.h"
#include "spdlog/formatter.h"
#include "spdlog/spdlog.h"

namespace gemmd {
namespace {

using Fields = std::initializer_list<LogField>;

// The fields of the line that this thread is writing: spdlog formats on the
// thread that logs.
thread_local const Fields* current_fields = nullptr;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::string TimeOf(const spdlog::details::log_msg& line) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(line.time), absl::UTCTimeZone());
}

std::string LevelOf(const spdlog::details::log_msg& line) {
  const auto name = spdlog::level::to_string_view(line.level);
  return std::string(name.data(), name.size());
}

nlohmann::ordered_json ToJson(const LogField& field) {
  return std::visit([](const auto& value) { return nlohmann::ordered_json(value); }, field.value);
}

std::string Dump(const nlohmann::ordered_json& json) {
  // Bytes that are not UTF-8 are replaced: a log line is always valid JSON.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string TextLine(const spdlog::details::log_msg& line, const Fields& fields) {
  std::string text = absl::StrCat(TimeOf(line), " ", LevelOf(line), " ",
                                  absl::string_view(line.payload.data(), line.payload.size()));
  for (const LogField& field : fields) {
    const auto* string = std::get_if<std::string>(&field.value);
    const bool plain = string != nullptr && !string->empty() &&
                       string->find_first_of(" \t\r\n\"=") == std::string::npos;
    absl::StrAppend(&text, " ", field.key, "=", plain ? *string : Dump(ToJson(field)));
  }
  return text;
}

std::string JsonLine(const spdlog::details::log_msg& line, const Fields& fields) {
  nlohmann::ordered_json json = {
      {"time", TimeOf(line)},
      {"level", LevelOf(line)},
      {"msg", std::string(line.payload.data(), line.payload.size())},
  };
  for (const LogField& field : fields) json[std::string(field.key)] = ToJson(field);
  return Dump(json);
}

class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& out) override {
    static const Fields kNone = {};
    const Fields& fields = current_fields != nullptr ? *current_fields : kNone;
    std::string text =
        format_ == LogFormat::kJson ? JsonLine(line, fields) : TextLine(line, fields);
    text += '\n';
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_);
  }

 private:
  const LogFormat format_;
};

// A warning that is written beside another line.
std::string Line(LogFormat format, absl::string_view message, const Fields& fields) {
  const spdlog::details::log_msg line("gemmd", spdlog::level::warn,
                                      spdlog::string_view_t(message.data(), message.size()));
  const std::string text =
      format == LogFormat::kJson ? JsonLine(line, fields) : TextLine(line, fields);
  return absl::StrCat(text, "\n");
}

// For whoever reads standard error.
constexpr absl::Duration kPatience = absl::Seconds(1);

// gRPC has a line for each handshake that fails, and protobuf one for each message whose text is
// not UTF-8: strangers make as many as they like.
constexpr LineLimitOptions kLinesOfALibrary = {.lines = 100, .period = absl::Minutes(1)};

void LogOfLibrary(LogLevel level, const char* library, absl::string_view message,
                  LineLimit& limit) {
  if (!LogEnabled(level)) return;
  const std::optional<int64_t> left_out = limit.Take(SteadyNow());
  if (!left_out.has_value()) return;
  if (*left_out == 0) {
    Log(level, message, {{"source", library}});
  } else {
    Log(level, message, {{"source", library}, {"left_out", *left_out}});
  }
}

void LogGrpc(gpr_log_func_args* args) {
  static auto* const limit = new LineLimit(kLinesOfALibrary);  // gRPC's threads outlive main
  const LogLevel level = args->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                         : args->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                   : LogLevel::kDebug;
  LogOfLibrary(level, "grpc", args->message, *limit);
}

void LogProtobuf(google::protobuf::LogLevel severity, const char* /*file*/, int /*line*/,
                 const std::string& message) {
  static auto* const limit = new LineLimit(kLinesOfALibrary);
  // After a fatal one, protobuf ends the process.
  const LogLevel level = severity == google::protobuf::LOGLEVEL_FATAL  ? LogLevel::kError
                         : severity == google::protobuf::LOGLEVEL_INFO ? LogLevel::kInfo
                                                                       : LogLevel::kWarning;
  LogOfLibrary(level, "protobuf", message, *limit);
}

}  // namespace

void SetUpLogging(const LogOptions& options) {
  const auto note = [format = options.format](int64_t lines) {
    return Line(format, "log lines were left out: nobody read them", {{"left_out", lines}});
  };
  auto logger = std::make_shared<spdlog::logger>(
      "gemmd", std::make_shared<PatientSink>(STDERR_FILENO, kPatience, note));
  logger->set_formatter(std::make_unique<LineFormatter>(options.format));
  logger->set_level(ToSpdlog(options.level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(&LogGrpc);
  google::protobuf::SetLogHandler(&LogProtobuf);
}

bool LogEnabled(LogLevel level) {
  return spdlog::default_logger_raw()->should_log(ToSpdlog(level));
}

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
  current_fields = &fields;
  spdlog::default_logger_raw()->log(ToSpdlog(level),
                                    spdlog::string_view_t(message.data(), message.size()));
  current_fields = nullptr;
}

std::optional<int64_t> LineLimit::Take(absl::Time now) {
  MutexLock lock(mutex_);
  if (now - begin_ >= options_.period) {
    begin_ = now;
    written_ = 0;
  }
  if (written_ == options_.lines) {
    ++left_out_;
    return std::nullopt;
  }
  ++written_;
  return std::exchange(left_out_, 0);
}

}  // namespace gemmd
