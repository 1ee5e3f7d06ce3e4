// Tuning tables as text. The form is described in gemm/tuning.h.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gemm/kernel.h"
#include "gemm/quote.h"
#include "gemm/tuning.h"

namespace gemm {
namespace {

constexpr absl::string_view kFirstLine = "gemmd tuning table 1";
constexpr size_t kMaxFieldBytes = 128;
constexpr double kMaxSeconds = 1e6;

using Word = std::pair<absl::string_view, absl::string_view>;  // field, value

absl::Status WrongField(absl::string_view field, absl::string_view value,
                        absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", Quoted(value), "; it must be ", allowed));
}

absl::StatusOr<std::vector<Word>> WordsOf(absl::string_view line) {
  std::vector<Word> words;
  for (const absl::string_view word :
       absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    const size_t equals = word.find('=');
    if (equals == word.npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(word), " is no field; write NAME=VALUE"));
    }
    words.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return words;
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxFieldBytes &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsFieldText(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxFieldBytes &&
         std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return absl::ascii_iscntrl(c); });
}

absl::StatusOr<Machine> ParseMachine(absl::string_view line) {
  Machine machine;
  const size_t at = line.find("device=");
  if (at == line.npos) return absl::InvalidArgumentError("device is missing; it comes last");
  machine.device = std::string(absl::StripAsciiWhitespace(line.substr(at + 7)));
  const auto words = WordsOf(line.substr(0, at));
  if (!words.ok()) return words.status();
  for (const auto& [field, value] : *words) {
    std::string* const place = field == "driver"    ? &machine.driver
                               : field == "cuda"    ? &machine.cuda
                               : field == "library" ? &machine.library
                                                    : nullptr;
    if (place == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no field ", Quoted(field), " of a machine; there are driver, cuda, library, device"));
    }
    *place = std::string(value);
    if (!IsFieldText(value)) return WrongField(field, value, "1 to 128 printable characters");
  }
  if (!IsFieldText(machine.device)) {
    return WrongField("device", machine.device, "1 to 128 printable characters");
  }
  return machine;
}

absl::Status SetTypes(absl::string_view value, TunedProduct& product) {
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ':');
  const auto wrong = [&] {
    return WrongField("types", value, "A:B:D:COMPUTE, such as f16:f16:f16:f32");
  };
  if (parts.size() != 4) return wrong();
  const auto a = ParseDType(parts[0]), b = ParseDType(parts[1]), d = ParseDType(parts[2]);
  const auto compute = ParseCompute(parts[3]);
  if (!a || !b || !d || !compute) return wrong();
  product.a = *a;
  product.b = *b;
  product.d = *d;
  product.compute = *compute;
  return absl::OkStatus();
}

absl::Status SetLayout(absl::string_view value, TunedProduct& product) {
  if (value.size() != 2 || value.find_first_not_of("nt") != value.npos) {
    return WrongField("layout", value, "nn, nt, tn or tt");
  }
  product.trans_a = value[0] == 't';
  product.trans_b = value[1] == 't';
  return absl::OkStatus();
}

absl::Status SetEpilogue(absl::string_view value, TunedProduct& product) {
  for (const EpilogueClass epilogue : {EpilogueClass::kPlain, EpilogueClass::kFull}) {
    if (Name(epilogue) != value) continue;
    product.epilogue = epilogue;
    return absl::OkStatus();
  }
  return WrongField("epilogue", value, "plain or full");
}

absl::Status SetShape(absl::string_view value, TunedProduct& product) {
  const std::vector<absl::string_view> parts = absl::StrSplit(value, 'x');
  int64_t* const dims[] = {&product.m, &product.n, &product.k};
  bool right = parts.size() == 3;
  for (size_t i = 0; right && i < parts.size(); ++i) {
    right = absl::SimpleAtoi(parts[i], dims[i]) && *dims[i] >= 1 && *dims[i] <= kMaxTuningDimension;
  }
  if (right) return absl::OkStatus();
  return WrongField("shape", value, absl::StrCat("MxNxK, each 1 to ", kMaxTuningDimension));
}

absl::Status SetSeconds(absl::string_view value, TunedChoice& choice) {
  if (absl::SimpleAtod(value, &choice.seconds) && choice.seconds > 0 &&
      choice.seconds <= kMaxSeconds) {
    return absl::OkStatus();
  }
  return WrongField("seconds", value, "a number above 0, at most 1e6");
}

// A word after `kernel`.
absl::Status AddParam(const Word& word, TunedChoice& choice) {
  int64_t value = 0;
  if (!IsName(word.first)) {
    return WrongField("the name of a launch parameter", word.first,
                      "1 to 128 letters, digits and _");
  }
  if (!absl::SimpleAtoi(word.second, &value)) {
    return WrongField(word.first, word.second, "a whole number");
  }
  if (choice.params.size() == kMaxParams) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxParams, " launch parameters after kernel"));
  }
  if (choice.params.emplace(word.first, value).second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(word.first, " is given twice"));
}

struct ProductLine {
  TunedProduct product;
  TunedChoice choice;
};

absl::StatusOr<ProductLine> ParseProduct(absl::string_view line) {
  constexpr absl::string_view kFields[] = {"types", "layout",  "epilogue",
                                           "shape", "seconds", "kernel"};
  const auto words = WordsOf(line);
  if (!words.ok()) return words.status();
  ProductLine parsed{};
  for (size_t i = 0; i < words->size(); ++i) {
    const auto& [field, value] = (*words)[i];
    absl::Status status;
    if (i >= std::size(kFields)) {
      status = AddParam((*words)[i], parsed.choice);
    } else if (field != kFields[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("field ", i + 1, " is ", Quoted(field), "; it must be ", kFields[i]));
    } else if (i == 0) {
      status = SetTypes(value, parsed.product);
    } else if (i == 1) {
      status = SetLayout(value, parsed.product);
    } else if (i == 2) {
      status = SetEpilogue(value, parsed.product);
    } else if (i == 3) {
      status = SetShape(value, parsed.product);
    } else if (i == 4) {
      status = SetSeconds(value, parsed.choice);
    } else {
      parsed.choice.kernel = std::string(value);
      if (!IsName(value)) status = WrongField(field, value, "1 to 128 letters, digits and _");
    }
    if (!status.ok()) return status;
  }
  if (words->size() < std::size(kFields)) {
    return absl::InvalidArgumentError(absl::StrCat(kFields[words->size()], " is missing"));
  }
  return parsed;
}

// Takes the lines one by one.
class TableReader {
 public:
  absl::Status Take(absl::string_view line) {
    if (line.size() > kMaxTuningLineBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the line has ", line.size(), " bytes; it may have up to ", kMaxTuningLineBytes));
    }
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') return absl::OkStatus();
    if (!begun_) {
      begun_ = line == kFirstLine;
      return begun_ ? absl::OkStatus() : WrongField("the first line", line, Quoted(kFirstLine));
    }
    if (absl::ConsumePrefix(&line, "machine ")) {
      absl::StatusOr<Machine> machine = ParseMachine(line);
      if (!machine.ok()) return machine.status();
      machine_ = *std::move(machine);
      return absl::OkStatus();
    }
    absl::StatusOr<ProductLine> product = ParseProduct(line);
    if (!product.ok()) return product.status();
    if (machine_.device.empty()) {
      return absl::InvalidArgumentError("a product before the first machine");
    }
    return table_.Put(machine_, product->product, std::move(product->choice));
  }

  bool begun() const { return begun_; }
  TuningTable table() && { return std::move(table_); }

 private:
  bool begun_ = false;
  Machine machine_;
  TuningTable table_;
};

}  // namespace

absl::StatusOr<TuningTable> ParseTuningTable(absl::string_view text, absl::string_view source) {
  if (text.size() > kMaxTuningBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", text.size(), " bytes; a tuning table has up to ", kMaxTuningBytes));
  }
  TableReader reader;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::Status status = reader.Take(line);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, " line ", number, ": ", status.message()));
    }
  }
  if (reader.begun()) return std::move(reader).table();
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": no tuning table; its first line is ", Quoted(kFirstLine)));
}

std::string FormatTuningTable(const TuningTable& table) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const auto& [machine, products] : table.entries()) {
    absl::StrAppend(&text, "\nmachine driver=", machine.driver, " cuda=", machine.cuda,
                    " library=", machine.library, " device=", machine.device, "\n");
    for (const auto& [p, choice] : products) {
      absl::StrAppend(&text, "types=", Name(p.a), ":", Name(p.b), ":", Name(p.d), ":",
                      Name(p.compute));
      absl::StrAppend(&text, " layout=", p.trans_a ? "t" : "n", p.trans_b ? "t" : "n",
                      " epilogue=", Name(p.epilogue), " shape=", p.m, "x", p.n, "x", p.k,
                      " seconds=", choice.seconds, " kernel=", choice.kernel);
      for (const auto& [name, value] : choice.params) {
        absl::StrAppend(&text, " ", name, "=", value);
      }
      absl::StrAppend(&text, "\n");
    }
  }
  return text;
}

}  // namespace gemm
