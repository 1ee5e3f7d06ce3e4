// Command-line options whose words are converted by our own parsers.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "files/output_file.h"

namespace gemmd::ctl {

// The parsed word; throws CLI::ValidationError, which names the option, where
// `parse` (absl::string_view to StatusOr) refuses it.
template <typename Parser>
auto ParsedWord(const std::string& option, Parser parse, const std::string& word) {
  auto value = parse(word);
  if (!value.ok()) throw CLI::ValidationError(option, std::string(value.status().message()));
  return *std::move(value);
}

// The value of the word. INVALID_ARGUMENT lists the allowed ones.
template <typename T, size_t kCount>
absl::StatusOr<T> OneOf(absl::string_view word, const std::pair<const char*, T> (&words)[kCount]) {
  std::string names;
  for (const auto& [name, value] : words) {
    if (word == name) return value;
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", word, "' is not one of ", names));
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

// The error of an option that names a .npy file to write; empty if there is none.
inline std::string CheckMatrixFile(const std::string& path) {
  if (!files::IsTerminal(path)) return "";
  return absl::StrCat("'", path,
                      "' is a terminal, and a .npy file is no text: name a file, or "
                      "redirect standard output");
}

}  // namespace gemmd::ctl
