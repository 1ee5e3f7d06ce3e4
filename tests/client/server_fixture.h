// A server on host devices, in this process, and a client of it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/engine.h"
#include "server/server.h"

namespace gemmd::client {

class ServerTest : public ::testing::Test {
 protected:
  explicit ServerTest(std::string devices = "host") {
    ServerOptions options;
    options.engine.devices = std::move(devices);
    options.engine.device_memory_bytes = 256 * gemmd::kMiB;
    options.engine.staging_bytes = 16 * gemmd::kMiB;
    options.engine.max_queue_wait = absl::Hours(1);  // no test depends on speed
    options.address = "127.0.0.1:0";
    options.metrics_address = "";
    auto started = Server::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    client_ = Connect();
  }
  ~ServerTest() override {
    client_.reset();
    if (server_ != nullptr) {
      EXPECT_TRUE(server_->Stop(absl::Seconds(20)));
    }
  }

  std::unique_ptr<Client> Connect() {
    auto connected = Client::Connect({.address = server_->address(),
                                      .channels = 3,
                                      .chunk_bytes = 32 << 10,
                                      .unary_threshold_bytes = 16 << 10,
                                      .stripe_threshold_bytes = 256 << 10});
    EXPECT_TRUE(connected.ok()) << connected.status();
    return *std::move(connected);
  }
  // Waits for what runs in the background, then nothing may be left.
  void ExpectNothingLeft() {
    for (int i = 0; i < 500 && !client_->ListMatrices()->empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_THAT(*client_->ListMatrices(), ::testing::SizeIs(0));
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

}  // namespace gemmd::client
