// Ends a split upload that a client has given up.
#pragma once

#include <memory>

#include "client/cpp/calls/task.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/support/byte_buffer.h"

namespace gemmd::client {

inline constexpr char kPutMatrix[] = "/gemm.v1.GemmService/PutMatrix";

// The first message of a PutMatrix call.
grpc::ByteBuffer UploadMessage(const ::gemm::v1::PutMatrixHeader& header);

// A stripe that is refused, or cancelled on its way, ends nothing on the server: stripes that have
// landed would keep the matrix's name and bytes until --upload-timeout. So a call for `stripe`,
// the header of one that has not landed, sends no byte: it fails, and the upload with it. Where
// that is refused, too, it is tried again, for up to ten seconds. The task is held until then, so
// that a further attempt at it finds the name free. Errors are ignored.
void EndUpload(const std::shared_ptr<Task>& task, const ::gemm::v1::PutMatrixHeader& stripe);

}  // namespace gemmd::client
