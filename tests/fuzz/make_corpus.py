"""Writes the seed corpus: valid messages, and ones that are wrong in one place.

usage: make_corpus.py STUBS, the folder with gemm/v1/gemm_pb2.py and inference/inference_pb2.py made by
python3 -m grpc_tools.protoc -I proto --python_out=STUBS gemm/v1/gemm.proto inference/inference.proto
"""

import pathlib
import struct
import sys

sys.path.insert(0, sys.argv[1])
from gemm.v1 import gemm_pb2 as pb  # noqa: E402
from inference import inference_pb2 as oip  # noqa: E402

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def shape(rows, cols, dtype=pb.DATA_TYPE_F32, layout=0):
    return pb.MatrixShape(rows=rows, cols=cols, dtype=dtype, layout=layout)


def payload(rows, cols, **more):
    return pb.Operand(shape=shape(rows, cols, **more), payload=pb.Payload())


def generated(rows, cols, **more):
    return pb.Operand(shape=shape(rows, cols, **more), generator=pb.Generator(seed=rows))


def header(job_id, **product):
    return pb.MultiplyRequest(
        header=pb.MultiplyHeader(job_id=job_id, product=pb.Product(**product))
    )


def chunk(job_id, operand, offset, data):
    return pb.MultiplyRequest(
        chunk=pb.OperandChunk(job_id=job_id, operand=operand, offset=offset, data=data)
    )


def sizes(*products):
    return [pb.ProductSize(m=m, n=n, k=k) for m, n, k in products]


def put_chunk(offset, data):
    return pb.PutMatrixRequest(chunk=pb.MatrixChunk(offset=offset, data=data))


A, B = pb.OPERAND_ROLE_A, pb.OPERAND_ROLE_B
FP8 = pb.DATA_TYPE_F8E4M3
KEEP = pb.ResultDestination(keep=pb.Keep(name="kept"), stream=True)
MULTIPLY = {
    "sent": [
        header(1, a=payload(2, 3), b=payload(3, 2)),
        chunk(1, A, 0, bytes(24)),
        chunk(1, B, 0, bytes(10)),
        chunk(1, B, 10, bytes(14)),
    ],
    "generated": [header(2, a=generated(5, 7), b=generated(7, 4), result=KEEP, alpha=2)],
    "column_major": [
        header(
            3,
            a=generated(4, 4, layout=pb.LAYOUT_COLUMN_MAJOR),
            b=generated(4, 4),
            c=generated(4, 4, layout=pb.LAYOUT_COLUMN_MAJOR),
            bias=generated(1, 4),
            beta=1,
            activation=pb.ACTIVATION_GELU,
            output_layout=pb.LAYOUT_COLUMN_MAJOR,
            transpose_a=True,
        )
    ],
    "bf16_by_name": [
        header(
            4,
            a=generated(3, 3, dtype=pb.DATA_TYPE_BF16),
            b=generated(3, 3, dtype=pb.DATA_TYPE_BF16),
            kernel=pb.KernelChoice(name="host_reference"),
        )
    ],
    "cancel": [
        header(5, a=payload(9, 9), b=payload(9, 9)),
        pb.MultiplyRequest(cancel=pb.CancelJob(job_id=5)),
    ],
    "duplicate_and_unknown": [
        header(6, a=payload(1, 1), b=payload(1, 1)),
        header(6, a=payload(1, 1), b=payload(1, 1)),
        chunk(7, A, 0, b"1234"),
        chunk(6, A, 0, b"1234"),
        chunk(6, B, 4, b"1234"),
    ],
    "large": [
        header(8, a=payload(200, 200), b=generated(200, 1)),
        chunk(8, A, 0, bytes(60000)),
        chunk(8, A, 60000, bytes(60000)),
        chunk(8, A, 120000, bytes(40000)),
    ],
    "resident": [
        header(9, a=pb.Operand(matrix=pb.MatrixRef(name="kept", release=True)), b=payload(2, 2))
    ],
    "batch": [
        header(
            11,
            a=payload(6, 3),
            b=generated(3, 2),
            bias=generated(3, 2),
            batch_count=3,
            shared_operands=[B],
        ),
        chunk(11, A, 0, bytes(72)),
    ],
    "batch_that_does_not_fit": [
        header(12, a=generated(7, 3), b=generated(3, 2), batch_count=2, shared_operands=[B, B])
    ],
    "largest_batch": [
        header(13, a=generated(65535, 1), b=generated(1, 1), batch_count=65535, shared_operands=[B])
    ],
    "row_block": [
        header(
            14,
            a=payload(2, 3),
            b=generated(3, 2),
            kernel=pb.KernelChoice(name="host_reference"),
            row_block=pb.RowBlock(product_rows=9),
        ),
        chunk(14, A, 0, bytes(24)),
    ],
    "row_block_of_less": [
        header(
            15,
            a=generated(4, 3),
            b=generated(3, 2),
            kernel=pb.KernelChoice(name="host_reference"),
            row_block=pb.RowBlock(product_rows=3),
        )
    ],
    "row_block_of_the_most": [
        header(
            16,
            a=generated(4, 3),
            b=generated(3, 2),
            kernel=pb.KernelChoice(name="host_reference"),
            row_block=pb.RowBlock(product_rows=2**63 - 1),
        )
    ],
    "group": [
        header(
            14,
            a=payload(6, 3),
            b=generated(9, 2),
            bias=generated(3, 2),
            group=sizes((4, 2, 3), (0, 2, 3), (2, 2, 3)),
        ),
        chunk(14, A, 0, bytes(72)),
    ],
    "group_by_k": [
        header(
            15,
            a=generated(6, 3),
            b=generated(6, 2),
            transpose_a=True,
            group=sizes((3, 2, 0), (3, 2, 6)),
        )
    ],
    "group_that_does_not_fit": [
        header(
            16, a=generated(7, 3), b=generated(3, 2), group=sizes((7, 2, 3), (-1, 2, 4), (0, 0, 0))
        )
    ],
    "largest_group": [
        header(
            17,
            a=generated(4096, 1),
            b=generated(1, 1),
            shared_operands=[B],
            group=sizes(*[(1, 1, 1)] * 4096),
        )
    ],
    "block_scales": [
        header(
            18,
            a=payload(3, 130, dtype=FP8),
            b=generated(130, 2, dtype=FP8),
            scales_a=payload(3, 2),
            scales_b=generated(2, 1, layout=pb.LAYOUT_COLUMN_MAJOR),
        ),
        chunk(18, A, 0, bytes(390)),
        chunk(18, pb.OPERAND_ROLE_SCALES_A, 0, bytes(24)),
    ],
    "block_scales_that_do_not_fit": [
        header(
            19,
            a=generated(3, 130, dtype=FP8),
            b=generated(130, 2),
            scales_a=generated(2**62, 2),
            scales_b=generated(1, 1),
        )
    ],
    "inline_data": [
        header(10, a=pb.Operand(shape=shape(1, 1), data=b"abcd"), b=generated(1, 1), result=KEEP)
    ],
}
PUT = {
    "whole": [
        pb.PutMatrixRequest(header=pb.PutMatrixHeader(shape=shape(2, 2), keep=pb.Keep(name="m"))),
        put_chunk(0, bytes(9)),
        put_chunk(9, bytes(7)),
    ],
    "generated": [
        pb.PutMatrixRequest(
            header=pb.PutMatrixHeader(
                shape=shape(3, 5, dtype=pb.DATA_TYPE_F64),
                generator=pb.Generator(seed=1, normal=pb.Normal(mean=1, stddev=2)),
            )
        )
    ],
    "range": [
        pb.PutMatrixRequest(
            header=pb.PutMatrixHeader(
                shape=shape(2, 2), upload_id="u", range=pb.ByteRange(offset=4, length=8)
            )
        ),
        put_chunk(4, bytes(8)),
    ],
    "no_header": [put_chunk(0, b"1")],
}
NPY = {
    "f4": "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }",
    "f2_fortran": "{'descr': '<f2', 'fortran_order': True, 'shape': (3, 4), }",
    "vector": "{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }",
    "scalar": "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
    "bf16": "{'descr': '<V2', 'fortran_order': False, 'shape': (1, 1), }",
    "e4m3": "{'descr': '<V1', 'fortran_order': False, 'shape': (2, 2), }",
    "big_endian": "{'descr': '>f8', 'fortran_order': False, 'shape': (3, 4), }",
    "native": "{'descr': 'i4', 'fortran_order': False, 'shape': (3, 4), }",
    "structured": "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,), }",
    "zero": "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }",
    "huge": "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }",
    "object": "{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }",
}


def infer(model, inputs, raw=True, **more):
    """`inputs`: {name: (datatype, extents, bytes)}."""
    request = oip.ModelInferRequest(model_name=model, id="1", **more)
    for name, (datatype, extents, data) in inputs.items():
        request.inputs.add(name=name, datatype=datatype, shape=extents)
        if raw:
            request.raw_input_contents.append(data)
    return request


def parameters(**values):
    fields = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}
    return {name: oip.InferParameter(**{fields[type(value)]: value}) for name, value in values.items()}


F32_INPUTS = {"A": ("FP32", [2, 3], bytes(24)), "B": ("FP32", [3, 2], bytes(24))}
INFER = {
    "matmul": infer("matmul", F32_INPUTS, model_version="1"),
    "batched": infer("matmul_batched", {"A": ("INT8", [2, 1, 3], bytes(6)), "B": ("INT8", [2, 3, 1], bytes(6))}),
    "many_rows": infer("matmul_batched", {"A": ("FP64", [65535, 2**50, 1], b""), "B": ("FP64", [65535, 1, 1], b"")}),
    "linear": infer("linear/w", {"X": ("FP16", [1, 3], bytes(6))}, model_version="18446744073709551615",
                    parameters=parameters(transpose_w=True)),
    "fp8": infer("shared_linear/w", {"X": ("UINT8", [1, 3], bytes(3))}, parameters=parameters(x_type="E4M3")),
    "parameters": infer("matmul", F32_INPUTS, parameters=parameters(
        alpha=2.5, leaky_slope=1, activation="leaky_relu", compute="tf32", kernel="auto", output_type="FP16",
        timeout=2**63 - 1, transpose_a=False, triton_enable_empty_final_response=True)),
    "wrong_parameter": infer("matmul", F32_INPUTS, parameters=parameters(beta=1.0)),
    "contents": infer("matmul", F32_INPUTS, raw=False),
    "nothing": infer("matmul", {}),
    "output": infer("matmul", F32_INPUTS, outputs=[oip.ModelInferRequest.InferRequestedOutputTensor(name="D")]),
}  # fmt: skip
# "r" is a region of 4 KiB that the program has registered.
for name, offset, size in (("region", 0, 24), ("region_end", 4073, 24), ("region_overflow", 2**63 - 1, 2**63 - 1)):
    INFER[name] = infer("matmul", F32_INPUTS, raw=False,
                        outputs=[oip.ModelInferRequest.InferRequestedOutputTensor(name="D")])  # fmt: skip
    for tensor in (*INFER[name].inputs, *INFER[name].outputs):
        for key, value in parameters(shared_memory_region="r", shared_memory_offset=offset,
                                     shared_memory_byte_size=size).items():  # fmt: skip
            tensor.parameters[key].CopyFrom(value)
for tensor in INFER["contents"].inputs:
    tensor.contents.fp32_contents.extend([0.5] * 6)


def main():
    for name, request in INFER.items():
        write("inference_fuzz", name, request.SerializeToString(deterministic=True))
    for rpc, cases in enumerate((MULTIPLY, PUT)):
        for name, messages in cases.items():
            data = bytes([rpc])
            for i, message in enumerate(messages):
                raw = message.SerializeToString()
                data += struct.pack("<H", len(raw)) + raw
                write(
                    "codec_fuzz", f"{'put' if rpc else 'multiply'}_{name}_{i}", b"\5" + raw[:4096]
                )
            write("stream_fuzz", f"{'put' if rpc else 'multiply'}_{name}", data)
    write("codec_fuzz", "truncated", b"\0\x12\xff\xff\xff\xff\x0f\x01")
    write("codec_fuzz", "group", b"\1\x0b\x0c\x12\x02\x08\x01")
    write("codec_fuzz", "merged", b"\2\x12\x02\x08\x01\x12\x03\x7a\x01a")
    write("stream_fuzz", "garbage", b"\0\5\0hello\1\0\xff")
    for name, text in NPY.items():
        padded = text.encode() + b" " * (117 - len(text)) + b"\n"
        write("npy_fuzz", name, b"\x93NUMPY\1\0" + struct.pack("<H", len(padded)) + padded)
        write("npy_fuzz", name + "_v2", b"\x93NUMPY\2\0" + struct.pack("<I", len(padded)) + padded)


main()
