// What the Open Inference Protocol says of the server, its models and its shared memory.
#include <string>
#include <tuple>
#include <vector>

#include "tests/rpc/inference_fixture.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(InferenceTest, TheServerIsLiveAndReadyAndSaysWhatItIs) {
  pb::ServerLiveResponse live;
  EXPECT_EQ(Ask(&Stub::ServerLive, {}, live), StatusCode::OK);
  EXPECT_TRUE(live.live());
  pb::ServerReadyResponse ready;
  EXPECT_EQ(Ask(&Stub::ServerReady, {}, ready), StatusCode::OK);
  EXPECT_TRUE(ready.ready());
  pb::ServerMetadataResponse metadata;
  EXPECT_EQ(Ask(&Stub::ServerMetadata, {}, metadata), StatusCode::OK);
  EXPECT_EQ(metadata.name(), "gemmd");
  EXPECT_THAT(metadata.extensions(), testing::Contains("statistics"));
  server_->LeaveRotation();
  EXPECT_EQ(Ask(&Stub::ServerReady, {}, ready), StatusCode::OK);
  EXPECT_FALSE(ready.ready());
}

TEST_F(InferenceTest, EachNamedMatrixIsAModel) {
  const std::string nameless = Put(operands_.b);
  const std::string id = Put(RandomMatrix({4, 5, DType::kBF16}, 3), "layers/w1");
  pb::RepositoryIndexResponse index;
  ASSERT_EQ(Ask(&Stub::RepositoryIndex, {}, index), StatusCode::OK) << message_;
  std::vector<std::string> names;
  for (const auto& model : index.models()) names.push_back(model.name() + " " + model.state());
  EXPECT_THAT(names, ElementsAre("matmul READY", "matmul_batched READY", "linear/layers/w1 READY"));

  pb::ModelMetadataRequest request;
  request.set_name("linear/layers/w1");
  pb::ModelMetadataResponse metadata;
  ASSERT_EQ(Ask(&Stub::ModelMetadata, request, metadata), StatusCode::OK) << message_;
  EXPECT_THAT(metadata.versions(), ElementsAre(index.models(2).version()));
  ASSERT_EQ(metadata.inputs_size(), 1);
  EXPECT_EQ(metadata.inputs(0).name(), "X");
  EXPECT_EQ(metadata.inputs(0).datatype(), "BF16");
  EXPECT_THAT(metadata.inputs(0).shape(), ElementsAre(-1, 4));
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(-1, 5));

  pb::ModelConfigRequest config_request;
  config_request.set_name("linear/layers/w1");
  pb::ModelConfigResponse config;
  ASSERT_EQ(Ask(&Stub::ModelConfig, config_request, config), StatusCode::OK) << message_;
  EXPECT_GT(config.config().max_batch_size(), 0);
  EXPECT_EQ(config.config().input(0).data_type(), pb::TYPE_BF16);
  EXPECT_THAT(config.config().input(0).dims(), ElementsAre(4));
  Delete(id);
  Delete(nameless);
  EXPECT_EQ(Ask(&Stub::ModelMetadata, request, metadata), StatusCode::NOT_FOUND);
}

TEST_F(InferenceTest, ConfigsOfTheProducts) {
  for (const bool batched : {false, true}) {
    pb::ModelConfigRequest request;
    request.set_name(batched ? "matmul_batched" : "matmul");
    pb::ModelConfigResponse config;
    ASSERT_EQ(Ask(&Stub::ModelConfig, request, config), StatusCode::OK) << message_;
    EXPECT_EQ(config.config().max_batch_size(), batched ? 65535 : 0);
    EXPECT_THAT(config.config().input(1).dims(), ElementsAre(-1, -1));
    pb::ModelMetadataRequest metadata_request;
    metadata_request.set_name(request.name());
    pb::ModelMetadataResponse metadata;
    ASSERT_EQ(Ask(&Stub::ModelMetadata, metadata_request, metadata), StatusCode::OK) << message_;
    EXPECT_EQ(metadata.inputs(1).shape_size(), batched ? 3 : 2);
  }
}

TEST_F(InferenceTest, ReadyIsAModelThatIsThere) {
  const std::string id = Put(operands_.b, "w");
  for (const auto& [name, version, wanted] : {std::tuple("matmul", "", true),
                                              {"matmul", "1", true},
                                              {"matmul", "2", false},
                                              {"linear/w", "", true},
                                              {"linear/w", "7", false},
                                              {"linear/v", "", false},
                                              {"linear/", "", false},
                                              {"shared_linear/w", "", false},
                                              {"resnet50", "", false}}) {
    pb::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    pb::ModelReadyResponse ready;
    EXPECT_EQ(Ask(&Stub::ModelReady, request, ready), StatusCode::OK) << name;
    EXPECT_EQ(ready.ready(), wanted) << name << " " << version;
  }
  Delete(id);
}

TEST_F(InferenceTest, NoSharedMemoryIsRegistered) {
  pb::SystemSharedMemoryUnregisterResponse system;
  EXPECT_EQ(Ask(&Stub::SystemSharedMemoryUnregister, {}, system), StatusCode::OK);
  pb::CudaSharedMemoryUnregisterResponse cuda;
  EXPECT_EQ(Ask(&Stub::CudaSharedMemoryUnregister, {}, cuda), StatusCode::OK);
  pb::SystemSharedMemoryStatusResponse status;
  EXPECT_EQ(Ask(&Stub::SystemSharedMemoryStatus, {}, status), StatusCode::OK);
  EXPECT_EQ(status.regions_size(), 0);
  pb::CudaSharedMemoryStatusResponse cuda_status;
  EXPECT_EQ(Ask(&Stub::CudaSharedMemoryStatus, {}, cuda_status), StatusCode::OK);
  pb::SystemSharedMemoryRegisterResponse registered;
  EXPECT_EQ(Ask(&Stub::SystemSharedMemoryRegister, {}, registered), StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(message_, HasSubstr("its flag --client-shared-memory"));
}

}  // namespace
}  // namespace gemmd
