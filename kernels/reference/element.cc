#include "kernels/numeric/element.h"

#include "gemm/reference.h"

namespace gemm {

double LoadElement(const void* data, int64_t index, DType type) {
  return VisitDType(type, [&]<DType kType>() -> double {
    using Traits = ElementTraits<kType>;
    return Traits::Load(static_cast<const typename Traits::Storage*>(data)[index]);
  });
}

void StoreElement(void* data, int64_t index, DType type, double value) {
  VisitDType(type, [&]<DType kType>() {
    using Traits = ElementTraits<kType>;
    static_cast<typename Traits::Storage*>(data)[index] = Traits::Store(value);
  });
}

double RoundedElement(double value, DType type) {
  alignas(8) std::byte element[8];
  StoreElement(element, 0, type, value);
  return LoadElement(element, 0, type);
}

}  // namespace gemm
