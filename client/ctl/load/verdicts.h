// Tables and JSON of objectives, of rates that were tried, of sweeps and of comparisons.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "client/ctl/context.h"
#include "client/ctl/load/compare.h"
#include "client/ctl/load/find_rate.h"
#include "client/ctl/load/load_report.h"
#include "client/ctl/load/slo.h"

namespace gemmd::ctl {

// The test of a sweep with one concurrency.
struct SweepPoint {
  int concurrency = 0;
  LoadResult result;
  std::vector<Finding> findings;  // of --slo
};

void PrintFindings(std::ostream& out, const std::vector<Finding>& findings, size_t width);
void PrintSearch(std::ostream& out, const RateSearch& search, size_t width);
void PrintSweep(std::ostream& out, const std::vector<SweepPoint>& sweep, size_t width);
// `by`: the figure whose verdict is that of the test.
void PrintComparison(std::ostream& out, const std::vector<Comparison>& rows, const std::string& by,
                     size_t width);

// The verdict of the figure `by`, which is one of the rows.
CompareVerdict VerdictBy(const std::vector<Comparison>& rows, const std::string& by);

Json ToJson(const std::vector<Finding>& findings);
Json ToJson(const RateSearch& search);
Json ToJson(const std::vector<SweepPoint>& sweep);
// A line of names, then one for each concurrency.
std::string ToCsv(const std::vector<SweepPoint>& sweep);
Json ToJson(const std::vector<Comparison>& rows, const std::string& by);

}  // namespace gemmd::ctl
