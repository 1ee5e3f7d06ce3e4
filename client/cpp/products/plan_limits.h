// The limits of plans on a connection.
#pragma once

#include "client/cpp/calls/connection.h"
#include "client/cpp/products/product_plan.h"

namespace gemmd::client {

PlanLimits LimitsOf(const Connection& connection);

}  // namespace gemmd::client
