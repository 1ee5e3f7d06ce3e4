// How large a product is, a batch or a group of them: what the operands' shapes say.
#pragma once

#include <vector>

#include "client/ctl/commands/multiply_options.h"
#include "gemmd/client/product.h"

namespace gemmd::ctl {

// The sizes of a group's products: `group` has one dimension of each, and A and B have the others.
// Empty where there is no group.
std::vector<client::ProductSize> SizesOfGroup(const GroupOption& group,
                                              const client::Product& product,
                                              const client::Shape& a, const client::Shape& b);

// Of all products together.
struct ProductWork {
  double flops = 0;
  double results = 0;  // elements
};
ProductWork WorkOf(const client::Product& product, const client::Shape& a, const client::Shape& b);

}  // namespace gemmd::ctl
