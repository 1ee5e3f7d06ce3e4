// What callers see when the server, the network or the options are at fault:
// deadlines, cancellation, a server that vanishes or breaks the contract.

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/identity/certificates.h"
#include "tests/net/relay.h"

namespace gemmd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Transport kTransports[] = {Transport::kUnary, Transport::kStream, Transport::kStriped,
                                     Transport::kRowBlocks};

class FaultsTest : public ::testing::Test {
 protected:
  FaultsTest() : data_(300 * 300, 1.0f) {
    server_.faults().row_blocks = true;
    auto connected = Client::Connect({.address = server_.address(),
                                      .channels = 3,
                                      .chunk_bytes = 64 << 10,
                                      .stripe_threshold_bytes = 128 << 10});
    EXPECT_TRUE(connected.ok()) << connected.status();
    client_ = *std::move(connected);
  }

  // 300 x 300, from memory of the test's: without an owner.
  Product Square() const {
    const MatrixView view = ViewOf({.rows = 300, .cols = 300}, data_.data());
    return {.a = view, .b = view};
  }
  absl::StatusOr<ProductResult> Run(Transport transport, absl::Duration timeout) {
    return client_->Multiply(Square(), {.timeout = timeout, .transport = transport});
  }

  std::vector<float> data_;
  FakeServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(FaultsTest, ACallWithoutATimeoutEndsWhenNothingMoves) {
  const auto client = Client::Connect({.address = server_.address(),
                                       .channels = 3,
                                       .chunk_bytes = 64 << 10,
                                       .stripe_threshold_bytes = 128 << 10,
                                       .idle_timeout = absl::Milliseconds(200)});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto expect_idle = [](const absl::Status& status, const char* what) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()),
                StartsWith(absl::StrCat(what, ": nothing was sent or received for 200ms")));
  };
  server_.faults().stall = true;
  for (const Transport transport : kTransports) {
    expect_idle((*client)->Multiply(Square(), {.transport = transport}).status(), "Multiply");
  }
  expect_idle((*client)->PutMatrix(ViewOf({.rows = 300, .cols = 300}, data_.data())).status(),
              "PutMatrix");
  // A call with a timeout waits for that.
  const absl::Status late =
      (*client)->Multiply(Square(), {.timeout = absl::Milliseconds(700)}).status();
  EXPECT_EQ(late.message(), "Multiply did not end within its timeout of 700ms");
}

TEST_F(FaultsTest, DeadlineEndsEveryTransport) {
  server_.faults().stall = true;
  for (const Transport transport : kTransports) {
    const absl::Time begun = absl::Now();
    const absl::Status status = Run(transport, absl::Milliseconds(100)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(status.message(), "Multiply did not end within its timeout of 100ms");
    EXPECT_LT(absl::Now() - begun, absl::Seconds(5));
  }
  server_.faults().stall = false;
  EXPECT_TRUE(Run(Transport::kAuto, absl::Seconds(60)).ok());
}

TEST_F(FaultsTest, CancellationEndsEveryStyle) {
  server_.faults().stall = true;
  for (const Transport transport : kTransports) {
    const Canceller canceller;
    auto blocking = std::async(std::launch::async, [&] {
      return client_->Multiply(Square(), {.canceller = canceller, .transport = transport});
    });
    auto future =
        client_->MultiplyFuture(Square(), {.canceller = canceller, .transport = transport});
    std::promise<absl::Status> called;
    const Canceller own = client_->MultiplyAsync(
        Square(), {.transport = transport},
        [&](absl::StatusOr<ProductResult> result) { called.set_value(result.status()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    canceller.Cancel();
    own.Cancel();
    for (const absl::Status& status :
         {blocking.get().status(), future.get().status(), called.get_future().get()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
      EXPECT_EQ(status.message(), "Multiply was cancelled by the caller");
    }
  }
}

TEST_F(FaultsTest, CallBegunAfterCancelEndsAtOnce) {
  const Canceller canceller;
  canceller.Cancel();
  for (const Transport transport : kTransports) {
    const auto result =
        client_->Multiply(Square(), {.canceller = canceller, .transport = transport});
    EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
  }
}

TEST_F(FaultsTest, ServerVanishesInMidCall) {
  server_.faults().stall = true;
  std::vector<std::future<absl::StatusOr<ProductResult>>> futures;
  for (const Transport transport : kTransports) {
    futures.push_back(client_->MultiplyFuture(Square(), {.transport = transport}));
  }
  auto put = std::async(std::launch::async, [&] {
    return client_->PutMatrix(ViewOf({.rows = 300, .cols = 300}, data_.data()));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server_.Vanish();
  for (auto& future : futures) {
    const absl::Status status = future.get().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith(server_.address()));
  }
  EXPECT_FALSE(put.get().ok());
  const absl::Status after = Run(Transport::kAuto, absl::Seconds(10)).status();
  EXPECT_EQ(after.code(), absl::StatusCode::kUnavailable) << after;
  EXPECT_THAT(std::string(after.message()), StartsWith(server_.address()));
}

TEST_F(FaultsTest, DestroyedClientEndsItsCalls) {
  server_.faults().stall = true;
  auto future = client_->MultiplyFuture(Square(), {.transport = Transport::kStriped});
  client_.reset();
  const absl::Status status = future.get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(status.message(), "the client was destroyed");
}

TEST_F(FaultsTest, BorrowedMemoryMayGoOnceACallHasReturned) {
  server_.faults().stall = true;
  for (int i = 0; i < 20; ++i) {
    auto memory = std::make_unique<std::vector<float>>(300 * 300, 2.0f);
    const MatrixView view = ViewOf({.rows = 300, .cols = 300}, memory->data());
    const auto result =
        client_->Multiply({.a = view, .b = view},
                          {.timeout = absl::Milliseconds(1 + i),
                           .transport = i % 2 == 0 ? Transport::kStream : Transport::kStriped});
    EXPECT_FALSE(result.ok());
    // A sanitizer sees any later use.
    memory.reset();
  }
}

TEST_F(FaultsTest, JobErrorComesThrough) {
  server_.faults().job_error = static_cast<int>(absl::StatusCode::kUnimplemented);
  for (const Transport transport : kTransports) {
    const absl::Status status = Run(transport, absl::Seconds(60)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_EQ(status.message(), "a.shape is too odd");
  }
  // The operands of the striped one were deleted.
  EXPECT_TRUE(server_.MatricesBecome(0));
}

TEST_F(FaultsTest, FullStoreSendsAStripedProductAsOneStream) {
  server_.faults().refuse = [](const std::string& method) {
    return method == "PutMatrix"
               ? grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the store is full")
               : grpc::Status::OK;
  };
  const auto result = client_->Multiply(Square());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport, Transport::kStream);
  EXPECT_EQ(result->matrix.Get(299, 299), 300);
  EXPECT_TRUE(absl::IsResourceExhausted(Run(Transport::kStriped, absl::Seconds(60)).status()));
}

TEST_F(FaultsTest, CauseOfAFailedUploadIsTold) {
  // The server gives up the other stripes before it tells why.
  std::atomic<int> uploads{0};
  server_.faults().refuse = [&](const std::string& method) {
    if (method != "PutMatrix") return grpc::Status::OK;
    if (uploads++ % 3 != 2) return grpc::Status(grpc::StatusCode::ABORTED, "another call failed");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return grpc::Status(grpc::StatusCode::DATA_LOSS, "the disk is wet");
  };
  const auto put = client_->PutMatrix(ViewOf({.rows = 300, .cols = 300}, data_.data()));
  EXPECT_EQ(put.status().code(), absl::StatusCode::kDataLoss) << put.status();
  EXPECT_EQ(put.status().message(), "the disk is wet");
}

TEST_F(FaultsTest, FailedDownloadDeletesTheResult) {
  server_.faults().refuse = [](const std::string& method) {
    return method == "GetMatrix" ? grpc::Status(grpc::StatusCode::DATA_LOSS, "gone")
                                 : grpc::Status::OK;
  };
  EXPECT_EQ(Run(Transport::kStriped, absl::Seconds(60)).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_TRUE(server_.MatricesBecome(0));
}

TEST_F(FaultsTest, BrokenContractIsAnInternalError) {
  const auto message = [&](Transport transport) {
    const absl::Status status = Run(transport, absl::Seconds(60)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    return std::string(status.message());
  };
  Faults& faults = server_.faults();
  faults.wrong_offset = true;
  EXPECT_THAT(message(Transport::kStream), HasSubstr("the server sent bytes 1 to"));
  EXPECT_THAT(message(Transport::kStriped), HasSubstr("the server sent bytes"));
  faults.wrong_offset = false;
  faults.lose_last_chunk = true;
  EXPECT_THAT(message(Transport::kStream), HasSubstr("are missing"));
  EXPECT_THAT(message(Transport::kStriped), HasSubstr("are missing"));
  faults.lose_last_chunk = false;
  faults.no_result = true;
  EXPECT_THAT(message(Transport::kStream), HasSubstr("without a result"));
  faults.no_result = false;
  faults.never_complete = true;
  EXPECT_THAT(message(Transport::kStriped), HasSubstr("complete"));
  faults.never_complete = false;
  EXPECT_TRUE(server_.MatricesBecome(0));
}

TEST_F(FaultsTest, MatrixOfAnotherShapeIsRefused) {
  const auto info = client_->PutMatrix(ViewOf({.rows = 300, .cols = 300}, data_.data()));
  ASSERT_TRUE(info.ok()) << info.status();
  server_.faults().wrong_shape = true;
  const auto fetched = client_->GetMatrix(Resident::Of(*info));
  EXPECT_EQ(fetched.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(fetched.status().message()), HasSubstr("the matrix is 12345x300"));
}

TEST_F(FaultsTest, StripesOfTwoMatricesAreRefused) {
  const auto info = client_->PutMatrix(ViewOf({.rows = 300, .cols = 300}, data_.data()));
  ASSERT_TRUE(info.ok()) << info.status();
  server_.faults().wrong_id = true;
  HostMatrix memory = *HostMatrix::Allocate({.rows = 300, .cols = 300});
  const auto fetched =
      client_->GetMatrix(Resident::ById(info->id()), {.into = memory.mutable_view()});
  EXPECT_EQ(fetched.status().code(), absl::StatusCode::kInternal) << fetched.status();
  EXPECT_THAT(std::string(fetched.status().message()), HasSubstr("two matrices"));
}

// Reads a matrix by its name, in two stripes. Each test has a server of its own, whose calls it
// counts: one that was cancelled may begin late.
class GoingMatrixTest : public FaultsTest {
 protected:
  void SetUp() override {
    FaultsTest::SetUp();
    ASSERT_TRUE(client_->PutMatrix(view_, {.keep = {.name = "x"}}).ok());
    two_channels_ = *Client::Connect({.address = server_.address(),
                                      .channels = 2,
                                      .chunk_bytes = 64 << 10,
                                      .stripe_threshold_bytes = 128 << 10});
    server_.faults().refuse = [calls = calls_](const std::string& method) {
      if (method != "GetMatrix") return grpc::Status::OK;
      const int call = calls->begun++;
      if (call == 0 || call > calls->last_gone) return grpc::Status::OK;
      return grpc::Status(grpc::StatusCode::NOT_FOUND, "no matrix has id \"m1\"");
    };
  }

  absl::Status Get() {
    return two_channels_->GetMatrix(Resident::ByName("x"), {.into = memory_.mutable_view()})
        .status();
  }

  const MatrixView view_ = ViewOf({.rows = 300, .cols = 300}, data_.data());
  HostMatrix memory_ = *HostMatrix::Allocate(view_.shape);
  std::unique_ptr<Client> two_channels_;
  // The first stripe finds the name; for the calls from there to the last one the matrix has gone.
  struct Calls {
    std::atomic<int> begun = 0, last_gone = 1;
  };
  const std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
};

TEST_F(GoingMatrixTest, IsAskedForOnceMore) {
  EXPECT_EQ(Get(), absl::OkStatus());
  EXPECT_EQ(calls_->begun, 3) << "two stripes, then one call for the whole";
  EXPECT_EQ(std::memcmp(memory_.data(), data_.data(), memory_.bytes()), 0);
}

// Then the first call asks for it.
TEST_F(GoingMatrixTest, IsAskedForOnceMoreWithoutAShape) {
  const auto fetched = two_channels_->GetMatrix(Resident::ByName("x"));
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(std::memcmp(fetched->matrix.data(), data_.data(), memory_.bytes()), 0);
  EXPECT_EQ(fetched->info.name(), "x");
}

TEST_F(GoingMatrixTest, IsNotFoundWhereItDoesNotComeBack) {
  calls_->last_gone = 1000;
  EXPECT_TRUE(absl::IsNotFound(Get()));
  EXPECT_EQ(calls_->begun, 3);
}

TEST_F(GoingMatrixTest, IsNotFoundAtOnceWhereItIsNotThereAtAll) {
  ASSERT_TRUE(client_->DeleteMatrix(Resident::ByName("x")).ok());
  calls_->last_gone = 0;
  EXPECT_TRUE(absl::IsNotFound(Get()));
  EXPECT_EQ(calls_->begun, 1);
}

TEST_F(FaultsTest, WhatTheMatrixByNameBecameMustHaveTheShapeGiven) {
  const MatrixView view = ViewOf({.rows = 300, .cols = 300}, data_.data());
  ASSERT_TRUE(client_->PutMatrix(view, {.keep = {.name = "x"}}).ok());
  const auto two_channels = Client::Connect({.address = server_.address(),
                                             .channels = 2,
                                             .chunk_bytes = 64 << 10,
                                             .stripe_threshold_bytes = 128 << 10});
  ASSERT_TRUE(two_channels.ok()) << two_channels.status();
  std::atomic<int> begun = 0;
  server_.faults().refuse = [&](const std::string& method) {
    if (method != "GetMatrix" || begun++ != 1) return grpc::Status::OK;
    server_.faults().wrong_shape = true;  // the next call's, which is for the whole
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no matrix has id \"m1\"");
  };
  HostMatrix memory = *HostMatrix::Allocate(view.shape);
  const auto got =
      (*two_channels)->GetMatrix(Resident::ByName("x"), {.into = memory.mutable_view()});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << got.status();
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("the matrix is 12345x300"));
  EXPECT_EQ(begun, 3);
}

// What a failed call left under a name of its own is deleted. What has replaced another
// matrix is not: that one is gone.
TEST_F(FaultsTest, AReplacementThatMayHaveBeenDoneIsNotUndone) {
  const MatrixView view = ViewOf({.rows = 30, .cols = 30}, data_.data());
  server_.faults().never_complete = true;
  EXPECT_FALSE(client_->PutMatrix(view, {.keep = {.name = "new", .replace = true}}).ok());
  EXPECT_FALSE(client_->PutMatrix(view, {.keep = {.name = "plain"}}).ok());
  EXPECT_TRUE(server_.MatricesBecome(1));
  EXPECT_TRUE(client_->StatMatrix(Resident::ByName("new")).ok());
}

TEST(Devices, AProductGoesToADeviceThatIsHealthyNow) {
  FakeServer server;
  std::atomic<bool> lost{false};
  server.faults().describe = [&](::gemm::v1::GetServerInfoResponse* info) {
    info->mutable_devices(0)->set_name("cuda:0");
    info->mutable_devices(0)->set_healthy(!lost);
    for (const char* name : {"cuda:1", "cuda:2"}) {
      auto* device = info->add_devices();
      device->set_name(name);
      device->set_healthy(true);
    }
  };
  const auto client =
      Client::Connect({.address = server.address(), .channels = 3, .chunk_bytes = 64 << 10});
  ASSERT_TRUE(client.ok()) << client.status();
  lost = true;
  const std::vector<float> data(300 * 300, 1.0f);
  const MatrixView view = ViewOf({.rows = 300, .cols = 300}, data.data());
  for (int i = 0; i < 6; ++i) {
    const auto result =
        (*client)->Multiply({.a = view, .b = view}, {.transport = Transport::kStriped});
    ASSERT_TRUE(result.ok()) << result.status();
  }
  EXPECT_THAT(server.upload_devices(), ::testing::ElementsAre("cuda:1", "cuda:2"));
}

TEST(Keepalive, APeerThatIsGoneWithoutAWordEndsACallWithoutADeadline) {
  FakeServer server;
  Relay relay(server.address());
  const auto client = Client::Connect({.address = relay.address(),
                                       .channels = 1,
                                       .chunk_bytes = 64 << 10,
                                       .keepalive_interval = absl::Milliseconds(500),
                                       .keepalive_timeout = absl::Milliseconds(500)});
  ASSERT_TRUE(client.ok()) << client.status();
  const std::vector<float> data(300 * 300, 1.0f);
  const MatrixView view = ViewOf({.rows = 300, .cols = 300}, data.data());
  server.faults().stall = true;
  std::vector<std::future<absl::Status>> calls;
  calls.push_back(
      std::async(std::launch::async, [&] { return (*client)->GetServerInfo().status(); }));
  for (const Transport transport : kTransports) {
    calls.push_back(std::async(std::launch::async, [&, transport] {
      return (*client)->Multiply({.a = view, .b = view}, {.transport = transport}).status();
    }));
  }
  relay.Freeze();
  for (auto& call : calls) {
    ASSERT_EQ(call.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    const absl::Status status = call.get();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith(relay.address()));
  }
  server.faults().stall = false;
}

TEST(Connect, NamesTheAddressThatDoesNotAnswer) {
  const auto client =
      Client::Connect({.address = "127.0.0.1:1", .connect_timeout = absl::Seconds(5)});
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(client.status().message()), StartsWith("127.0.0.1:1: "));
}

TEST(Connect, NamesTheOptionThatIsWrong) {
  const auto message = [](ClientOptions options) {
    const absl::Status status = Client::Connect(std::move(options)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message({.channels = 0}), "channels is 0; it must be 1 to 64");
  EXPECT_EQ(message({.chunk_bytes = 100}), "chunk_bytes is 100; it must be 4096 to 67108864");
  EXPECT_THAT(message({.address = "127.0.0.1:117587"}),
              HasSubstr("address is '127.0.0.1:117587'; it must be host:port, with a port of 1 to "
                        "65535, or unix:path"));
  EXPECT_THAT(message({.idle_timeout = absl::ZeroDuration()}),
              HasSubstr("idle_timeout is 0; it must be above 0"));
  EXPECT_THAT(message({.connect_timeout = absl::ZeroDuration()}),
              HasSubstr("connect_timeout is 0; it must be above 0"));
  EXPECT_EQ(message({.keepalive_interval = absl::InfiniteDuration()}),
            "keepalive_interval is inf; it must be 1ms to 24h");
  EXPECT_THAT(message({.keepalive_timeout = absl::ZeroDuration()}),
              HasSubstr("keepalive_timeout is 0"));
  EXPECT_THAT(message({.tls = TlsOptions{.root_certificates_file = "/nowhere.pem"}}),
              HasSubstr("tls.root_certificates_file is '/nowhere.pem'"));
  EXPECT_THAT(message({.tls = TlsOptions{.private_key_file = "/nowhere.pem"}}),
              HasSubstr("both or neither"));
}

TEST(ClientOptions, TlsFilesThatDoNotHoldWhatTheyAreForAreNamed) {
  const TestCa ca;
  const KeyedCertificate mine = ca.Issue({.common_name = "alice"});
  const KeyedCertificate other = ca.Issue({.common_name = "bob"});
  const auto file = [](const std::string& name, const std::string& content) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/tls_files.", name);
    WriteFileAtOnce(path, content);
    return path;
  };
  const std::string roots = file("ca", ca.certificate()), none = file("none", "no PEM at all\n"),
                    chain = file("chain", mine.certificate), key = file("key", mine.key),
                    others = file("others", other.key);
  const auto message = [](const TlsOptions& tls) {
    const absl::Status status = Client::Connect({.address = "localhost:1", .tls = tls}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(
      message({.root_certificates_file = none}),
      absl::StrCat("tls.root_certificates_file is '", none, "', which has no certificate in PEM"));
  EXPECT_EQ(
      message({.root_certificates_file = roots,
               .private_key_file = key,
               .certificate_chain_file = none}),
      absl::StrCat("tls.certificate_chain_file is '", none, "', which has no certificate in PEM"));
  EXPECT_EQ(message({.root_certificates_file = roots,
                     .private_key_file = none,
                     .certificate_chain_file = chain}),
            absl::StrCat("tls.private_key_file is '", none,
                         "', which has no private key in PEM without a password"));
  EXPECT_EQ(message({.root_certificates_file = roots,
                     .private_key_file = others,
                     .certificate_chain_file = chain}),
            absl::StrCat("tls.private_key_file is '", others,
                         "', whose key is not that of the certificate in '", chain, "'"));
}

}  // namespace
}  // namespace gemmd::client
