"""perf_analyzer, unmodified, against a host server.

PERF_ANALYZER is the program and LD_LIBRARY_PATH has its libraries: tests/inference/run.sh sees to it.
"""

import csv
import os
import subprocess

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

PROGRAM = os.environ.get("PERF_ANALYZER")

pytestmark = pytest.mark.skipif(
    not PROGRAM, reason=os.environ.get("PERF_ANALYZER_MISSING", "PERF_ANALYZER is not set")
)


def analyze(server, report, *options):
    """The first row of its report."""
    run = subprocess.run(
        [PROGRAM, "-i", "grpc", "-u", server.address, "-f", report, "--measurement-mode", "count_windows",
         "--measurement-request-count", "20", "--stability-percentage", "999", "--max-trials", "3", *options],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    with report.open(encoding="utf-8") as rows:
        return next(csv.DictReader(rows))


@pytest.fixture
def w(server, tmp_path):
    file = tmp_path / "w.npy"
    np.save(file, np.ones((8, 16), np.float16))
    server.put("half", file, "--replace")


@pytest.mark.parametrize(
    "options",
    [
        ["-m", "matmul", "--shape", "A:8,16", "--shape", "B:16,4"],
        ["-m", "matmul_batched", "--shape", "A:8,16", "--shape", "B:16,4", "-b", "3"],
        ["-m", "linear/half", "-b", "4"],
        ["-m", "matmul", "--shape", "A:8,16", "--shape", "B:16,4", "--streaming"],
        [
            "-m",
            "matmul",
            "--shape",
            "A:8,16",
            "--shape",
            "B:16,4",
            "--async",
            "--concurrency-range",
            "4",
        ],
    ],
    ids=["matmul", "batched", "linear", "stream", "async"],
)
def test_it_measures(server, w, tmp_path, options):
    with grpcclient.InferenceServerClient(server.address) as client:
        model = options[1]

        def count():
            return client.get_inference_statistics(model).model_stats[0].inference_stats

        before = count()
        row = analyze(server, tmp_path / "report.csv", *options)
        after = count()
    assert float(row["Inferences/Second"]) > 0
    # Of the server's statistics, which it asks for twice: they belong to its own requests.
    assert float(row["Server Compute Infer"]) > 0
    assert after.success.count - before.success.count >= 20
    assert after.fail.count == before.fail.count


def test_it_measures_with_shared_memory(near, tmp_path):
    row = analyze(near, tmp_path / "report.csv", "-m", "matmul", "--shape", "A:256,256", "--shape",
                  "B:256,256", "--shared-memory", "system", "--output-shared-memory-size", "262144")  # fmt: skip
    assert float(row["Inferences/Second"]) > 0
    with grpcclient.InferenceServerClient(near.address) as client:
        assert len(client.get_system_shared_memory_status().regions) == 0
