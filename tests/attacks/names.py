"""Names of every size and with any bytes, wherever a request has one."""

import grpc

import wire
from attack import Attack

SIZES = [0, 1, 127, 128, 129, 1000, 8000, 20000, 65536, 1 << 20, 5 << 20]
MAX_ERROR_CHARACTERS = 2000
# Anything else is no answer to a name.
ANSWERS = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"}
# gRPC's own answers to a message that it cannot parse, before the server sees it.
UNPARSED = {"INTERNAL", "UNKNOWN", "UNIMPLEMENTED"}
PLACEHOLDER = b"PLACEHOLDER"
STREAM_SECONDS = 20


def draw(rng):
    """(what it is, bytes) of one name."""
    size = rng.choice(SIZES)
    kind = rng.choice(["letters", "controls", "UTF-8", "invalid UTF-8", "quotes", "percent"])
    unit = {"letters": b"a", "controls": bytes([rng.randrange(1, 32)]), "UTF-8": "\u20ac".encode(),
            "invalid UTF-8": b"\xff", "quotes": b"'\"\\", "percent": b"%00\x1b[31m"}[kind]
    return f"{kind}, {size} bytes", unit * (size // len(unit))


def _product(**kernel):
    product = wire.generated_product(4, 4, 4)
    for key, value in kernel.items():
        setattr(product.kernel, key, value)
    return product


def requests():
    """{place: (method, request, response type, arity)}, the name being PLACEHOLDER in each."""
    pb, name = wire.messages(), PLACEHOLDER.decode()

    def resident(**key):
        product = wire.generated_product(4, 4, 4)
        product.a.CopyFrom(pb.Operand(matrix=pb.MatrixRef(**key)))
        return pb.MultiplyUnaryRequest(product=product)

    def unary(product):
        return "MultiplyUnary", pb.MultiplyUnaryRequest(product=product), \
            pb.MultiplyUnaryResponse, "unary_unary"

    def put(**fields):
        header = pb.PutMatrixHeader(shape=wire.shape(2, 2), **fields)
        header.generator.seed = 1
        header.keep.ttl.FromMilliseconds(500)
        return "PutMatrix", pb.PutMatrixRequest(header=header), pb.PutMatrixResponse, \
            "stream_unary"

    def benchmark(**fields):
        return "Benchmark", pb.BenchmarkRequest(
            shapes=[pb.ProductSize(m=8, n=8, k=8)], iterations=1, **fields), \
            pb.BenchmarkResponse, "unary_stream"

    def ranking(**fields):
        return "RankKernels", pb.RankKernelsRequest(
            size=pb.ProductSize(m=8, n=8, k=8), types=pb.KernelTypes(a=pb.DATA_TYPE_F32),
            **fields), pb.RankKernelsResponse, "unary_unary"

    parameter = _product(name="host_openblas")
    parameter.kernel.params[name] = 1
    return {
        "kernel name": unary(_product(name=name)),
        "kernel family": unary(_product(family=name)),
        "kernel parameter": unary(parameter),
        "operand name": ("MultiplyUnary", resident(name=name), pb.MultiplyUnaryResponse,
                         "unary_unary"),
        "operand id": ("MultiplyUnary", resident(id=name), pb.MultiplyUnaryResponse,
                       "unary_unary"),
        "matrix name": put(keep=pb.Keep(name=name)),
        "device": put(device=name),
        "upload id": put(upload_id=name),
        "download name": ("GetMatrix", pb.GetMatrixRequest(matrix=pb.MatrixRef(name=name)),
                          pb.GetMatrixResponse, "unary_stream"),
        "deleted name": ("DeleteMatrix", pb.DeleteMatrixRequest(matrix=pb.MatrixRef(name=name)),
                         pb.DeleteMatrixResponse, "unary_unary"),
        "owner": ("DeleteMatrix",
                  pb.DeleteMatrixRequest(matrix=pb.MatrixRef(name="x", owner=name)),
                  pb.DeleteMatrixResponse, "unary_unary"),
        "prefix": ("ListMatrices", pb.ListMatricesRequest(name_prefix=name),
                   pb.ListMatricesResponse, "unary_unary"),
        "page token": ("ListMatrices", pb.ListMatricesRequest(page_token=name),
                       pb.ListMatricesResponse, "unary_unary"),
        "listed family": ("ListKernels", pb.ListKernelsRequest(family=name),
                          pb.ListKernelsResponse, "unary_unary"),
        "ranked device": ranking(device=name),
        "ranked family": ranking(family=name),
        "benchmark device": benchmark(device=name),
        "benchmark suite": benchmark(suite=name),
        "benchmark kernel": benchmark(kernels=[name]),
        "benchmark family": benchmark(families=[name]),
    }


def filled(message, name):
    """The message's bytes with `name` in place of PLACEHOLDER, every length around it mended.

    Protobuf's Python refuses strings that are not UTF-8; the server must, too, so they are
    put into the bytes.
    """
    return _fill(message.SerializeToString(), name)


def _varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out + bytes([value]))


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _fill(data, name):
    if data == PLACEHOLDER:
        return name
    out, at = b"", 0
    while at < len(data):
        tag, begin = _read_varint(data, at)
        if tag & 7 == 2:
            length, start = _read_varint(data, begin)
            body = data[start:start + length]
            if PLACEHOLDER in body:
                body = _fill(body, name)
            out, at = out + data[at:begin] + _varint(len(body)) + body, start + length
        else:
            end = {1: begin + 8, 5: begin + 4}.get(tag & 7)
            if end is None:
                _, end = _read_varint(data, begin)
            out, at = out + data[at:end], end
    return out


def call(channel, method, data, response, arity):
    """(status, text) of one call with ready-made bytes."""
    function = getattr(channel, arity)(wire.SERVICE + method, request_serializer=None,
                                       response_deserializer=response.FromString)
    argument = iter([data]) if arity.startswith("stream") else data
    try:
        answer = function(argument, timeout=STREAM_SECONDS)
        if arity.endswith("stream"):
            for _ in answer:
                pass
        return "OK", ""
    except grpc.RpcError as error:
        return error.code().name, error.details()


def judge(outcome, where, status, text):
    """A fault for each way in which an answer is none."""
    outcome.count(status)
    if status not in ANSWERS:
        outcome.fault(f"{where}: {status} '{text[:100]}', which is no answer to a name")
    if "metadata size" in text:
        outcome.fault(f"{where}: the answer does not fit gRPC's metadata: '{text[:100]}'")
    if len(text) > MAX_ERROR_CHARACTERS:
        outcome.fault(f"{where}: an error of {len(text)} characters, of {MAX_ERROR_CHARACTERS}")
    if any(ord(c) < 32 and c != "\n" or ord(c) == 127 for c in text):
        outcome.fault(f"{where}: an error with control characters: {text[:60]!r}")


def on_a_stream(channel, outcome, where, data):
    """A bad job between two good ones: the good ones must be answered."""
    pb = wire.messages()
    good = [wire.multiply_header(i, wire.generated_product(4, 4, 4)).SerializeToString()
            for i in (1, 3)]
    function = channel.stream_stream(wire.SERVICE + "Multiply", request_serializer=None,
                                     response_deserializer=pb.MultiplyResponse.FromString)
    ended = {}
    try:
        for answer in function(iter([good[0], data, good[1]]), timeout=STREAM_SECONDS):
            if answer.HasField("error"):
                ended[answer.error.job_id] = "error"
                judge(outcome, where, grpc_name(answer.error.code), answer.error.message)
            elif answer.HasField("result"):
                ended[answer.result.job_id] = "result"
    except grpc.RpcError as error:
        # What cannot be parsed ends the stream, as the contract has no job to blame it on.
        outcome.count("stream: " + error.code().name)
        if "invalid UTF-8" not in where:
            outcome.fault(f"{where}, on a stream: it ended with {error.code().name}: "
                          f"'{error.details()[:100]}'")
        return
    if ended.get(1) != "result" or ended.get(3) != "result":
        outcome.fault(f"{where}, on a stream: another job had {ended.get(1)}, {ended.get(3)}")


def grpc_name(number):
    return {c.value[0]: c.name for c in grpc.StatusCode}.get(number, str(number))


def attack(target, outcome):
    pb, rng, places = wire.messages(), target.rng(), requests()
    with wire.channel(target.attacker()) as channel:
        while target.left() > 0:
            what, name = draw(rng)
            place = rng.choice(list(places))
            method, message, response, arity = places[place]
            status, text = call(channel, method, filled(message, name), response, arity)
            if "invalid UTF-8" in what and status in UNPARSED:
                status = "INVALID_ARGUMENT"
            judge(outcome, f"{place}: {what}", status, text)
            if rng.random() < 0.3:
                field = rng.choice(["name", "family"])
                header = pb.MultiplyRequest(header=pb.MultiplyHeader(
                    job_id=2, product=_product(**{field: PLACEHOLDER.decode()})))
                on_a_stream(channel, outcome, f"kernel {field}: {what}", filled(header, name))


ATTACKS = [
    Attack("names", "names of 0 bytes to 5 MiB with any characters, in 17 places", attack,
           by=("benchmark",)),
]
