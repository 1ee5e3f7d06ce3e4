#include "server/rpc/inference/infer_request.h"

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/quote.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "server/engine/store/matrix.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/context/status.h"
#include "server/rpc/inference/parameters.h"
#include "server/rpc/inference/tensors.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using inference::ModelInferRequest;
using InputTensor = ModelInferRequest::InferInputTensor;

constexpr char kRegion[] = "shared_memory_region";
constexpr char kRegionOffset[] = "shared_memory_offset";
constexpr char kRegionBytes[] = "shared_memory_byte_size";

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Counts the entries of a message on the wire, `left` at most. Numbers are none, but for those of
// 64 bits, which may take eight times their bytes when parsed: each of their bytes is one.
class EntryCounter {
 public:
  EntryCounter(google::protobuf::io::CodedInputStream& in, int left) : in_(in), left_(left) {}

  // False where there are too many, or the bytes are no message of `type`.
  bool Count(const Descriptor& type) {
    while (const uint32_t tag = in_.ReadTag()) {
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (!Field(WireFormatLite::GetTagWireType(tag), field)) return false;
    }
    return in_.ConsumedEntireMessage();
  }
  bool too_many() const { return left_ < 0; }

 private:
  bool Take(int64_t entries) {
    left_ = entries > left_ ? -1 : left_ - static_cast<int>(entries);
    return !too_many();
  }

  // `field`: null where the message has none of this number.
  bool Field(WireFormatLite::WireType wire, const FieldDescriptor* field) {
    const bool number = field != nullptr && field->is_packable();
    const bool wide = number && (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                                 field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64);
    if ((!number || wide) && !Take(1)) return false;
    uint64_t value = 0;
    uint32_t value32 = 0;
    switch (wire) {
      case WireFormatLite::WIRETYPE_VARINT:
        return in_.ReadVarint64(&value);
      case WireFormatLite::WIRETYPE_FIXED64:
        return in_.ReadLittleEndian64(&value);
      case WireFormatLite::WIRETYPE_FIXED32:
        return in_.ReadLittleEndian32(&value32);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return in_.ReadVarint32(&value32) && value32 <= INT_MAX &&
               Bytes(static_cast<int>(value32), wide, field);
      case WireFormatLite::WIRETYPE_START_GROUP:
      case WireFormatLite::WIRETYPE_END_GROUP:
        return Take(1);  // what is in it counts as if it stood here
    }
    return false;
  }

  bool Bytes(int bytes, bool wide, const FieldDescriptor* field) {
    if (wide && !Take(bytes)) return false;
    // A number that is not repeated is an unknown field here.
    if (field != nullptr && field->is_packable() && !field->is_repeated() && !Take(1)) return false;
    if (field == nullptr || field->message_type() == nullptr) return in_.Skip(bytes);
    const auto outside = in_.PushLimit(bytes);
    const bool fits = Count(*field->message_type()) && in_.BytesUntilLimit() == 0;
    in_.PopLimit(outside);
    return fits;
  }

  google::protobuf::io::CodedInputStream& in_;
  int left_;
};

bool InRegion(const InputTensor& input) { return input.parameters().count(kRegion) > 0; }

// Reads a request field by field.
class InferParser {
 public:
  InferParser(ModelInferRequest& request, const Model& model, SharedMemory& memory,
              const InferCaller& from)
      : request_(request), model_(model), memory_(memory), from_(from) {}

  absl::StatusOr<v1::Product> Parse(InferProduct& out) {
    out_ = &out;
    absl::Status status = CheckContents();
    if (status.ok()) status = Outputs();
    if (status.ok()) status = Inputs();
    if (status.ok()) status = SetParameters(request_.parameters(), model_.kind, product_);
    if (!status.ok()) return status;
    return std::move(product_);
  }

  absl::string_view output() const { return linear() ? "Y" : "D"; }

 private:
  bool linear() const { return model_.kind == ModelKind::kLinear; }
  bool batched() const { return model_.kind == ModelKind::kBatched; }

  absl::Status CheckContents() {
    if (request_.id().size() > kMaxIdBytes) {
      return FieldError("id", absl::StrCat(request_.id().size(), " bytes; at most ", kMaxIdBytes));
    }
    int sent = 0;
    for (const InputTensor& input : request_.inputs()) {
      if (!InRegion(input)) ++sent;
      if (input.has_contents() && request_.raw_input_contents_size() > 0) {
        return FieldError("raw_input_contents", "set beside the contents of an input; give one");
      }
      if (input.has_contents() && InRegion(input)) {
        return FieldError("inputs.contents", "set beside a region of shared memory; give one");
      }
    }
    const int raw = request_.raw_input_contents_size();
    if (raw == 0 || raw == sent) return absl::OkStatus();
    return FieldError(
        "raw_input_contents",
        absl::StrCat(raw, " of them for ", sent, " inputs",
                     sent == request_.inputs_size() ? "" : " outside of shared memory"));
  }

  absl::Status Outputs() {
    for (const auto& asked : request_.outputs()) {
      if (asked.name() != output()) {
        return FieldError("outputs", absl::StrCat(gemm::Quoted(asked.name()),
                                                  "; the model's output is ", output()));
      }
      if (asked.parameters().count("classification") > 0) {
        return FieldError("outputs.parameters.classification", "the model's output is no class");
      }
      if (asked.parameters().count(kRegion) == 0) continue;
      if (out_->result != nullptr) return FieldError("outputs", "two regions for one output");
      auto part = OpenPart(asked.parameters(), "outputs.parameters");
      if (!part.ok()) return part.status();
      out_->result = std::make_shared<RegionResult>(memory_, *std::move(part));
    }
    return absl::OkStatus();
  }

  // The part of a region that parameters name.
  absl::StatusOr<std::shared_ptr<RegionPart>> OpenPart(const InferParameters& parameters,
                                                       const std::string& field) {
    const absl::StatusOr<std::string> owner = memory_.OwnerOf(from_.caller.name, from_.peer);
    if (!owner.ok()) return owner.status();
    const absl::StatusOr<std::string> name = TextOf(parameters, kRegion);
    if (!name.ok()) return name.status();
    const absl::StatusOr<uint64_t> offset = CountOf(parameters, kRegionOffset);
    if (!offset.ok()) return offset.status();
    const absl::StatusOr<uint64_t> bytes = CountOf(parameters, kRegionBytes);
    if (!bytes.ok()) return bytes.status();
    return memory_.Open(*owner, *name, *offset, *bytes, absl::StrCat(field, ".", kRegion));
  }

  absl::Status Inputs() {
    if (linear()) {
      const absl::Status x = Input("X", "x_type", *product_.mutable_a());
      if (!x.ok()) return x;
      const MatrixKey& weight = model_.weight;
      v1::MatrixRef& ref = *product_.mutable_b()->mutable_matrix();
      ref.set_name(weight.name);
      ref.set_shared(weight.shared);
      if (weight.version.has_value()) ref.set_version(*weight.version);
    } else {
      absl::Status status = Input("A", "a_type", *product_.mutable_a());
      if (status.ok()) status = Input("B", "b_type", *product_.mutable_b());
      if (!status.ok()) return status;
    }
    const int wanted = linear() ? 1 : 2;
    if (request_.inputs_size() == wanted) return absl::OkStatus();
    return FieldError("inputs", absl::StrCat(request_.inputs_size(), " of them; the model has ",
                                             linear() ? "X" : "A and B", ", each once"));
  }

  absl::Status Input(absl::string_view name, const std::string& parameter, v1::Operand& operand) {
    int index = 0;
    while (index < request_.inputs_size() && request_.inputs(index).name() != name) ++index;
    if (index == request_.inputs_size()) {
      return FieldError(
          "inputs", absl::StrCat(name, " is missing; the model has ", linear() ? "X" : "A and B"));
    }
    const std::string field = absl::StrCat("inputs.", name);
    InputTensor& input = *request_.mutable_inputs(index);
    const absl::StatusOr<std::string> fp8 = TextOf(request_.parameters(), parameter);
    if (!fp8.ok()) return fp8.status();
    const absl::StatusOr<gemm::DType> type =
        ParseDatatype(input.datatype(), *fp8, absl::StrCat(field, ".datatype"), parameter);
    if (!type.ok()) return type.status();
    absl::StatusOr<Shape> shape = ParseExtents(input, *type, field);
    if (!shape.ok()) return shape.status();
    Fill(*shape, *operand.mutable_shape());
    if (InRegion(input)) {
      return Region(input, *shape, field, name == "B" ? Role::kB : Role::kA, operand);
    }
    absl::StatusOr<std::string> data = Elements(index, *type, field);
    if (!data.ok()) return data.status();
    if (data->size() != shape->dense_bytes()) {
      return FieldError(field, absl::StrCat(data->size(), " bytes of elements; ", ToString(*shape),
                                            " takes ", shape->dense_bytes()));
    }
    *operand.mutable_data() = *std::move(data);
    return absl::OkStatus();
  }

  absl::Status Region(const InputTensor& input, const Shape& shape, const std::string& field,
                      Role role, v1::Operand& operand) {
    absl::StatusOr<std::shared_ptr<RegionPart>> part =
        OpenPart(input.parameters(), absl::StrCat(field, ".parameters"));
    if (!part.ok()) return part.status();
    const uint64_t bytes = shape.dense_bytes();
    if ((*part)->bytes() != bytes) {
      return FieldError(absl::StrCat(field, ".parameters.", kRegionBytes),
                        absl::StrCat((*part)->bytes(), "; ", ToString(shape), " takes ", bytes));
    }
    if (bytes > kSmallBytes) {
      operand.mutable_payload();
      out_->regions.emplace_back(role, *std::move(part));
      return absl::OkStatus();
    }
    std::string& data = *operand.mutable_data();
    data.resize(bytes);
    out_->small_region_bytes += bytes;
    return (*part)->Read(0, absl::MakeSpan(data));
  }

  absl::StatusOr<std::string> Elements(int index, gemm::DType type, const std::string& field) {
    if (request_.raw_input_contents_size() > 0) {
      const auto& inputs = request_.inputs();
      const auto before = std::count_if(inputs.begin(), inputs.begin() + index, &InRegion);
      return std::move(*request_.mutable_raw_input_contents(index - static_cast<int>(before)));
    }
    const InputTensor& input = request_.inputs(index);
    if (input.has_contents()) {
      return PackContents(input.contents(), type, absl::StrCat(field, ".contents"));
    }
    return FieldError(field, "no elements: send raw_input_contents");
  }

  // The matrix of the input: of a batch, that of all products, one after the other.
  absl::StatusOr<Shape> ParseExtents(const InputTensor& input, gemm::DType type,
                                     const std::string& field) {
    const std::string shape_field = absl::StrCat(field, ".shape");
    const int wanted = batched() ? 3 : 2;
    if (input.shape_size() != wanted) {
      return FieldError(shape_field, absl::StrCat("[", absl::StrJoin(input.shape(), ", "), "]; ",
                                                  model_.name, " has ", wanted, " dimensions"));
    }
    Shape shape = {input.shape(wanted - 2), input.shape(wanted - 1), type};
    if (absl::Status status = CheckShape(shape, shape_field); !status.ok()) return status;
    if (!batched()) return shape;
    const int64_t batch = input.shape(0);
    if (product_.has_batch_count() && product_.batch_count() != batch) {
      return FieldError(shape_field, absl::StrCat("a batch of ", batch, ", but A has one of ",
                                                  product_.batch_count()));
    }
    if (batch < 1 || batch > gemm::kMaxBatch) {
      return FieldError(shape_field,
                        absl::StrCat("a batch of ", batch, "; it must be 1 to ", gemm::kMaxBatch));
    }
    product_.set_batch_count(static_cast<int32_t>(batch));
    if (__builtin_mul_overflow(shape.rows, batch, &shape.rows)) {
      return FieldError(shape_field, "too many rows in all");
    }
    if (absl::Status status = CheckShape(shape, shape_field); !status.ok()) return status;
    return shape;
  }

  ModelInferRequest& request_;
  const Model& model_;
  SharedMemory& memory_;
  const InferCaller& from_;
  InferProduct* out_ = nullptr;
  v1::Product product_;
};

}  // namespace

absl::Status DecodeInfer(const grpc::ByteBuffer& bytes, ModelInferRequest& request) {
  bool fits = true;
  if (bytes.Valid()) {
    grpc::ByteBuffer copy = bytes;  // of references
    grpc::ProtoBufferReader reader(&copy);
    google::protobuf::io::CodedInputStream in(&reader);
    EntryCounter entries(in, kMostEntries);
    fits = entries.Count(*ModelInferRequest::descriptor());
    if (entries.too_many()) {
      return FieldError("request", absl::StrCat("more than ", kMostEntries,
                                                " entries: tensors, parameters and texts"));
    }
  }
  if (fits && Parse(bytes, request)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a message of ", bytes.Length(), " bytes is not a ModelInferRequest"));
}

uint64_t InferProduct::RegionBytes() const {
  uint64_t bytes = small_region_bytes + (result == nullptr ? 0 : result->bytes());
  for (const auto& [role, part] : regions) bytes += part->bytes();
  return bytes;
}

absl::StatusOr<InferProduct> ParseInfer(ModelInferRequest& request, const Model& model,
                                        SharedMemory& memory, const InferCaller& from) {
  InferParser parser(request, model, memory, from);
  InferProduct out{.output = parser.output(), .batched = model.kind == ModelKind::kBatched};
  absl::StatusOr<v1::Product> product = parser.Parse(out);
  if (!product.ok()) return product.status();
  absl::StatusOr<ProductRequest> parsed = ParseProduct(
      *product, from.caller, out.regions.empty() ? PayloadRule::kRefused : PayloadRule::kAllowed,
      from.arrived, from.call_deadline);
  if (!parsed.ok()) return parsed.status();
  out.product = *std::move(parsed);
  return out;
}

absl::Status CheckRegionBytes(uint64_t result_bytes, const RegionResult& region) {
  if (result_bytes <= region.bytes()) return absl::OkStatus();
  return FieldError(absl::StrCat("outputs.parameters.", kRegionBytes),
                    absl::StrCat(region.bytes(), "; the result has ", result_bytes, " bytes"));
}

void SendRegions(SharedMemory& memory, const std::shared_ptr<Job>& job, InferProduct& product) {
  for (auto& [role, part] : product.regions) SendRegion(memory, job, role, std::move(part));
}

void FillAnswer(const ModelInferRequest& request, const Model& model, const InferProduct& product,
                const JobReport& report, inference::ModelInferResponse& out) {
  out.set_model_name(model.name);
  out.set_model_version(product.version);
  inference::ModelInferResponse::InferOutputTensor& output = *out.add_outputs();
  output.set_name(std::string(product.output));
  output.set_datatype(std::string(DatatypeName(report.result.type)));
  if (product.batched) output.add_shape(report.batch);
  output.add_shape(report.m);
  output.add_shape(report.n);
  if (product.result != nullptr) {
    // Clients find their results by these.
    for (const auto& asked : request.outputs()) {
      if (asked.parameters().count(kRegion) > 0) *output.mutable_parameters() = asked.parameters();
    }
  }
  (*out.mutable_parameters())["kernel"].set_string_param(report.kernel);
}

}  // namespace gemmd
