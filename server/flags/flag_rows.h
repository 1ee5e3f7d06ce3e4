// A row of the table of flags, and how one is made, by the kind of its value.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "files/size_text.h"
#include "server/flags/flag_values.h"
#include "server/identity/method_rules.h"

namespace gemmd {

struct Flags;  // flags.h

struct FlagRow {
  std::string name;   // without dashes: "max-jobs"
  std::string group;  // of --help
  std::string kind;   // "SIZE"
  std::string help;
  std::string allowed;  // "1 to 1000"
  // INVALID_ARGUMENT that gives the value and what is allowed.
  std::function<absl::Status(absl::string_view text, Flags& flags)> set;
  // The value as `set` takes it.
  std::function<std::string(const Flags& flags)> get;
};

namespace flag_rows {

// The fields of all rows, of every kind.
struct About {
  std::string name;
  std::string group;
  std::string help;
};

inline absl::Status NotAllowed(absl::string_view text, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "'; allowed: ", allowed));
}

// Of `texts` those that lie in [min, max], for a sentence: ", such as 200us or 30s".
template <typename Value, typename Parse>
std::string SuchAs(std::initializer_list<const char*> texts, Parse parse, Value min, Value max) {
  std::vector<std::string> fit;
  for (const char* text : texts) {
    if (const auto value = parse(text); *value >= min && *value <= max) fit.emplace_back(text);
  }
  if (fit.empty()) return "";
  const std::string last = std::move(fit.back());
  fit.pop_back();
  return absl::StrCat(", such as ", absl::StrJoin(fit, ", "), fit.empty() ? "" : " or ", last);
}

// A flag whose text is parsed by `parse` into a value of [min, max]. `field` returns
// the field of Flags for it, `format` its text.
template <typename Value, typename Field, typename Parse, typename Format>
FlagRow Ranged(About about, std::string kind, std::string allowed, Field field, Parse parse,
               Format format, Value min, Value max) {
  return FlagRow{
      .name = std::move(about.name),
      .group = std::move(about.group),
      .kind = std::move(kind),
      .help = std::move(about.help),
      .allowed = allowed,
      .set = [=](absl::string_view text, Flags& flags) -> absl::Status {
        const auto value = parse(text);
        if (!value.has_value() || *value < min || *value > max) return NotAllowed(text, allowed);
        auto& place = field(flags);
        place = static_cast<std::decay_t<decltype(place)>>(*value);
        return absl::OkStatus();
      },
      .get = [=](const Flags& flags) { return format(field(const_cast<Flags&>(flags))); },
  };
}

inline std::string SizesFrom(size_t min, size_t max) {
  return absl::StrCat("a size from ", files::FormatSize(min), " to ", files::FormatSize(max),
                      SuchAs({"4KiB", "512KiB", "256MiB", "2GiB"}, &files::ParseSize, min, max));
}

template <typename Field>
FlagRow Size(About about, Field field, size_t min, size_t max) {
  return Ranged<size_t>(std::move(about), "SIZE", SizesFrom(min, max), field, &files::ParseSize,
                        &files::FormatSize, min, max);
}

// A size, or 0, which stands for something else.
template <typename Field>
FlagRow SizeOrZero(About about, Field field, size_t min, size_t max) {
  const auto parse = [min](absl::string_view text) {
    const std::optional<size_t> size = files::ParseSize(text);
    return size.value_or(1) != 0 && size.value_or(0) < min ? std::nullopt : size;
  };
  return Ranged<size_t>(std::move(about), "SIZE", absl::StrCat("0, or ", SizesFrom(min, max)),
                        field, parse, &files::FormatSize, 0, max);
}

template <typename Field>
FlagRow Count(About about, Field field, int min, int max) {
  return Ranged<int64_t>(
      std::move(about), "N", absl::StrCat("a whole number from ", min, " to ", max), field,
      &ParseInteger, [](int value) { return absl::StrCat(value); }, min, max);
}

// A number from 0 to 1.
template <typename Field>
FlagRow Share(About about, Field field) {
  return Ranged<double>(
      std::move(about), "SHARE", "a number from 0 to 1, such as 0.01", field, &ParseNumber,
      [](double value) { return absl::StrCat(value); }, 0.0, 1.0);
}

template <typename Field>
FlagRow Duration(About about, Field field, absl::Duration min, absl::Duration max) {
  return Ranged<absl::Duration>(
      std::move(about), "TIME",
      absl::StrCat("a duration from ", absl::FormatDuration(min), " to ", absl::FormatDuration(max),
                   SuchAs({"200us", "500ms", "30s", "5m"}, &ParseDurationText, min, max),
                   "; a number alone is in seconds"),
      field, &ParseDurationText, &absl::FormatDuration, min, max);
}

// Why a text is not allowed.
using CheckText = absl::Status (*)(absl::string_view text);

template <typename Field>
FlagRow Text(About about, std::string kind, std::string allowed, Field field,
             CheckText check = nullptr) {
  return FlagRow{
      .name = std::move(about.name),
      .group = std::move(about.group),
      .kind = std::move(kind),
      .help = std::move(about.help),
      .allowed = allowed,
      .set = [=](absl::string_view text, Flags& flags) -> absl::Status {
        if (const absl::Status status = check == nullptr ? absl::OkStatus() : check(text);
            !status.ok()) {
          return absl::InvalidArgumentError(
              absl::StrCat("'", text, "': ", status.message(), "; allowed: ", allowed));
        }
        field(flags) = std::string(text);
        return absl::OkStatus();
      },
      .get = [=](const Flags& flags) { return field(const_cast<Flags&>(flags)); },
  };
}

template <typename Value>
using Names = std::vector<std::pair<std::string, Value>>;

template <typename Value, typename Field>
FlagRow Choice(About about, Names<Value> names, Field field) {
  const std::string allowed =
      absl::StrJoin(names, ", ", [](std::string* out, const auto& name) { *out += name.first; });
  return FlagRow{
      .name = std::move(about.name),
      .group = std::move(about.group),
      .kind = "NAME",
      .help = std::move(about.help),
      .allowed = allowed,
      .set = [=](absl::string_view text, Flags& flags) -> absl::Status {
        for (const auto& [name, value] : names) {
          if (name != text) continue;
          field(flags) = value;
          return absl::OkStatus();
        }
        return NotAllowed(text, allowed);
      },
      .get = [=](const Flags& flags) -> std::string {
        for (const auto& [name, value] : names) {
          if (field(const_cast<Flags&>(flags)) == value) return name;
        }
        return "";
      },
  };
}

// A file, or nothing.
template <typename Field>
FlagRow File(About about, Field field) {
  return Text(std::move(about), "PATH", "nothing, or the path of a file", field);
}

// The callers of a service.
template <typename Field>
FlagRow Access(About about, Field field) {
  const std::string allowed = "call, matrices, benchmark, metrics, admin, anyone, off";
  return FlagRow{
      .name = std::move(about.name),
      .group = std::move(about.group),
      .kind = "WHO",
      .help = std::move(about.help),
      .allowed = allowed,
      .set = [=](absl::string_view text, Flags& flags) -> absl::Status {
        const absl::StatusOr<MethodRule> rule = ParseMethodRule(text);
        if (!rule.ok()) return NotAllowed(text, allowed);
        field(flags) = *rule;
        return absl::OkStatus();
      },
      .get = [=](const Flags& flags) { return ToString(field(const_cast<Flags&>(flags))); }};
}

}  // namespace flag_rows
}  // namespace gemmd
