"""A connection to one server, and what can be done with it."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any

from . import (
    bench,
    checks,
    connection,
    ends,
    errors,
    groups,
    multiply,
    product,
    records,
    shapes,
    transfer,
)
from .call import Call, Canceller
from .connection import Connection
from .contract import pb
from .handle import Handle, NoCopies, explain_not_found
from .interrupt import Hold
from .janitor import Janitor, by_id, one_of
from .keeping import KeepAs
from .operands import take
from .operators import Remote
from .options import Options
from .pipeline import Pipeline
from .progress import Meter
from .report import Report
from .tables import Table
from .unseen import Unseen

# Of `Client.keep`, which looks for an unknown option's neighbours among them.
_KEEP_NAMES = (
    "group_sizes", "by", *KeepAs._fields, "timeout", "cancel", *product.OPTION_NAMES,
)  # fmt: skip


def _opened(address: str, options: Options, on_every_channel: bool = False) -> Connection:
    """A connection whose server has answered."""
    with Hold():
        opened = Connection(address, options)
    try:
        with Call(opened, "connect", options.connect_timeout) as call:
            call.tried(call.ask_server)
            for channel in range(opened.channels if on_every_channel else 0):
                call.unary(opened.stubs(channel).info, pb.GetServerInfoRequest())
    except BaseException:
        opened.close()
        raise
    return opened


def _opened_in_child(address: str, options: Options) -> Connection:
    """The same with a bound of its own: the fork may have come while a thread of the parent held
    locks of gRPC's, which nobody frees here, so that gRPC keeps no deadline. One channel may work
    where another does not, so each is asked: a later call may have no deadline."""
    opened: Future[Connection] = Future()

    def work() -> None:
        try:
            opened.set_result(_opened(address, options, on_every_channel=True))
        except BaseException as error:
            opened.set_exception(error)

    thread = threading.Thread(target=work, daemon=True, name="gemmd-connect")
    thread.start()
    timeout = checks.timeout(options.connect_timeout, "connect_timeout")
    try:
        thread.join(None if timeout is None else timeout + ends.BOUND_SECONDS)
    finally:
        if thread.is_alive():
            opened.add_done_callback(_close_late)
    why = (
        f"process {os.getpid()} was forked, maybe while another thread of its parent was in a call, "
        "and then gRPC does not work here; fork before the first gemmd.connect, or start processes "
        "by the methods spawn or forkserver"
    )
    if not opened.done():
        raise errors.DeadlineExceeded(
            f"connect did not end within its timeout of {timeout:g} s; {why}"
        )
    try:
        return opened.result()
    except errors.DeadlineExceeded as error:
        raise errors.DeadlineExceeded(f"{error}; {why}") from None


def _close_late(opened: Future[Connection]) -> None:
    if opened.exception() is None:
        opened.result().close()


class Client(NoCopies):
    """Matrix products on one server. Thread-safe; any number of calls at once.

    Made by `gemmd.connect`. `close()`, or the end of a `with` block, deletes the matrices
    without a name that it has handles of, and ends the calls under way.
    """

    def __init__(self, address: str, options: Options) -> None:
        options.check()
        connection.check_gevent()
        open_one = _opened_in_child if connection.in_forked_child else _opened
        self._connection = open_one(address, options)
        self._janitor = Janitor(self._connection)
        self._handles: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._last = threading.local()
        _open.add(self)

    def __repr__(self) -> str:
        state = "closed" if self._connection.closed else f"server {self._connection.server.version}"
        return f"<gemmd.Client of {self._connection.address}, {state}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # Not from here: gRPC may be on the stack. The janitor ends when its queue is empty.
        janitor = getattr(self, "_janitor", None)
        if janitor is not None:
            janitor.stop(wait=False)

    def close(self) -> None:
        """Deletes the matrices without a name, ends the calls under way, and disconnects."""
        connection = self._connection
        if connection.closed or connection.forked:
            return
        with Hold():
            for handle in list(self._handles):
                if handle.owned and not handle._freed:
                    handle._freed = True
                    self._janitor.start()
                    self._janitor.delete(handle._ref)
            self._janitor.stop()
            connection.close()

    # Products.

    @checks.named_options
    def matmul(
        self,
        a: Any,
        b: Any,
        *,
        out: Any = None,
        c: Any = None,
        bias: Any = None,
        alpha: float = 1.0,
        beta: float | None = None,
        transpose_a: bool = False,
        transpose_b: bool = False,
        activation: str | None = None,
        leaky_slope: float | None = None,
        scale_a: float | None = None,
        scale_b: float | None = None,
        scales_a: Any = None,
        scales_b: Any = None,
        dtype: Any = None,
        compute: str | None = None,
        kernel: str | None = None,
        family: str | None = None,
        params: Mapping[str, int] | None = None,
        verify: str | None = None,
        return_report: bool = False,
        keep: bool = False,
        name: str | None = None,
        ttl: float | None = None,
        replace: bool = False,
        if_version: int | None = None,
        shared: bool = False,
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> Any:
        """D = act(alpha op(a) op(b) + beta c + bias), as a plain array.

        a and b are numpy arrays (or what numpy makes one of), torch tensors or handles, and
        follow the rules of numpy.matmul: matrices; vectors; more dimensions, which are broadcast
        and go as a batch, in one request (see `Limits.max_batch_count`); empty ones. op
        transposes the last two dimensions where `transpose_a` or `transpose_b` is set. The result
        is a torch tensor, on the operand's device, where an operand is one, and otherwise a numpy
        array.

        Types that differ are numpy's common type where that is one of float64, float32, float16
        and bfloat16. Integers and bools give numpy's result where float64 holds every sum. int8
        with int8 gives int32. Other types, and what would be rounded in silence, are an
        InvalidType or InvalidArgument that says which `astype` to write.

        out: memory for the result, of its shape; it is what is returned. Received in place where
            it is contiguous in row-major or column-major order and has the result's type, else
            copied there. It may be, or overlap, an operand: then it is copied there, too, once all
            of it has come.
        c, bias, beta: what broadcasts to the result. beta is 1 where c is given alone.
        activation: "relu", "gelu" or "leaky_relu" (with `leaky_slope`, else 0.01).
        scale_a, scale_b: factors of the elements, for fp8 and s8 operands.
        scales_a, scales_b: f32 scales of the blocks of fp8 operands, both or neither, and not of
            a batch. scales_a has the shape (m, ceil(k / 128)), one for each 1 x 128 block of
            op(a), or (ceil(m / 128), ceil(k / 128)), for 128 x 128; scales_b (ceil(k / 128), n)
            or (ceil(k / 128), ceil(n / 128)). Arrays, tensors or handles.
        dtype: the result's type; left out: out's, or a's, or f16 where a is fp8, or s32 (int32)
            where it is s8 (int8). Of s8 f32, f16 and bf16 are to be had, too, with any factors.
        compute: "f64", "f32", "tf32", "f32x3", "f16" or "s32": the arithmetic.
        kernel, family, params: a kernel of `kernels()`, or the best of a family; launch
            parameters only with a kernel. Left out: the server chooses.
        verify: "off", "sampled" or "always": whether the server checks the product before it
            sends it. The server's policy counts where it is stricter. See `Report.check`.
        return_report: (result, Report) is returned. `last_report` has it, too.
        keep: the result stays on the server, and a handle is returned: see `keep`, whose options
            are name, ttl, replace, if_version and shared.
        timeout: seconds until DeadlineExceeded.

        Errors are GemmdErrors, which name the operand or the option.
        """
        options = product.Options(
            out, c, bias, alpha, beta, transpose_a, transpose_b, activation, leaky_slope,
            scale_a, scale_b, scales_a, scales_b, dtype, compute, kernel, family, params, verify,
            return_report,
        )  # fmt: skip
        keep_as = KeepAs(name, ttl, replace, if_version, shared)
        if checks.flag(keep, "keep"):
            return self._keep(a, b, options, keep_as, None, None, timeout, cancel)
        keep_as.check_unused()
        with Call(self._connection, "matmul", timeout, cancel) as call:
            return self._fetch(call, shapes.plan(self, a, b, options))

    def _fetch(self, call: Call, plan: product.Plan) -> Any:
        """The result of a product, whose report is then the last one."""
        try:
            result, self._last.report = multiply.fetch(self._janitor, call, plan)
        except errors.NotFound as error:
            raise explain_not_found(call, error, plan.handles) from None
        return result

    @property
    def last_report(self) -> Report | None:
        """Of the last product that this thread had from `matmul` or `grouped_matmul`: which
        kernel ran, why, and how long each phase took."""
        return getattr(self._last, "report", None)

    @checks.named_options
    def grouped_matmul(
        self,
        a: Any,
        b: Any,
        group_sizes: Any,
        *,
        by: str | None = None,
        out: Any = None,
        c: Any = None,
        bias: Any = None,
        alpha: float = 1.0,
        beta: float | None = None,
        transpose_a: bool = False,
        transpose_b: bool = False,
        activation: str | None = None,
        leaky_slope: float | None = None,
        scale_a: float | None = None,
        scale_b: float | None = None,
        dtype: Any = None,
        compute: str | None = None,
        kernel: str | None = None,
        family: str | None = None,
        params: Mapping[str, int] | None = None,
        verify: str | None = None,
        return_report: bool = False,
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> Any:
        """Products that differ in one dimension, in one request: those of a mixture of experts.

        group_sizes: what each of them has of that dimension, in order; 0 for some, as it may be.
            A sequence of integers, a numpy array or a torch tensor.

        Which dimension it is shows in those of a and b:

        - m: a is (sum(group_sizes), k) and b (g, k, n), for g sizes. The result is
          (sum(group_sizes), n): rows of a times the b of their product.
        - k: a is (m, sum(group_sizes)) and b (sum(group_sizes), n). The result is (g, m, n).
        - n: a is (g, m, k) and b (k, sum(group_sizes)). The result is (m, sum(group_sizes)).

        by: "m", "k" or "n", where an operand is a handle. That of a b of three dimensions
            (by m) is one of its matrices' rows: `put(b.reshape(-1, n))`.

        c has the shape of the result, or by k also that of one product. The bias has a row for
        all products or for each; by n one element for each column of the result. The other
        options, and errors, are those of `matmul`. See `Limits.max_group_count`.
        """
        options = product.Options(
            out, c, bias, alpha, beta, transpose_a, transpose_b, activation, leaky_slope,
            scale_a, scale_b, None, None, dtype, compute, kernel, family, params, verify,
            return_report,
        )  # fmt: skip
        with Call(self._connection, "grouped_matmul", timeout, cancel) as call:
            a, b, options, group = groups.stack(a, b, group_sizes, by, options)
            plan = product.make(self, a, b, options, group)
            plan.ending = partial(groups.unstack, group=group, out=out)
            return self._fetch(call, plan)

    def keep(
        self,
        a: Any,
        b: Any,
        *,
        group_sizes: Any = None,
        by: str | None = None,
        name: str | None = None,
        ttl: float | None = None,
        replace: bool = False,
        if_version: int | None = None,
        shared: bool = False,
        timeout: float | None = None,
        cancel: Canceller | None = None,
        **options: Any,
    ) -> Handle:
        """The product of `matmul`, left on the server: a handle, with its `report`. With
        `group_sizes`, and `by`, the products of `grouped_matmul`.

        `name`, `ttl`, `replace`, `if_version` and `shared` are as for `put`; the matrix that is
        replaced may be an operand. The other options are matmul's, without `out`.

        The results of a batch, or of a group by k, stay as one matrix of two dimensions: their
        rows, one result after the other. So do those of a group by m, whose next product takes
        the handle with the same `group_sizes`; `grouped_matmul` with sizes of m multiplies the
        results of a batch.
        """
        checks.keywords(options, _KEEP_NAMES, "Client.keep")
        given = product.Options(**options)
        keep_as = KeepAs(name, ttl, replace, if_version, shared)
        return self._keep(a, b, given, keep_as, group_sizes, by, timeout, cancel)

    def _keep(
        self,
        a: Any,
        b: Any,
        given: product.Options,
        keep_as: KeepAs,
        group_sizes: Any,
        by: str | None,
        timeout: float | None,
        cancel: Canceller | None,
    ) -> Handle:
        for option, is_given in (("out", given.out is not None),
                                 ("return_report", given.return_report)):  # fmt: skip
            if is_given:
                raise errors.InvalidArgument(
                    f"{option} is given; a result that is kept has none: its handle has a report",
                    field=option,
                )
        name = keep_as.name
        with Call(self._connection, "keep", timeout, cancel) as call:
            stack: product.Stack | None = None
            if group_sizes is not None:
                a, b, given, stack = groups.stack(a, b, group_sizes, by, given)
            elif by is not None:
                raise errors.InvalidArgument("by is given without group_sizes", field="by")
            else:
                a, b, given, stack, ending = shapes.prepare(a, b, given)
                if ending is not None:
                    ending.check_kept()
            plan = product.make(self, a, b, given, stack)
            with Unseen(self._janitor, name) as kept:

                def run() -> multiply.Kept:
                    return multiply.keep(self._janitor, call, plan, self._kept(keep_as, kept))

                try:
                    done = call.tried(run, repeatable=name is None)
                except errors.NotFound as error:
                    raise explain_not_found(call, error, plan.handles) from None
                handle = self._handle(done.info, keep_as)
                kept.known()
            handle.report = done.report
            return handle

    @checks.named_options
    def pipeline(
        self, window: int = 256, *, collect: bool = True, batch: bool = True
    ) -> Pipeline:
        """Many products under way on one stream: see Pipeline."""
        self._connection.check()
        return Pipeline(self, window, collect, batch)

    def _operator(
        self, left: Any, right: Any, *, out: Any = None, cancel: Canceller | None = None
    ) -> Any:
        keep = out is None and isinstance(left, Remote) and isinstance(right, Remote)
        return self.matmul(left, right, out=out, keep=keep, cancel=cancel)

    # Matrices on the server.

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

    # The server.

    @checks.named_options
    def info(
        self, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> records.Info:
        """The server's version, devices, limits and present load."""
        with Call(self._connection, "info", timeout, cancel) as call:
            return records.info(call.tried(call.ask_server))

    @checks.named_options
    def kernels(
        self, family: str = "", *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> Table[records.Kernel]:
        """The kernels of the catalogue, or those of one family."""
        request = pb.ListKernelsRequest(family=checks.text(family, "family"))
        with Call(self._connection, "kernels", timeout, cancel) as call:
            method = self._connection.stubs().kernels
            response = call.tried(lambda: call.unary(method, request))
            return Table(records.Kernel, map(records.kernel, response.kernels))

    @checks.named_options
    def explain(
        self,
        m: int,
        n: int,
        k: int,
        *,
        types: str = "f32",
        transpose_a: bool = False,
        transpose_b: bool = False,
        epilogue: bool = False,
        block_scales: bool = False,
        family: str = "",
        device: str = "",
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> Table[records.RankedKernel]:
        """The kernels that take a product: first the one that the server picks, and why.

        types: of A, B and the result, and the compute mode: f16:f16:f16:f32. One alone is that of
            A and B; the others are then those of such a product.
        epilogue: the product has a beta, a bias or an activation.
        block_scales: it has scales of the blocks of fp8 operands.
        """
        asked = bench.types_of(types)
        if ":" not in types:
            asked.ClearField("output")
        request = pb.RankKernelsRequest(
            device=checks.text(device, "device"),
            size=pb.ProductSize(
                m=checks.integer(m, "m", 1),
                n=checks.integer(n, "n", 1),
                k=checks.integer(k, "k", 1),
            ),
            types=asked,
            layout=pb.OperandTransposes(
                transpose_a=checks.flag(transpose_a, "transpose_a"),
                transpose_b=checks.flag(transpose_b, "transpose_b"),
            ),
            epilogue=checks.flag(epilogue, "epilogue"),
            block_scales=checks.flag(block_scales, "block_scales"),
            family=checks.text(family, "family"),
        )
        with Call(self._connection, "explain", timeout, cancel) as call:
            method = self._connection.stubs().rank
            response = call.tried(lambda: call.unary(method, request))
            return Table(records.RankedKernel, map(records.ranked_kernel, response.kernels))

    @checks.named_options
    def traffic(
        self, limit: int = 100, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> Table[records.Traffic]:
        """What is worth tuning of the products that the server has seen, by the time they took.

        Those that left the kernel to the server, and for whose shape its tuning table has no
        entry. limit: at most so many, 1 to 1024.
        """
        request = pb.ListTrafficRequest(limit=checks.integer(limit, "limit", 1, 1024))
        with Call(self._connection, "traffic", timeout, cancel) as call:
            method = self._connection.stubs().traffic
            response = call.tried(lambda: call.unary(method, request))
            return Table(records.Traffic, map(records.traffic, response.entries))

    @checks.named_options
    def reload_tuning(
        self, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> records.TuningLoad:
        """Has the server read its tuning tables again: later products are chosen for by them.

        FailedPrecondition where it has none, or a file is wrong: then nothing changes.
        """
        with Call(self._connection, "reload_tuning", timeout, cancel) as call:
            method = self._connection.stubs().reload_tuning
            request = pb.ReloadTuningRequest()
            return records.tuning_load(call.tried(lambda: call.unary(method, request)))

    @checks.named_options
    def bench(
        self,
        shapes: Sequence[int | tuple[int, int, int]] = (),
        *,
        suite: str = "",
        kernels: Sequence[str] = (),
        families: Sequence[str] = (),
        types: Sequence[str] = (),
        iterations: int | None = None,
        warmup: int | None = None,
        baseline: bool = True,
        budget: float | None = None,
        device: str = "",
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> bench.Benchmark:
        """Measures kernels on the server's device, without payload.

        shapes: n, or (m, n, k). suite: a named list of shapes.
        kernels, families: names, or patterns with * and ?. Left out: all.
        types: such as "f16" or "f16:f16:f16:f32". Left out: each kernel's first.
        baseline: whether the vendor's kernels are measured beside them.
        budget: seconds for all of it.
        """
        request = bench.request(
            shapes, suite, kernels, families, types, iterations, warmup, baseline, budget, device
        )
        with Call(self._connection, "bench", timeout, cancel) as call:
            return call.tried(lambda: bench.run(call, request), repeatable=False)

    # For handles.

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


_open: weakref.WeakSet[Client] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for client in list(_open):
        client.close()


__all__ = ["Client"]
