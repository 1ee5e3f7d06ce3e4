// The size of a product, of a batch or of a group, from the shapes of the operands.
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

// A matrix of one row or of one column has the same bytes in either order. A file names one order;
// this gives such operands the order that the product needs.
void TakeLinesInEitherOrder(const GroupOption& group, client::Product& product);

// The work of all products together.
struct ProductWork {
  double flops = 0;
  double results = 0;  // elements
};
ProductWork WorkOf(const client::Product& product, const client::Shape& a, const client::Shape& b);

}  // namespace gemmd::ctl
