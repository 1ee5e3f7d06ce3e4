// Text that is put together at compile time, such as the name of a kernel.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace gemm {

// At most kCapacity characters. More than that do not compile in a constant
// expression.
template <size_t kCapacity>
class FixedText {
 public:
  constexpr void Add(absl::string_view text) {
    for (const char c : text) text_[size_++] = c;
  }
  // A number that is not negative, in decimal.
  constexpr void Add(int number) {
    if (number >= 10) Add(number / 10);
    text_[size_++] = static_cast<char>('0' + number % 10);
  }
  // Several in turn.
  template <class First, class Second, class... Rest>
  constexpr void Add(First first, Second second, Rest... rest) {
    Add(first);
    Add(second);
    (Add(rest), ...);
  }

  // As long as this lives.
  constexpr absl::string_view view() const { return {text_, size_}; }

 private:
  char text_[kCapacity] = {};
  size_t size_ = 0;
};

// A kernel's name, and its summary in one line.
using NameText = FixedText<80>;
using SummaryText = FixedText<128>;

}  // namespace gemm
