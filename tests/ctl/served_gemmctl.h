// gemmctl in this process, against a service whose answers a test writes.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client/ctl/app.h"

namespace gemmd::ctl {

template <typename Service>
class ServedGemmctl : public ::testing::Test {
 protected:
  ServedGemmctl() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  // Returns the exit status. What was printed is in `out_` and `err_`, of this run alone.
  int Gemmctl(std::vector<const char*> words) {
    words.insert(words.begin(), {"gemmctl", "--address", address_.c_str()});
    out_.str("");
    err_.str("");
    return RunGemmctl(static_cast<int>(words.size()), words.data(), {.out = out_, .err = err_});
  }

  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::ostringstream out_;
  std::ostringstream err_;
};

}  // namespace gemmd::ctl
