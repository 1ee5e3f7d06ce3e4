"""Products of Dask arrays: right in every type, planned, and finished where servers fail."""

import contextlib
import gc
import hashlib
import logging
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import gemmd
import gemmd.dask
import ml_dtypes
import numpy as np
import pytest
from distributed import Client, LocalCluster, wait
from gemmd.dask import panels, servers, tasks, tiles

from conftest import Server, free_port

# Seconds after which a server that answers nothing is given up.
PATIENCE = 1.5


@pytest.fixture(scope="module")
def pair():
    """Addresses of two servers."""
    running = [Server(), Server()]
    yield [one.address for one in running]
    for one in running:
        one.kill()


@pytest.fixture
def own_pair():
    """Two servers of the test's own, to be killed."""
    running = [Server(), Server()]
    yield running
    for one in running:
        one.kill()


@contextlib.contextmanager
def cluster(**options):
    settings = {"n_workers": 2, "threads_per_worker": 2, "processes": False,
                "dashboard_address": ":0", "silence_logs": logging.ERROR, **options}  # fmt: skip
    # Before Python 3.12 the profiler can stop a worker for good.
    dask.config.set({"distributed.worker.profile.enabled": False})
    with LocalCluster(**settings) as local, Client(local) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster() as found:
        yield found


def operands(dtype=np.float32, shape=(70, 50, 90), chunks=((30, 20), (25, 40))):
    """As numpy arrays and as Dask arrays, whose last chunks are smaller."""
    rng = np.random.default_rng(1)
    m, k, n = shape
    a = rng.integers(-2, 3, (m, k)).astype(dtype)
    b = rng.integers(-2, 3, (k, n)).astype(dtype)
    return a, b, da.from_array(a, chunks[0]), da.from_array(b, chunks[1])


def tries(client):
    """The tries of tiles so far, each as a record."""
    return [event for _, event in client.get_events(tasks.TOPIC)]


def nothing_left(addresses):
    """Whether the servers have no matrix any more, once they have had time to delete them."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        left = 0
        for address in addresses:
            with gemmd.connect(address) as g:
                left += len(g.matrices("dask/"))
        if left == 0:
            return True
        gc.collect()  # an error and the frames that hold blocks refer to each other
        time.sleep(0.1)
    return False


# Products.


@pytest.mark.parametrize(
    "dtype,result", [("float16", "float16"), (ml_dtypes.bfloat16, "bfloat16"), ("float32", "float32"),
                     ("float64", "float64"), ("int8", "int32")],
)  # fmt: skip
def test_every_type_is_exact_for_small_integers(pair, dtype, result):
    a, b, x, y = operands(dtype)
    product = gemmd.dask.matmul(x, y, pair)
    assert product.dtype == result and product.chunks == ((30, 30, 10), (40, 40, 10))
    found = product.compute(scheduler="threads")
    assert found.dtype == result
    assert np.array_equal(found.astype(np.int64), a.astype(np.int64) @ b.astype(np.int64))


def test_short_floats_are_added_up_in_float32(pair):
    k = 4096
    x = da.ones((8, k), chunks=(8, 64), dtype=np.float16) * np.float16(0.01)
    found = gemmd.dask.matmul(x, da.ones((k, 8), chunks=64, dtype=np.float16), pair).compute()
    # Sums in float16 stop near 32, where half a step is more than 0.01 of 64 elements.
    assert np.allclose(found, k * float(np.float16(0.01)), rtol=1e-3)


def test_f32x3_and_types_that_differ(pair):
    a, b, x, y = operands()
    for compute in ("f32", "f32x3"):
        assert np.array_equal(gemmd.dask.matmul(x, y, pair, compute=compute).compute(), a @ b)
    mixed = gemmd.dask.matmul(x, y.astype(np.float64), pair)
    assert mixed.dtype == np.float64 and np.array_equal(mixed.compute(), a @ b)


def test_empty_matrices(pair):
    x, y = da.ones((6, 0), dtype="f4"), da.ones((0, 5), dtype="f4")
    assert np.array_equal(gemmd.dask.matmul(x, y, pair).compute(), np.zeros((6, 5)))
    assert gemmd.dask.matmul(da.ones((0, 4)), da.ones((4, 5)), pair).compute().shape == (0, 5)


def test_with_workers_the_results_stay_there_and_the_panels_go(pair, client):
    a, b, x, y = operands()
    product = gemmd.dask.matmul(x, y, pair).persist()
    wait(product)
    assert sum(len(keys) for keys in client.has_what().values()) >= 9
    assert np.array_equal(product.compute(), a @ b)
    assert nothing_left(pair)


def test_a_chain_of_products(pair, client):
    a, b, x, y = operands()
    with gemmd.dask.offload(pair):
        found = ((x @ y) @ (y.T @ x.T) + 1).sum(axis=0)
    c = a @ b
    assert np.array_equal(found.compute(), (c @ c.T + 1).sum(axis=0))
    assert nothing_left(pair)


def test_a_panel_that_two_products_use_is_put_once(pair, client):
    a, b, x, y = operands()
    first, second = gemmd.dask.matmul(x, y, pair), gemmd.dask.matmul(x, 2 * y, pair)
    puts = {key for one in (first, second) for key in one.__dask_graph__() if "gemmd-put" in str(key)}
    assert len(puts) == 12 + 2 * 12  # blocks of x, of y and of 2 * y
    found = dask.compute(first, second)
    assert np.array_equal(found[0], a @ b) and np.array_equal(found[1], a @ (2 * b))


def test_tasks_are_those_of_the_plan(pair, client):
    _, _, x, y = operands()
    plan = gemmd.dask.plan(x, y, pair)
    graph = gemmd.dask.matmul(x, y, pair).__dask_graph__()
    assert plan.tasks == sum("gemmd-" in str(key) for key in graph) == 9 + 6 + 24


# Offload.


def test_offload_is_for_its_block_and_thread(pair):
    _, _, x, y = operands()

    def remote(product):
        return any("gemmd-tile" in str(key) for key in product.__dask_graph__())

    elsewhere = []
    with gemmd.dask.offload(pair):
        for product in (x @ y, da.matmul(x, y), da.dot(x, y), x.dot(y), np.matmul(x, y),
                        da.tensordot(x, y, axes=1), da.tensordot(x.T, y, axes=(0, 0))):  # fmt: skip
            assert remote(product)
        thread = threading.Thread(target=lambda: elsewhere.append(x @ y))
        thread.start()
        thread.join()
        for product in (x.astype(int) @ y.astype(int), x.astype(complex) @ y,
                        x.astype("i1") @ y.astype("i1"), x @ y[:, 0], x[None] @ y):  # fmt: skip
            assert not remote(product)
    assert not remote(elsewhere[0]) and not remote(x @ y)


def test_an_operand_of_numpy(pair):
    a, b, x, _ = operands()
    with gemmd.dask.offload(pair):
        assert np.array_equal((x @ b).compute(), a @ b)


# What cannot be.


@pytest.mark.parametrize("change,words", [
    (lambda x, y: (x, y[:-1]), "x has 50 columns and y has 49 rows"),
    (lambda x, y: (x, y[:, 0]), "y has 1 dimensions; it must have 2"),
    (lambda x, y: (x, np.ones((50, 2))), "y is a ndarray; it must be a Dask array"),
    (lambda x, y: (x[x[:, 0] > 0], y), "unknown size; give x.compute_chunk_sizes"),
    (lambda x, y: (x.astype(complex), y), "give them as .astype"),
])  # fmt: skip
def test_wrong_operands_name_what_to_do(pair, change, words):
    _, _, x, y = operands()
    with pytest.raises(gemmd.InvalidArgument, match=words):
        gemmd.dask.matmul(*change(x, y), pair)


@pytest.mark.parametrize("dtype,compute,words", [
    ("float16", "f16", "products of float16 take f32 here: their tiles are added up in float32"),
    ("float64", "tf32", "products of float64 take f64"),
    ("float32", "f23", "products of float32 take f32 or tf32 or f32x3"),
])  # fmt: skip
def test_a_mode_that_no_tile_can_have_is_refused_before_it_starts(pair, dtype, compute, words):
    _, _, x, y = operands(dtype)
    with pytest.raises(gemmd.InvalidArgument, match=words):
        gemmd.dask.matmul(x, y, pair, compute=compute)


@pytest.mark.parametrize("given,words", [
    ([], "servers is empty"), (["nowhere"], "it must be host:port"), ([{"ca": "x"}], "no \"address\""),
    ([{"address": "a:1", "tokn": "x"}], "token"), ([{"address": "a:1", "channels": 0}], "channels is 0"),
])  # fmt: skip
def test_wrong_servers_name_what_to_do(given, words):
    _, _, x, y = operands()
    with pytest.raises((gemmd.InvalidArgument, TypeError), match=words):
        gemmd.dask.matmul(x, y, given)


def test_dask_is_loaded_by_its_name_alone():
    code = ("import gemmd, sys; assert 'dask' not in sys.modules and 'distributed' not in sys.modules;"
            "print(gemmd.dask.matmul.__module__)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "gemmd.dask.functions\n", done.stderr


def test_a_token_is_not_shown():
    server = servers.Server.of({"address": "a:1", "token": "secret"})
    assert "secret" not in repr(server) and server.connect_options(1).token == "secret"


# The plan.


def test_the_plan_says_what_it_takes(pair, client):
    _, _, x, y = operands(shape=(600, 512, 400), chunks=((200, 256), (256, 100)))
    plan = gemmd.dask.plan(x, y, pair)
    assert plan.grid == (3, 4, 2) and plan.tiles == 12
    tile = 200 * 100 * 4
    # All of x, every second column of y, and three times the tiles that are under way.
    assert plan.server_bytes == (600 * 512 * 4 + 2 * 512 * 100 * 4 + 3 * 4 * tile,) * 2
    assert plan.last_server_bytes == 600 * 512 * 4 + 512 * 400 * 4 + 3 * 4 * tile
    assert plan.result_bytes == 600 * 400 * 4
    words = str(plan)
    assert "600 x 512 by 512 x 400 in float32: 3 x 4 tiles of 2 steps" in words
    for address in pair:
        assert f"server {address}: up to 2.6 MB" in words


def test_servers_take_no_more_than_the_plan_says(pair, client):
    _, _, x, y = operands(shape=(900, 800, 1000), chunks=((150, 200), (200, 250)))
    plan = gemmd.dask.plan(x, y, pair)
    peak, done = [0, 0], threading.Event()

    def sample():
        with gemmd.connect(pair[0]) as one, gemmd.connect(pair[1]) as other:
            while not done.is_set():
                for at, g in enumerate((one, other)):
                    peak[at] = max(peak[at], g.info().store_used_bytes)
                time.sleep(0.002)

    sampler = threading.Thread(target=sample)
    sampler.start()
    gemmd.dask.matmul(x, y, pair).compute()
    done.set()
    sampler.join()
    for most, announced in zip(peak, plan.server_bytes):
        assert 0 < most <= announced


def test_what_does_not_fit_is_refused_before_it_starts(client):
    small = Server("--store-bytes=1MiB")
    try:
        x = da.ones((1000, 1000), chunks=500, dtype="f4")
        with pytest.raises(gemmd.ResourceExhausted, match="--store-bytes"):
            gemmd.dask.matmul(x, x, small.address)
    finally:
        small.kill()


def test_workers_with_too_little_memory_are_refused(pair):
    with cluster(n_workers=1, threads_per_worker=1, memory_limit="300MB") as _:
        x = da.ones((6000, 6000), chunks=6000, dtype="f4")
        with pytest.raises(gemmd.ResourceExhausted, match="memory_limit"):
            gemmd.dask.matmul(x, x, pair)


def test_a_server_that_is_down_refuses_the_plan_and_says_how_to_go_on(pair):
    _, _, x, y = operands()
    down = f"127.0.0.1:{free_port()}"
    with pytest.raises(gemmd.Unavailable, match=f"take {down} out of servers, or give .*check=False"):
        gemmd.dask.matmul(x, y, [pair[0], down], patience=PATIENCE)


# Servers and workers that fail.


@pytest.mark.parametrize("scheduler", ["threads", "distributed"])
def test_blocks_of_a_graph_that_fails_are_deleted(pair, client, scheduler):
    _, _, x, y = operands()

    def broken(block, block_id):
        if block_id != (0, 0):
            return block
        with gemmd.connect(pair[0]) as g:
            while len(g.matrices("dask/")) < 5:
                time.sleep(0.01)
        raise ZeroDivisionError

    bad = da.map_blocks(broken, x, meta=x._meta)
    with pytest.raises(ZeroDivisionError):
        gemmd.dask.matmul(bad, y, pair).compute(scheduler=scheduler)
    assert nothing_left(pair)


def slow_puts(monkeypatch, seconds):
    send = panels._send

    def late(*args):
        send(*args)
        time.sleep(seconds)

    monkeypatch.setattr(panels, "_send", late)


def test_a_ttl_shorter_than_putting_a_panel_is_said(own_server, monkeypatch):
    slow_puts(monkeypatch, 0.6)
    x = da.ones((4, 15), chunks=(4, 5), dtype="f4")
    with pytest.raises(gemmd.FailedPrecondition, match="ttl is 1 s; .*give a longer ttl"):
        gemmd.dask.matmul(x, x.T, own_server.address, ttl=1.0).compute(scheduler="threads")


def test_with_workers_it_is_not_put_without_end(own_server, client, monkeypatch):
    slow_puts(monkeypatch, 1.2)
    monkeypatch.setattr(tiles, "MOST_TRIES", 2)
    x = da.ones((4, 20), chunks=(4, 2), dtype="f4")
    with pytest.raises(gemmd.Unavailable, match="put 2 times, .* ttl=1 s .*give a longer ttl"):
        gemmd.dask.matmul(x, x.T, own_server.address, ttl=1.0).compute()


def slow_blocks(array, seconds):
    """The same, with blocks that take a while to come."""

    def late(block):
        time.sleep(seconds)
        return block

    return array.map_blocks(late, meta=array._meta)


def test_a_server_that_is_killed_costs_its_tiles_another_try(own_pair, client):
    a, b, x, y = operands(shape=(240, 60, 240), chunks=((20, 20), (20, 20)))
    addresses = [one.address for one in own_pair]
    before = len(tries(client))
    product = gemmd.dask.matmul(slow_blocks(x, 0.02), y, addresses, patience=PATIENCE).persist()
    while len(tries(client)) < before + 20:
        time.sleep(0.01)
    own_pair[1].kill()
    assert np.array_equal(product.compute(), a @ b)
    made = [one["tile"] for one in tries(client)[before:] if one["failure"] is None]
    assert set(made) == {(i, j) for i in range(12) for j in range(12)}
    assert max(map(made.count, made)) <= 2


def test_a_server_that_stops_answering_is_left_alone(own_pair, client):
    a, b, x, y = operands(shape=(240, 60, 240), chunks=((20, 20), (20, 20)))
    addresses = [one.address for one in own_pair]
    before = len(tries(client))
    product = gemmd.dask.matmul(slow_blocks(x, 0.02), y, addresses, patience=PATIENCE).persist()
    while len(tries(client)) < before + 20:
        time.sleep(0.01)
    own_pair[0].stop()
    try:
        assert np.array_equal(product.compute(), a @ b)
    finally:
        own_pair[0].go_on()
    made = [one["tile"] for one in tries(client)[before:] if one["failure"] is None]
    assert max(map(made.count, made)) <= 2


def test_panels_that_a_server_has_dropped_are_put_again(own_server, client):
    """All of them, while tiles run: Dask makes the blocks again."""
    a, b, x, y = operands(shape=(240, 60, 240), chunks=((20, 20), (20, 20)))
    product = gemmd.dask.matmul(slow_blocks(x, 0.05), y, own_server.address).persist()
    with gemmd.connect(own_server.address) as g:
        for _ in range(3):
            time.sleep(0.3)
            for folder in {matrix.name.rsplit("/", 1)[0] for matrix in g.matrices("dask/")}:
                g.delete(prefix=folder)
    assert np.array_equal(product.compute(), a @ b)


def test_the_end_of_a_lost_panel_leaves_the_one_that_is_made_again(own_server, client, monkeypatch):
    """Their blocks have the same names, and the deletion may be late."""
    a, b, x, y = operands(shape=(60, 60, 60), chunks=((20, 20), (20, 20)))
    delete_from = panels._delete_from

    def late(use, name):
        time.sleep(0.3)
        delete_from(use, name)

    monkeypatch.setattr(panels, "_delete_from", late)
    monkeypatch.setattr(tiles, "MOST_TRIES", 2)
    ensure = panels.ensure
    dropped = []

    def drop(panel, use, there):
        ensure(panel, use, there)
        if not dropped:
            dropped.append(use.client.delete(prefix="dask/"))

    monkeypatch.setattr(panels, "ensure", drop)
    product = gemmd.dask.matmul(slow_blocks(x, 0.1), slow_blocks(y, 0.1), own_server.address)
    assert np.array_equal(product.compute(), a @ b)
    assert sum(dropped) > 0


def test_panels_that_a_server_has_dropped_under_threads(own_server, monkeypatch):
    """There the panels have the elements themselves."""
    a, b, x, y = operands()
    ensure = panels.ensure
    dropped = []

    def drop(panel, use, there):
        ensure(panel, use, there)
        if len(dropped) < 3:
            dropped.append(use.client.delete(prefix=panel.folder))

    monkeypatch.setattr(panels, "ensure", drop)
    product = gemmd.dask.matmul(x, y, own_server.address)
    assert np.array_equal(product.compute(scheduler="threads"), a @ b)
    assert sum(dropped) > 0


def test_a_worker_that_is_killed(pair):
    a, b, x, y = operands(shape=(240, 60, 240), chunks=((20, 20), (20, 20)))
    with cluster(processes=True, threads_per_worker=1) as found:
        product = gemmd.dask.matmul(slow_blocks(x, 0.02), y, pair, ttl=2.0).persist()
        while len(tries(found)) < 10:
            time.sleep(0.01)
        local = found.cluster
        local.workers[0].process.process._process.kill()
        assert np.array_equal(product.compute(), a @ b)
    assert nothing_left(pair)


def test_a_future_that_is_cancelled_ends_its_tile(pair, client, monkeypatch):
    _, _, x, y = operands(shape=(40, 1200, 40), chunks=((40, 20), (20, 40)))
    begun, step = [], tiles._Run._step

    def slow(self, *args):
        begun.append(args[1])
        time.sleep(0.1)
        return step(self, *args)

    monkeypatch.setattr(tiles._Run, "_step", slow)
    product = gemmd.dask.matmul(x, y, pair).persist()
    while len(begun) < 3:
        time.sleep(0.01)
    client.cancel(product)
    del product
    time.sleep(0.5)
    so_far = len(begun)
    time.sleep(0.5)
    assert len(begun) == so_far < 60


def test_a_slow_server_gets_fewer_tiles(pair, client, monkeypatch):
    a, b, x, y = operands(shape=(240, 60, 240), chunks=((20, 20), (20, 20)))
    step = tiles._Run._step

    def slow(self, use, *args):
        time.sleep(0.2 if use.client._connection.address == pair[0] else 0.01)
        return step(self, use, *args)

    monkeypatch.setattr(tiles._Run, "_step", slow)
    before = len(tries(client))
    assert np.array_equal(gemmd.dask.matmul(x, y, pair).compute(), a @ b)
    used = [one["server"] for one in tries(client)[before:]]
    assert used.count(pair[0]) < used.count(pair[1]) / 2


def test_a_server_that_is_full_is_left_alone(pair, client):
    """As where a quota, which no plan knows, leaves less than the plan asks for."""
    full = Server("--store-bytes=1MiB")
    try:
        a, b, x, y = operands(shape=(600, 512, 400), chunks=((200, 256), (256, 100)))
        before = len(tries(client))
        product = gemmd.dask.matmul(x, y, [full.address, pair[0]], check=False, patience=PATIENCE)
        assert np.array_equal(product.compute(), a @ b)
        made = [one["server"] for one in tries(client)[before:] if one["failure"] is None]
        assert len(made) == 12 and pair[0] in made
    finally:
        full.kill()


def test_a_server_is_watched_by_one_thread(pair):
    def watching():
        return sum(getattr(each, "_target", None) == one._watch for each in threading.enumerate())

    one = servers.state(servers.Server.of({"address": pair[0], "channels": 1}))
    for _ in range(50):
        with one.use(PATIENCE) as use:
            use.client.info()
    assert watching() <= 1


def test_no_server_at_all_is_said(own_pair, monkeypatch):
    _, _, x, y = operands()
    addresses = [one.address for one in own_pair]
    product = gemmd.dask.matmul(x, y, addresses, patience=PATIENCE)
    for one in own_pair:
        one.kill()
    monkeypatch.setattr(servers.Patience, "_SECONDS", 2.0)
    with pytest.raises(gemmd.Unavailable, match="none of 2 could be used for 2 s"):
        product.compute(scheduler="threads")


def test_a_server_that_knows_its_callers(tmp_path):
    callers, token = tmp_path / "callers", tmp_path / "token"
    token.write_text("0123456789abcdef" * 4)
    digest = hashlib.sha256(token.read_bytes()).hexdigest()
    callers.write_text(f"me call,matrices sha256:{digest}\n")
    guarded = Server(f"--callers-file={callers}", token_file=str(token))
    try:
        a, b, x, y = operands()
        with pytest.raises(gemmd.Unauthenticated):
            gemmd.dask.matmul(x, y, guarded.address)
        known = {"address": guarded.address, "token_file": str(token)}
        assert np.array_equal(gemmd.dask.matmul(x, y, [known]).compute(), a @ b)
    finally:
        guarded.kill()
