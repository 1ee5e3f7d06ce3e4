"""The matrices that a client keeps on the server."""

from __future__ import annotations

import weakref
from typing import Any

from . import checks, errors, records, transfer
from .call import Call, Canceller
from .contract import pb
from .handle import Handle, Owner
from .janitor import by_id, one_of
from .keeping import KeepAs
from .operands import take
from .progress import Meter
from .tables import Table
from .unseen import Unseen


class Matrices(Owner):
    """The part of `gemmd.Client` that puts, finds and deletes matrices."""

    _handles: weakref.WeakSet[Handle]

    @checks.named_options
    def put(
        self,
        matrix: Any,
        *,
        name: str | None = None,
        ttl: float | None = None,
        replace: bool = False,
        if_version: int | None = None,
        shared: bool = False,
        device: str = "",
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> Handle:
        """Uploads a matrix and keeps it on the server.

        With a name it stays there, whatever becomes of the handle, until it is deleted or
        replaced, or its ttl ends it. Without one it ends with the handle.

        name: 1 to 128 characters of [A-Za-z0-9._/-], of no other matrix unless `replace`.
        ttl: the matrix is deleted this many seconds after its last use.
        replace: the matrix takes the name from the one that has it, in one step, and that one
            is deleted. Where this fails, the old one stays; after Cancelled, DeadlineExceeded
            or Unavailable it may have been replaced.
        if_version: with `replace`, only where the name's matrix has this version
            (`Handle.version`), or for 0 where there is none; otherwise Aborted.
        shared: every caller may read it, and its name is one of the shared names.
        device: such as "cuda:0"; left out: the one with the most room.

        Aborted where the matrix was deleted or replaced before it was complete.
        """
        source = take(matrix, "matrix")
        header = pb.PutMatrixHeader(
            shape=source.shape.to_proto(), device=checks.text(device, "device")
        )
        keep_as = KeepAs(name, ttl, replace, if_version, shared)
        unseen = Unseen(self._janitor, name)
        with Call(self._connection, "put", timeout, cancel) as call, unseen as kept:

            def run() -> pb.MatrixInfo:
                header.keep.CopyFrom(self._kept(keep_as, kept))
                with Meter(call, "put", source.nbytes) as meter:
                    return transfer.finished([transfer.Upload(call, header, source, meter)])[0]

            handle = self._handle(call.tried(run, repeatable=name is None), keep_as)
            kept.known()
            return handle

    @checks.named_options
    def random(
        self,
        shape: tuple[int, int],
        *,
        dtype: Any = "f32",
        seed: int = 0,
        distribution: str = "uniform",
        name: str | None = None,
        ttl: float | None = None,
        replace: bool = False,
        if_version: int | None = None,
        shared: bool = False,
        device: str = "",
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> Handle:
        """A matrix that the server generates: uniform on [0, 1), or "normal" N(0, 1).

        The same seed gives the same elements on every device. The other options are as for `put`.
        """
        header = transfer.generated(shape, dtype, seed, distribution, device)
        keep_as = KeepAs(name, ttl, replace, if_version, shared)
        with (
            Call(self._connection, "random", timeout, cancel) as call,
            Unseen(self._janitor, name) as kept,
        ):

            def run() -> pb.MatrixInfo:
                header.keep.CopyFrom(self._kept(keep_as, kept))
                return transfer.generate(call, header)

            handle = self._handle(call.tried(run, repeatable=name is None), keep_as)
            kept.known()
            return handle

    @checks.named_options
    def matrix(
        self,
        name: str | None = None,
        *,
        id: str | None = None,
        shared: bool = False,
        owner: str | None = None,
        version: int | None = None,
        shape: tuple[int, int] | None = None,
        dtype: Any = None,
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> Handle:
        """A handle of a matrix that is on the server already. Its end deletes nothing.

        The handle is of the version that has the name now.

        id: in place of the name, such as that of a matrix without one that was detached.
        shared: the name is one of the shared names.
        owner: NotFound where the matrix is another caller's.
        version: Aborted where the name's matrix has another version.
        shape, dtype: given both, the server is not asked, which needs the role matrices: with
            the role call alone, multiply with a handle made so. It means the matrix that has
            the name at each product, which must be row-major and of this shape and type.
        """
        ref = one_of(name, id, shared=shared, owner=owner, version=version)
        if shape is not None or dtype is not None:
            if name is None:
                raise errors.InvalidArgument(
                    "shape and dtype are for a name; with an id the server says them", field="shape"
                )
            return Handle(self, transfer.described(shape, dtype), name, ref)
        with Call(self._connection, "matrix", timeout, cancel) as call:
            info = call.tried(lambda: transfer.describe(call, ref))
            return Handle(self, info, name or info.name).detach()

    @checks.named_options
    def matrices(
        self,
        prefix: str = "",
        *,
        shared: bool = False,
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> Table[records.Matrix]:
        """The resident matrices whose name has this prefix, by id.

        Those that are this caller's alone; with `shared` the shared ones of all callers.
        """
        request = pb.ListMatricesRequest(
            name_prefix=checks.text(prefix, "prefix"), shared=checks.flag(shared, "shared")
        )
        with Call(self._connection, "matrices", timeout, cancel) as call:
            self._janitor.flush(call)
            return Table(records.Matrix, map(records.matrix, transfer.listed(call, request)))

    @checks.named_options
    def exists(
        self,
        name: str | None = None,
        *,
        id: str | None = None,
        shared: bool = False,
        owner: str | None = None,
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> bool:
        """Whether the server has a matrix of this name, or `id`, that this caller may read."""
        ref = one_of(name, id, shared=shared, owner=owner)
        with Call(self._connection, "exists", timeout, cancel) as call:
            try:
                call.tried(lambda: transfer.describe(call, ref))
            except errors.NotFound:
                return False
            return True

    @checks.named_options
    def delete(
        self,
        name: str | None = None,
        *,
        id: str | None = None,
        prefix: str | None = None,
        shared: bool = False,
        if_version: int | None = None,
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> int:
        """Deletes a resident matrix by its name, or its `id`: NotFound where there is none. Or
        those whose names begin with `prefix`. Returns how many were deleted.

        shared: the name is one of the shared names.
        if_version: only this version of it; Aborted where it has another.
        """
        with Call(self._connection, "delete", timeout, cancel) as call:
            if prefix is None:
                refs = [one_of(name, id, shared=shared, version=if_version)]
            else:
                refs = self._of_prefix(call, prefix, name or id or if_version, shared)
            deleted = 0
            for ref in refs:
                try:
                    call.unary(self._connection.stubs().delete, pb.DeleteMatrixRequest(matrix=ref))
                    deleted += 1
                except errors.NotFound:
                    if prefix is None:
                        raise
            return deleted

    @staticmethod
    def _of_prefix(call: Call, prefix: str, other: Any, shared: bool) -> list[pb.MatrixRef]:
        """The matrices whose names begin so now, by their ids: not what replaces them."""
        if other:
            raise errors.InvalidArgument(
                "prefix is given with name, id or if_version; give it alone", field="prefix"
            )
        if not checks.text(prefix, "prefix"):
            raise errors.InvalidArgument(
                "prefix is empty, which every name begins with; it must have a character",
                field="prefix",
            )
        request = pb.ListMatricesRequest(name_prefix=prefix, shared=checks.flag(shared, "shared"))
        return [by_id(info.id) for info in transfer.listed(call, request)]

    def _kept(self, keep_as: KeepAs, kept: Unseen) -> pb.Keep:
        return keep_as.proto(kept.new_name(), self._janitor.renewals.ttl)

    def _handle(self, info: pb.MatrixInfo, keep_as: KeepAs) -> Handle:
        if info.version == 0:
            raise errors.Aborted(
                f"matrix '{keep_as.name or info.id}' was deleted or replaced before it was complete"
            )
        handle = Handle(self, info, keep_as.name)
        self._handles.add(handle)
        if keep_as.is_renewed:
            self._janitor.renewals.add(handle)
        return handle
