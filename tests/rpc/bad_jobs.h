// Jobs that must fail, each with its code and what its sentence must say.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "grpcpp/support/status.h"
#include "server/server.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {

// Bounds that a bad job can pass.
ServerOptions BoundedServer();

// The parts of bad jobs: a product that is right, and names of matrices.
struct World {
  HostProduct operands;
  gemm::v1::Product good;   // both operands payload
  std::string resident_id;  // 8 x 8 f32, named "resident"
  std::string deleted_id;
};

struct BadJob {
  std::string name;
  // Sends the job, with id kBadJob.
  std::function<void(StreamClient& stream, const World& world)> send;
  grpc::StatusCode code;
  std::vector<std::string> sentence;
  // The error comes only once the client has half-closed.
  bool at_half_close = false;
};
inline std::ostream& operator<<(std::ostream& out, const BadJob& bad) { return out << bad.name; }

inline constexpr uint64_t kBadJob = 7;

using ProductChange = std::function<void(gemm::v1::Product& product, const World& world)>;

// The good product with one thing changed.
BadJob BadProduct(std::string name, ProductChange change, grpc::StatusCode code,
                  std::vector<std::string> sentence);

// Adds those whose batch is wrong.
void AddBatches(std::vector<BadJob>& jobs);
// Adds those whose group is wrong.
void AddGroups(std::vector<BadJob>& jobs);

// Adds those whose block of rows is wrong.
void AddRowBlocks(std::vector<BadJob>& jobs);

// Adds those whose block scales are wrong.
void AddBlockScales(std::vector<BadJob>& jobs);

const std::vector<BadJob>& BadJobs();

}  // namespace gemmd
