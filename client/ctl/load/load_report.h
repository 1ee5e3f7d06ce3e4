// The results of a load test, for people and for programs.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/context.h"
#include "client/ctl/load/load_options.h"
#include "client/ctl/load/statistics.h"

namespace gemmd::ctl {

// The requests of one shape with one kernel.
struct LoadRow {
  std::string shape;
  std::string kernel;
  Tally tally;
};

struct LoadResult {
  // From the end of the warm-up to the end of the last counted request.
  absl::Duration wall;
  Tally tally;
  std::vector<LoadRow> rows;
  Series series;
  bool interrupted = false;
  int32_t products = 1;  // of each request

  // Counts requests that succeeded.
  double ProductsPerSecond() const {
    return PerSecond(static_cast<double>(products) * static_cast<double>(tally.succeeded));
  }
  // `amount` per second of `wall`; 0 where `wall` is zero.
  double PerSecond(double amount) const;
};

// The live line of one second: the requests that ended in it, and the errors of the
// whole test.
std::string LiveLine(absl::Duration elapsed, absl::Duration since_last, const Interval& interval,
                     uint64_t failed);

// Lines have at most `width` columns; 0: no bound.
void PrintLoadTable(std::ostream& out, const LoadResult& result, size_t width = 0);

Json ToJson(const LoadResult& result);

// A line of names, then a line for each phase of each shape and kernel (`kind` is "row"), then one
// for each window of time ("window").
std::string ToCsv(const LoadResult& result);

}  // namespace gemmd::ctl
