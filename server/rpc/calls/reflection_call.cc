#include "server/rpc/calls/reflection_call.h"

#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "server/rpc/codec/codec.h"

namespace gemmd {
namespace {

namespace reflection = grpc::reflection::v1;
using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// A name of the contract is far shorter; the answer repeats the request.
constexpr size_t kMaxRequestBytes = 4096;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

void Refuse(absl::string_view what, absl::string_view name,
            reflection::ServerReflectionResponse& out) {
  out.mutable_error_response()->set_error_code(static_cast<int>(absl::StatusCode::kNotFound));
  out.mutable_error_response()->set_error_message(
      absl::StrCat("this server has no ", what, " ", gemm::Quoted(name)));
}

// The file, and then those that it imports, each once.
void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
             reflection::FileDescriptorResponse& out) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  proto.SerializeToString(out.add_file_descriptor_proto());
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, out);
}

void AnswerFile(const FileDescriptor* file, absl::string_view what, absl::string_view name,
                reflection::ServerReflectionResponse& out) {
  if (file == nullptr) return Refuse(what, name, out);
  std::set<const FileDescriptor*> added;
  AddFile(*file, added, *out.mutable_file_descriptor_response());
}

void AnswerExtension(const reflection::ExtensionRequest& request,
                     reflection::ServerReflectionResponse& out) {
  const Descriptor* const type = Pool().FindMessageTypeByName(request.containing_type());
  const FieldDescriptor* const field =
      type == nullptr ? nullptr : Pool().FindExtensionByNumber(type, request.extension_number());
  AnswerFile(field == nullptr ? nullptr : field->file(), "such extension of",
             request.containing_type(), out);
}

void AnswerExtensions(const std::string& name, reflection::ServerReflectionResponse& out) {
  const Descriptor* const type = Pool().FindMessageTypeByName(name);
  if (type == nullptr) return Refuse("message type", name, out);
  reflection::ExtensionNumberResponse& answer = *out.mutable_all_extension_numbers_response();
  answer.set_base_type_name(name);
  std::vector<const FieldDescriptor*> fields;
  Pool().FindAllExtensions(type, &fields);
  for (const FieldDescriptor* field : fields) answer.add_extension_number(field->number());
}

}  // namespace

reflection::ServerReflectionResponse Reflect(const reflection::ServerReflectionRequest& request,
                                             const std::vector<std::string>& services) {
  using Request = reflection::ServerReflectionRequest;
  reflection::ServerReflectionResponse out;
  out.set_valid_host(request.host());
  *out.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      AnswerFile(Pool().FindFileByName(request.file_by_filename()), "file",
                 request.file_by_filename(), out);
      break;
    case Request::kFileContainingSymbol:
      AnswerFile(Pool().FindFileContainingSymbol(request.file_containing_symbol()), "symbol",
                 request.file_containing_symbol(), out);
      break;
    case Request::kFileContainingExtension:
      AnswerExtension(request.file_containing_extension(), out);
      break;
    case Request::kAllExtensionNumbersOfType:
      AnswerExtensions(request.all_extension_numbers_of_type(), out);
      break;
    case Request::kListServices:
      for (const std::string& name : services) {
        out.mutable_list_services_response()->add_service()->set_name(name);
      }
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      out.mutable_error_response()->set_error_code(
          static_cast<int>(absl::StatusCode::kUnimplemented));
      out.mutable_error_response()->set_error_message(
          "message_request: none; this server knows those of grpc.reflection.v1");
      break;
  }
  return out;
}

ReflectionCall* ReflectionCall::Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                                      absl::string_view path,
                                      const std::vector<std::string>& services) {
  auto stream = std::make_shared<ReflectionCall>(service, call, path, services);
  stream->GoLive();
  return stream.get();
}

bool ReflectionCall::WantsRead() const { return !outcome_.has_value() && outbox_.idle(); }

void ReflectionCall::OnMessage(grpc::ByteBuffer& message) {
  if (message.Length() > kMaxRequestBytes) {
    return End(absl::ResourceExhaustedError(
        absl::StrCat("message: ", message.Length(), " bytes; at most ", kMaxRequestBytes)));
  }
  reflection::ServerReflectionRequest request;
  if (!Parse(message, request)) {
    return End(absl::InvalidArgumentError("message: it is no ServerReflectionRequest"));
  }
  Send(Serialize(Reflect(request, services_)));
}

void ReflectionCall::OnInputEnd() { End(absl::OkStatus()); }

void ReflectionCall::OnCancelled() {
  absl::Status why;
  {
    MutexLock lock(mutex_);
    why = WhyEnded();
  }
  End(why);
}

void ReflectionCall::GrowOld() {
  End(absl::UnavailableError("the stream is as old as a connection may get: begin another one"));
  Advance();
}

void ReflectionCall::BeginDrain() {
  CallLife::BeginDrain();
  End(absl::UnavailableError("the server is draining: call another one, or later"));
  Advance();
}

void ReflectionCall::End(const absl::Status& why) {
  MutexLock lock(mutex_);
  if (!outcome_.has_value()) outcome_ = why;
}

}  // namespace gemmd
