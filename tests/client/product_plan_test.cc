// The transport of a product, and products that are refused before anything is sent.

#include "client/cpp/products/product_plan.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr PlanLimits kLimits{.chunk_bytes = 1 << 10,
                             .unary_threshold_bytes = 4 << 10,
                             .stripe_threshold_bytes = 64 << 10,
                             .server_message_bytes = 4 << 20,
                             .client_message_bytes = 4 << 20,
                             .channels = 4,
                             .max_batch_count = 65535,
                             .max_group_count = 4096,
                             .scale_block = 128,
                             .devices = 1};

// Never read: a plan looks at shapes alone.
const std::byte kMemory[1] = {};

MatrixView View(int64_t rows, int64_t cols, DataType dtype = kF32) {
  return {.shape = {.rows = rows, .cols = cols, .dtype = dtype}, .data = kMemory};
}

ProductPlan Plan(const Product& product, Transport transport = Transport::kAuto,
                 const PlanLimits& limits = kLimits) {
  auto plan = PlanProduct(product, transport, limits);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : ProductPlan();
}

std::string Refusal(const Product& product, Transport transport = Transport::kAuto) {
  const auto plan = PlanProduct(product, transport, kLimits);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

TEST(ProductPlan, GoesBySize) {
  EXPECT_EQ(Plan({.a = View(16, 16), .b = View(16, 16)}).transport, Transport::kUnary);
  EXPECT_EQ(Plan({.a = View(32, 32), .b = View(32, 32)}).transport, Transport::kStream);
  const ProductPlan large = Plan({.a = View(128, 128), .b = View(128, 16)});
  EXPECT_EQ(large.transport, Transport::kStriped);
  ASSERT_EQ(large.sent.size(), 2u);
  EXPECT_TRUE(large.sent[0].striped);
  EXPECT_FALSE(large.sent[1].striped);
  EXPECT_FALSE(large.striped_result);
  EXPECT_EQ(large.payload_bytes, 128u * 128 * 4 + 128 * 16 * 4);
}

TEST(ProductPlan, LargeResultAloneIsStriped) {
  const ProductPlan plan = Plan({.a = View(256, 4), .b = View(4, 256)});
  EXPECT_EQ(plan.transport, Transport::kStriped);
  EXPECT_TRUE(plan.striped_result);
  EXPECT_FALSE(plan.sent[0].striped);
}

TEST(ProductPlan, KeptResultIsNotStriped) {
  const ProductPlan plan =
      Plan({.a = View(256, 4), .b = View(4, 256), .result = {.keep = Keep{.name = "d"}}});
  EXPECT_EQ(plan.transport, Transport::kStream);
  EXPECT_EQ(plan.product.result().keep().name(), "d");
  EXPECT_TRUE(plan.product.result().stream());
  EXPECT_FALSE(plan.product.result().keep().has_ttl());
}

TEST(ProductPlan, ResultThatStaysIsUnary) {
  const ProductPlan plan =
      Plan({.a = Resident::ById("x"),
            .b = Resident::ByName("y"),
            .result = {.fetch = false, .keep = Keep{.ttl = absl::Seconds(5)}}});
  EXPECT_EQ(plan.transport, Transport::kUnary);
  EXPECT_EQ(plan.product.a().matrix().id(), "x");
  EXPECT_EQ(plan.product.b().matrix().name(), "y");
  EXPECT_FALSE(plan.product.result().stream());
  EXPECT_EQ(plan.product.result().keep().ttl().seconds(), 5);
}

TEST(ProductPlan, ResultOfUnknownShapeIsStreamed) {
  EXPECT_EQ(Plan({.a = Resident::ById("x"), .b = View(4, 4)}).transport, Transport::kStream);
}

TEST(ProductPlan, OneChannelStripesNothing) {
  PlanLimits limits = kLimits;
  limits.channels = 1;
  EXPECT_EQ(Plan({.a = View(128, 128), .b = View(128, 128)}, Transport::kAuto, limits).transport,
            Transport::kStream);
}

TEST(ProductPlan, OperandsStayInTheJobWhereItsDeviceIsUnknown) {
  PlanLimits limits = kLimits;
  limits.devices = 2;
  const Product product{.a = View(128, 128),
                        .b = Resident{.id = "x", .shape = Shape{.rows = 128, .cols = 128}}};
  EXPECT_TRUE(Plan(product).sent[0].striped);
  const ProductPlan plan = Plan(product, Transport::kAuto, limits);
  EXPECT_FALSE(plan.sent[0].striped);
  EXPECT_TRUE(plan.striped_result);
}

// By size, three blocks of 128 rows and one of 16.
Product ManyRows() { return {.a = View(400, 64), .b = View(64, 64)}; }

constexpr PlanLimits WithBlocks() {
  PlanLimits limits = kLimits;
  limits.row_blocks_per_channel = 2;
  return limits;
}

bool TakesBlocks(const Product& product, Transport transport = Transport::kAuto,
                 const PlanLimits& limits = WithBlocks()) {
  const ProductPlan plan = Plan(product, transport, limits);
  EXPECT_EQ(plan.row_blocks.empty(), plan.transport != Transport::kRowBlocks);
  return plan.transport == Transport::kRowBlocks;
}

TEST(ProductPlan, ALargeProductGoesInBlocksOfRowsWithBFirst) {
  const ProductPlan plan = Plan(ManyRows(), Transport::kAuto, WithBlocks());
  EXPECT_EQ(plan.transport, Transport::kRowBlocks);
  EXPECT_THAT(plan.row_blocks, ElementsAre(RowBlock{0, 128}, RowBlock{128, 128}, RowBlock{256, 128},
                                           RowBlock{384, 16}));
  ASSERT_EQ(plan.sent.size(), 2u);
  EXPECT_TRUE(plan.sent[1].striped) << "though it is small: all blocks need it";
  EXPECT_FALSE(TakesBlocks(ManyRows(), Transport::kAuto, kLimits)) << "0 blocks: never";
  EXPECT_FALSE(TakesBlocks(ManyRows(), Transport::kStriped));
}

TEST(ProductPlan, BlocksOfRowsNeedALargeAAndALargeResult) {
  EXPECT_FALSE(TakesBlocks({.a = View(400, 32), .b = View(32, 64)})) << "A has 50 KiB";
  EXPECT_FALSE(TakesBlocks({.a = View(400, 64), .b = View(64, 32)})) << "the result has";
  EXPECT_TRUE(TakesBlocks({.a = View(400, 32), .b = View(32, 64)}, Transport::kRowBlocks));
  EXPECT_FALSE(TakesBlocks({.a = View(128, 512), .b = View(512, 512)})) << "one block";
  PlanLimits limits = WithBlocks();
  limits.channels = 1;
  EXPECT_FALSE(TakesBlocks(ManyRows(), Transport::kAuto, limits));
  EXPECT_TRUE(TakesBlocks(ManyRows(), Transport::kRowBlocks, limits));
}

TEST(ProductPlan, BlocksOfRowsAreOfWhatIsSentAndComesBackInRows) {
  const auto goes = [](void (*change)(Product&)) {
    Product product = ManyRows();
    change(product);
    return TakesBlocks(product, Transport::kRowBlocks);
  };
  const auto columns = [](int64_t rows, int64_t cols) {
    MatrixView view = View(rows, cols);
    view.shape.layout = kColumnMajor;
    return view;
  };
  EXPECT_TRUE(goes([](Product&) {}));
  Product product = ManyRows();
  for (const Operand& a : {Operand(columns(400, 64)),
                           Operand(Resident{.id = "x", .shape = Shape{.rows = 400, .cols = 64}}),
                           Operand(Generated{.shape = {.rows = 400, .cols = 64}})}) {
    product.a = a;
    EXPECT_FALSE(TakesBlocks(product, Transport::kRowBlocks));
  }
  EXPECT_FALSE(goes([](Product& p) {
    p.a = View(64, 400);
    p.transpose_a = true;
  }));
  EXPECT_FALSE(goes([](Product& p) { p.output_layout = kColumnMajor; }));
  EXPECT_FALSE(goes([](Product& p) { p.result.keep = Keep{}; }));
  EXPECT_FALSE(goes([](Product& p) { p.verify = kVerifyAlways; }));
  EXPECT_FALSE(goes([](Product& p) {
    p.batch_count = 2;
    p.shared.b = true;
  }));
  EXPECT_FALSE(goes([](Product& p) { p.group = {{400, 64, 64}}; }));
  EXPECT_TRUE(goes([](Product& p) {
    p.beta = 1;
    p.c = View(400, 64);
  }));
  product = ManyRows();
  product.beta = 1;
  product.c = columns(400, 64);
  EXPECT_EQ(PlanProduct(product, Transport::kRowBlocks, WithBlocks()).status().code(),
            absl::StatusCode::kInvalidArgument);
  product.c = Generated{.shape = {.rows = 400, .cols = 64}};
  EXPECT_FALSE(TakesBlocks(product, Transport::kRowBlocks));
}

TEST(ProductPlan, BlocksOfRowsShareABThatStaysTheSame) {
  const auto of_b = [](const Operand& b, const PlanLimits& limits = WithBlocks()) {
    Product product = ManyRows();
    product.b = b;
    return TakesBlocks(product, Transport::kRowBlocks, limits);
  };
  const auto of_bias = [](const Operand& bias, const PlanLimits& limits = WithBlocks()) {
    Product product = ManyRows();
    product.bias = bias;
    return TakesBlocks(product, Transport::kRowBlocks, limits);
  };
  const Shape shape{.rows = 64, .cols = 64}, row{.rows = 1, .cols = 64};
  EXPECT_TRUE(of_b(Resident{.id = "x", .shape = shape}));
  EXPECT_FALSE(of_b(Resident{.id = "x", .release = true, .shape = shape}));
  EXPECT_FALSE(of_b(Resident{.name = "x", .shape = shape})) << "it may come to mean another";
  EXPECT_TRUE(of_b(Resident{.name = "x", .shape = shape, .version = 3}));
  EXPECT_FALSE(of_b(Generated{.shape = shape}));
  EXPECT_TRUE(of_bias(View(1, 64)));
  EXPECT_TRUE(of_bias(Generated{.shape = row}));
  EXPECT_FALSE(of_bias(Resident{.id = "x", .release = true, .shape = row}));
  PlanLimits limits = WithBlocks();
  limits.may_keep = false;
  EXPECT_FALSE(of_b(View(64, 64), limits)) << "B would have to be kept";
  EXPECT_TRUE(of_b(Resident{.id = "x", .shape = shape}, limits));
  limits = WithBlocks();
  limits.devices = 2;
  EXPECT_TRUE(of_b(View(64, 64), limits));
  EXPECT_FALSE(of_bias(Resident{.id = "x", .shape = row}, limits)) << "B's device is not known";
}

TEST(ProductPlan, TransportCanBeAskedFor) {
  const Product small{.a = View(32, 32), .b = View(32, 32)};
  EXPECT_EQ(Plan(small, Transport::kUnary).transport, Transport::kUnary);
  EXPECT_EQ(Plan(small, Transport::kStream).transport, Transport::kStream);
  EXPECT_EQ(Plan(small, Transport::kStriped).transport, Transport::kStriped);
  EXPECT_EQ(Plan({.a = View(4, 4), .b = View(4, 4)}, Transport::kStriped).transport,
            Transport::kStream);
  EXPECT_THAT(Refusal({.a = View(2048, 2048), .b = View(2048, 1)}, Transport::kUnary),
              HasSubstr("a message may have 4194304"));
  EXPECT_THAT(Refusal({.a = View(2048, 1), .b = View(1, 2048)}, Transport::kUnary),
              HasSubstr("the result has 16777216 bytes"));
}

TEST(ProductPlan, CarriesEveryField) {
  Product product{.a = View(8, 4, kF16), .b = View(8, 2, kF16)};
  product.c = View(4, 2, kF32);
  product.bias = Generated{
      .shape = {.rows = 1, .cols = 2}, .seed = 9, .distribution = Normal{.mean = 1, .stddev = 2}};
  product.transpose_a = true;
  product.alpha = 2;
  product.beta = 0.5;
  product.activation = kLeakyRelu;
  product.leaky_slope = 0.25;
  product.output_dtype = kF32;
  product.compute = kComputeF32;
  product.kernel = {.family = "host", .params = {{"threads", 2}}};
  product.server_timeout = absl::Milliseconds(1500);
  const ::gemm::v1::Product proto = Plan(product).product;
  EXPECT_EQ(proto.a().shape().rows(), 8);
  EXPECT_EQ(proto.a().shape().dtype(), kF16);
  EXPECT_EQ(proto.bias().generator().seed(), 9u);
  EXPECT_EQ(proto.bias().generator().normal().stddev(), 2);
  EXPECT_TRUE(proto.transpose_a());
  EXPECT_FALSE(proto.transpose_b());
  EXPECT_EQ(proto.alpha(), 2);
  EXPECT_EQ(proto.beta(), 0.5);
  EXPECT_EQ(proto.activation(), kLeakyRelu);
  EXPECT_EQ(proto.leaky_slope(), 0.25);
  EXPECT_EQ(proto.output_dtype(), kF32);
  EXPECT_EQ(proto.compute(), kComputeF32);
  EXPECT_EQ(proto.kernel().family(), "host");
  EXPECT_EQ(proto.kernel().params().at("threads"), 2);
  EXPECT_EQ(proto.timeout().seconds(), 1);
  EXPECT_EQ(proto.timeout().nanos(), 500000000);
}

TEST(ProductPlan, RefusalsNameTheField) {
  EXPECT_EQ(Refusal({.a = View(2, 3), .b = View(4, 2)}),
            "op(a) has 3 columns and op(b) has 4 rows; they must be the same");
  EXPECT_EQ(Refusal({.a = View(0, 3), .b = View(3, 2)}),
            "a.shape.rows is 0; it must be at least 1");
  EXPECT_EQ(Refusal({.a = View(2, 3), .b = MatrixView{.shape = {.rows = 3, .cols = 2}}}),
            "b.data is null; it must point to memory");
  EXPECT_THAT(Refusal({.a = Resident{}, .b = View(3, 2)}), HasSubstr("exactly one"));
  EXPECT_THAT(Refusal({.a = View(2, 3), .b = View(3, 2), .c = View(2, 3)}),
              HasSubstr("c.shape is 2x3 f32 row-major; it must be 2x2 f32 row-major"));
  EXPECT_THAT(Refusal({.a = View(2, 3), .b = View(3, 2), .bias = View(1, 3)}),
              HasSubstr("bias.shape is 1x3"));
  EXPECT_THAT(Refusal({.a = View(2, 3), .b = View(3, 2), .result = {.fetch = false}}),
              HasSubstr("result.fetch is false"));
  EXPECT_THAT(Refusal({.a = View(2, 3), .b = View(3, 2), .kernel = {.name = "x", .family = "y"}}),
              HasSubstr("at most one"));
  std::byte memory[16];
  const MutableMatrixView wrong{.shape = {.rows = 2, .cols = 1}, .data = memory};
  EXPECT_THAT(Refusal({.a = View(2, 3), .b = View(3, 2), .result = {.into = wrong}}),
              HasSubstr("result.into.shape is 2x1 f32 row-major; the result is 2x2"));
}

TEST(ProductPlan, KnowsWhereTheResultOverlapsWhatIsSent) {
  std::byte memory[48];
  const Shape square{.rows = 2, .cols = 2};  // 16 bytes
  const auto at = [&](int offset) { return MatrixView{.shape = square, .data = memory + offset}; };
  const auto overlaps = [&](const Product& product, int offset) {
    Product into = product;
    into.result.into = MutableMatrixView{.shape = square, .data = memory + offset};
    return Plan(into).into_overlaps;
  };
  const Product product{.a = at(16), .b = View(2, 2)};
  EXPECT_FALSE(overlaps(product, 0));
  EXPECT_TRUE(overlaps(product, 1));
  EXPECT_TRUE(overlaps(product, 16));
  EXPECT_TRUE(overlaps(product, 31));
  EXPECT_FALSE(overlaps(product, 32));
  EXPECT_TRUE(overlaps({.a = View(2, 2), .b = at(16)}, 16));
  EXPECT_TRUE(overlaps({.a = View(2, 2), .b = View(2, 2), .c = at(16), .beta = 1}, 16));
  EXPECT_TRUE(overlaps({.a = View(2, 2),
                        .b = View(2, 2),
                        .bias = MatrixView{.shape = {.rows = 1, .cols = 2}, .data = memory + 16}},
                       16));
  EXPECT_FALSE(overlaps({.a = Resident::ById("x"), .b = View(2, 2)}, 16));
}

TEST(ProductPlan, TransposesCount) {
  EXPECT_EQ(ToString(**ResultShape({.a = View(3, 5),
                                    .b = View(7, 3),
                                    .transpose_a = true,
                                    .transpose_b = true,
                                    .output_layout = kColumnMajor})),
            "5x7 f32 column-major");
}

TEST(ProductPlan, ABatchHasAResultForEachProduct) {
  const ProductPlan rows = Plan({.a = View(12, 5),
                                 .b = View(5, 2),
                                 .bias = View(4, 2),
                                 .batch_count = 4,
                                 .shared = {.b = true}});
  EXPECT_EQ(rows.result_shape, (Shape{.rows = 12, .cols = 2, .dtype = kF32}));
  EXPECT_EQ(rows.product.batch_count(), 4);
  ASSERT_EQ(rows.product.shared_operands_size(), 1);
  EXPECT_EQ(rows.product.shared_operands(0), ::gemm::v1::OPERAND_ROLE_B);

  MatrixView columns = View(3, 20);
  columns.shape.layout = kColumnMajor;
  const ProductPlan sideways =
      Plan({.a = columns, .b = View(20, 2), .batch_count = 4, .output_layout = kColumnMajor});
  EXPECT_EQ(sideways.result_shape,
            (Shape{.rows = 3, .cols = 8, .dtype = kF32, .layout = kColumnMajor}));

  EXPECT_FALSE(Plan({.a = View(2, 2), .b = View(2, 2)}).product.has_batch_count());
}

TEST(ProductPlan, ABatchThatDoesNotFitIsRefused) {
  const auto batch = [](int32_t count, MatrixView a) {
    return Product{.a = a, .b = View(5, 2), .batch_count = count, .shared = {.b = true}};
  };
  EXPECT_THAT(Refusal(batch(4, View(10, 5))),
              AllOf(HasSubstr("a.shape is 10x5"), HasSubstr("batch_count 4")));
  EXPECT_THAT(Refusal(batch(0, View(10, 5))), HasSubstr("batch_count is 0"));
  EXPECT_THAT(Refusal(batch(65536, View(65536, 5))), HasSubstr("from 1 to 65535"));
  Product stacked = batch(2, View(10, 5));
  stacked.bias = View(1, 2);
  EXPECT_THAT(Refusal(stacked), HasSubstr("bias.shape is 1x2"));
  stacked.shared.bias = true;
  Plan(stacked);
  stacked.c = View(5, 2);
  EXPECT_THAT(Refusal(stacked), HasSubstr("c.shape is 5x2"));
  stacked.shared.c = true;
  Plan(stacked);
}

// It would leave the field out and multiply the stacked matrices.
TEST(ProductPlan, AServerWithoutBatchesGetsNone) {
  PlanLimits old = kLimits;
  old.max_batch_count = 0;
  const Product batch{.a = View(10, 5), .b = View(5, 2), .batch_count = 2, .shared = {.b = true}};
  const auto plan = PlanProduct(batch, Transport::kAuto, old);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("batch_count is 2"));
}

TEST(ProductPlan, AGroupHasTheSumOfItsLines) {
  const ProductPlan by_m = Plan({.a = View(12, 5),
                                 .b = View(5, 2),
                                 .bias = View(3, 2),
                                 .group = {{4, 2, 5}, {0, 2, 5}, {8, 2, 5}},
                                 .shared = {.b = true}});
  EXPECT_EQ(by_m.result_shape, (Shape{.rows = 12, .cols = 2, .dtype = kF32}));
  ASSERT_EQ(by_m.product.group_size(), 3);
  EXPECT_EQ(by_m.product.group(2).m(), 8);
  EXPECT_EQ(by_m.product.group(2).n(), 2);
  EXPECT_EQ(by_m.product.group(2).k(), 5);

  const ProductPlan by_k = Plan(
      {.a = View(12, 5), .b = View(12, 2), .group = {{5, 2, 4}, {5, 2, 8}}, .transpose_a = true});
  EXPECT_EQ(by_k.result_shape, (Shape{.rows = 10, .cols = 2, .dtype = kF32}));

  MatrixView columns = View(5, 9);
  columns.shape.layout = kColumnMajor;
  const ProductPlan by_n = Plan({.a = View(8, 5),
                                 .b = columns,
                                 .group = {{4, 2, 5}, {4, 7, 5}},
                                 .output_layout = kColumnMajor});
  EXPECT_EQ(by_n.result_shape,
            (Shape{.rows = 4, .cols = 9, .dtype = kF32, .layout = kColumnMajor}));
  EXPECT_EQ(Plan({.a = View(2, 2), .b = View(2, 2)}).product.group_size(), 0);
}

TEST(ProductPlan, AGroupThatDoesNotFitIsRefused) {
  const Product good{.a = View(12, 5), .b = View(10, 2), .group = {{4, 2, 5}, {8, 2, 5}}};
  Plan(good);
  Product bad = good;
  bad.group[1].m = 9;
  EXPECT_THAT(Refusal(bad), HasSubstr("a.shape is 12x5 f32 row-major; it must be 13x5"));
  bad.group[1].m = -1;
  EXPECT_THAT(Refusal(bad), HasSubstr("a.shape has -1 rows for group[1]"));
  bad.group[1].m = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Refusal(bad), HasSubstr("2^60 bytes"));
  bad.group[1] = {4, 2, 6};
  EXPECT_THAT(Refusal(bad), HasSubstr("would have 5 elements for group[0] and 6 for group[1]"));
  bad = good;
  bad.shared.b = true;
  EXPECT_THAT(Refusal(bad), HasSubstr("b.shape is 10x2 f32 row-major; it must be 5x2"));
  bad = good;
  bad.c = View(11, 2);
  bad.beta = 1;
  EXPECT_THAT(Refusal(bad), HasSubstr("c.shape is 11x2"));
  bad = good;
  bad.batch_count = 2;
  EXPECT_THAT(Refusal(bad), AllOf(HasSubstr("batch_count is 2"), HasSubstr("group has 2")));
  bad = good;
  bad.group.assign(4097, {1, 2, 5});
  EXPECT_THAT(Refusal(bad), HasSubstr("group has 4097 products; it may have up to 4096"));
  bad.group.assign(1, {0, 2, 5});
  bad.a = Resident::ById("x");
  bad.output_dtype = kF32;
  bad.b = View(5, 2);
  EXPECT_THAT(Refusal(bad),
              HasSubstr("the m of all products of the group is 0; their sum must be at least 1"));
}

// As for batches.
TEST(ProductPlan, AServerWithoutGroupsGetsNone) {
  PlanLimits old = kLimits;
  old.max_group_count = 0;
  const Product group{.a = View(12, 5), .b = View(5, 2), .group = {{12, 2, 5}}};
  const auto plan = PlanProduct(group, Transport::kAuto, old);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("group has 1 products"));
}

// It would multiply without them.
TEST(ProductPlan, AServerWithoutBlockScalesGetsNone) {
  PlanLimits old = kLimits;
  old.scale_block = 0;
  Product scaled = ManyRows();
  scaled.scales_a = View(400, 1);
  scaled.scales_b = View(1, 64);
  const auto plan = PlanProduct(scaled, Transport::kAuto, old);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(plan.status().message(), "scales_a is set, but the server takes no block scales");
  const ProductPlan sent = Plan(scaled);
  ASSERT_EQ(sent.sent.size(), 4u);
  EXPECT_EQ(sent.sent[2].role, ::gemm::v1::OPERAND_ROLE_SCALES_A);
  EXPECT_EQ(sent.sent[3].role, ::gemm::v1::OPERAND_ROLE_SCALES_B);
  EXPECT_EQ(sent.product.scales_a().shape().rows(), 400);
  EXPECT_FALSE(TakesBlocks(scaled)) << "the server takes none with blocks of rows";
}

// Whose sizes are fields of the message, too.
TEST(ProductPlan, ALargeGroupCountsAtTheBoundOfAMessage) {
  PlanLimits tight = kLimits;
  tight.server_message_bytes = 64 << 10;
  Product group{.a = View(4096, 1), .b = View(1, 1), .shared = {.b = true}};
  group.group.assign(4096, {1, 1, 1});
  EXPECT_EQ(PlanProduct(group, Transport::kUnary, tight).status().code(),
            absl::StatusCode::kInvalidArgument);
  group.group.clear();
  group.shared = {};
  EXPECT_TRUE(PlanProduct(group, Transport::kUnary, tight).ok());
}

TEST(ProductPlan, MemoryForTheResultIsChecked) {
  std::byte memory[16];
  const MutableMatrixView none{.shape = {.rows = 2, .cols = 0}, .data = memory};
  EXPECT_THAT(Refusal({.a = View(2, 3), .b = View(3, 2), .result = {.into = none}}),
              HasSubstr("result.into.shape.cols is 0"));
  const MutableMatrixView nowhere{.shape = {.rows = 2, .cols = 2}};
  EXPECT_EQ(Refusal({.a = View(2, 3), .b = View(3, 2), .result = {.into = nowhere}}),
            "result.into.data is null; it must point to memory");
}

TEST(ProductPlan, ABatchWhoseResultNoMatrixHoldsIsRefused) {
  EXPECT_THAT(Refusal({.a = View(int64_t{1} << 50, 1, kS8),
                       .b = View(65535, 1, kS8),
                       .batch_count = 65535,
                       .shared = {.a = true}}),
              AllOf(HasSubstr("65535 matrices of 1125899906842624x1"), HasSubstr("2^60 bytes")));
}

}  // namespace
}  // namespace gemmd::client
