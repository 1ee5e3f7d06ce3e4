#include "kernels/bench/command_line.h"

#include <iostream>
#include <utility>

#include "CLI/CLI.hpp"

namespace gemm::bench {
namespace {

constexpr const char* kDescription =
    R"(Measures the kernels of the catalogue on this machine's device, without a server.

Kernels of the same types and layout are compared on each shape: on the same random
operands, in turns. The baselines are cuBLAS and the fastest of cuBLASLt's
algorithms. Launches take turns with up to 256 sets of operands, so that only very
small products find theirs in the cache. Every result is checked against products in
double precision.)";

constexpr const char* kFooter = R"(
Columns: two corners of D; the median time of the samples and half their range;
launch parameters; TFLOPS; the gain over the best row above; TFLOPS as a share of
the baselines'; with --joules the joules of a product (the whole board's), and as
a share of the fewest that a baseline takes; and the worst error as a share of what
the types allow (over 1 is wrong).

Examples:
  gemm_bench --shapes 4096 --family simt --types f32
      the CUDA-core SGEMM rows on one cube
  gemm_bench --suite hgemm-125 --kernels 'hgemm_mma_*' --budget 300 --csv mma.csv
      a family of rows on 125 shapes in five minutes
  gemm_bench --shapes 8192x8192x4096 --kernels '*stage3*' --param swizzle=0,1024,4096
      what a launch parameter does
  gemm_bench --suite triton-31 --family grouped,cublas --types f16 --plot f16.svg
      a picture
  gemm_bench --shapes 8192 --types f16 --family hopper,cublas --joules
      the energy of a product beside its speed
  gemm_bench --suite layers --family hopper,cublas,cublaslt --types bf16 --auto
      how near 'auto' comes to the fastest kernel
  gemm_bench --device host --shapes 512 --types f32 --iterations 3
      where there is no GPU

Exit codes: 0; 1 where a result was wrong, nothing was measured or the device was lost;
2 where the command line names something that does not exist.)";

constexpr int kUsageError = 2;

void AddCatalogue(CLI::App& app, CommandLine& line) {
  app.add_flag_callback(
         "--catalogue", [&line] { line.job = CommandLine::Job::kCatalogue; },
         "Print the selected kernels as Markdown, and end")
      ->group("The catalogue");
  app.add_option("--registers", line.registers,
                 "Registers of each kernel, a file as tests/kernels/machine_code.py prints it")
      ->group("The catalogue");
  app.add_option("--standing", line.standings,
                 "Figures of each kernel, from a file of --json; the first that has it counts")
      ->delimiter(',')
      ->group("The catalogue");
}

}  // namespace

Parsed ParseCommandLine(int argc, const char* const* argv, std::ostream& out) {
  CommandLine line;
  CLI::App app(kDescription, "gemm_bench");
  app.footer(kFooter);
  DeclareBenchmarkOptions(app, line.benchmark);
  DeclareBlockScales(app, line.benchmark);
  DeclareJoules(app, line.benchmark);
  app.add_option("--device", line.device, "auto, host, cuda or cuda:N")->group("What to measure");
  app.add_option("--triton", line.triton,
                 "Measure the kernels in this folder, too, where compile_triton.py left them")
      ->group("What to measure");
  app.add_option_function<std::string>(
         "--auto",
         [&line](const std::string& how) {
           line.with_auto =
               how == "measured" ? CommandLine::Auto::kMeasured : CommandLine::Auto::kByModel;
         },
         "Add a row of what a server's 'auto' takes, and its share of the fastest row: by the "
         "estimates of the device's model (model, or nothing), or by times that are measured "
         "first, as on a model without estimates (measured)")
      ->check(CLI::IsMember({"", "model", "measured"}))
      ->type_name("[TEXT]")
      ->expected(0, 1)
      ->group("What to measure");
  app.add_option("--json", line.benchmark.outputs.json,
                 "Write metadata, rows and means to this file")
      ->group("Output");
  AddCatalogue(app, line);
  try {
    app.parse(argc, argv);
    if (line.benchmark.list_suites) line.job = CommandLine::Job::kListSuites;
    if (line.job == CommandLine::Job::kMeasure && line.benchmark.shapes.empty()) {
      throw CLI::RequiredError("--suite or --shapes");
    }
    if (line.with_auto != CommandLine::Auto::kNo && line.benchmark.selection.with_scales) {
      throw CLI::ParseError("--auto and --block-scales: 'auto' is judged without block scales",
                            kUsageError);
    }
    if (std::string wrong = ContradictionOf(line.benchmark.outputs); !wrong.empty()) {
      throw CLI::ParseError(std::move(wrong), kUsageError);
    }
  } catch (const CLI::ParseError& error) {
    return {.exit_code = app.exit(error, out, std::cerr) == 0 ? 0 : kUsageError};
  }
  return {.command_line = std::move(line)};
}

}  // namespace gemm::bench
