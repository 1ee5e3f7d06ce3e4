// The device memory of one matrix.
#pragma once

#include <memory>
#include <utility>

#include "server/engine/device/device.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// Lives as long as it is used: by a job, the store or a copy under way.
struct MatrixMemory {
  Device* device = nullptr;
  DeviceBuffer buffer;
  Shape shape;

  Pitched pitched() const {
    return {buffer.data(), shape.lines(), shape.line_bytes(), shape.pitch_bytes()};
  }
  // Elements from one line to the next.
  int64_t leading_dimension() const {
    return shape.pitch_bytes() / static_cast<int64_t>(gemm::SizeOf(shape.type));
  }
  gemm::GeneratorTarget generator_target() const {
    return {buffer.data(), shape.type,          shape.rows,
            shape.cols,    shape.pitch_bytes(), shape.column_major};
  }
};

}  // namespace gemmd
