#include "tests/soak/monitor.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gemmd::soak {
namespace {

// A connected socket, or -1.
int ConnectTo(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  int fd = -1;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
    const timeval limit = {.tv_sec = 5, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  return fd;
}

// The whole answer to a GET with HTTP/1.0's end of answer: the connection's.
std::string HttpGet(const std::string& address, const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(address, ':');
  const int fd = parts.size() == 2 ? ConnectTo(parts[0], parts[1]) : -1;
  if (fd < 0) return "";
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", address, "\r\nConnection: close\r\n\r\n");
  std::string answer;
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(request.size())) {
    char buffer[1 << 16];
    for (ssize_t got = 0; (got = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, got);
    }
  }
  close(fd);
  return answer;
}

}  // namespace

absl::StatusOr<std::map<std::string, double>> Scrape(const std::string& address) {
  std::map<std::string, double> families;
  for (const absl::string_view line : absl::StrSplit(HttpGet(address, "/metrics"), '\n')) {
    if (line.empty() || line[0] == '#' || !absl::StartsWith(line, "gemmd_")) continue;
    const size_t space = line.rfind(' ');
    double value = 0;
    if (space == absl::string_view::npos || !absl::SimpleAtod(line.substr(space + 1), &value)) {
      continue;
    }
    families[std::string(line.substr(0, line.find_first_of("{ ")))] += value;
  }
  if (families.empty()) {
    return absl::UnavailableError(
        absl::StrCat("--metrics: no metrics at http://", address, "/metrics"));
  }
  return families;
}

absl::StatusOr<double> ResidentBytes(int pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6)) * 1024;
  }
  return absl::NotFoundError(absl::StrCat("--pid: no process ", pid));
}

Monitor::Monitor(std::string metrics_address, int pid)
    : address_(std::move(metrics_address)), pid_(pid), thread_([this] { Run(); }) {}

Monitor::~Monitor() { Stop(); }

absl::StatusOr<Sample> Monitor::Now() const {
  Sample sample;
  auto metrics = Scrape(address_);
  if (!metrics.ok()) return metrics.status();
  const auto resident = ResidentBytes(pid_);
  if (!resident.ok()) return resident.status();
  sample.at = absl::Now();
  sample.metrics = *std::move(metrics);
  sample.resident_bytes = *resident;
  return sample;
}

std::vector<Sample> Monitor::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mutex_);
  return samples_;
}

void Monitor::Run() {
  absl::Time next = absl::Now();
  while (true) {
    auto sample = Now();
    if (!sample.ok()) ++misses_;
    next += absl::Seconds(1);
    MutexLock lock(mutex_);
    if (sample.ok()) samples_.push_back(*std::move(sample));
    while (!stop_ && absl::Now() < next) wake_.WaitUntil(mutex_, next);
    if (stop_) return;
  }
}

double MedianResidentBytes(const std::vector<Sample>& samples, absl::Time from, absl::Time to) {
  std::vector<double> values;
  for (const Sample& sample : samples) {
    if (from <= sample.at && sample.at < to) values.push_back(sample.resident_bytes);
  }
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace gemmd::soak
