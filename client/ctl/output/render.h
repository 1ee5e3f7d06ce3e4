// The contract's messages as JSON for programs and as tables for people. In JSON,
// durations are seconds, sizes are bytes, points in time are RFC 3339 in UTC, and
// fields that a message leaves out are left out.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/ctl/context.h"
#include "client/ctl/output/phases.h"
#include "client/ctl/output/table.h"
#include "gemmd/client/client.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace gemmd::ctl {

PhaseDurations PhasesOf(const client::ProductReport& report);

Json ToJson(const client::Shape& shape);
Json ToJson(const client::ProductReport& report);
Json ToJson(const ::gemm::v1::TunedFrom& from);
Json ToJson(const client::MatrixInfo& info);
Json ToJson(const client::KernelInfo& kernel);
Json ToJson(const client::ServerInfo& info);

// "request", "rank", "table exact", "table near", "check"; "none" where no kernel was chosen.
std::string RuleText(::gemm::v1::ChoiceRule rule);

// Adds rows about a product: kernel, reason, shape, phases, TFLOPS.
void AddReport(Table& summary, const client::ProductReport& report);

// A table of resident matrices, and of one of them.
// `owners`: also whose each is, where they may be several callers'.
Table MatrixTable(const std::vector<client::MatrixInfo>& matrices, bool owners = false);
Table MatrixSummary(const client::MatrixInfo& info);

absl::Duration FromProto(const google::protobuf::Duration& duration);
absl::Time FromProto(const google::protobuf::Timestamp& time);

}  // namespace gemmd::ctl
