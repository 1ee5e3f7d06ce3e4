"""tritonclient as its users have it against a host server."""

import asyncio
import queue

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as aioclient
from tritonclient.utils import InferenceServerException

rng = np.random.default_rng(1)
A = rng.standard_normal((6, 4), dtype=np.float32)
B = rng.standard_normal((4, 5), dtype=np.float32)


def tensor(name, array, datatype=None, module=grpcclient):
    types = {
        "float64": "FP64",
        "float32": "FP32",
        "float16": "FP16",
        "bfloat16": "BF16",
        "int8": "INT8",
    }
    made = module.InferInput(name, array.shape, datatype or types[array.dtype.name])
    made.set_data_from_numpy(array)
    return made


def matmul(client, a=A, b=B, **options):
    return client.infer("matmul", [tensor("A", a), tensor("B", b)], **options).as_numpy("D")


@pytest.fixture
def w(server, tmp_path):
    """The matrix `w`, which is B."""
    file = tmp_path / "w.npy"
    np.save(file, B)
    server.put("w", file, "--replace")
    return B


def test_the_server_says_what_it_is(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.get_server_metadata().name == "gemmd"
    assert "statistics" in client.get_server_metadata().extensions


@pytest.mark.parametrize("model", ["matmul", "matmul_batched", "linear/w"])
def test_metadata_and_config_agree(client, w, model):
    assert client.is_model_ready(model)
    metadata = client.get_model_metadata(model)
    config = client.get_model_config(model).config
    batch = [-1] if config.max_batch_size > 0 else []
    assert [list(t.shape) for t in metadata.inputs] == [batch + list(t.dims) for t in config.input]
    assert model in [row.name for row in client.get_model_repository_index().models]


def test_a_model_that_is_not_there(client):
    assert not client.is_model_ready("resnet50")
    with pytest.raises(InferenceServerException) as error:
        client.get_model_metadata("linear/none")
    assert error.value.status() == "StatusCode.NOT_FOUND"


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float64", 1e-14), ("float32", 1e-5), ("float16", 1e-2)]
)
def test_floats(client, dtype, bound):
    a, b = A.astype(dtype), B.astype(dtype)
    d = matmul(client, a, b)
    assert d.dtype == dtype
    np.testing.assert_allclose(
        d.astype("f8"), a.astype("f8") @ b.astype("f8"), rtol=bound, atol=bound
    )


def test_integers(client):
    a = rng.integers(-128, 128, (6, 40), dtype=np.int8)
    b = rng.integers(-128, 128, (40, 5), dtype=np.int8)
    np.testing.assert_array_equal(matmul(client, a, b), a.astype("i4") @ b.astype("i4"))


@pytest.mark.parametrize(
    ("dtype", "fp8"), [(ml_dtypes.float8_e4m3fn, "E4M3"), (ml_dtypes.float8_e5m2, "E5M2")]
)
def test_fp8(client, dtype, fp8):
    a, b = A.astype(dtype), B.astype(dtype)
    inputs = [tensor("A", a.view(np.uint8), "UINT8"), tensor("B", b.view(np.uint8), "UINT8")]
    parameters = {"a_type": fp8, "b_type": fp8, "output_type": "FP32"}
    d = client.infer("matmul", inputs, parameters=parameters).as_numpy("D")
    np.testing.assert_allclose(d, a.astype("f4") @ b.astype("f4"), rtol=1e-5, atol=1e-5)


def test_bfloat16(client):
    a, b = A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16)
    d = matmul(client, a, b)
    assert d.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(
        d.astype("f4"), a.astype("f4") @ b.astype("f4"), rtol=1e-2, atol=1e-2
    )


def test_parameters(client):
    d = matmul(client, A.T.copy(), B.T.copy(),
               parameters={"transpose_a": True, "transpose_b": True, "alpha": 2.0, "activation": "relu",
                           "compute": "f32", "kernel": "host_reference"})  # fmt: skip
    np.testing.assert_allclose(d, np.maximum(2 * (A @ B), 0), rtol=1e-5, atol=1e-5)


def test_a_batch(client):
    a = rng.standard_normal((3, 6, 4), dtype=np.float32)
    b = rng.standard_normal((3, 4, 5), dtype=np.float32)
    d = client.infer("matmul_batched", [tensor("A", a), tensor("B", b)]).as_numpy("D")
    np.testing.assert_allclose(d, a @ b, rtol=1e-5, atol=1e-5)


def test_a_resident_matrix(client, w):
    answer = client.infer("linear/w", [tensor("X", A)], request_id="7",
                          outputs=[grpcclient.InferRequestedOutput("Y")])  # fmt: skip
    assert answer.get_response().id == "7"
    np.testing.assert_allclose(answer.as_numpy("Y"), A @ w, rtol=1e-5, atol=1e-5)


def test_errors(client):
    with pytest.raises(InferenceServerException, match="the inner dimensions differ") as error:
        matmul(client, A, A)
    assert error.value.status() == "StatusCode.INVALID_ARGUMENT"
    with pytest.raises(InferenceServerException, match="max-message-bytes") as error:
        matmul(client, np.zeros((2048, 1024), np.float32), np.zeros((1024, 1), np.float32))
    assert error.value.status() == "StatusCode.RESOURCE_EXHAUSTED"


def test_a_deadline(client):
    square = np.zeros((768, 768), np.float32)
    with pytest.raises(InferenceServerException) as error:
        matmul(client, square, square, timeout=1)
    assert error.value.status() == "StatusCode.DEADLINE_EXCEEDED"


def test_a_future_and_its_cancellation(client):
    answers = queue.Queue()
    inputs = [tensor("A", A), tensor("B", B)]
    client.async_infer("matmul", inputs, lambda result, error: answers.put((result, error)))
    result, error = answers.get(timeout=60)
    assert error is None
    np.testing.assert_allclose(result.as_numpy("D"), A @ B, rtol=1e-5, atol=1e-5)
    big = np.ones((700, 700), np.float32)
    slow = [tensor("A", big), tensor("B", big)]
    call = client.async_infer("matmul", slow, lambda result, error: answers.put((result, error)),
                              parameters={"kernel": "host_reference"})  # fmt: skip
    call.cancel()
    result, error = answers.get(timeout=60)
    assert result is None
    assert error.status() == "StatusCode.CANCELLED"
    # The server goes on.
    np.testing.assert_allclose(matmul(client), A @ B, rtol=1e-5, atol=1e-5)


def test_asyncio(server):
    async def run():
        async with aioclient.InferenceServerClient(server.address) as client:
            assert await client.is_server_ready()
            inputs = [tensor("A", A, module=aioclient), tensor("B", B, module=aioclient)]
            answers = await asyncio.gather(*(client.infer("matmul", inputs) for _ in range(20)))

            async def requests():
                for i in range(5):
                    yield {"model_name": "matmul", "inputs": inputs, "request_id": str(i)}

            streamed = [answer async for answer in client.stream_infer(requests())]
            return answers, streamed

    answers, streamed = asyncio.run(run())
    for answer in answers:
        np.testing.assert_allclose(answer.as_numpy("D"), A @ B, rtol=1e-5, atol=1e-5)
    assert [result.get_response().id for result, error in streamed] == list("01234")


def test_a_stream(client):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for i in range(9):
        b = A if i == 4 else B
        client.async_stream_infer("matmul", [tensor("A", A), tensor("B", b)], request_id=str(i))
    for i in range(9):
        result, error = answers.get(timeout=60)
        if i == 4:
            assert "the inner dimensions differ" in str(error)
            continue
        assert error is None
        assert result.get_response().id == str(i)
        assert result.get_response().parameters["triton_final_response"].bool_param
        np.testing.assert_allclose(result.as_numpy("D"), A @ B, rtol=1e-5, atol=1e-5)
    client.stop_stream()


def test_statistics_add_up_with_the_metrics(server, client):
    def counts():
        stats = [row.inference_stats for row in client.get_inference_statistics().model_stats]
        return (
            sum(row.success.count for row in stats),
            sum(row.fail.count for row in stats),
            server.metric("gemmd_requests_total", method="ModelInfer", outcome="OK"),
            server.metric("gemmd_requests_total", method="ModelInfer"),
        )

    before = counts()
    for _ in range(7):
        matmul(client)
    for _ in range(2):
        with pytest.raises(InferenceServerException):
            matmul(client, A, A)
    success, fail, ok, all_ = (now - then for now, then in zip(counts(), before))
    assert (success, fail) == (7, 2)
    assert (ok, all_) == (7, 9)


def test_no_shared_memory(client):
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()
    assert len(client.get_system_shared_memory_status().regions) == 0
    assert len(client.get_cuda_shared_memory_status().regions) == 0
    with pytest.raises(InferenceServerException, match="--client-shared-memory"):
        client.register_system_shared_memory("region", "/key", 64)


def test_what_no_rule_names_is_unimplemented(client):
    with pytest.raises(InferenceServerException) as error:
        client.load_model("matmul")
    assert error.value.status() == "StatusCode.UNIMPLEMENTED"


def test_callers_and_quotas(guarded, tmp_path):
    np.save(tmp_path / "w.npy", B)
    guarded.put("w", tmp_path / "w.npy", GEMMCTL_TOKEN="mia-token")
    headers = {name: {"authorization": f"Bearer {name}-token"} for name in ("anna", "mia")}
    with grpcclient.InferenceServerClient(guarded.address) as client:
        with pytest.raises(InferenceServerException) as error:
            client.is_server_live()
        assert error.value.status() == "StatusCode.UNAUTHENTICATED"
        x = [tensor("X", A)]
        y = client.infer("linear/w", x, headers=headers["mia"]).as_numpy("Y")
        np.testing.assert_allclose(y, A @ B, rtol=1e-5, atol=1e-5)
        # mia's matrix is no model of anna, who is not told of it either.
        with pytest.raises(InferenceServerException) as error:
            client.infer("linear/w", x, headers=headers["anna"])
        assert error.value.status() == "StatusCode.NOT_FOUND"
        index = client.get_model_repository_index(headers=headers["anna"])
        assert [row.name for row in index.models] == ["matmul", "matmul_batched"]
        # A shared one is.
        guarded.put("s", tmp_path / "w.npy", "--shared", GEMMCTL_TOKEN="mia-token")
        for name in ("anna", "mia"):
            y = client.infer("shared_linear/s", x, headers=headers[name]).as_numpy("Y")
            np.testing.assert_allclose(y, A @ B, rtol=1e-5, atol=1e-5)
        index = client.get_model_repository_index(headers=headers["mia"])
        assert {"linear/w", "shared_linear/s"} <= {row.name for row in index.models}
        stats = client.get_inference_statistics("matmul", headers=headers["anna"]).model_stats
        assert sum(row.inference_count for row in stats) == 0
        np.testing.assert_allclose(
            matmul(client, headers=headers["anna"]), A @ B, rtol=1e-5, atol=1e-5
        )
        square = np.zeros((256, 256), np.float32)
        with pytest.raises(InferenceServerException, match="admitted-bytes") as error:
            matmul(client, square, square, headers=headers["anna"])
        assert error.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
