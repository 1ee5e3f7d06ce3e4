"""What the server says of itself, `python -m gemmd`, and progress."""

import sys
import types

import gemmd
import numpy as np
import pytest
from gemmd.__main__ import main
from gemmd.progress import Meter

from conftest import Server


def test_records_are_tables(g):
    info = g.info()
    assert info.devices[0].name == "host:0" and info.limits.max_jobs > 0
    assert "healthy" in repr(info) and "<td>" in info._repr_html_()
    kernels = g.kernels("host")
    names = [k.name for k in kernels]
    assert names[:2] == ["host_openblas", "host_reference"]
    assert "f32:f32:f32:f32" in kernels[0].types
    assert repr(kernels).splitlines()[0].startswith("name")
    assert kernels[:1]._repr_html_().count("<tr>") == 2
    frame = kernels.dataframe()
    assert list(frame["name"]) == names
    with pytest.raises(gemmd.NotFound, match="cublas"):
        g.kernels("cublass")


def test_a_table_escapes_what_others_wrote(g):
    from gemmd.tables import html_table

    assert "<b>" not in html_table(("x",), [("<b>bold</b>",)])


def test_bench(g):
    found = g.bench([16, (8, 9, 10)], kernels=["host_*"], types=["f64"], iterations=2, budget=20)
    measured = [row for row in found.rows if not row.baseline]
    assert {(row.m, row.n, row.k) for row in measured} == {(16, 16, 16), (8, 9, 10)}
    assert all(row.error_of_bound < 1 and row.median > 0 for row in measured)
    assert found.device == "host:0" and found.metadata
    assert len(found.dataframe()) == len(found.rows)
    with pytest.raises(gemmd.NotFound):
        g.bench([16], kernels=["no_such_kernel"])
    with pytest.raises(gemmd.InvalidArgument, match="types"):
        g.bench([16], types=["f16:f16"])


def test_traffic_is_what_is_worth_tuning(g):
    a = np.arange(21, dtype=np.float32).reshape(3, 7)
    g.matmul(a, a.T, activation="relu")
    seen = [(t.m, t.n, t.k, t.types, t.epilogue) for t in g.traffic(1024)]
    assert (3, 3, 7, "f32:f32:f32:f32", True) in seen
    assert all(t.count > 0 and t.seconds >= 0 for t in g.traffic())
    with pytest.raises(gemmd.InvalidArgument, match="limit"):
        g.traffic(2000)


def test_tuning_tables_are_read_again(g, tmp_path):
    with pytest.raises(gemmd.FailedPrecondition, match="--tuning-tables"):
        g.reload_tuning()
    table = tmp_path / "a.tune"
    table.write_text("gemmd tuning table 1\n", encoding="ascii")
    running = Server(f"--tuning-tables={table}")
    try:
        with gemmd.connect(running.address) as client:
            assert client.reload_tuning().entries == 0
            table.write_text(
                "gemmd tuning table 1\n"
                "machine driver=- cuda=- library=1 device=Another\n"
                "types=f32:f32:f32:f32 layout=nn epilogue=plain shape=8x8x8 seconds=1 kernel=x\n",
                encoding="ascii",
            )
            load = client.reload_tuning()
            assert (load.entries, load.used, load.skipped_kernels) == (1, 0, ())
    finally:
        running.kill()


def test_a_report_is_a_table(g):
    _, report = g.matmul(np.eye(3), np.eye(3), kernel="host_openblas", return_report=True)
    assert report.kernel == "host_openblas" and report.compute == "f64" and report.dtype == "f64"
    assert "host_openblas" in report._repr_html_() and "3 x 3 x 3" in repr(report)


def test_a_product_is_checked_where_it_is_asked_for(g):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert g.matmul(a, a.T, return_report=True)[1].check is None
    _, report = g.matmul(a, a.T, verify="always", activation="relu", return_report=True)
    check = report.check
    assert check.result == "passed" and check.of_bound <= 1 and check.before_activation
    assert check.failed_kernel == "" and check.uncovered_rows == 0
    assert "check" in report.phases and "passed" in report._repr_html_()
    g.matmul(a, a.T, alpha=0, verify="always")
    skipped = g.last_report.check
    assert skipped.result == "not_checked" and "alpha is 0" in skipped.not_checked
    with pytest.raises(gemmd.InvalidArgument, match="verify is 'yes'"):
        g.matmul(a, a.T, verify="yes")


def test_command_line(server, tmp_path, capsys):
    at = ["--address", server.address]
    a = np.random.default_rng(0).standard_normal((20, 30))
    np.save(tmp_path / "a.npy", a)
    output = str(tmp_path / "c.npy")
    name = str(tmp_path / "a.npy")
    assert main([*at, "info"]) == 0
    assert main([*at, "kernels", "host"]) == 0
    assert main([*at, "multiply", name, name, "--transpose-b", "-o", output]) == 0
    np.testing.assert_allclose(np.load(output), a @ a.T)
    assert main([*at, "selftest"]) == 0
    assert "all products are right" in capsys.readouterr().out
    assert main([*at, "multiply", name, name, "-o", output]) == 1
    assert "op(a) has 30 columns" in capsys.readouterr().err
    assert main([*at, "multiply", "none.npy", name, "-o", output]) == 1
    assert "none.npy" in capsys.readouterr().err


def test_progress_is_shown_after_a_second(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, **options):
            shown.append(options["initial"])

        def update(self, nbytes):
            shown.append(nbytes)

        def close(self):
            shown.append("closed")

    def call_that_shows(progress):
        options = types.SimpleNamespace(progress=progress)
        connection = types.SimpleNamespace(options=options)
        return types.SimpleNamespace(connection=connection, moved=lambda: None)

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    now = [0.0]
    monkeypatch.setattr("gemmd.progress.time.monotonic", lambda: now[0])
    with Meter(call_that_shows(True), "put", 30) as meter:
        meter.add(10)
        assert not shown
        now[0] = 1.5
        meter.add(10)
        meter.add(10)
    assert shown == [20, 10, "closed"]
    with Meter(call_that_shows(False), "put", 30) as meter:
        meter.add(30)
    assert len(shown) == 3
