#include "client/ctl/commands/multiply_options.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/parsing/parse.h"

namespace gemmd::ctl {
namespace {

// Null for another name.
bool* SharedByName(client::SharedOperands& shared, const std::string& name) {
  if (name == "a") return &shared.a;
  if (name == "b") return &shared.b;
  if (name == "c") return &shared.c;
  if (name == "bias") return &shared.bias;
  return nullptr;
}

void AddNumber(CLI::App& command, const char* option, double& target, const char* help) {
  AddParsed(command, option, target, ParseNumber, help)
      ->type_name("NUMBER")
      ->default_str(absl::StrCat(target));
}

absl::StatusOr<client::Transport> ParseTransport(absl::string_view word) {
  static constexpr std::pair<const char*, client::Transport> kTransports[] = {
      {"auto", client::Transport::kAuto},
      {"unary", client::Transport::kUnary},
      {"stream", client::Transport::kStream},
      {"striped", client::Transport::kStriped},
      {"row-blocks", client::Transport::kRowBlocks}};
  return OneOf(word, kTransports);
}

void DeclareOperands(CLI::App& command, MultiplyOptions& options) {
  AddParsed(command, "A", options.a, ParseOperandSpec, "The left factor")
      ->required()
      ->type_name("");
  AddParsed(command, "B", options.b, ParseOperandSpec, "The right factor")
      ->required()
      ->type_name("");
  CLI::Option* c = AddParsed(command, "--c", options.c, ParseOperandSpec,
                             "Added to the product, times beta; of the result's shape and type")
                       ->type_name("OPERAND");
  AddParsed(command, "--bias", options.bias, ParseOperandSpec,
            "Added to every row: one element for each column, of the result's type")
      ->type_name("OPERAND");
  command.add_flag("--transpose-a", options.product.transpose_a, "Multiply by the transpose of A");
  command.add_flag("--transpose-b", options.product.transpose_b, "Multiply by the transpose of B");
  AddNumber(command, "--alpha", options.product.alpha, "Scales A B");
  AddNumber(command, "--scale-a", options.product.scale_a, "Scales A, as for quantised fp8");
  AddNumber(command, "--scale-b", options.product.scale_b, "Scales B");
  CLI::Option* scales_a =
      AddParsed(command, "--scales-a", options.scales_a, ParseOperandSpec,
                "Scales of the blocks of an fp8 A: f32, one for each row and 128 elements along k "
                "(m x k/128), or for each 128 x 128 (m/128 x k/128)")
          ->type_name("OPERAND");
  CLI::Option* scales_b = AddParsed(command, "--scales-b", options.scales_b, ParseOperandSpec,
                                    "Scales of the blocks of B: k/128 x n, or k/128 x n/128")
                              ->type_name("OPERAND")
                              ->needs(scales_a);
  scales_a->needs(scales_b);
  CLI::Option* beta = AddParsed(command, "--beta", options.product.beta, ParseNumber, "Scales C")
                          ->type_name("NUMBER")
                          ->needs(c);
  c->needs(beta);
  command.add_flag("--release", options.release,
                   "Remove the resident operands once the server has accepted the product");
  AddParsed(command, "--npy-dtype", options.npy_dtype, ParseDataTypeName,
            "The element type, where a .npy file does not say it: V1 (e4m3 and others; needed) "
            "or V2 (else bf16)")
      ->type_name("DTYPE");
}

// One dimension of each product; the operands have the others.
void DeclareGroup(CLI::App& command, MultiplyOptions& options, CLI::Option* batch) {
  const auto declare = [&](const char* name, GroupedBy by, const char* help) {
    return command
        .add_option_function<std::string>(
            name,
            [&options, by, name](const std::string& word) {
              options.group = {by, ParsedWord(name, ParseExtents, word)};
            },
            help)
        ->type_name("LIST")
        ->excludes(batch);
  };
  CLI::Option* const m = declare(
      "--group-m", GroupedBy::kM,
      "Compute a group: products of these m, such as 512,0,37,512. Their rows of A and of the "
      "result are stacked, and so are their matrices B");
  CLI::Option* const n =
      declare("--group-n", GroupedBy::kN, "The same for n, with a column-major B and result");
  CLI::Option* const k =
      declare("--group-k", GroupedBy::kK, "The same for k, with --transpose-a and a row-major B");
  m->excludes(n)->excludes(k);
  n->excludes(k);
}

void DeclareBatch(CLI::App& command, MultiplyOptions& options) {
  CLI::Option* const batch =
      command
          .add_option("--batch", options.product.batch_count,
                      "Compute so many products of one shape. Each matrix has the matrices of all "
                      "products, stacked in its rows (column-major: in its columns)")
          ->check(CLI::Range(1, std::numeric_limits<int32_t>::max()).description(""))
          ->type_name("N");
  command
      .add_option_function<std::vector<std::string>>(
          "--share",
          [&shared = options.product.shared](const std::vector<std::string>& names) {
            for (const std::string& name : names) *SharedByName(shared, name) = true;
          },
          "An operand that all products of a batch or a group share: a, b, c or bias; may be "
          "repeated")
      ->check([](const std::string& name) {
        client::SharedOperands any;
        return SharedByName(any, name) != nullptr ? "" : "'" + name + "' is not a, b, c or bias";
      })
      ->type_name("OPERAND")
      ->take_all()
      ->allow_extra_args(false);
  DeclareGroup(command, options, batch);
}

void DeclareArithmetic(CLI::App& command, MultiplyOptions& options) {
  client::Product& product = options.product;
  AddParsed(command, "--activation", product.activation, ParseActivationName,
            "none, relu, gelu or leaky_relu, on each element of the result")
      ->type_name("NAME");
  AddNumber(command, "--leaky-slope", product.leaky_slope, "The slope of leaky_relu below 0");
  AddParsed(
      command, "--output-dtype", product.output_dtype, ParseDataTypeName,
      "f64, f32, f16, bf16, e4m3, e5m2, s8 or s32. Default: that of A, f16 for fp8, s32 for s8")
      ->type_name("DTYPE");
  AddParsed(command, "--output-layout", product.output_layout, ParseLayoutName,
            "row or column. Default: row")
      ->type_name("LAYOUT");
  AddParsed(command, "--compute", product.compute, ParseComputeName,
            "f64, f32, tf32, f32x3, f16 or s32. Default: f64 for f64 operands, s32 for s8 ones, "
            "f32 for others")
      ->type_name("MODE");
}

void DeclareKernel(CLI::App& command, MultiplyOptions& options) {
  client::KernelChoice& kernel = options.product.kernel;
  CLI::Option* name =
      command
          .add_option("--kernel", kernel.name,
                      "A name from `gemmctl kernels`, or auto. Default: the server picks")
          ->type_name("NAME");
  command.add_option("--family", kernel.family, "The best kernel of one family")
      ->type_name("NAME")
      ->excludes(name);
  command
      .add_option_function<std::vector<std::string>>(
          "--param",
          [&kernel](const std::vector<std::string>& words) {
            for (const std::string& word : words) {
              kernel.params.insert_or_assign(ParsedWord("--param", ParseParam, word).first,
                                             ParsedWord("--param", ParseParam, word).second);
            }
          },
          "A launch parameter of the kernel; may be repeated")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->allow_extra_args(false);
}

void DeclareResult(CLI::App& command, MultiplyOptions& options) {
  command
      .add_option("-o,--output", options.output,
                  "The file for the result. Default: the result is downloaded and discarded")
      ->check(CheckMatrixFile)
      ->type_name("FILE.npy");
  command.add_flag("--keep", options.keep, "Keep the result on the server, with only an id");
  AddParsed(command, "--keep-name", options.keep_as.name, ParseNewName,
            "Keep the result under a name: 1 to 128 of [A-Za-z0-9._/-], unique among yours")
      ->type_name("NAME");
  command.add_flag("--keep-replace", options.keep_as.replace,
                   "Take that name from the matrix that has it, once the result is complete");
  AddParsed(command, "--keep-if-version", options.keep_as.if_version, ParseVersion,
            "Replace only this version of it; 0: only where there is none")
      ->type_name("N")
      ->needs("--keep-replace");
  AddParsed(command, "--ttl", options.keep_as.ttl, ParseDuration,
            "Remove the kept result this long after its last use. Default: never with --keep-name, "
            "else after the server's --unnamed-ttl")
      ->type_name("DURATION");
  command.add_flag("--no-stream", options.no_stream,
                   "Do not download the result; needs --keep or --keep-name");
  AddParsed(command, "--timeout", options.product.server_timeout, ParseDuration,
            "The server ends the product this long after it arrived")
      ->type_name("DURATION");
  AddParsed(command, "--transport", options.transport, ParseTransport,
            "auto (by size), unary (one message each way), stream, striped (over the "
            "channels), or row-blocks (rows of A go while rows of the result come)")
      ->type_name("HOW");
  AddParsed(command, "--check", options.product.verify, ParseVerifyName,
            "The server checks the product on its device before it sends it: off, sampled or "
            "always. Default: by the server's policy")
      ->type_name("WHEN");
  command.add_flag("--verify", options.verify,
                   "Check elements of the result here, against a product in double precision. "
                   "With small integers (numpy.random.randint(-1, 2, (m, k))) every error is seen; "
                   "with others, the line `resolution` says which");
  command
      .add_option("--verify-samples", options.verify_samples,
                  "The most elements to check; a smaller result is checked in full")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40).description(""))
      ->type_name("N")
      ->capture_default_str();
}

bool HasResident(const MultiplyOptions& options) {
  const auto resident = [](const std::optional<OperandSpec>& operand) {
    return operand.has_value() && std::holds_alternative<client::Resident>(*operand);
  };
  return resident(options.a) || resident(options.b) || resident(options.c) ||
         resident(options.bias) || resident(options.scales_a) || resident(options.scales_b);
}

}  // namespace

void DeclareMultiplyOptions(CLI::App& command, MultiplyOptions& options) {
  DeclareOperands(command, options);
  DeclareBatch(command, options);
  DeclareArithmetic(command, options);
  DeclareKernel(command, options);
  DeclareResult(command, options);
}

std::string Contradiction(const MultiplyOptions& options) {
  if (options.no_stream && !options.keeps()) {
    return "multiply: --no-stream needs --keep or --keep-name, or the result would be lost";
  }
  if (options.no_stream && !options.output.empty()) {
    return "multiply: --no-stream leaves nothing to write to --output";
  }
  if (options.keep_as.replace && options.keep_as.name.empty()) {
    return "multiply: --keep-replace needs --keep-name";
  }
  if (options.keep_as.ttl != absl::InfiniteDuration() && !options.keeps()) {
    return "multiply: --ttl needs --keep or --keep-name";
  }
  if (options.product.leaky_slope != client::Product().leaky_slope &&
      options.product.activation != client::kLeakyRelu) {
    return "multiply: --leaky-slope needs --activation leaky_relu";
  }
  if (options.release && !HasResident(options)) {
    return "multiply: --release needs an operand that is resident on the server";
  }
  return "";
}

}  // namespace gemmd::ctl
