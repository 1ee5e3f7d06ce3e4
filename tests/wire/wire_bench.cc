// Measures what gemmd adds to the wire. The server under test and
// `wire_bench serve-baseline` run as processes of their own.
#include "tests/wire/wire_bench.h"

#include "CLI/CLI.hpp"
#include "proto/lock_order.h"
#include "tests/wire/baseline_server.h"

namespace {

// "name=address" each, or an address alone, which gets `name`.
std::vector<gemmd::wire::Endpoint> Endpoints(const std::vector<std::string>& words,
                                             const std::string& name) {
  std::vector<gemmd::wire::Endpoint> endpoints;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      endpoints.push_back({name, word});
    } else {
      endpoints.push_back({word.substr(0, equals), word.substr(equals + 1)});
    }
  }
  return endpoints;
}

// How a caller of `options` is given on the command line.
void AddCaller(CLI::App& command, gemmd::wire::CallerOptions& options) {
  command.add_option("--server", options.server, "address of gemmd")->required();
  command.add_option("--ca", options.ca, "its CA, in PEM; left out: no TLS");
}

// The options that all loads of a device have.
template <typename Options>
void AddLoad(CLI::App& command, Options& options) {
  command.add_option("--seconds", options.seconds, "time of each measurement")
      ->check(CLI::Range(0.1, 1e5))
      ->capture_default_str();
  command.add_flag("--keep", options.keep_result, "large results stay on the device");
  command.add_option("--json", options.json, "write the results here");
  command.add_flag("--check", options.check, "fail where a bound is missed");
}

struct EndpointWords {
  std::vector<std::string> servers, baselines;
};

void AddSmall(CLI::App& app, gemmd::wire::SmallOptions& options, EndpointWords& words,
              int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "small", "Small products a second, beside the same bytes both ways without a product");
  command->add_option("--server", words.servers, "[NAME=]ADDRESS of a gemmd; may be repeated")
      ->required();
  command
      ->add_option("--baseline", words.baselines,
                   "[NAME=]ADDRESS of a serve-baseline with --answer-bytes of a result")
      ->required();
  command->add_option("--callers", options.callers, "each with one product under way")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--channels", options.channels, "over which they are spread")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--in-flight", options.in_flight, "jobs under way on the stream")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--extent", options.extent)->check(CLI::Range(1, 256))->capture_default_str();
  command->add_option("--seconds", options.seconds, "time of each measurement")
      ->check(CLI::Range(0.1, 1e5))
      ->capture_default_str();
  command->add_option("--rounds", options.rounds, "of the measurements, in turns; odd for a median")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--json", options.json, "write the results here");
  command->add_flag("--check", options.check, "fail where a bound is missed");
  command->callback([&] {
    options.servers = Endpoints(words.servers, "gemmd");
    options.baselines = Endpoints(words.baselines, "raw");
    exit_code = gemmd::wire::BenchSmall(options);
  });
}

void AddLatency(CLI::App& app, gemmd::wire::LatencyOptions& options, int& exit_code) {
  CLI::App* command = app.add_subcommand("latency", "Products beside an empty call");
  command->add_option("--server", options.server, "address of gemmd")->required();
  command->add_option("--baseline", options.baseline, "address of serve-baseline")->required();
  command->add_option("--torch", options.torch,
                      "address of torch_server.py; left out: not measured");
  command->add_option("--small-calls", options.small_calls, "calls of each small kind")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--large-calls", options.large_calls, "calls of each large kind")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--torch-calls", options.torch_calls, "calls to it")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--large-extent", options.large_extent, "extent of the large product")
      ->check(CLI::Range(64, 16384))
      ->capture_default_str();
  command->add_option("--large-channels", options.large_channels, "channels of the large product")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      ->add_option("--transport", options.transports,
                   "how the large product is sent: auto, row-blocks, striped, stream; several "
                   "take turns")
      ->delimiter(',')
      ->check(CLI::IsMember({"auto", "row-blocks", "striped", "stream"}))
      ->capture_default_str();
  command
      ->add_option("--row-blocks-per-channel", options.row_blocks_per_channel,
                   "blocks of rows of the large product, for each channel")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  command->add_option("--kernel", options.kernel,
                      "kernel of the large product. Left out: the server's choice");
  command->add_flag("--large-only", options.large_only, "measure the large product alone");
  command->add_option("--json", options.json, "write the results here");
  command->add_flag("--check", options.check, "fail where a bound is missed");
  command->callback([&] { exit_code = gemmd::wire::BenchLatency(options); });
}

void AddFairness(CLI::App& app, gemmd::wire::FairnessOptions& options, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "fairness",
      "Small products beside another caller's large ones. Needs a server with --max-queue-wait=1h "
      "and room for the jobs: --max-queued-jobs, --device-memory-bytes");
  AddCaller(*command, options.large);
  command->add_option("--large-token-file", options.large.token_file, "who sends the large ones");
  command->add_option("--small-token-file", options.small.token_file, "who sends the small ones");
  command->add_option("--in-flight", options.in_flight, "large products at the same time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--large-extent", options.large_extent)->capture_default_str();
  command->add_option("--large-batch", options.large_batch, "products in each large one")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  command->add_option("--small-extent", options.small_extent)->capture_default_str();
  command->add_option("--small-rate", options.small_rate,
                      "small products a second, at most: on few cores they cost client and server "
                      "what the large ones would use. 0: one after the other");
  command->add_option("--rounds", options.rounds, "of the four measurements, in turns")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  AddLoad(*command, options);
  command->callback([&] {
    options.small.server = options.large.server;
    options.small.ca = options.large.ca;
    exit_code = gemmd::wire::BenchFairness(options);
  });
}

struct SharesWords {
  gemmd::wire::CallerOptions caller;
  std::vector<std::string> tokens;  // WEIGHT=FILE
  int callers = 0;                  // without tokens: connections of weight 1
};

void AddShares(CLI::App& app, gemmd::wire::SharesOptions& options, SharesWords& words,
               int& exit_code) {
  CLI::App* command = app.add_subcommand("shares", "What callers get done beside each other");
  AddCaller(*command, words.caller);
  command->add_option("--token", words.tokens,
                      "WEIGHT=FILE: a caller's token, and the weight that the server gives it; "
                      "may be repeated");
  command->add_option("--callers", words.callers, "without tokens: as many connections");
  command->add_option("--in-flight", options.in_flight, "products of each at the same time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--extent", options.extent)->capture_default_str();
  AddLoad(*command, options);
  command->callback([&] {
    for (const std::string& word : words.tokens) {
      gemmd::wire::WeightedCaller caller{.caller = words.caller, .weight = std::stod(word)};
      caller.caller.token_file = word.substr(word.find('=') + 1);
      options.callers.push_back(caller);
    }
    options.callers.resize(options.callers.size() + static_cast<size_t>(words.callers),
                           {.caller = words.caller});
    exit_code = gemmd::wire::BenchShares(options);
  });
}

void AddOverload(CLI::App& app, gemmd::wire::OverloadOptions& options, int& exit_code) {
  CLI::App* command = app.add_subcommand("overload", "More products than the server can make");
  AddCaller(*command, options.caller);
  command->add_option("--token-file", options.caller.token_file, "the token of the caller");
  command->add_option("--pid", options.pid, "process of the server, for its memory");
  command->add_option("--factor", options.factor, "of the peak")->capture_default_str();
  command->add_option("--deadline", options.deadline_seconds, "seconds that each call has")
      ->check(CLI::Range(1e-3, 1e4))
      ->capture_default_str();
  command->add_option("--peak-seconds", options.peak_seconds, "how long the peak is looked for")
      ->check(CLI::Range(0.1, 1e4))
      ->capture_default_str();
  command->add_option("--peak-in-flight", options.peak_in_flight)
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--extent", options.extent)->capture_default_str();
  command->add_option("--inner", options.inner,
                      "the inner extent: small, and the answers take longer than the products. "
                      "0: as --extent");
  AddLoad(*command, options);
  command->callback([&] { exit_code = gemmd::wire::BenchOverload(options); });
}

}  // namespace

int main(int argc, char** argv) {
  gemmd::LeaveLockOrderUnchecked();  // as gemmd and gemmctl do; the baseline, too
  CLI::App app{"Measures what gemmd adds to the wire"};
  app.require_subcommand(1);
  int exit_code = 0;

  gemmd::wire::BaselineOptions baseline;
  CLI::App* serve = app.add_subcommand("serve-baseline", "A server that does nothing");
  serve->add_option("--listen", baseline.listen, "address to listen on")->capture_default_str();
  serve->add_option("--bytes", baseline.bytes, "size of the matrix that it sends")
      ->capture_default_str();
  serve
      ->add_option("--answer-bytes", baseline.answer_bytes,
                   "elements in the answers to products; 0: empty answers")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  serve->callback([&] { exit_code = gemmd::wire::ServeBaseline(baseline); });

  gemmd::wire::TransferOptions transfers;
  std::vector<std::string> servers, baselines;
  CLI::App* both = app.add_subcommand("transfers", "PutMatrix and GetMatrix beside raw transfers");
  both->add_option("--server", servers, "[NAME=]ADDRESS of a gemmd; may be repeated")->required();
  both->add_option("--baseline", baselines,
                   "[NAME=]ADDRESS of a serve-baseline; may be repeated, as for one with each "
                   "allocator")
      ->required();
  both->add_option("--bytes", transfers.bytes, "size of the matrix")->capture_default_str();
  both->add_option("--channels", transfers.channels, "numbers of channels to try")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  both->add_option("--rounds", transfers.rounds,
                   "transfers of each, in turn; odd for a true median")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  both->add_option("--chunk-bytes", transfers.chunk_bytes, "payload of a message that is sent")
      ->check(CLI::Range(1, 64 << 20))
      ->capture_default_str();
  both->add_option("--json", transfers.json, "write the results here");
  both->add_flag("--check", transfers.check, "fail where a bound is missed");
  both->callback([&] {
    transfers.servers = Endpoints(servers, "gemmd");
    transfers.baselines = Endpoints(baselines, "raw");
    exit_code = gemmd::wire::BenchTransfers(transfers);
  });

  gemmd::wire::LatencyOptions latency;
  AddLatency(app, latency, exit_code);

  gemmd::wire::SmallOptions small;
  EndpointWords small_words;
  AddSmall(app, small, small_words, exit_code);

  gemmd::wire::SecurityOptions security;
  CLI::App* secure = app.add_subcommand("security", "What TLS and tokens cost");
  secure->add_option("--plain", security.plain, "address of gemmd without TLS")->required();
  secure->add_option("--tls", security.tls, "address of gemmd with TLS and without callers");
  secure->add_option("--tokens", security.tokens, "address of gemmd with TLS and callers");
  secure->add_option("--ca", security.ca, "CA of both, in PEM");
  secure->add_option("--token-file", security.token_file, "the token of a caller");
  secure->add_option("--calls", security.calls, "products of each server, interleaved")
      ->check(CLI::Range(100, 1000000))
      ->capture_default_str();
  secure->add_option("--rounds", security.rounds, "uploads to each, interleaved")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  secure->add_option("--bytes", security.bytes, "size of the matrix")->capture_default_str();
  secure->add_option("--json", security.json, "write the results here");
  secure->callback([&] { exit_code = gemmd::wire::BenchSecurity(security); });

  gemmd::wire::FairnessOptions fairness;
  AddFairness(app, fairness, exit_code);
  gemmd::wire::SharesOptions shares;
  SharesWords share_words;
  AddShares(app, shares, share_words, exit_code);
  gemmd::wire::OverloadOptions overload;
  AddOverload(app, overload, exit_code);

  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
