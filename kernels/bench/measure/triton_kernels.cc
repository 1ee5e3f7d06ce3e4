#include "kernels/bench/measure/triton_kernels.h"

#include <cuda_runtime_api.h>

#include <deque>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/cuda_status.h"
#include "kernels/core/shared_memory.h"
#include "nlohmann/json.hpp"

namespace gemm::bench {
namespace {

// compile_triton.py promises the compiler that sizes and pitches are multiples.
constexpr int64_t kMultiple = 16;

struct TritonKernel {
  std::string name;
  Types types{};
  Kernel row;
  cudaKernel_t function = nullptr;
};

absl::StatusOr<int32_t> Size(absl::string_view field, int64_t value) {
  if (value % kMultiple != 0 || value > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " is ", value, ", and this kernel takes multiples of ", kMultiple, " below 2^31"));
  }
  return static_cast<int32_t>(value);
}

absl::Status LaunchTriton(const TritonKernel& kernel, const Launch& launch) {
  const Problem& p = launch.problem;
  const Operands& o = launch.operands;
  const std::pair<absl::string_view, int64_t> named[] = {
      {"m", p.m}, {"n", p.n}, {"k", p.k}, {"lda", o.lda}, {"ldb", o.ldb}, {"ldd", o.ldd}};
  int32_t sizes[6];
  for (int i = 0; i < 6; ++i) {
    const absl::StatusOr<int32_t> size = Size(named[i].first, named[i].second);
    if (!size.ok()) return size.status();
    sizes[i] = *size;
  }
  // The kernel counts elements in 32 bits.
  for (const int64_t pitch : {o.lda, o.ldd}) {
    if (p.m > std::numeric_limits<int32_t>::max() / pitch) {
      return absl::InvalidArgumentError(absl::StrCat("m is ", p.m, ", and rows are ", pitch,
                                                     " elements apart, together more than 2^31"));
    }
  }
  const void* a = o.a;
  const void* b = o.b;
  void* d = o.d;
  void* scratch = nullptr;  // two arguments of the compiler's own, which it does not use here
  void* arguments[] = {&a,        &b,        &d,        &sizes[0], &sizes[1], &sizes[2],
                       &sizes[3], &sizes[4], &sizes[5], &scratch,  &scratch};
  const auto tiles = [](int64_t size, int tile) { return (size + tile - 1) / tile; };
  const int64_t blocks = tiles(p.m, kernel.row.tile_m) * tiles(p.n, kernel.row.tile_n);
  return CudaStatus(cudaLaunchKernel(reinterpret_cast<const void*>(kernel.function),
                                     dim3(static_cast<unsigned>(blocks)),
                                     dim3(static_cast<unsigned>(kernel.row.threads)), arguments,
                                     kernel.row.shared_memory_bytes, launch.stream),
                    "launch of a Triton kernel");
}

absl::Status LoadFunction(const std::string& path, const std::string& entry, TritonKernel& kernel) {
  cudaLibrary_t library = nullptr;
  absl::Status status = CudaStatus(
      cudaLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      absl::StrCat("loading ", path));
  if (!status.ok()) return status;
  status = CudaStatus(cudaLibraryGetKernel(&kernel.function, library, entry.c_str()),
                      absl::StrCat(entry, " of ", path));
  if (!status.ok()) return status;
  int device = 0;
  status = CudaStatus(cudaGetDevice(&device), "cudaGetDevice");
  if (!status.ok()) return status;
  return AskForSharedMemory(reinterpret_cast<const void*>(kernel.function), device,
                            static_cast<int>(kernel.row.shared_memory_bytes));
}

absl::Status Load(const std::string& folder, const nlohmann::json& entry, TritonKernel& kernel) {
  kernel.name = entry.at("name").get<std::string>();
  const auto named = entry.at("type").get<std::string>();
  const std::optional<DType> type = ParseDType(named);
  if (!type) return absl::InvalidArgumentError(absl::StrCat("no type is named \"", named, "\""));
  kernel.types = {*type, *type, *type, Compute::kF32};
  kernel.row = {.name = kernel.name,
                .family = "triton",
                .summary = "the product of Triton's tutorial",
                .types = absl::MakeConstSpan(&kernel.types, 1),
                .tile_m = entry.at("tile_m").get<int>(),
                .tile_n = entry.at("tile_n").get<int>(),
                .threads = entry.at("threads").get<int>(),
                .shared_memory_bytes = entry.at("shared_bytes").get<size_t>()};
  if (kernel.row.tile_m <= 0 || kernel.row.tile_n <= 0 || kernel.row.threads <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(kernel.name, " has no tile or no threads"));
  }
  return LoadFunction(absl::StrCat(folder, "/", entry.at("cubin").get<std::string>()),
                      entry.at("entry").get<std::string>(), kernel);
}

}  // namespace

absl::StatusOr<std::vector<Candidate>> LoadTritonKernels(const std::string& folder) {
  static auto* const kernels = new std::deque<TritonKernel>;
  const std::string path = absl::StrCat(folder, "/kernels.json");
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::vector<Candidate> candidates;
  try {
    for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
      TritonKernel& kernel = kernels->emplace_back();
      if (absl::Status status = Load(folder, entry, kernel); !status.ok()) return status;
      candidates.push_back(
          {.kernel = &kernel.row, .types = kernel.types, .launch = [&kernel](const Launch& launch) {
             return LaunchTriton(kernel, launch);
           }});
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.what()));
  }
  return candidates;
}

}  // namespace gemm::bench
