// A product in three ways: sent and fetched, on resident matrices, and drawn on
// the server. Needs a server:
//
//   gemmd &
//   hello [127.0.0.1:50051]

#include <cstdio>
#include <string>
#include <utility>

#include "gemmd/client/client.h"

namespace {

using gemmd::client::CallOptions;
using gemmd::client::Client;
using gemmd::client::HostMatrix;
using gemmd::client::ProductResult;
using gemmd::client::Resident;

void Print(const char* what, const ProductResult& result) {
  std::printf("%-24s %s on %s, %.3f ms\n", what, result.report.kernel().c_str(),
              result.report.device().c_str(), absl::ToDoubleMilliseconds(result.elapsed));
}

absl::Status Run(const std::string& address) {
  auto client = Client::Connect({.address = address});
  if (!client.ok()) return client.status();

  // Both operands sent, the result fetched.
  auto a = HostMatrix::FromDoubles({.rows = 2, .cols = 3}, {1, 2, 3, 4, 5, 6});
  if (!a.ok()) return a.status();
  auto sent = (*client)->Multiply({.a = a->view(), .b = a->view(), .transpose_b = true},
                                  {.timeout = absl::Seconds(10)});
  if (!sent.ok()) return sent.status();
  Print("sent and fetched", *sent);
  std::printf("  [%g %g; %g %g]\n", sent->matrix.Get(0, 0), sent->matrix.Get(0, 1),
              sent->matrix.Get(1, 0), sent->matrix.Get(1, 1));

  // A matrix that stays on the server, for a minute after its last use.
  auto resident = (*client)->PutMatrix(a->view(), {.keep = {.ttl = absl::Minutes(1)}});
  if (!resident.ok()) return resident.status();
  auto future = (*client)->MultiplyFuture({.a = Resident::Of(*resident),
                                           .b = Resident::Of(*resident),
                                           .transpose_a = true,
                                           .activation = gemmd::client::kRelu});
  auto by_reference = future.get();
  if (!by_reference.ok()) return by_reference.status();
  Print("on resident matrices", *by_reference);
  auto deleted = (*client)->DeleteMatrix(Resident::ById(resident->id()));
  if (!deleted.ok()) return deleted.status();

  // Operands drawn on the server, by a kernel of one family.
  const gemmd::client::Generated drawn{.shape = {.rows = 256, .cols = 256}, .seed = 42};
  auto generated = (*client)->Multiply({.a = drawn, .b = drawn, .kernel = {.family = "host"}});
  if (!generated.ok()) return generated.status();
  Print("drawn on the server", *generated);

  // A batch: a hundred products of 8 x 4 by 4 x 6, whose matrices are stacked, with one B for
  // all.
  const gemmd::client::Generated left{.shape = {.rows = 800, .cols = 4}, .seed = 1};
  const gemmd::client::Generated right{.shape = {.rows = 4, .cols = 6}, .seed = 2};
  auto batch =
      (*client)->Multiply({.a = left, .b = right, .batch_count = 100, .shared = {.b = true}});
  if (!batch.ok()) return batch.status();
  Print("a batch of 100", *batch);  // batch->matrix has 800 rows, 8 of each product

  // A group: products of one n and k, with the rows of A that each of three experts has.
  const gemmd::client::Generated experts{.shape = {.rows = 3 * 4, .cols = 6}, .seed = 3};
  auto group = (*client)->Multiply(
      {.a = left, .b = experts, .group = {{500, 6, 4}, {0, 6, 4}, {300, 6, 4}}});
  if (!group.ok()) return group.status();
  Print("a group of 3", *group);  // group->matrix has 800 rows: 500 and 300
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "127.0.0.1:50051");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
