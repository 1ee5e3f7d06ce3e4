#!/usr/bin/env python3
"""A large product of Dask arrays on servers of this machine, measured; by hand.

    python dask_rehearsal.py --size 20000 --chunk 2500 --kill --pause
    python dask_rehearsal.py --size 20000 --chunk 2500 --own
    python dask_rehearsal.py --tiles 100000

Needs the package with Dask, and the server program as tests/python/conftest.py finds it. Two worker
processes; the scheduler is in this one. With --kill a server is killed once a fifth of the tiles are
there, with --pause another one stops at two fifths, for a minute. --own multiplies by Dask's own
matmul, without servers. --tiles schedules that many tiles alone: their tasks run, but nothing is
sent. Ends with 1 where the product is wrong, a tile was made more than twice, or more memory
was taken than the plan says.
"""

import argparse
import collections
import logging
import os
import signal
import sys
import threading
import time

import dask
import dask.array as da
import gemmd
import gemmd.dask
import numpy as np
from distributed import Client, LocalCluster, wait
from gemmd.dask import panels, tasks, tiles

from conftest import Server

STORE = 5 << 30
# Of a server beside its matrices: both pools of staging memory, and buffers of gRPC.
SERVER_ELSE = 700e6


def memory(pid, field):
    """VmRSS or VmHWM of a process, in bytes; 0 where it is gone."""
    try:
        with open(f"/proc/{pid}/status") as status:
            lines = [line for line in status if line.startswith(field)]
    except OSError:
        return 0
    return int(lines[0].split()[1]) * 1024 if lines else 0


class Watch(threading.Thread):
    """The largest store of each server, and the largest sum of the workers' memory."""

    def __init__(self, servers, workers):
        super().__init__(daemon=True)
        self.servers, self.workers = servers, workers
        self.store = [0] * len(servers)
        self.base = sum(memory(pid, "VmRSS") for pid in workers)
        self.scheduler_base = memory(os.getpid(), "VmRSS")
        self.workers_peak = self.scheduler_peak = 0
        self.ended = threading.Event()
        self.start()

    def run(self):
        clients = [None] * len(self.servers)
        while not self.ended.wait(0.5):
            used = sum(memory(pid, "VmRSS") for pid in self.workers)
            self.workers_peak = max(self.workers_peak, used - self.base)
            now = memory(os.getpid(), "VmRSS") - self.scheduler_base
            self.scheduler_peak = max(self.scheduler_peak, now)
            for at, server in enumerate(self.servers):
                try:
                    clients[at] = clients[at] or gemmd.connect(
                        server.address, connect_timeout=1, retry=gemmd.Retry(attempts=1)
                    )
                    found = clients[at].info(timeout=1).store_used_bytes
                    self.store[at] = max(self.store[at], found)
                except gemmd.GemmdError:
                    pass

    def finish(self):
        self.ended.set()
        self.join()


def operands(size, chunk):
    rng = da.random.default_rng(7)
    return (rng.random((size, size), chunks=chunk, dtype=np.float32),
            rng.random((size, size), chunks=chunk, dtype=np.float32))  # fmt: skip


def trouble(args, client, servers, product):
    """Kills one server and stops another for a minute, on the way."""
    count = product.npartitions

    def made():
        return sum(event["failure"] is None for _, event in client.get_events(tasks.TOPIC))

    def until(share):
        while made() < share * count:
            time.sleep(0.2)

    def run():
        if args.kill:
            until(0.2)
            servers[1].kill()
            print(f"killed {servers[1].address} at {made()} of {count} tiles", flush=True)
        if args.pause:
            until(0.4)
            servers[2].process.send_signal(signal.SIGSTOP)
            print(f"stopped {servers[2].address} at {made()} of {count} tiles", flush=True)
            time.sleep(60)
            servers[2].process.send_signal(signal.SIGCONT)
            print(f"it goes on at {made()} of {count} tiles", flush=True)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def check(x, y, product):
    """The largest error of any entry of z v against x (y v), and of 400 entries against float64, each
    by the bound of sums in float32 in blocks."""
    size = x.shape[1]
    v = da.from_array(np.random.default_rng(3).choice([-1.0, 1.0], size), chunks=x.chunks[1])
    wide = [array.map_blocks(np.asarray, dtype="f8") for array in (x, y)]
    left = product.map_blocks(lambda b: b.astype("f8"), dtype="f8") @ v
    x8, y8 = (array.map_blocks(lambda b: b.astype("f8"), dtype="f8") for array in wide)
    norm = np.abs((left - x8 @ (y8 @ v)).compute()).max()
    places = np.sort(np.random.default_rng(5).choice(size, 20, replace=False))
    rows, columns = x[places].compute().astype("f8"), y[:, places].compute().astype("f8")
    exact = rows @ columns
    error = np.abs(product[places][:, places].compute() - exact).max() / exact.max()
    print(f"right: z v differs from x (y v) by {norm:.3g} in sums of {size * size / 4:.3g}, 400 "
          f"entries from float64 by {error:.2g} of the largest")  # fmt: skip
    # Each of n entries of a row has an error of a few eps of its n / 4; signs are random.
    return norm < 32 * 2.0**-24 * size**1.5 and error < 32 * 2.0**-24


def product_run(args):
    faults = []
    servers = [] if args.own else [
        Server("--device-memory-bytes=8GiB", f"--store-bytes={STORE}") for _ in range(3)
    ]  # fmt: skip
    try:
        with LocalCluster(n_workers=2, threads_per_worker=1 if args.own else 2, processes=True,
                          dashboard_address=":0", silence_logs=logging.ERROR) as cluster, \
             Client(cluster) as client:  # fmt: skip
            pids = list(client.run(lambda: __import__("gemmd.dask") and os.getpid()).values())
            x, y = operands(args.size, args.chunk)
            if args.own:
                product = x @ y
            else:
                addresses = [server.address for server in servers]
                plan = gemmd.dask.plan(x, y, addresses)
                print(plan, flush=True)
                product = gemmd.dask.matmul(x, y, addresses, patience=args.patience)
            watch = Watch(servers, pids)
            start = time.monotonic()
            product = product.persist()
            thread = trouble(args, client, servers, product) if servers else None
            wait(product)
            seconds = time.monotonic() - start
            watch.finish()
            if thread:
                thread.join()
            count = client.run_on_scheduler(lambda dask_scheduler: sum(
                group.states["memory"] + group.states["released"] + group.states["forgotten"]
                for group in dask_scheduler.task_groups.values()))  # fmt: skip
            print(f"{seconds:.1f} s, {2 * args.size**3 / seconds / 1e9:.1f} GFLOP/s; "
                  f"{count} tasks", flush=True)  # fmt: skip
            print(f"peak of the workers {watch.workers_peak / 1e9:.2f} GB beside {watch.base / 1e9:.2f} "
                  f"GB of Python, of the scheduler {watch.scheduler_peak / 1e6:.0f} MB")  # fmt: skip
            if servers:
                faults += judged(plan, watch, servers, client)
            if not check(x, y, product):
                faults.append("the product is wrong")
    finally:
        for server in servers:
            server.kill()
    return faults


def judged(plan, watch, servers, client):
    """What was not as announced."""
    faults = []
    events = [event for _, event in client.get_events(tasks.TOPIC)]
    steps = collections.Counter()
    for event in events:
        steps[event["tile"]] += event["steps"]
    failures = collections.Counter((e["failure"] or "")[:20] for e in events if e["failure"])
    print(f"{len(events)} tries of {len(steps)} tiles, {sum(steps.values())} steps of "
          f"{plan.tiles * plan.grid[2]}; failures: {dict(failures)}")  # fmt: skip
    for server, store, announced in zip(servers, watch.store, plan.server_bytes):
        made = sum(e["server"] == server.address and e["failure"] is None for e in events)
        peak = memory(server.process.pid, "VmHWM")
        print(f"server {server.address}: {made} tiles; matrices {store / 1e9:.2f} GB of "
              f"{announced / 1e9:.2f} GB, the process {peak / 1e9:.2f} GB")  # fmt: skip
        if store > plan.last_server_bytes or peak > plan.last_server_bytes + SERVER_ELSE:
            faults.append(f"{server.address} took more than announced")
    most = max(steps.values()) / plan.grid[2]
    print(f"the tile that was made most often was made {most:.2f} times")
    if most > 2:
        faults.append(f"a tile was made {most:.2f} times")
    if watch.workers_peak > plan.worker_bytes:
        faults.append(f"the workers took {watch.workers_peak / 1e9:.2f} GB, announced were "
                      f"{plan.worker_bytes / 1e9:.2f}")  # fmt: skip
    if watch.scheduler_peak > plan.scheduler_bytes + 300e6:
        faults.append("the scheduler took more than announced")
    return faults


def scheduling_run(args):
    """The tasks of as many tiles, without servers: nothing is put, and tiles are of one element."""
    side = int(args.tiles**0.5)

    def put(block, place, block_id=(0, 0)):
        return panels.Block("", (1, 1))

    panels.put = put
    tiles.tile = lambda a, b, job: np.zeros((1, 1), np.float32)
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=":0",
                      silence_logs=logging.ERROR) as cluster, Client(cluster):  # fmt: skip
        x = da.zeros((side, args.steps), chunks=1, dtype="f4")
        y = da.zeros((args.steps, side), chunks=1, dtype="f4")
        base = memory(os.getpid(), "VmRSS")
        start = time.monotonic()
        product = gemmd.dask.matmul(x, y, "127.0.0.1:1", check=False)
        written = time.monotonic() - start
        product = product.persist()
        submitted = time.monotonic() - start
        wait(product)
        seconds = time.monotonic() - start
        used = memory(os.getpid(), "VmHWM") - base
        count = side * side + 2 * side + 2 * side * args.steps
        print(f"{side} x {side} tiles of {args.steps} steps, {count} tasks and their sources: written in "
              f"{written:.1f} s, with the scheduler in {submitted:.1f} s, done in {seconds:.1f} s "
              f"({seconds / count * 1e6:.0f} us a task); client and scheduler took "
              f"{used / 1e6:.0f} MB, {used / count:.0f} bytes a task")  # fmt: skip
    return []


def main():
    # Before Python 3.12 the profiler can stop a worker for good.
    dask.config.set({"distributed.worker.profile.enabled": False})
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--size", type=int, default=8000)
    parser.add_argument("--chunk", type=int, default=1000)
    parser.add_argument("--patience", type=float, default=20.0)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--pause", action="store_true")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--tiles", type=int)
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    faults = scheduling_run(args) if args.tiles else product_run(args)
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
