#include "client/cpp/products/plan_limits.h"

#include <algorithm>

namespace gemmd::client {
namespace {

// An older server names no roles, and has none.
bool MayKeep(const ServerInfo& server) {
  const auto& roles = server.caller().roles();
  return roles.empty() || std::find(roles.begin(), roles.end(), "matrices") != roles.end();
}

}  // namespace

PlanLimits LimitsOf(const Connection& connection) {
  const ClientOptions& options = connection.options();
  return {.chunk_bytes = connection.chunk_bytes(),
          .unary_threshold_bytes = options.unary_threshold_bytes,
          .stripe_threshold_bytes = options.stripe_threshold_bytes,
          .server_message_bytes = connection.server_message_bytes(),
          .client_message_bytes = options.max_message_bytes,
          .channels = connection.channels(),
          .may_keep = MayKeep(connection.server()),
          .max_batch_count = connection.server().limits().max_batch_count(),
          .max_group_count = connection.server().limits().max_group_count(),
          .scale_block = connection.server().limits().scale_block(),
          .devices = connection.server().devices_size(),
          .row_blocks_per_channel = options.row_blocks_per_channel};
}

}  // namespace gemmd::client
