"""Whether the server refuses those whom it does not know, method by method."""

import grpc

import wire
from attack import BEFOREHAND

SECONDS = 20
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
# Beside the contract's methods.
OTHER_PATHS = [HEALTH_CHECK, "/grpc.health.v1.Health/Watch",
               "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
               "/inference.GRPCInferenceService/ServerLive", "/inference.GRPCInferenceService/ModelInfer",
               "/inference.GRPCInferenceService/ModelStreamInfer",
               "/grpc.channelz.v1.Channelz/GetTopChannels", "/no.such.Service/Method"]


def status_of(channel, path, data=b"", seconds=SECONDS):
    """The status of a call with one message, whatever the method's kind."""
    call = channel.stream_stream(path)(iter([data]), timeout=seconds)
    try:
        next(call, None)  # a stream such as Watch's may last
        if call.cancel():
            return "OK"
        return call.code().name
    except grpc.RpcError as error:
        return error.code().name


def expected(access):
    """What each call of a stranger must end with."""
    return "UNAUTHENTICATED" if access.connects else "UNAVAILABLE"


def check_refused(accesses, outcome):
    """A fault for every call that is answered, or refused in another way than it must be."""
    paths = [wire.SERVICE + method for method in wire.methods()] + OTHER_PATHS
    for access in accesses:
        wanted = expected(access)
        with wire.channel(access) as channel:
            for path in paths:
                status = status_of(channel, path)
                outcome.count(BEFOREHAND + status)
                if status != wanted:
                    outcome.fault(f"{path} {access.who}: {status}, {wanted} needed")
