"""Everything that the contract has is in the package."""

import dataclasses
import inspect

import gemmd
import gemmd.aio
import pytest
from gemmd import connection, records
from gemmd.contract import SERVICE, pb


class _Channel:
    """Collects the paths of the methods that are asked of it."""

    def __init__(self):
        self.paths = []

    def __getattr__(self, kind):
        return lambda path, *codecs: self.paths.append(path)


def test_every_rpc_has_a_stub():
    channel = _Channel()
    connection._stubs(channel)
    rpcs = pb.DESCRIPTOR.services_by_name["GemmService"].methods
    assert sorted(channel.paths) == sorted(SERVICE + rpc.name for rpc in rpcs)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (records.Device, pb.DeviceInfo),
        (records.Limits, pb.Limits),
        (records.RunningBenchmark, pb.RunningBenchmark),
        (records.TuningLoad, pb.ReloadTuningResponse),
    ],
)
def test_a_record_has_every_field(record, message):
    assert len(dataclasses.fields(record)) == len(message.DESCRIPTOR.fields)


def test_info_names_the_benchmark_under_way():
    proto = pb.GetServerInfoResponse()
    running = proto.load.benchmarks.add(caller="alice", device="cuda:0", subject="shape 3/125")
    running.age.FromSeconds(83)
    running.ending = True
    info = records.info(proto)
    assert info.benchmarks == (
        records.RunningBenchmark("alice", "cuda:0", "shape 3/125", 83.0, True),
    )
    assert "alice, 83 s on cuda:0: shape 3/125" in repr(info)


def test_asyncio_has_every_method():
    def public(of):
        return {name for name, _ in inspect.getmembers(of, callable) if not name.startswith("_")}

    assert public(gemmd.Client) <= public(gemmd.aio.Client)
