#include "server/identity/connection_number.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"

namespace gemmd {
namespace {

// Beside what gRPC knows of the peer.
constexpr char kProperty[] = "gemmd_connection";

uint64_t NumberOf(const grpc_auth_context* connection) {
  grpc_auth_property_iterator found =
      grpc_auth_context_find_properties_by_name(connection, kProperty);
  const grpc_auth_property* const property = grpc_auth_property_iterator_next(&found);
  uint64_t number = 0;
  if (property == nullptr ||
      !absl::SimpleAtoi(absl::string_view(property->value, property->value_length), &number)) {
    return 0;
  }
  return number;
}

}  // namespace

uint64_t NumberConnection(grpc_auth_context* connection) {
  static Mutex mutex;
  static uint64_t last = 0;
  MutexLock lock(mutex);
  if (const uint64_t number = NumberOf(connection); number != 0) return number;
  const std::string text = absl::StrCat(++last);
  grpc_auth_context_add_property(connection, kProperty, text.data(), text.size());
  return last;
}

uint64_t ConnectionOf(grpc_call* call) {
  grpc_auth_context* const connection = grpc_call_auth_context(call);
  if (connection == nullptr) return 0;
  const uint64_t number = NumberOf(connection);
  grpc_auth_context_release(connection);
  return number;
}

}  // namespace gemmd
