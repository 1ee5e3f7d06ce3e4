#include "client/ctl/commands/multiply_size.h"

namespace gemmd::ctl {
namespace {

// The matrix of one product. `shape` has `count` of them.
client::Shape OfOneProduct(client::Shape shape, int64_t count) {
  (shape.layout == client::kColumnMajor ? shape.cols : shape.rows) /= count;
  return shape;
}

// With A and B of one product.
client::ProductSize SizeOf(const client::Product& product, const client::Shape& a,
                           const client::Shape& b) {
  return {.m = product.transpose_a ? a.cols : a.rows,
          .n = product.transpose_b ? b.rows : b.cols,
          .k = product.transpose_a ? a.rows : a.cols};
}

// Nothing to do for a resident matrix, whose order the server knows.
void SetOrderOfLine(client::Operand& operand, client::Layout layout) {
  client::Shape* shape = nullptr;
  if (auto* view = std::get_if<client::MatrixView>(&operand)) shape = &view->shape;
  if (auto* generated = std::get_if<client::Generated>(&operand)) shape = &generated->shape;
  if (shape != nullptr && (shape->rows == 1 || shape->cols == 1)) shape->layout = layout;
}

void Add(const client::ProductSize& size, ProductWork& work) {
  const double results = static_cast<double>(size.m) * static_cast<double>(size.n);
  work.results += results;
  work.flops += 2 * results * static_cast<double>(size.k);
}

}  // namespace

std::vector<client::ProductSize> SizesOfGroup(const GroupOption& group,
                                              const client::Product& product,
                                              const client::Shape& a, const client::Shape& b) {
  if (group.extents.empty()) return {};
  const auto count = static_cast<int64_t>(group.extents.size());
  const auto stacked = [count](bool has_extents, bool shared) {
    return has_extents || shared ? 1 : count;
  };
  client::ProductSize size =
      SizeOf(product, OfOneProduct(a, stacked(group.by != GroupedBy::kN, product.shared.a)),
             OfOneProduct(b, stacked(group.by != GroupedBy::kM, product.shared.b)));
  std::vector<client::ProductSize> sizes;
  for (const int64_t extent : group.extents) {
    (group.by == GroupedBy::kM ? size.m : group.by == GroupedBy::kN ? size.n : size.k) = extent;
    sizes.push_back(size);
  }
  return sizes;
}

void TakeLinesInEitherOrder(const GroupOption& group, client::Product& product) {
  if (product.c.has_value()) SetOrderOfLine(*product.c, product.output_layout);
  if (group.extents.empty()) return;
  // The lines of a stacked matrix are those of the dimension in which the products differ.
  if (group.by != GroupedBy::kN) {
    SetOrderOfLine(product.a, (group.by == GroupedBy::kM) == product.transpose_a
                                  ? client::kColumnMajor
                                  : client::kRowMajor);
  }
  if (group.by != GroupedBy::kM) {
    SetOrderOfLine(product.b, (group.by == GroupedBy::kN) != product.transpose_b
                                  ? client::kColumnMajor
                                  : client::kRowMajor);
  }
}

ProductWork WorkOf(const client::Product& product, const client::Shape& a, const client::Shape& b) {
  ProductWork work;
  for (const client::ProductSize& size : product.group) Add(size, work);
  if (!product.group.empty()) return work;
  const int64_t batch = product.batch_count;
  Add(SizeOf(product, OfOneProduct(a, product.shared.a ? 1 : batch),
             OfOneProduct(b, product.shared.b ? 1 : batch)),
      work);
  work.results *= static_cast<double>(batch);
  work.flops *= static_cast<double>(batch);
  return work;
}

}  // namespace gemmd::ctl
