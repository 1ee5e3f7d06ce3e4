// Names that come to mean another matrix, through the client and the real server.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/client/server_fixture.h"

namespace gemmd::client {
namespace {

// Whether every element is the first one.
bool IsOfOneVersion(const HostMatrix& matrix) {
  const std::vector<double> elements = matrix.ToDoubles();
  return std::all_of(elements.begin(), elements.end(),
                     [&](double element) { return element == elements.front(); });
}

HostMatrix OfVersion(const Shape& shape, int version) {
  HostMatrix matrix = *HostMatrix::Allocate(shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    StoreElement(matrix.data(), i, shape.dtype, version);
  }
  return matrix;
}

// A reader by name in many stripes, while another hand replaces the matrix, with shapes of
// its own.
TEST_F(ServerTest, AReplacedMatrixIsThereForEveryReader) {
  auto connected = Client::Connect({.address = server_->address(),
                                    .channels = 8,
                                    .chunk_bytes = 4 << 10,
                                    .stripe_threshold_bytes = 4 << 10});
  ASSERT_TRUE(connected.ok()) << connected.status();
  const PutOptions put{.keep = {.name = "changing", .replace = true}};
  ASSERT_TRUE(client_->PutMatrix(OfVersion({.rows = 64, .cols = 128}, 1).view(), put).ok());
  std::atomic<bool> end = false;
  int replaced = 0;
  std::thread writer([&] {
    for (int version = 2; !end; ++version) {
      const HostMatrix next = OfVersion({.rows = 64 + version % 5, .cols = 128}, version);
      const auto info = client_->PutMatrix(next.view(), put);
      ASSERT_TRUE(info.ok()) << info.status();
      ++replaced;
    }
  });
  uint64_t last = 0;
  for (int i = 0; i < 300; ++i) {
    const auto fetched = (*connected)->GetMatrix(Resident::ByName("changing"));
    ASSERT_TRUE(fetched.ok()) << fetched.status();
    EXPECT_TRUE(IsOfOneVersion(fetched->matrix));
    EXPECT_GE(fetched->info.version(), last);
    last = fetched->info.version();
  }
  end = true;
  writer.join();
  EXPECT_GT(replaced, 0);
  ASSERT_TRUE(client_->DeleteMatrix(Resident::ByName("changing")).ok());
  ExpectNothingLeft();
}

TEST_F(ServerTest, ReplacesAndDeletesByVersion) {
  const Shape shape{.rows = 2, .cols = 2};
  const HostMatrix one = OfVersion(shape, 1), two = OfVersion(shape, 2);
  Keep keep{.name = "w", .replace = true, .if_version = 0};
  const auto first = client_->PutMatrix(one.view(), {.keep = keep});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(client_->PutMatrix(two.view(), {.keep = keep}).status().code(),
            absl::StatusCode::kAborted);
  keep.if_version = first->version();
  // Of the matrix that it replaces.
  const auto second = client_->Multiply({.a = Resident::ByName("w"),
                                         .b = Resident::ByName("w"),
                                         .result = {.fetch = false, .keep = keep}});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT(second->kept->version(), first->version());
  EXPECT_EQ(client_->GetMatrix(Resident::ByName("w"))->matrix.Get(0, 0), 2);

  Resident old = Resident::ByName("w");
  old.version = first->version();
  EXPECT_EQ(client_->GetMatrix(old).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(client_->DeleteMatrix(old).status().code(), absl::StatusCode::kAborted);
  Resident others = Resident::ByName("w");
  others.owner = "somebody";
  EXPECT_EQ(client_->GetMatrix(others).status().code(), absl::StatusCode::kNotFound);
  old.version = second->kept->version();
  EXPECT_TRUE(client_->DeleteMatrix(old).ok());
  ExpectNothingLeft();
}

// A reader by name, while another hand deletes the matrix and puts the next one.
TEST_F(ServerTest, AMatrixGotByNameIsOne) {
  auto connected = Client::Connect({.address = server_->address(),
                                    .channels = 32,
                                    .chunk_bytes = 4 << 10,
                                    .stripe_threshold_bytes = 4 << 10});
  ASSERT_TRUE(connected.ok()) << connected.status();
  const Shape shape{.rows = 256, .cols = 128};
  std::atomic<bool> end = false;
  std::thread writer([&] {
    for (int version = 1; !end; ++version) {
      const HostMatrix matrix = OfVersion(shape, version);
      const auto put = client_->PutMatrix(matrix.view(), {.keep = {.name = "changing"}});
      ASSERT_TRUE(put.ok()) << put.status();
      std::this_thread::sleep_for(std::chrono::milliseconds(version % 8));
      ASSERT_TRUE(client_->DeleteMatrix(Resident::ByName("changing")).ok());
    }
  });
  int whole = 0, torn = 0, refused = 0;
  HostMatrix got = *HostMatrix::Allocate(shape);
  for (int i = 0; i < 600; ++i) {
    const auto fetched =
        (*connected)->GetMatrix(Resident::ByName("changing"), {.into = got.mutable_view()});
    if (!fetched.ok()) {
      EXPECT_TRUE(absl::IsNotFound(fetched.status())) << fetched.status();
      ++refused;
      continue;
    }
    ++(IsOfOneVersion(got) ? whole : torn);
  }
  end = true;
  writer.join();
  EXPECT_EQ(torn, 0) << "beside " << whole << " whole and " << refused << " refused";
  EXPECT_GT(whole, 0);
  RecordProperty("whole", whole);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace gemmd::client
