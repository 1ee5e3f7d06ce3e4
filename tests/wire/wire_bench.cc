// Measures what gemmd adds to the wire. The server under test and
// `wire_bench serve-baseline` run as processes of their own.
#include "tests/wire/wire_bench.h"

#include "CLI/CLI.hpp"
#include "tests/wire/baseline_server.h"

int main(int argc, char** argv) {
  CLI::App app{"Measures what gemmd adds to the wire"};
  app.require_subcommand(1);
  int exit_code = 0;

  std::string listen = "127.0.0.1:0";
  CLI::App* serve = app.add_subcommand("serve-baseline", "A server that drops what it gets");
  serve->add_option("--listen", listen, "address to listen on")->capture_default_str();
  serve->callback([&] { exit_code = gemmd::wire::ServeBaseline(listen); });

  gemmd::wire::UploadOptions upload;
  CLI::App* put = app.add_subcommand("upload", "PutMatrix beside a raw upload");
  put->add_option("--server", upload.server, "address of gemmd")->required();
  put->add_option("--baseline", upload.baseline, "address of serve-baseline")->required();
  put->add_option("--bytes", upload.bytes, "size of the matrix")->capture_default_str();
  put->add_option("--channels", upload.channels, "numbers of channels to try")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  put->add_option("--rounds", upload.rounds, "uploads to each, interleaved; odd for a true median")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  put->add_option("--chunk-bytes", upload.chunk_bytes, "payload of a message")
      ->check(CLI::Range(1, 64 << 20))
      ->capture_default_str();
  put->add_option("--json", upload.json, "write the results here");
  put->add_flag("--check", upload.check, "fail where a bound is missed");
  put->callback([&] { exit_code = gemmd::wire::BenchUpload(upload); });

  gemmd::wire::LatencyOptions latency;
  CLI::App* time = app.add_subcommand("latency", "Products beside an empty call");
  time->add_option("--server", latency.server, "address of gemmd")->required();
  time->add_option("--baseline", latency.baseline, "address of serve-baseline")->required();
  time->add_option("--peer", latency.peer, "address of torch_peer.py; left out: not measured");
  time->add_option("--small-calls", latency.small_calls, "calls of each small kind")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  time->add_option("--large-calls", latency.large_calls, "calls of each large kind")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  time->add_option("--peer-calls", latency.peer_calls, "calls to the peer")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  time->add_option("--large-extent", latency.large_extent, "extent of the large product")
      ->check(CLI::Range(64, 16384))
      ->capture_default_str();
  time->add_option("--json", latency.json, "write the results here");
  time->add_flag("--check", latency.check, "fail where a bound is missed");
  time->callback([&] { exit_code = gemmd::wire::BenchLatency(latency); });

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

  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
