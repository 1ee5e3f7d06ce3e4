// gemmctl multiply: one product, from files or from matrices on the server.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/ctl/checks/verify.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/commands/multiply_options.h"
#include "client/ctl/commands/multiply_size.h"
#include "client/ctl/load/clock.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/progress_bar.h"
#include "client/ctl/output/render.h"
#include "gemmd/client/npy.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

constexpr uint64_t kSampleSeed = 1;

// --npy-dtype is meant for the files that leave their type open: f32 scales of fp8 matrices do not.
absl::StatusOr<client::HostMatrix> ReadOperand(const std::string& path,
                                               std::optional<client::DataType> dtype) {
  absl::StatusOr<client::HostMatrix> matrix = client::ReadNpy(path, dtype);
  if (matrix.ok() || !dtype.has_value()) return matrix;
  absl::StatusOr<client::HostMatrix> as_it_says = client::ReadNpy(path, std::nullopt);
  return as_it_says.ok() ? std::move(as_it_says) : std::move(matrix);
}

// The operand to send; a file is read here.
absl::StatusOr<client::Operand> ToOperand(const OperandSpec& spec, const MultiplyOptions& options) {
  if (const auto* resident = std::get_if<client::Resident>(&spec)) {
    client::Resident operand = *resident;
    operand.release = options.release;
    return operand;
  }
  if (const auto* generated = std::get_if<client::Generated>(&spec)) return *generated;
  const auto matrix = ReadOperand(std::get<NpyFile>(spec).path, options.npy_dtype);
  if (!matrix.ok()) return matrix.status();
  return matrix->view();
}

absl::StatusOr<client::Product> BuildProduct(const MultiplyOptions& options) {
  client::Product product = options.product;
  auto a = ToOperand(options.a, options);
  if (!a.ok()) return a.status();
  product.a = *std::move(a);
  auto b = ToOperand(options.b, options);
  if (!b.ok()) return b.status();
  product.b = *std::move(b);
  for (const auto& [given, operand] :
       {std::pair(&options.c, &product.c), std::pair(&options.bias, &product.bias),
        std::pair(&options.scales_a, &product.scales_a),
        std::pair(&options.scales_b, &product.scales_b)}) {
    if (!given->has_value()) continue;
    auto one = ToOperand(**given, options);
    if (!one.ok()) return one.status();
    *operand = *std::move(one);
  }
  TakeLinesInEitherOrder(options.group, product);
  product.result.fetch = !options.no_stream;
  if (options.keeps()) product.result.keep = options.keep_as;
  return product;
}

// The shape of an operand; for a resident one the server is asked. PERMISSION_DENIED where the
// caller may multiply a matrix, but not look at it.
absl::StatusOr<client::Shape> ShapeOf(const Context& context, client::Client& client,
                                      const client::Operand& operand) {
  if (const auto* view = std::get_if<client::MatrixView>(&operand)) return view->shape;
  if (const auto* generated = std::get_if<client::Generated>(&operand)) return generated->shape;
  const auto info = client.StatMatrix(std::get<client::Resident>(operand), Call(context));
  if (!info.ok()) return info.status();
  return client::FromProto(info->shape());
}

// The deadlines of the product, and of a transfer of all its matrices.
struct Deadlines {
  absl::Duration product;
  absl::Duration transfer;
};

Deadlines DeadlinesOf(const client::Product& product, const client::Shape& a,
                      const client::Shape& b) {
  const ProductWork work = WorkOf(product, a, b);
  // C, the bias and the result have at most eight bytes an element.
  const double bytes =
      static_cast<double>(a.bytes()) + static_cast<double>(b.bytes()) + 24 * work.results;
  Deadlines deadlines{.product = ProductDeadline(bytes, work.flops),
                      .transfer = TransferDeadline(bytes)};
  // The server's own limit should expire first, so that its error is reported.
  if (product.server_timeout != absl::InfiniteDuration()) {
    deadlines.product = std::max(deadlines.product, product.server_timeout + kQuestionDeadline);
  }
  return deadlines;
}

// Makes the product one of the matrices that the names mean now, as they are downloaded to
// verify it. If another caller replaces one, the server says so.
absl::Status FixVersions(const Context& context, client::Client& client, client::Product& product) {
  client::Operand* const operands[] = {&product.a,
                                       &product.b,
                                       product.c ? &*product.c : nullptr,
                                       product.bias ? &*product.bias : nullptr,
                                       product.scales_a ? &*product.scales_a : nullptr,
                                       product.scales_b ? &*product.scales_b : nullptr};
  for (client::Operand* operand : operands) {
    auto* resident = operand == nullptr ? nullptr : std::get_if<client::Resident>(operand);
    if (resident == nullptr) continue;
    const auto info = client.StatMatrix(*resident, Call(context));
    if (!info.ok()) return info.status();
    resident->version = info->version();
  }
  return absl::OkStatus();
}

absl::StatusOr<HostOperands> OperandsOf(client::Client& client, const client::Product& product,
                                        const client::CallOptions& call) {
  HostOperands operands;
  operands.known = WhatIsKnown(product.a, product.b);
  const auto load = [&](const client::Operand& operand, client::MatrixView& into) -> absl::Status {
    auto elements = ElementsOf(client, operand, call);
    if (!elements.ok()) return elements.status();
    into = *std::move(elements);
    return absl::OkStatus();
  };
  absl::Status status = load(product.a, operands.a);
  if (status.ok()) status = load(product.b, operands.b);
  if (status.ok() && product.c.has_value()) status = load(*product.c, operands.c);
  if (status.ok() && product.bias.has_value()) status = load(*product.bias, operands.bias);
  if (status.ok() && product.scales_a) status = load(*product.scales_a, operands.scales_a);
  if (status.ok() && product.scales_b) status = load(*product.scales_b, operands.scales_b);
  if (!status.ok()) return status;
  return operands;
}

absl::StatusOr<gemm::Agreement> Verify(client::Client& client, const MultiplyOptions& options,
                                       const client::Product& product, const HostOperands& operands,
                                       const client::ProductResult& result,
                                       const client::CallOptions& call) {
  client::MatrixView elements = result.matrix.view();
  if (options.no_stream) {
    auto fetched = ElementsOf(client, client::Resident::Of(*result.kept), call);
    if (!fetched.ok()) return fetched.status();
    elements = *std::move(fetched);
  }
  return CheckProduct(product, operands, result.report.compute(), elements, options.verify_samples,
                      kSampleSeed);
}

const char* TransportName(client::Transport transport) {
  switch (transport) {
    case client::Transport::kUnary:
      return "unary";
    case client::Transport::kStream:
      return "stream";
    case client::Transport::kStriped:
      return "striped";
    case client::Transport::kRowBlocks:
      return "row-blocks";
    case client::Transport::kAuto:
      break;
  }
  return "auto";
}

Json ResultJson(const MultiplyOptions& options, const client::ProductResult& result,
                const std::optional<gemm::Agreement>& agreement) {
  Json json = {{"report", ToJson(result.report)},
               {"transport", TransportName(result.transport)},
               {"bytes_sent", result.bytes_sent},
               {"bytes_received", result.bytes_received},
               {"elapsed_seconds", absl::ToDoubleSeconds(result.elapsed)}};
  if (!options.output.empty()) json["output"] = options.output;
  if (result.kept.has_value()) json["kept"] = ToJson(*result.kept);
  if (agreement.has_value()) {
    json["verification"] = {{"right", IsRight(*agreement)},
                            {"elements_checked", agreement->checked},
                            {"worst_error_over_bound", agreement->worst_ratio},
                            {"worst_absolute_error", agreement->worst_absolute_error},
                            {"resolution", agreement->resolution},
                            {"worst_row", agreement->worst_row},
                            {"worst_col", agreement->worst_col}};
  }
  return json;
}

void PrintTable(const Context& context, const MultiplyOptions& options,
                const client::ProductResult& result,
                const std::optional<gemm::Agreement>& agreement, gemm::Elements known) {
  Table summary = SummaryTable();
  AddReport(summary, result.report);
  summary.Add({"elapsed ms",
               absl::StrCat(MillisecondsText(result.elapsed), " (", TransportName(result.transport),
                            ", ", BytesText(static_cast<double>(result.bytes_sent)), " sent, ",
                            BytesText(static_cast<double>(result.bytes_received)), " received)")});
  if (result.kept.has_value()) {
    summary.Add(
        {"kept", absl::StrCat("id:", result.kept->id(), result.kept->name().empty() ? "" : " @",
                              result.kept->name())});
  }
  if (!options.output.empty()) summary.Add({"output", options.output});
  if (agreement.has_value()) {
    summary.Add({"verified", absl::StrCat(agreement->checked, " elements, largest error ",
                                          NumberText(agreement->worst_absolute_error), ", ",
                                          NumberText(agreement->worst_ratio), " of the bound")});
    summary.Add({"resolution", ExplainResolution(*agreement, known)});
  }
  summary.Print(context.out, context.width);
}

// The error of a product, with a remark for users of numpy, where a vector is a row or a column as
// it fits.
absl::Status WithVectors(const absl::Status& status, const MultiplyOptions& options) {
  if (!absl::IsInvalidArgument(status)) return status;
  std::string text(status.message());
  for (const auto& [operand, option] :
       {std::pair(&options.a, "--transpose-a"), std::pair(&options.b, "--transpose-b")}) {
    const auto* file = std::get_if<NpyFile>(operand);
    if (file == nullptr) continue;
    const auto header = client::StatNpy(file->path, options.npy_dtype);
    if (!header.ok() || header->dimensions != 1) continue;
    absl::StrAppend(&text, "; ", file->path, " has one dimension and is read as 1 x ",
                    header->shape.cols, ", which ", option, " makes ", header->shape.cols, " x 1");
  }
  return absl::Status(status.code(), text);
}

absl::StatusOr<client::ProductResult> Multiply(const Context& context, client::Client& client,
                                               const MultiplyOptions& options,
                                               const client::Product& product,
                                               absl::Duration deadline) {
  SteadyClock clock;
  ProgressBar bar(context.err, context.err_is_terminal, "multiply", [&] { return clock.Now(); });
  client::CallOptions call = Call(context, deadline);
  call.transport = options.transport;
  call.progress = [&](uint64_t done, uint64_t total) { bar.Update(done, total); };
  return client.Multiply(product, call);
}

absl::StatusOr<std::optional<client::NpyOutput>> OpenOutput(const std::string& path) {
  if (path.empty()) return std::nullopt;
  absl::StatusOr<client::NpyOutput> output = client::NpyOutput::Open(path);
  if (!output.ok()) return output.status();
  return std::optional<client::NpyOutput>(*std::move(output));
}

int Run(const Context& terminal, const MultiplyOptions& options) {
  const Context context = Beside(terminal, {options.output});
  const std::string wrong = Contradiction(options);
  if (!wrong.empty()) return FailUsage(context, wrong);
  // Before everything: --release would free operands for a result that cannot be written.
  auto output = OpenOutput(options.output);
  if (!output.ok()) return Fail(context, output.status());
  auto product = BuildProduct(options);
  if (!product.ok()) return Fail(context, product.status());
  const auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const auto a = ShapeOf(context, **client, product->a);
  const auto b = ShapeOf(context, **client, product->b);
  Deadlines deadlines{.product = kUnknownProductDeadline, .transfer = kUnknownProductDeadline};
  if (a.ok() && b.ok()) {
    product->group = SizesOfGroup(options.group, *product, *a, *b);
    deadlines = DeadlinesOf(*product, *a, *b);
  } else {
    const absl::Status& refused = a.ok() ? b.status() : a.status();
    const bool needed = options.verify || !options.group.extents.empty();
    if (needed || !absl::IsPermissionDenied(refused)) return Fail(context, refused);
  }
  const client::CallOptions transfer = Call(context, deadlines.transfer);
  HostOperands operands;
  if (options.verify) {
    // Download them before the product, which may release them.
    const absl::Status fixed = FixVersions(context, **client, *product);
    if (!fixed.ok()) return Fail(context, fixed);
    auto loaded = OperandsOf(**client, *product, transfer);
    if (!loaded.ok()) return Fail(context, loaded.status());
    operands = *std::move(loaded);
  }
  const auto result = Multiply(context, **client, options, *product, deadlines.product);
  if (!result.ok()) return Fail(context, WithVectors(result.status(), options));
  if (output->has_value()) {
    const absl::Status written = (*output)->Write(result->matrix.view());
    if (!written.ok()) return Fail(context, written);
  }
  std::optional<gemm::Agreement> agreement;
  if (options.verify) {
    const auto checked = Verify(**client, options, *product, operands, *result, transfer);
    if (!checked.ok()) return Fail(context, checked.status());
    agreement = *checked;
  }
  if (context.global.json) {
    PrintJson(context, ResultJson(options, *result, agreement));
  } else {
    PrintTable(context, options, *result, agreement, operands.known);
  }
  if (agreement.has_value() && !IsRight(*agreement)) {
    context.err << "gemmctl: verification failed: " << Explain(*agreement) << '\n';
    return kExitWrongProduct;
  }
  return kExitOk;
}

}  // namespace

void AddMultiply(CLI::App& app, Context& context) {
  const auto options = std::make_shared<MultiplyOptions>();
  CLI::App* command =
      app.add_subcommand("multiply", "Multiply two matrices: act(alpha A B + beta C + bias)");
  DeclareMultiplyOptions(*command, *options);
  command->footer(absl::StrCat(
      "An OPERAND is ", kOperandHelp, ".\n",
      "\n"
      "Examples:\n"
      "  gemmctl multiply A.npy B.npy -o C.npy\n"
      "  gemmctl multiply X.npy X.npy --transpose-b -o gram.npy --verify\n"
      "  gemmctl multiply S.npy S.npy --verify   # of -1, 0, 1: sees every error\n"
      "  gemmctl multiply X.npy @weights --bias b.npy --activation relu -o Y.npy\n"
      "  gemmctl multiply A.npy B.npy --c C.npy --beta 0.5 --alpha 2 -o D.npy\n"
      "  gemmctl multiply random:4096x4096:bf16:1 random:4096x4096:bf16:2 --keep-name P "
      "--no-stream\n"
      "  gemmctl multiply random:6400x64:f16:1 random:64x32:f16:2 --batch 100 --share b --verify\n"
      "  gemmctl multiply tokens.npy @experts --group-m 512,0,37,512 -o Y.npy --verify\n"
      "  gemmctl multiply A.npy B.npy --kernel host_openblas --json"));
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
