// The header of a .npy file: a magic string, a version, a length, and a Python
// dictionary literal with exactly the keys descr, fortran_order and shape
// (NumPy enhancement proposal 1 and numpy.lib.format).

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemmd/client/npy.h"

namespace gemmd::client {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kPrefixBytes = 8;  // the magic and two version bytes
constexpr size_t kDataAlignment = 64;

constexpr absl::string_view kAllowedDescrs =
    "; it must be one of <f8, <f4, <f2, |i1, <i4, <V2 (bf16), <V1 (e4m3) and <f1 (e5m2), or "
    "big-endian: >f8, >f4, >f2 and >i4";

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Quotes what a file had, cut to a length that fits a message.
std::string Quote(absl::string_view text) {
  constexpr size_t kMost = 64;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMost)),
                      text.size() > kMost ? "..." : "", "'");
}

// Reads the dictionary literal from left to right. Every read checks the end.
class Dictionary {
 public:
  explicit Dictionary(absl::string_view text) : rest_(text) {}

  absl::Status Read();

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

 private:
  void SkipSpace() {
    while (!rest_.empty() &&
           (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r')) {
      rest_.remove_prefix(1);
    }
  }
  bool Take(char wanted) {
    SkipSpace();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  absl::Status Expect(char wanted) {
    if (Take(wanted)) return absl::OkStatus();
    return Bad(absl::StrCat("the header has ", Quote(rest_), " where '", std::string(1, wanted),
                            "' belongs"));
  }
  absl::StatusOr<std::string> String();
  absl::StatusOr<std::string> Descr();
  absl::StatusOr<bool> Bool();
  absl::StatusOr<int64_t> Integer();
  absl::StatusOr<std::vector<int64_t>> Tuple();
  absl::Status Value(absl::string_view key);

  absl::string_view rest_;
};

absl::StatusOr<std::string> Dictionary::String() {
  SkipSpace();
  if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) {
    return Bad(absl::StrCat("the header has ", Quote(rest_), " where a quoted string belongs"));
  }
  const char quote = rest_[0];
  const size_t end = rest_.find(quote, 1);
  if (end == absl::string_view::npos) return Bad("the header has a string without an end");
  std::string value(rest_.substr(1, end - 1));
  rest_.remove_prefix(end + 1);
  return value;
}

// Up to the comma or the bracket that ends a value, such as "[('x', '<f4')]".
absl::string_view FirstValue(absl::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[' || c == '(' || c == '{') ++depth;
    if (depth == 0 && (c == ',' || c == '}')) return text.substr(0, i);
    if (c == ']' || c == ')' || c == '}') --depth;
  }
  return text;
}

absl::StatusOr<std::string> Dictionary::Descr() {
  SkipSpace();
  if (!rest_.empty() && (rest_[0] == '\'' || rest_[0] == '"')) return String();
  const char* const what = absl::StartsWith(rest_, "[") ? ", a structured type" : "";
  return Bad(absl::StrCat("descr is ", Quote(FirstValue(rest_)), what, kAllowedDescrs));
}

absl::StatusOr<bool> Dictionary::Bool() {
  SkipSpace();
  for (const bool value : {false, true}) {
    const absl::string_view word = value ? "True" : "False";
    if (absl::StartsWith(rest_, word)) {
      rest_.remove_prefix(word.size());
      return value;
    }
  }
  return Bad(absl::StrCat("fortran_order is ", Quote(rest_), "; it must be True or False"));
}

absl::StatusOr<int64_t> Dictionary::Integer() {
  SkipSpace();
  int64_t value = 0;
  size_t digits = 0;
  while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
    const int digit = rest_[digits++] - '0';
    if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) {
      return Bad("shape has a number above 2^63 - 1");
    }
    value = value * 10 + digit;
  }
  // A leading 0 is no number to Python.
  if (digits == 0 || (digits > 1 && rest_[0] == '0')) {
    return Bad(absl::StrCat("shape has ", Quote(rest_), " where a number of at least 0 belongs"));
  }
  rest_.remove_prefix(digits);
  return value;
}

absl::StatusOr<std::vector<int64_t>> Dictionary::Tuple() {
  if (absl::Status status = Expect('('); !status.ok()) return status;
  std::vector<int64_t> values;
  while (!Take(')')) {
    absl::StatusOr<int64_t> value = Integer();
    if (!value.ok()) return value.status();
    values.push_back(*value);
    if (!Take(',')) {
      if (absl::Status status = Expect(')'); !status.ok()) return status;
      break;
    }
  }
  return values;
}

absl::Status Dictionary::Value(absl::string_view key) {
  const auto put = [](auto read, auto& field) -> absl::Status {
    if (!read.ok()) return read.status();
    field = *std::move(read);
    return absl::OkStatus();
  };
  if (key == "descr") return put(Descr(), descr);
  if (key == "fortran_order") return put(Bool(), fortran_order);
  if (key == "shape") return put(Tuple(), shape);
  return Bad(absl::StrCat("the header has the key ", Quote(key),
                          "; it must have descr, fortran_order and shape"));
}

absl::Status Dictionary::Read() {
  if (absl::Status status = Expect('{'); !status.ok()) return status;
  while (!Take('}')) {
    absl::StatusOr<std::string> key = String();
    if (!key.ok()) return key.status();
    if (absl::Status status = Expect(':'); !status.ok()) return status;
    if (absl::Status status = Value(*key); !status.ok()) return status;
    if (!Take(',')) {
      if (absl::Status status = Expect('}'); !status.ok()) return status;
      break;
    }
  }
  SkipSpace();
  if (!rest_.empty()) {
    return Bad(absl::StrCat("the header has ", Quote(rest_), " after its dictionary"));
  }
  if (!descr || !fortran_order || !shape) {
    return Bad(absl::StrCat("the header lacks ",
                            !descr           ? "descr"
                            : !fortran_order ? "fortran_order"
                                             : "shape",
                            "; it must have descr, fortran_order and shape"));
  }
  return absl::OkStatus();
}

// What a descr leaves open: nothing; little, as ml_dtypes writes it for one type alone, and a hint
// may say another of the size; all, as ml_dtypes writes it for a dozen, and a hint has to say one.
enum class OpenType { kNot, kALittle, kAll };

struct DescrRow {
  absl::string_view descr;  // without its byte order
  DataType type;            // of those that are written
  OpenType open;
};
constexpr DescrRow kDescrs[] = {
    {"f8", kF64, OpenType::kNot},    {"f4", kF32, OpenType::kNot},
    {"f2", kF16, OpenType::kNot},    {"i1", kS8, OpenType::kNot},
    {"i4", kS32, OpenType::kNot},    {"V2", kBF16, OpenType::kALittle},
    {"V1", kF8E4M3, OpenType::kAll}, {"f1", kF8E5M2, OpenType::kNot},
};

struct Elements {
  DataType type;
  bool big_endian;
};

absl::StatusOr<Elements> ElementsOf(absl::string_view descr, std::optional<DataType> hint) {
  const auto refuse = [&](absl::string_view why) {
    return Bad(absl::StrCat("descr is ", Quote(descr), why, kAllowedDescrs));
  };
  // Without an order, and with = or |, that of this machine.
  constexpr absl::string_view kOrders = "<>=|";
  const bool ordered = !descr.empty() && absl::StrContains(kOrders, descr[0]);
  const char order = ordered ? descr[0] : '=';
  for (const DescrRow& row : kDescrs) {
    if (row.descr != descr.substr(ordered ? 1 : 0)) continue;
    const bool one_byte = SizeOf(row.type) == 1;
    const bool native_is_big = std::endian::native == std::endian::big;
    const bool big_endian = !one_byte && (order == '>' || (order != '<' && native_is_big));
    const bool open = row.open != OpenType::kNot;
    // numpy reads these bytes as they are: nobody says what their order is.
    if (big_endian && open) return refuse(", which is big-endian");
    if (!hint && row.open == OpenType::kAll) {
      return Bad(absl::StrCat("descr is ", Quote(descr),
                              ", which is written for every type of one byte that numpy does not "
                              "know: say which it is, e4m3, e5m2 or s8 (--npy-dtype)"));
    }
    if (!hint || *hint == row.type) return Elements{row.type, big_endian};
    if (open && SizeOf(*hint) == SizeOf(row.type)) return Elements{*hint, big_endian};
    return Bad(absl::StrCat("descr is ", Quote(descr), ", which is ",
                            row.open == OpenType::kAll ? "a type of one byte" : Name(row.type),
                            " and cannot be read as ", Name(*hint)));
  }
  return refuse("");
}

absl::StatusOr<Shape> ShapeOf(const Dictionary& header, DataType type) {
  const std::vector<int64_t>& dims = *header.shape;
  if (dims.size() > 2) {
    return Bad(absl::StrCat("the array has ", dims.size(), " dimensions; it must have at most 2"));
  }
  Shape shape{.rows = dims.size() == 2 ? dims[0] : 1,
              .cols = dims.empty() ? 1 : dims.back(),
              .dtype = type,
              .layout = *header.fortran_order ? kColumnMajor : kRowMajor};
  // One line is the same in either order; the row-major name is the usual one.
  if (dims.size() < 2) shape.layout = kRowMajor;
  if (absl::Status status = CheckShape(shape, "shape"); !status.ok()) return status;
  return shape;
}

// Where the dictionary lies, by version: 1.0 has a length of two bytes, 2.0 and
// 3.0 of four.
struct Extent {
  size_t begin;
  size_t length;
};
absl::StatusOr<Extent> FindDictionary(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "PK")) {
    return Bad("a .npz archive, and not a .npy file; save one of its arrays by itself");
  }
  if (bytes.size() < kPrefixBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return Bad("not a .npy file: it must begin with \\x93NUMPY and a version");
  }
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])); };
  const uint32_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0) {
    return Bad(absl::StrCat("format version ", major, ".", byte(7),
                            " is not known; it must be 1.0, 2.0 or 3.0"));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t begin = kPrefixBytes + length_bytes;
  if (bytes.size() < begin) return Bad("the file ends inside its header");
  uint32_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= byte(kPrefixBytes + i) << (8 * i);
  if (begin + length > kMaxNpyHeaderBytes) {
    return Bad(absl::StrCat("the header has ", length, " bytes; with its prefix it may have ",
                            kMaxNpyHeaderBytes));
  }
  if (bytes.size() - begin < length) return Bad("the file ends inside its header");
  return Extent{begin, length};
}

}  // namespace

absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view bytes, std::optional<DataType> hint) {
  absl::StatusOr<Extent> extent = FindDictionary(bytes);
  if (!extent.ok()) return extent.status();
  Dictionary dictionary(bytes.substr(extent->begin, extent->length));
  if (absl::Status status = dictionary.Read(); !status.ok()) return status;
  absl::StatusOr<Elements> elements = ElementsOf(*dictionary.descr, hint);
  if (!elements.ok()) return elements.status();
  absl::StatusOr<Shape> shape = ShapeOf(dictionary, elements->type);
  if (!shape.ok()) return shape.status();
  return NpyHeader{.shape = *shape,
                   .data_offset = extent->begin + extent->length,
                   .major_version = static_cast<uint8_t>(bytes[6]),
                   .descr = *dictionary.descr,
                   .big_endian = elements->big_endian,
                   .dimensions = static_cast<int>(dictionary.shape->size())};
}

absl::StatusOr<std::string> EncodeNpyHeader(const Shape& shape) {
  if (absl::Status status = CheckShape(shape, "shape"); !status.ok()) return status;
  std::string descr;
  for (const DescrRow& row : kDescrs) {
    if (row.type == shape.dtype) descr = absl::StrCat(row.type == kS8 ? "|" : "<", row.descr);
  }
  std::string dictionary = absl::StrCat(
      "{'descr': '", descr, "', 'fortran_order': ", shape.layout == kColumnMajor ? "True" : "False",
      ", 'shape': (", shape.rows, ", ", shape.cols, "), }");
  const size_t unpadded = kPrefixBytes + 2 + dictionary.size() + 1;
  dictionary.append((kDataAlignment - unpadded % kDataAlignment) % kDataAlignment, ' ');
  dictionary.push_back('\n');
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
             static_cast<char>(dictionary.size() >> 8)};
  return header + dictionary;
}

}  // namespace gemmd::client
