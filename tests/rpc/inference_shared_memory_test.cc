// Tensors in shared memory over the wire, and files that are not what a client says.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "server/rpc/inference/shared_memory.h"
#include "tests/base/temporary_folder.h"
#include "tests/rpc/inference_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

// A file in /dev/shm.
class SharedFile {
 public:
  SharedFile(const std::string& name, size_t bytes)
      : key_(absl::StrCat("/gemmd-test-", getpid(), "-", name)),
        fd_(shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    EXPECT_GE(fd_, 0);
    Resize(bytes);
  }
  ~SharedFile() {
    close(fd_);
    Unlink();
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  const std::string& key() const { return key_; }
  std::string path() const { return "/dev/shm" + key_; }
  void Unlink() { shm_unlink(key_.c_str()); }
  void Resize(size_t bytes) const { EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes)), 0); }
  size_t Size() const {
    struct stat now {};
    EXPECT_EQ(fstat(fd_, &now), 0);
    return static_cast<size_t>(now.st_size);
  }
  void Write(size_t at, const std::string& bytes) const {
    EXPECT_EQ(pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string Read(size_t at, size_t bytes) const {
    std::string read(bytes, '?');
    EXPECT_EQ(pread(fd_, read.data(), bytes, static_cast<off_t>(at)), static_cast<ssize_t>(bytes));
    return read;
  }

 private:
  const std::string key_;
  const int fd_;
};

template <typename Tensor>
void Place(Tensor& tensor, const std::string& region, int64_t bytes, int64_t offset = 0) {
  auto& parameters = *tensor.mutable_parameters();
  parameters["shared_memory_region"].set_string_param(region);
  parameters["shared_memory_byte_size"].set_int64_param(bytes);
  if (offset != 0) parameters["shared_memory_offset"].set_int64_param(offset);
}

// A product whose operands, one after the other, and then the result are in the region "r".
pb::ModelInferRequest Placed(const HostProduct& operands, const Shape& result) {
  pb::ModelInferRequest request;
  request.set_model_name("matmul");
  AddInput(request, "A", operands.a);
  AddInput(request, "B", operands.b);
  request.clear_raw_input_contents();
  const auto a = static_cast<int64_t>(operands.a.bytes.size());
  const auto b = static_cast<int64_t>(operands.b.bytes.size());
  Place(*request.mutable_inputs(0), "r", a);
  Place(*request.mutable_inputs(1), "r", b, a);
  request.add_outputs()->set_name("D");
  Place(*request.mutable_outputs(0), "r", static_cast<int64_t>(result.dense_bytes()), a + b);
  return request;
}

// A large one, in a file of its own.
struct PlacedProduct {
  PlacedProduct(int64_t m, int64_t k, int64_t n)
      : operands{.a = RandomMatrix({m, k, DType::kF32}, 1),
                 .b = RandomMatrix({k, n, DType::kF32}, 2)},
        result{m, n, DType::kF32},
        sent(operands.a.bytes + operands.b.bytes),
        file("r", bytes()),
        request(Placed(operands, result)) {
    file.Write(0, sent);
  }
  size_t bytes() const { return sent.size() + result.dense_bytes(); }

  const HostProduct operands;
  const Shape result;
  const std::string sent;
  const SharedFile file;
  const pb::ModelInferRequest request;
};

ServerOptions WithSharedMemory(const std::string& path) {
  ServerOptions options = SmallServer();
  options.address = absl::StrCat("unix:", path, ",127.0.0.1:0");
  options.client_shared_memory = true;
  // Pieces of a result are large enough to be written on another thread.
  options.engine.staging_block_bytes = kMiB;
  options.engine.staging_bytes = 16 * kMiB;
  options.rpc.max_message_bytes = 16 * kMiB;  // for the same products without it
  return options;
}

class SharedMemoryTest : protected TemporaryFolder, public InferenceTest {
 protected:
  explicit SharedMemoryTest() : InferenceTest(WithSharedMemory(Path("gemmd.sock"))) {
    const std::string all = server_->address();
    unix_ = pb::GRPCInferenceService::NewStub(Connect(all.substr(0, all.find(','))));
    tcp_ = pb::GRPCInferenceService::NewStub(Connect(all.substr(all.find(',') + 1)));
  }

  static std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  StatusCode Register(const std::string& name, const std::string& key, uint64_t bytes,
                      uint64_t offset = 0, Stub* through = nullptr) {
    pb::SystemSharedMemoryRegisterRequest request;
    request.set_name(name);
    request.set_key(key);
    request.set_byte_size(bytes);
    request.set_offset(offset);
    pb::SystemSharedMemoryRegisterResponse response;
    grpc::ClientContext context;
    const grpc::Status status = (through == nullptr ? unix_.get() : through)
                                    ->SystemSharedMemoryRegister(&context, request, &response);
    message_ = status.error_message();
    return status.error_code();
  }

  void Unregister(const std::string& name, Stub& through) {
    pb::SystemSharedMemoryUnregisterRequest request;
    request.set_name(name);
    pb::SystemSharedMemoryUnregisterResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(through.SystemSharedMemoryUnregister(&context, request, &response).ok());
  }

  pb::SystemSharedMemoryStatusResponse Regions(Stub& through) {
    pb::SystemSharedMemoryStatusResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(through.SystemSharedMemoryStatus(&context, {}, &response).ok());
    return response;
  }

  StatusCode InferBy(Stub& through, const pb::ModelInferRequest& request) {
    grpc::ClientContext context;
    answer_.Clear();
    const grpc::Status status = through.ModelInfer(&context, request, &answer_);
    message_ = status.error_message();
    return status.error_code();
  }

  // The product, right, and nothing is left of it on the server.
  void ExpectServed(const PlacedProduct& product) {
    ASSERT_EQ(InferBy(*unix_, product.request), StatusCode::OK) << message_;
    answer_.set_raw_output_contents(
        0, product.file.Read(product.sent.size(), product.result.dense_bytes()));
    ExpectRight(v1::Product(), product.operands, product.result);
    ExpectHolds(before_);
  }

  std::unique_ptr<Stub> unix_, tcp_;
};

TEST_F(SharedMemoryTest, AProductFromAndToARegion) {
  // Small, of some chunks, and of many pieces of the result.
  for (const auto& [m, k, n] :
       {std::tuple<int64_t, int64_t, int64_t>{6, 4, 5}, {300, 700, 900}, {1100, 30, 1300}}) {
    SCOPED_TRACE(absl::StrCat(m, "x", k, "x", n));
    const HostProduct operands = {.a = RandomMatrix({m, k, DType::kF32}, 1),
                                  .b = RandomMatrix({k, n, DType::kF32}, 2)};
    const Shape result = {m, n, DType::kF32};
    const size_t sent = operands.a.bytes.size() + operands.b.bytes.size();
    constexpr size_t kBefore = 12345;
    const SharedFile file("r", kBefore + sent + result.dense_bytes() + 1);
    file.Write(kBefore, operands.a.bytes + operands.b.bytes);
    file.Write(kBefore + sent + result.dense_bytes(), "x");
    ASSERT_EQ(Register("r", file.key(), sent + result.dense_bytes(), kBefore), StatusCode::OK)
        << message_;
    const pb::ModelInferRequest request = Placed(operands, result);
    ASSERT_EQ(InferBy(*unix_, request), StatusCode::OK) << message_;
    ASSERT_EQ(answer_.raw_output_contents_size(), 1);
    EXPECT_EQ(answer_.raw_output_contents(0), "") << "clients look for it all the same";
    EXPECT_EQ(answer_.outputs(0).parameters().at("shared_memory_region").string_param(), "r");
    EXPECT_EQ(answer_.outputs(0).shape(1), n);
    answer_.set_raw_output_contents(0, file.Read(kBefore + sent, result.dense_bytes()));
    ExpectRight(v1::Product(), operands, result);
    EXPECT_EQ(file.Read(kBefore + sent + result.dense_bytes(), 1), "x");
    EXPECT_EQ(file.Read(kBefore, sent), operands.a.bytes + operands.b.bytes);
    // The same bits as in messages.
    pb::ModelInferRequest plain;
    plain.set_model_name("matmul");
    AddInput(plain, "A", operands.a);
    AddInput(plain, "B", operands.b);
    const std::string placed = answer_.raw_output_contents(0);
    ASSERT_EQ(InferBy(*unix_, plain), StatusCode::OK) << message_;
    EXPECT_TRUE(answer_.raw_output_contents(0) == placed);
    Unregister("", *unix_);
  }
}

TEST_F(SharedMemoryTest, OneOperandInARegionAndOneInTheMessage) {
  const SharedFile file("one", 4096);
  ASSERT_EQ(Register("one", file.key(), 4096), StatusCode::OK) << message_;
  file.Write(0, operands_.a.bytes);
  pb::ModelInferRequest request = Matmul();
  Place(*request.mutable_inputs(0), "one", static_cast<int64_t>(operands_.a.bytes.size()));
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("2 of them for 1 inputs outside of shared memory"));
  *request.mutable_raw_input_contents(0) = operands_.b.bytes;
  request.mutable_raw_input_contents()->RemoveLast();
  ASSERT_EQ(InferBy(*unix_, request), StatusCode::OK) << message_;
  ExpectRight(v1::Product(), operands_, result_);
}

TEST_F(SharedMemoryTest, AStreamHasThemToo) {
  const SharedFile file("r", 4096);
  file.Write(0, operands_.a.bytes + operands_.b.bytes);
  ASSERT_EQ(Register("r", file.key(), 4096), StatusCode::OK) << message_;
  grpc::ClientContext context;
  const auto stream = unix_->ModelStreamInfer(&context);
  pb::ModelInferRequest request = Placed(operands_, result_);
  ASSERT_TRUE(stream->Write(request));
  Place(*request.mutable_outputs(0), "r", 119);
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  pb::ModelStreamInferResponse first, second;
  ASSERT_TRUE(stream->Read(&first));
  ASSERT_TRUE(stream->Read(&second));
  EXPECT_EQ(first.error_message(), "");
  answer_ = first.infer_response();
  ASSERT_EQ(answer_.raw_output_contents_size(), 1);
  answer_.set_raw_output_contents(
      0, file.Read(operands_.a.bytes.size() + operands_.b.bytes.size(), result_.dense_bytes()));
  ExpectRight(v1::Product(), operands_, result_);
  EXPECT_THAT(second.error_message(), HasSubstr("119; the result has 120 bytes"));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(SharedMemoryTest, KeysNameFilesOfDevShmAlone) {
  const SharedFile file("key", 100);
  const std::string name = file.key().substr(1), folder = file.path() + "-folder",
                    link = file.path() + "-link", fifo = file.path() + "-fifo";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(symlink("/etc/passwd", link.c_str()), 0);
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  struct Case {
    std::string key;
    const char* sentence;
  };
  for (const auto& [key, sentence] :
       {Case{"", "it must be the name of a file in /dev/shm"},
        {"/", "it must be the name of a file"},
        {"..", "it must be the name of a file"},
        {"/..", "it must be the name of a file"},
        {"../etc/passwd", "it must be the name of a file"},
        {"//" + name, "it must be the name of a file"},
        {"a/" + name, "it must be the name of a file"},
        {name + std::string(1, '\0'), "it must be the name of a file"},
        {std::string(300, 'k'), "it must be the name of a file"},
        {"/gemmd-test-none", "No such file"},
        {file.key() + "-folder", "Is a directory"},
        {file.key() + "-link", "Too many levels of symbolic links"},
        {file.key() + "-fifo", "it is no regular file"}}) {
    EXPECT_EQ(Register("r", key, 10), StatusCode::INVALID_ARGUMENT) << key;
    EXPECT_THAT(message_, HasSubstr(sentence)) << key;
  }
  rmdir(folder.c_str());
  unlink(link.c_str());
  unlink(fifo.c_str());
  EXPECT_EQ(Register("r", name, 10), StatusCode::OK) << message_;
  EXPECT_EQ(Regions(*unix_).regions_size(), 1);
}

TEST_F(SharedMemoryTest, AnotherUsersFileIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: only root can make another user's file";
  const SharedFile file("owner", 100);
  ASSERT_EQ(chown(file.path().c_str(), 1, 1), 0);
  EXPECT_EQ(Register("r", file.key(), 10), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("it belongs to another user than the server's"));
}

TEST_F(SharedMemoryTest, ExtentsThatDoNotFit) {
  constexpr uint64_t kMost = ~uint64_t{0};
  const SharedFile file("r", 4096);
  struct Case {
    uint64_t bytes;
    uint64_t offset;
    const char* sentence;
  };
  for (const auto& [bytes, offset, sentence] :
       {Case{0, 0, "1 byte or more"},
        {4097, 0, "it has 4096 bytes; the region ends at 4097"},
        {1, 4096, "the region ends at 4097"},
        {kMost, 1, "ends before 2^63"},
        {2, kMost, "ends before 2^63"},
        {uint64_t{1} << 63, 0, "ends before 2^63"}}) {
    EXPECT_EQ(Register("r", file.key(), bytes, offset), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(message_, HasSubstr(sentence));
  }
  EXPECT_EQ(Register("", file.key(), 1), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Register(std::string(1025, 'n'), file.key(), 1), StatusCode::INVALID_ARGUMENT);
  ASSERT_EQ(Register("r", file.key(), 4000, 96), StatusCode::OK) << message_;
  EXPECT_EQ(Register("r", file.key(), 4000, 96), StatusCode::ALREADY_EXISTS);
  struct Part {
    int64_t bytes;
    int64_t offset;
    const char* sentence;
  };
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  for (const auto& [bytes, offset, sentence] :
       {Part{95, 0, "95; 6x4 f32 row-major takes 96"},
        {0, 0, "0; 6x4 f32 row-major takes 96"},
        {96, 3905, "96 bytes from 3905 on; region \"r\" has 4000"},
        {96, kLast, "region \"r\" has 4000"},
        {kLast, kLast, "region \"r\" has 4000"},
        {-1, 0, "must be a whole number, not negative"},
        {96, -1, "must be a whole number, not negative"}}) {
    pb::ModelInferRequest request = Placed(operands_, result_);
    Place(*request.mutable_inputs(0), "r", bytes, offset);
    EXPECT_EQ(InferBy(*unix_, request), StatusCode::INVALID_ARGUMENT) << sentence;
    EXPECT_THAT(message_, HasSubstr(sentence));
  }
  pb::ModelInferRequest request = Placed(operands_, result_);
  Place(*request.mutable_outputs(0), "r", 119);
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("119; the result has 120 bytes"));
  request = Placed(operands_, result_);
  *request.add_outputs() = request.outputs(0);
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("two regions for one output"));
  request = Placed(operands_, result_);
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("set beside a region"));
  request = Placed(operands_, result_);
  Place(*request.mutable_inputs(1), "none", 80);
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("no region \"none\" is registered"));
}

TEST_F(SharedMemoryTest, AFileThatIsNoLongerTheSame) {
  auto file = std::make_unique<SharedFile>("r", 4096);
  file->Write(0, operands_.a.bytes + operands_.b.bytes);
  ASSERT_EQ(Register("r", file->key(), 4096), StatusCode::OK) << message_;
  const pb::ModelInferRequest request = Placed(operands_, result_);
  file->Resize(4095);
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("it has 4095 bytes; the region ends at 4096"));
  file->Resize(4096);
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::OK) << message_;
  file->Unlink();
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("No such file"));
  const SharedFile another("r", 4096);
  EXPECT_EQ(InferBy(*unix_, request), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("is another file than the one that was registered"));
}

// A mapped file would end the server.
TEST_F(SharedMemoryTest, AFileThatShrinksWhileProductsRun) {
  const PlacedProduct product(300, 700, 900);
  ASSERT_EQ(Register("r", product.file.key(), product.bytes()), StatusCode::OK) << message_;
  std::atomic<bool> end = false;
  std::thread shrinker([&] {
    for (size_t i = 0; !end; ++i) {
      product.file.Resize(i % 7 * (product.bytes() / 7));
      product.file.Resize(product.bytes());
    }
  });
  int failed = 0;
  for (int i = 0; i < 40; ++i) {
    const StatusCode code = InferBy(*unix_, product.request);
    EXPECT_TRUE(code == StatusCode::OK || code == StatusCode::FAILED_PRECONDITION) << message_;
    failed += code == StatusCode::OK ? 0 : 1;
  }
  end = true;
  shrinker.join();
  EXPECT_GT(failed, 0);
  EXPECT_EQ(product.file.Size(), product.bytes());
  product.file.Write(0, product.sent);
  ExpectServed(product);
}

// A client that gives up does not know when the server has seen that, so it may still be written to
// for a moment.
TEST_F(SharedMemoryTest, CallsThatAreCancelledLeaveNothing) {
  const PlacedProduct product(1100, 30, 1300);
  ASSERT_EQ(Register("r", product.file.key(), product.bytes()), StatusCode::OK) << message_;
  int cancelled = 0;
  for (int i = 0; i < 200; ++i) {
    grpc::ClientContext context;
    std::thread canceller([&] {
      absl::SleepFor(absl::Microseconds(37 * i));
      context.TryCancel();
    });
    if (!unix_->ModelInfer(&context, product.request, &answer_).ok()) ++cancelled;
    canceller.join();
  }
  EXPECT_GT(cancelled, 0);
  ExpectServed(product);
}

TEST_F(SharedMemoryTest, OnlyOnAUnixSocket) {
  const SharedFile file("r", 4096);
  EXPECT_EQ(Register("r", file.key(), 10, 0, tcp_.get()), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("connect to a unix: address"));
  ASSERT_EQ(Register("r", file.key(), 4096), StatusCode::OK) << message_;
  EXPECT_EQ(Regions(*tcp_).regions_size(), 0);
  Unregister("", *tcp_);
  EXPECT_EQ(Regions(*unix_).regions_size(), 1);
  EXPECT_EQ(InferBy(*tcp_, Placed(operands_, result_)), StatusCode::FAILED_PRECONDITION);
  Unregister("r", *unix_);
  EXPECT_EQ(Regions(*unix_).regions_size(), 0);
  Unregister("r", *unix_);
}

TEST_F(SharedMemoryTest, RegionsAreBounded) {
  const SharedFile file("r", 10);
  for (size_t i = 0; i < SharedMemory::kMostOfOwner; ++i) {
    ASSERT_EQ(Register(absl::StrCat(i), file.key(), 10), StatusCode::OK) << message_;
  }
  EXPECT_EQ(Register("one more", file.key(), 10), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(message_, HasSubstr("unregister some"));
  Unregister("7", *unix_);
  EXPECT_EQ(Register("one more", file.key(), 10), StatusCode::OK) << message_;
}

// As a client of another user sees it: its connection is closed.
TEST_F(SharedMemoryTest, AnotherUserIsNotServed) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: only root can become another user";
  const std::string all = server_->address();
  const std::string path = all.substr(5, all.find(',') - 5);
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(chmod(path.substr(0, path.rfind('/')).c_str(), 0755), 0);
  const auto connects_as = [&](uid_t user) {
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(user) != 0) _exit(3);
      const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
      sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
      path.copy(at.sun_path, sizeof(at.sun_path) - 1);
      if (connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0) _exit(2);
      char first = 0;  // gRPC's settings come first
      _exit(read(fd, &first, 1) == 1 ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(connects_as(0), 0);
  EXPECT_EQ(connects_as(65534), 1);
}

// As where a job is cancelled while pieces of its result wait to be written.
TEST(RegionResultTest, EndsOnceAllIsWritten) {
  const SharedFile file("r", kMiB);
  SharedMemory memory(true);
  ASSERT_TRUE(memory.Register("me", "r", {.key = file.key(), .bytes = kMiB}).ok());
  auto part = memory.Open("me", "r", 0, kMiB, "field");
  ASSERT_TRUE(part.ok()) << part.status();
  const auto result = std::make_shared<RegionResult>(memory, *part);
  std::promise<void> go_on;
  const std::shared_future<void> wait = go_on.get_future();
  for (int i = 0; i < 8; ++i) {  // more than there are threads
    memory.workers().Schedule([wait] { wait.wait(); });
  }
  const std::vector<std::byte> bytes(kMiB, std::byte{7});
  result->Write({.offset = 0, .bytes = bytes, .owner = nullptr});
  std::promise<std::string> ended;
  result->End([&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    ended.set_value(file.Read(kMiB - 1, 1));
  });
  std::future<std::string> last = ended.get_future();
  EXPECT_EQ(last.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  go_on.set_value();
  EXPECT_EQ(last.get(), "\7");
}

TEST(SharedMemoryStartTest, ASocketIsNeeded) {
  ServerOptions options = SmallServer();
  options.client_shared_memory = true;
  const absl::Status status = Server::Start(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("--client-shared-memory: 'on'"));
}

}  // namespace
}  // namespace gemmd
