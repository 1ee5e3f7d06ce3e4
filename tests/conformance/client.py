"""A client of gemm.v1 on grpcio and the stubs that protoc makes from the proto; nothing else."""

import dataclasses
import random
import uuid
from concurrent import futures

import grpc
from gemm.v1 import gemm_pb2 as pb
from gemm.v1 import gemm_pb2_grpc

from elements import to_wire

TYPES = {"f64": pb.DATA_TYPE_F64, "f32": pb.DATA_TYPE_F32, "f16": pb.DATA_TYPE_F16,
         "bf16": pb.DATA_TYPE_BF16, "e4m3": pb.DATA_TYPE_F8E4M3, "e5m2": pb.DATA_TYPE_F8E5M2,
         "s8": pb.DATA_TYPE_S8, "s32": pb.DATA_TYPE_S32}
LAYOUTS = {"row": pb.LAYOUT_ROW_MAJOR, "col": pb.LAYOUT_COLUMN_MAJOR}
COMPUTES = {"default": pb.COMPUTE_MODE_UNSPECIFIED, "f64": pb.COMPUTE_MODE_F64,
            "f32": pb.COMPUTE_MODE_F32, "tf32": pb.COMPUTE_MODE_TF32, "f16": pb.COMPUTE_MODE_F16,
            "f32x3": pb.COMPUTE_MODE_F32X3, "s32": pb.COMPUTE_MODE_S32}
ACTIVATIONS = {"none": pb.ACTIVATION_NONE, "relu": pb.ACTIVATION_RELU, "gelu": pb.ACTIVATION_GELU,
               "leaky_relu": pb.ACTIVATION_LEAKY_RELU}
ROLES = {"a": pb.OPERAND_ROLE_A, "b": pb.OPERAND_ROLE_B, "c": pb.OPERAND_ROLE_C,
         "bias": pb.OPERAND_ROLE_BIAS, "scales_a": pb.OPERAND_ROLE_SCALES_A,
         "scales_b": pb.OPERAND_ROLE_SCALES_B}

CALL_SECONDS = 180
_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@dataclasses.dataclass
class Answer:
    """What came back for one job."""
    data: bytearray = dataclasses.field(default_factory=bytearray)
    report: object = None
    kept: object = None
    error: object = None
    finished: int = -1  # its place among the jobs of the stream, in the order they ended
    fault: str = ""     # a breach of the protocol by the server


class Client:
    """Several channels to one server. Channels with differing arguments share no connection."""

    def __init__(self, address, channels=4):
        self._channels = [grpc.insecure_channel(address, _UNLIMITED + [("gemm.channel", i)])
                          for i in range(channels)]
        grpc.channel_ready_future(self._channels[0]).result(timeout=30)
        self._stubs = [gemm_pb2_grpc.GemmServiceStub(c) for c in self._channels]
        self.stub = self._stubs[0]

    def close(self):
        for channel in self._channels:
            channel.close()

    def info(self):
        return self.stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=CALL_SECONDS)

    def kernels(self):
        return self.stub.ListKernels(pb.ListKernelsRequest(), timeout=CALL_SECONDS).kernels

    def rank(self, m, n, k, combination):
        """The kernels for a product of these types of A, B and D, and this compute mode."""
        a, b, d, compute = combination
        types = pb.KernelTypes(a=TYPES[a], b=TYPES[b], output=TYPES[d], compute=COMPUTES[compute])
        request = pb.RankKernelsRequest(size=pb.ProductSize(m=m, n=n, k=k), types=types)
        return self.stub.RankKernels(request, timeout=CALL_SECONDS)

    def traffic(self):
        """The products that the server has no entry of its tables for."""
        return self.stub.ListTraffic(pb.ListTrafficRequest(limit=1024),
                                     timeout=CALL_SECONDS).entries

    def put(self, elements, dtype, layout, name="", ways=1, rng=random, device=""):
        """Uploads a 2-D array, split over `ways` calls on as many channels."""
        header = pb.PutMatrixHeader(shape=shape_of(elements, dtype, layout), device=device,
                                    keep=pb.Keep(name=name))
        data = memoryview(to_wire(elements, layout))
        if ways == 1 or len(data) < ways:
            return self._put_range(0, header, data, 0, len(data), rng).matrix
        edges = [0] + sorted(rng.sample(range(1, len(data)), ways - 1)) + [len(data)]
        header.upload_id = str(uuid.uuid4())
        with futures.ThreadPoolExecutor(ways) as pool:
            answers = [f.result() for f in [
                pool.submit(self._put_range, i % len(self._stubs), header, data, edges[i],
                            edges[i + 1], random.Random(rng.random()))
                for i in range(ways)]]
        complete = [a for a in answers if a.complete]
        if len(complete) != 1:
            raise AssertionError(f"{len(complete)} calls of a split upload say complete, not 1")
        return complete[0].matrix

    def _put_range(self, channel, header, data, begin, end, rng):
        def requests():
            first = pb.PutMatrixRequest(header=header)
            if header.upload_id:
                first.header.range.offset, first.header.range.length = begin, end - begin
            yield first
            for offset, piece in pieces(data[begin:end], rng):
                yield pb.PutMatrixRequest(
                    chunk=pb.MatrixChunk(offset=begin + offset, data=bytes(piece)))

        answer = self._stubs[channel].PutMatrix(requests(), timeout=CALL_SECONDS)
        if answer.bytes_received != end - begin:
            raise AssertionError(f"bytes_received is {answer.bytes_received}, not {end - begin}")
        return answer

    def put_generated(self, rows, cols, dtype, layout, generator, name=""):
        header = pb.PutMatrixHeader(
            shape=pb.MatrixShape(rows=rows, cols=cols, dtype=TYPES[dtype], layout=LAYOUTS[layout]),
            generator=generator, keep=pb.Keep(name=name))
        return self.stub.PutMatrix(iter([pb.PutMatrixRequest(header=header)]),
                                   timeout=CALL_SECONDS).matrix

    def get(self, ref, begin=None, length=None):
        """(MatrixInfo, bytes) of a resident matrix, or of a range of it."""
        request = pb.GetMatrixRequest(matrix=ref)
        if begin is not None:
            request.range.offset, request.range.length = begin, length
        info, data = None, bytearray()
        for message in self.stub.GetMatrix(request, timeout=CALL_SECONDS):
            if info is None:
                info = message.matrix
                continue
            want = (begin or 0) + len(data)
            if message.offset != want:
                raise AssertionError(f"GetMatrix offset {message.offset}, not {want}")
            data += message.data
        return info, data

    def delete(self, matrix_id):
        return self.stub.DeleteMatrix(pb.DeleteMatrixRequest(matrix=pb.MatrixRef(id=matrix_id)),
                                      timeout=CALL_SECONDS)

    def multiply_unary(self, product):
        answer = Answer(finished=0)
        try:
            response = self.stub.MultiplyUnary(pb.MultiplyUnaryRequest(product=product),
                                               timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            answer.error = pb.JobError(code=error.code().value[0], message=error.details())
            return answer
        answer.data += response.data
        answer.report = response.report
        answer.kept = response.kept if response.HasField("kept") else None
        return answer

    def multiply(self, jobs, rng, cancel=()):
        """Runs jobs [(Product, {role: bytes})] on one stream, their chunks interleaved.

        Returns their Answers in the order of `jobs`. The jobs whose index is in `cancel` are
        cancelled once half of their chunks were sent.
        """
        answers = [Answer() for _ in jobs]
        call = self._stubs[rng.randrange(len(self._stubs))].Multiply(
            _interleaved(jobs, rng, cancel), timeout=CALL_SECONDS)
        ended = 0
        for message in call:
            kind = message.WhichOneof("message")
            part = getattr(message, kind)
            answer = answers[part.job_id - 1]
            if answer.finished >= 0:
                answer.fault = f"a {kind} after the job's end"
            elif kind == "chunk":
                if part.offset != len(answer.data):
                    answer.fault = f"result chunk at {part.offset}, not {len(answer.data)}"
                answer.data += part.data
            else:
                answer.finished, ended = ended, ended + 1
                if kind == "error":
                    answer.error = part
                else:
                    answer.report = part.report
                    answer.kept = part.kept if part.HasField("kept") else None
        for answer in answers:
            if answer.finished < 0:
                answer.fault = "the stream ended without a result or an error"
        return answers


def _interleaved(jobs, rng, cancel):
    """Headers and chunks of all jobs, the order of jobs and of operands shuffled."""
    waiting = list(range(len(jobs)))
    open_jobs = {}  # index -> list of (role, iterator over its pieces)
    sent = dict.fromkeys(cancel, 0)
    while waiting or open_jobs:
        if waiting and (len(open_jobs) < 4 or rng.random() < 0.2):
            index = waiting.pop(0)
            product, payloads = jobs[index]
            yield pb.MultiplyRequest(header=pb.MultiplyHeader(job_id=index + 1, product=product))
            roles = [(role, pieces(memoryview(data), rng)) for role, data in payloads.items()]
            if roles:
                open_jobs[index] = roles
            elif index in sent:
                yield pb.MultiplyRequest(cancel=pb.CancelJob(job_id=index + 1))
            continue
        index = rng.choice(list(open_jobs))
        roles = open_jobs[index]
        at = rng.randrange(len(roles))
        role, iterator = roles[at]
        piece = next(iterator, None)
        if piece is None:
            roles.pop(at)
            if not roles:
                del open_jobs[index]
            continue
        if index in sent:
            sent[index] += 1
            if sent[index] > 1:
                yield pb.MultiplyRequest(cancel=pb.CancelJob(job_id=index + 1))
                del open_jobs[index]
                continue
        yield pb.MultiplyRequest(chunk=pb.OperandChunk(
            job_id=index + 1, operand=ROLES[role], offset=piece[0], data=bytes(piece[1])))


def pieces(data, rng):
    """(offset, bytes) over `data` in chunks of odd sizes, at most about a hundred of them."""
    size = max(rng.choice([1, 7, 61, 4093, 65537, 262147, 1 << 20]), len(data) // 97 + 1)
    size = min(size, 1 << 20)
    for offset in range(0, len(data), size):
        yield offset, data[offset:offset + size]


def shape_of(elements, dtype, layout):
    return pb.MatrixShape(rows=elements.shape[0], cols=elements.shape[1], dtype=TYPES[dtype],
                          layout=LAYOUTS[layout])


def generator_of(seed, distribution, first, second):
    """The Generator message for the arguments of elements.generate."""
    if distribution == "uniform":
        return pb.Generator(seed=seed, uniform=pb.Uniform(low=first, high=second))
    return pb.Generator(seed=seed, normal=pb.Normal(mean=first, stddev=second))
