// Flags: the sources of values, and the errors of wrong ones.
#include "server/flags/flags.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "files/size_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/core/device_losses.h"
#include "server/flags/flag_table.h"
#include "server/flags/flag_values.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

FlagOutcome ParseWith(const std::vector<std::string>& arguments, const Variables& variables = {}) {
  return ParseFlags(arguments, [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << content;
  return path;
}

TEST(Flags, Defaults) {
  const FlagOutcome outcome = ParseWith({});
  ASSERT_TRUE(outcome.flags.has_value()) << outcome.output;
  EXPECT_EQ(outcome.flags->server.address, "127.0.0.1:50051");
  EXPECT_EQ(outcome.flags->server.metrics_address, "127.0.0.1:9464");
  EXPECT_EQ(outcome.flags->server.engine.devices, "auto");
  EXPECT_EQ(outcome.flags->drain_timeout, absl::Seconds(30));
}

TEST(Flags, EveryKindOfValue) {
  const FlagOutcome outcome =
      ParseWith({"--devices=host:2", "--store-bytes", "3MiB", "--max-jobs=7", "--drain-timeout=90s",
                 "--log-format=json", "--log-level=debug", "--benchmark-limit=0",
                 "--metrics-address=", "--address=[::1]:0"});
  ASSERT_TRUE(outcome.flags.has_value()) << outcome.output;
  const Flags& flags = *outcome.flags;
  EXPECT_EQ(flags.server.engine.devices, "host:2");
  EXPECT_EQ(flags.server.engine.store_bytes, 3 * kMiB);
  EXPECT_EQ(flags.server.engine.max_jobs, 7);
  EXPECT_EQ(flags.drain_timeout, absl::Seconds(90));
  EXPECT_EQ(flags.server.benchmark.time, absl::ZeroDuration());
  EXPECT_EQ(flags.log.format, LogFormat::kJson);
  EXPECT_EQ(flags.log.level, LogLevel::kDebug);
  EXPECT_EQ(flags.server.metrics_address, "");
  EXPECT_EQ(flags.server.address, "[::1]:0");
}

TEST(Flags, CommandLineBeforeEnvironmentBeforeFileBeforeDefault) {
  const std::string path = WriteFile("precedence.flags",
                                     "# a comment\n"
                                     "max-jobs=1\n"
                                     "  --max-matrices = 1  \n"
                                     "\n"
                                     "copy-threads=1\n");
  const Variables variables = {{"GEMMD_MAX_JOBS", "2"}, {"GEMMD_MAX_MATRICES", "2"}};
  for (const bool by_environment : {false, true}) {
    Variables given = variables;
    std::vector<std::string> arguments = {"--max-jobs=3"};
    if (by_environment) {
      given["GEMMD_FLAGFILE"] = path;
    } else {
      arguments.push_back("--flagfile=" + path);
    }
    const FlagOutcome outcome = ParseWith(arguments, given);
    ASSERT_TRUE(outcome.flags.has_value()) << outcome.output;
    EXPECT_EQ(outcome.flags->server.engine.max_jobs, 3);
    EXPECT_EQ(outcome.flags->server.engine.max_matrices, 2);
    EXPECT_EQ(outcome.flags->server.engine.copy_threads, 1);
    EXPECT_EQ(outcome.flags->server.engine.streams_per_device, 4);
  }
}

TEST(Flags, TheLastOfSeveralCounts) {
  const FlagOutcome outcome = ParseWith({"--max-jobs=3", "--max-jobs=4"});
  ASSERT_TRUE(outcome.flags.has_value());
  EXPECT_EQ(outcome.flags->server.engine.max_jobs, 4);
}

struct WrongFlag {
  std::vector<std::string> arguments;
  Variables variables;
  std::vector<std::string> sentence;
};

TEST(Flags, WrongValuesNameTheFlagTheValueAndWhatIsAllowed) {
  const std::string bad_value = WriteFile("bad_value.flags", "devices=host\nmax-jobs=many\n");
  const std::string bad_name = WriteFile("bad_name.flags", "max-job=1\n");
  const std::string bad_line = WriteFile("bad_line.flags", "max-jobs 1\n");
  const WrongFlag table[] = {
      {{"--max-jobs=0"}, {}, {"--max-jobs: '0'", "1 to 10000000"}},
      {{"--max-jobs=ten"}, {}, {"--max-jobs: 'ten'", "whole number"}},
      {{"--max-jobs="}, {}, {"--max-jobs: ''"}},
      {{"--max-jobs=99999999999999999999"}, {}, {"--max-jobs", "whole number"}},
      {{"--staging-bytes=12XB"}, {}, {"--staging-bytes: '12XB'", "256MiB"}},
      {{"--staging-bytes=99999999TiB"}, {}, {"--staging-bytes: '99999999TiB'"}},
      {{"--benchmark-memory=1KiB"}, {}, {"--benchmark-memory: '1KiB'", "1MiB to 1TiB"}},
      {{"--benchmark-limit=25h"}, {}, {"--benchmark-limit: '25h'", "0 to 24h"}},
      {{"--drain-timeout=30 s"}, {}, {"--drain-timeout: '30 s'", "30s", "is in seconds"}},
      {{"--drain-timeout=inf"}, {}, {"--drain-timeout: 'inf'"}},
      {{"--drain-timeout=nan"}, {}, {"--drain-timeout: 'nan'"}},
      {{"--store-bytes=5"}, {}, {"--store-bytes: '5'", "0, or a size from 1MiB to 1TiB"}},
      {{"--device-memory-bytes=5KiB"}, {}, {"--device-memory-bytes: '5KiB'", "0, or a size"}},
      {{"--store-bytes=x"}, {}, {"--store-bytes: 'x'"}},
      {{"--drain-timeout=-1s"}, {}, {"--drain-timeout: '-1s'"}},
      {{"--verify=sometimes"}, {}, {"--verify: 'sometimes'", "off, sampled, always"}},
      {{"--verify-sample-rate=1.5"}, {}, {"--verify-sample-rate: '1.5'", "0 to 1"}},
      {{"--verify-sample-rate=nan"}, {}, {"--verify-sample-rate: 'nan'", "0 to 1"}},
      {{"--log-format=xml"}, {}, {"--log-format: 'xml'", "text, json"}},
      {{"--max-message-bytes=64KiB"}, {}, {"--max-message-bytes: '64KiB'", "from 129KiB"}},
      {{"--max-message-bytes=1MiB", "--staging-block-bytes=1MiB"},
       {},
       {"--staging-block-bytes: 1MiB"}},
      {{"--max-jbos=1"}, {}, {"--max-jbos", "did you mean --max-jobs?"}},
      {{"--foo"}, {}, {"unknown flag --foo; gemmd --help lists them"}},
      {{"--address=nope"}, {}, {"--address: 'nope': there is no port", "127.0.0.1:50051"}},
      {{"--address=127.0.0.1:99999"}, {}, {"--address", "'99999' is no port", "0 to 65535"}},
      {{"--address=127.0.0.1:http"}, {}, {"'http' is no port"}},
      {{"--address=127.0.0.1: 1"}, {}, {"' 1' is no port"}},
      {{"--address= 127.0.0.1:1"}, {}, {"' 127.0.0.1' is no host"}},
      {{"--address=::1:80"}, {}, {"'::1' is no host", "[::1]:50051"}},
      {{"--address="}, {}, {"--address: ''"}},
      {{"--address=unix:"}, {}, {"the path has 0 bytes"}},
      {{"--address=unix:/" + std::string(107, 'x')}, {}, {"the path has 108 bytes", "1 to 107"}},
      {{"--metrics-address=:9464"}, {}, {"--metrics-address: ':9464': '' is no host"}},
      {{"--metrics-address=unix:/x"}, {}, {"--metrics-address: 'unix:/x'"}},
      {{"--metrics-address=localhost:70000"}, {}, {"'70000' is no port"}},
      {{}, {{"GEMMD_ADDRESS", "host:"}}, {"GEMMD_ADDRESS (--address): 'host:': '' is no port"}},
      {{}, {{"GEMMD_MAX_JOBS", ""}}, {"GEMMD_MAX_JOBS (--max-jobs): ''"}},
      {{"--flagfile=" + testing::TempDir()}, {}, {"--flagfile: ", "Is a directory"}},
      {{"--flagfile="}, {}, {"--flagfile: ''"}},
      {{}, {{"GEMMD_FLAGFILE", ""}}, {"GEMMD_FLAGFILE (--flagfile): ''"}},
      {{"serve"}, {}, {"'serve' is not a flag"}},
      {{"--flagfile=/nowhere/at/all"}, {}, {"--flagfile: '/nowhere/at/all'"}},
      {{"--flagfile=" + bad_value}, {}, {"bad_value.flags line 2: --max-jobs: 'many'"}},
      {{"--flagfile=" + bad_name},
       {},
       {"bad_name.flags line 1: unknown flag --max-job;", "--max-jobs"}},
      {{"--flagfile=" + bad_line}, {}, {"bad_line.flags line 1: 'max-jobs 1'", "name=value"}},
      {{}, {{"GEMMD_MAX_JOBS", "x"}}, {"GEMMD_MAX_JOBS (--max-jobs): 'x'"}},
  };
  for (const WrongFlag& wrong : table) {
    const FlagOutcome outcome = ParseWith(wrong.arguments, wrong.variables);
    EXPECT_FALSE(outcome.flags.has_value());
    EXPECT_EQ(outcome.exit_code, kExitUsage);
    for (const std::string& part : wrong.sentence) EXPECT_THAT(outcome.output, HasSubstr(part));
  }
}

TEST(Flags, HelpNamesEveryFlagItsDefaultAndTeaches) {
  const FlagOutcome outcome = ParseWith({"--help"});
  EXPECT_FALSE(outcome.flags.has_value());
  EXPECT_EQ(outcome.exit_code, kExitOk);
  for (const FlagRow& row : FlagTable()) EXPECT_THAT(outcome.output, HasSubstr("--" + row.name));
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("Examples:"), HasSubstr("GEMMD_MAX_JOBS"),
                                    HasSubstr("[256MiB]"), HasSubstr("TLS")));
  for (const absl::string_view line : absl::StrSplit(outcome.output, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Flags, EveryDefaultIsAllowed) {
  for (const FlagRow& row : FlagTable()) {
    Flags flags;
    const std::string value = row.get(flags);
    EXPECT_TRUE(row.set(value, flags).ok()) << row.name << "=" << value;
    EXPECT_EQ(row.get(flags), value);
  }
}

// "a size from 0 to 64KiB, such as 512KiB" sends the reader in circles.
TEST(Flags, WhatAnErrorSaysIsAllowedIsAllowed) {
  for (const FlagRow& row : FlagTable()) {
    if (row.kind != "SIZE" && row.kind != "TIME" && row.kind != "N") continue;
    std::vector<std::string> said;
    for (const absl::string_view word :
         absl::StrSplit(row.allowed, absl::ByAnyChar(" ,;"), absl::SkipEmpty())) {
      if (absl::ascii_isdigit(word[0])) said.emplace_back(word);
    }
    EXPECT_GE(said.size(), 2u) << row.name << ": " << row.allowed;
    for (const std::string& value : said) {
      Flags flags;
      EXPECT_EQ(row.set(value, flags), absl::OkStatus()) << row.name;
    }
  }
}

TEST(Flags, ANumberAloneIsATimeInSeconds) {
  const FlagOutcome outcome = ParseWith({"--drain-timeout=90", "--completion-spin=0.5"});
  ASSERT_TRUE(outcome.flags.has_value()) << outcome.output;
  EXPECT_EQ(outcome.flags->drain_timeout, absl::Seconds(90));
  EXPECT_EQ(outcome.flags->server.engine.completion_spin, absl::Milliseconds(500));
}

// The page of the reference is made from the text, so that it is no sum of pieces.
TEST(Flags, TheHelpOfTheJobTimeoutSaysWhatTheLimitIs) {
  const auto row = std::find_if(FlagTable().begin(), FlagTable().end(),
                                [](const FlagRow& x) { return x.name == "job-timeout"; });
  ASSERT_NE(row, FlagTable().end());
  EXPECT_THAT(row->help,
              HasSubstr(absl::StrCat("1s for ", kSlowestCuda / 1e9, " GFLOP on a GPU, for ",
                                     kSlowestHost / 1e6, " MFLOP on a host device")));
}

TEST(Flags, Version) {
  const FlagOutcome outcome = ParseWith({"--version"});
  EXPECT_EQ(outcome.exit_code, kExitOk);
  EXPECT_THAT(outcome.output, HasSubstr("gemmd " GEMMD_VERSION));
}

TEST(FlagValues, SizesReadBack) {
  EXPECT_EQ(files::ParseSize("0"), 0u);
  EXPECT_EQ(files::ParseSize("17"), 17u);
  EXPECT_EQ(files::ParseSize("17B"), 17u);
  EXPECT_EQ(files::ParseSize(" 2 KiB "), 2048u);
  EXPECT_EQ(files::ParseSize("3GiB"), 3 * kGiB);
  EXPECT_EQ(files::ParseSize("1.5GiB"), 3 * kGiB / 2);
  EXPECT_EQ(files::ParseSize("2GB"), 2'000'000'000u);
  EXPECT_EQ(files::ParseSize("9223372036854775807"), size_t{9223372036854775807u});
  for (const char* wrong : {"", "KiB", "-1", "1.5", "0.3KiB", "1.2.3KiB", ".", "1kb", "0x10", "1e3",
                            "16777216TiB", "9223372036854775808"}) {
    EXPECT_EQ(files::ParseSize(wrong), std::nullopt) << wrong;
  }
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, kKiB, 3 * kMiB, 5 * kGiB}) {
    EXPECT_EQ(files::ParseSize(files::FormatSize(bytes)), bytes);
  }
}

TEST(Flags, VariablesThatNameNoFlagAreSaid) {
  const char* const variables[] = {
      "GEMMD_MAX_JOB=5", "GEMMD_CALLER_FILE=/etc/x", "GEMMD_ADDRES=:1", "GEMMD_FLAGFILES",
      "GEMMD_FOO=1",
      // No flag's, and meant so.
      "GEMMD_MAX_JOBS=5", "GEMMD_FLAGFILE=x", "GEMMD_TOKEN=x", "GEMMD_TOKEN_FILE=x",
      "GEMMD_PORT=tcp://10.0.0.1:50051", "GEMMD_PORT_50051_TCP=tcp://10.0.0.1:50051",
      "GEMMD_PORT_50051_TCP_ADDR=10.0.0.1", "GEMMD_SERVICE_HOST=10.0.0.1",
      "GEMMD_SERVICE_PORT=50051", "GEMMD_METRICS_PORT=9464", "GEMMD_COMMIT=unknown", "MAX_JOB=5",
      "GEMMD_LAB_SERVICE_HOST=10.0.0.2", nullptr};
  std::string found;
  for (const UnknownVariable& one : UnknownVariables(variables)) {
    found += one.name + ">" + one.meant + " ";
  }
  EXPECT_EQ(found,
            "GEMMD_MAX_JOB>GEMMD_MAX_JOBS GEMMD_CALLER_FILE>GEMMD_CALLERS_FILE "
            "GEMMD_ADDRES>GEMMD_ADDRESS GEMMD_FLAGFILES>GEMMD_FLAGFILE GEMMD_FOO> ");
}

}  // namespace
}  // namespace gemmd
