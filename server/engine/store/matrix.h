// Shapes, and the record of a resident matrix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemm/dtype.h"
#include "gemm/problem.h"

namespace gemmd {

// A matrix as stored, before any transpose.
struct Shape {
  int64_t rows = 0;
  int64_t cols = 0;
  gemm::DType type = gemm::DType::kF32;
  bool column_major = false;

  int64_t lines() const { return column_major ? cols : rows; }
  int64_t line_elements() const { return column_major ? rows : cols; }
  int64_t line_bytes() const { return line_elements() * static_cast<int64_t>(gemm::SizeOf(type)); }
  int64_t pitch_bytes() const { return gemm::PitchBytes(line_elements(), type); }
  uint64_t dense_bytes() const { return static_cast<uint64_t>(lines()) * line_bytes(); }
  uint64_t pitched_bytes() const { return static_cast<uint64_t>(lines()) * pitch_bytes(); }

  friend bool operator==(const Shape& x, const Shape& y) {
    return x.rows == y.rows && x.cols == y.cols && x.type == y.type &&
           x.column_major == y.column_major;
  }
};

// "4096x64 f16 row-major".
std::string ToString(const Shape& shape);

// OK if both dimensions are at least 1 and the pitched size is below 2^60 bytes.
// Otherwise INVALID_ARGUMENT, which names `field` ("a.shape"), the value and the bound.
absl::Status CheckShape(const Shape& shape, absl::string_view field);

// OK if a matrix of this shape can be generated from a seed. Otherwise UNIMPLEMENTED,
// which names `field` ("a.generator") and the type.
absl::Status CheckGenerator(const Shape& shape, absl::string_view field);

// A matrix, and who asks for it. Exactly one of id and name is set.
struct MatrixKey {
  std::string id;
  std::string name;
  std::string caller;
  bool shared = false;               // the name is one of the shared names
  bool any_owner = false;            // the caller may delete other callers' matrices
  std::optional<uint64_t> version;   // only this version of it
  std::optional<std::string> owner;  // only a matrix of this caller
};

struct KeepSpec {
  std::string name;  // may be empty
  std::optional<absl::Duration> ttl;
  std::string owner;
  bool shared = false;   // every caller may read it, and its name is one of the shared names
  bool replace = false;  // takes the name from the matrix that has it
  std::optional<uint64_t> if_version;  // only from this version of it; 0: from none
};

// A range of a matrix's dense form.
struct ByteSpan {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// INVALID_ARGUMENT unless the range is a part, not empty, of a matrix of `all` bytes.
absl::Status CheckRange(const ByteSpan& range, uint64_t all);

struct MatrixRecord {
  std::string id;
  std::string name;
  Shape shape;
  std::string device;
  absl::Time created;  // of the wall clock, as `expires` is
  std::optional<absl::Time> expires;
  int in_use = 0;
  std::string owner;
  bool shared = false;
  uint64_t version = 0;  // 0: not complete
  int64_t uses = 0;      // by jobs, downloads and copies since it was put
  int copies = 0;        // replicas on other devices
};

// The first matrices in two orders, of all callers.
struct MatrixExtremes {
  std::vector<MatrixRecord> largest;
  std::vector<MatrixRecord> hottest;  // with the most uses; none without any
};

// Which matrices are listed: the caller's alone, or those that the flags name.
struct MatrixQuery {
  std::string caller;
  bool shared = false;       // the shared ones, whoever owns them
  bool every_owner = false;  // all
  std::string name_prefix;
  int page_size = 1000;    // 1 to 1000
  std::string page_token;  // the id after which the page begins
};

// Matrices in the order of their ids. With a token more may follow, also after an empty page.
struct MatrixPage {
  std::vector<MatrixRecord> matrices;
  std::string next_token;
};

// How a matrix is copied from one device to another: directly, or through host memory.
enum class CopyRoute : uint8_t { kPeer, kHost };

}  // namespace gemmd
