"""The contract's messages and method names."""

from ._contract import gemm_pb2 as pb

SERVICE = "/gemm.v1.GemmService/"

# Room in a message for everything but the payload.
MESSAGE_OVERHEAD_BYTES = 4096

MIB = 1 << 20

__all__ = ["MESSAGE_OVERHEAD_BYTES", "MIB", "SERVICE", "pb"]
