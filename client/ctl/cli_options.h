// Command-line options whose words are converted by our own parsers.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

namespace gemmd::ctl {

// The file name that means standard output.
inline constexpr const char* kStandardOutput = "-";

// The parsed word; throws CLI::ValidationError, which names the option, where
// `parse` (absl::string_view to StatusOr) refuses it.
template <typename Parser>
auto ParsedWord(const std::string& option, Parser parse, const std::string& word) {
  auto value = parse(word);
  if (!value.ok()) throw CLI::ValidationError(option, std::string(value.status().message()));
  return *std::move(value);
}

// An option whose one word is parsed by `parse` into `target`, which outlives `app`.
template <typename T, typename Parser>
CLI::Option* AddParsed(CLI::App& app, const std::string& option, T& target, Parser parse,
                       const std::string& help) {
  return app.add_option_function<std::string>(
      option,
      [option, parse, &target](const std::string& word) {
        target = ParsedWord(option, parse, word);
      },
      help);
}

// The same for an option that may come several times; each takes one word.
template <typename T, typename Parser>
CLI::Option* AddParsedList(CLI::App& app, const std::string& option, std::vector<T>& target,
                           Parser parse, const std::string& help) {
  return app
      .add_option_function<std::vector<std::string>>(
          option,
          [option, parse, &target](const std::vector<std::string>& words) {
            target.clear();
            for (const std::string& word : words) {
              target.push_back(ParsedWord(option, parse, word));
            }
          },
          help)
      ->take_all()
      ->allow_extra_args(false);
}

}  // namespace gemmd::ctl
