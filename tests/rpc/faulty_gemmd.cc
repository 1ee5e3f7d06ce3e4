// Makes the server's program, with which this is linked, know devices that fail on purpose:
// --devices=faulty:2, with what goes wrong in GEMMD_FAULTS (tests/engine/faulty_device.h).
#include "tests/engine/faulty_device.h"

namespace {

[[maybe_unused]] const bool added = [] {
  gemmd::AddFaultyDeviceKinds();
  return true;
}();

}  // namespace
