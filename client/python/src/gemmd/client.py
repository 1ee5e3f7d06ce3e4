"""A connection to one server, and what can be done with it."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any

from . import checks, connection, errors, groups, multiply, product, shapes
from .call import Call, Canceller
from .handle import Handle, NoCopies, explain_not_found
from .interrupt import Hold
from .janitor import Janitor
from .keeping import KeepAs
from .matrices import Matrices
from .opening import opened, opened_in_child
from .operators import Remote
from .options import Options
from .pipeline import Pipeline
from .queries import Queries
from .report import Report
from .unseen import Unseen

# The options of `Client.keep`, for the error that suggests one in place of an unknown one.
_KEEP_NAMES = (
    "group_sizes", "by", *KeepAs._fields, "timeout", "cancel", *product.OPTION_NAMES,
)  # fmt: skip


class Client(NoCopies, Matrices, Queries):
    """Matrix products on one server. Thread-safe; any number of calls at once.

    Made by `gemmd.connect`. `close()`, or the end of a `with` block, deletes the matrices
    without a name that it has handles of, and ends the calls under way.
    """

    def __init__(self, address: str, options: Options) -> None:
        options.check()
        connection.check_gevent()
        open_one = opened_in_child if connection.in_forked_child else opened
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


_open: weakref.WeakSet[Client] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for client in list(_open):
        client.close()


__all__ = ["Client"]
