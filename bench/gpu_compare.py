#!/usr/bin/env python3
"""Pools the suite's shapes on the GPU with cenote (through its C interface), PyTorch (eager and compiled) and cuDNN, in one run.

    python3 bench/gpu_compare.py --library build/release/lib/libcenote.so [--suite FILE] [--filter REGEX]
                                 [--peers eager,compile,cudnn] [--saved window|flat64] [--seconds N] [--json FILE] [--markdown FILE]

Every row: results compared first, then device events around each call, the L2 cache overwritten before each, medians. Share: of the
bandwidth of a large device-to-device copy measured in the same run, counting the fewest bytes the op must move. Ratio: the best
peer's time over cenote's. Afterwards a graph of 20 small pools, against the time of its kernels alone.

A max backward is timed from what each library itself saves for it, as in the CPU comparison: torch's eager 8-byte indices, torch.compile
bytes where it can, cuDNN the input and the output, cenote the taps of windows, a byte each (two from 256 taps on), which its gradient tape
keeps. --saved flat64 gives cenote torch's 8-byte indices instead.

cuDNN is called through its C interface. It has no indices, no dilation, no adaptive windows of different sizes, and counts output
sizes downwards; in other rows there is no such peer.
"""

import argparse
import ctypes
import json
import math
import os
import re
import statistics
import sys
import time
import warnings

import torch
import torch._functorch.config
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "u8": torch.uint8, "i8": torch.int8}
C_DTYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3, torch.int8: 4, torch.uint8: 5, torch.int16: 6,
            torch.int32: 7, torch.int64: 8, torch.uint16: 9, torch.uint32: 10}
TORCH_DTYPES = {number: dtype for dtype, number in C_DTYPES.items()}
OPS = {"max_pool": 0, "min_pool": 1, "avg_pool": 2, "sum_pool": 3, "lp_pool": 4, "adaptive_max_pool": 5, "adaptive_avg_pool": 6,
       "fractional_max_pool": 7, "max_unpool": 8}
MAX_FAMILY = ("max_pool", "adaptive_max_pool")
OUTPUT, INDICES, GRAD_OUTPUT, GRAD_INPUT = 1, 2, 3, 4
INDEX_KINDS = {"flat64": 0, "window": 2}
MAX_RANK = 8


class Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * MAX_RANK),
                ("strides", ctypes.c_int64 * MAX_RANK), ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int32)]


class Dims(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("values", ctypes.c_int64 * 5)]


class Spec(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("op", ctypes.c_int32), ("dims", ctypes.c_int32), ("kernel_size", Dims), ("stride", Dims),
                ("padding", Dims), ("padding_end", Dims), ("padding_mode", ctypes.c_int32), ("ceil_mode", ctypes.c_int32),
                ("dilation", Dims), ("output_size", Dims), ("has_output_ratio", ctypes.c_int32 * 3),
                ("count_include_pad", ctypes.c_int32), ("output_ratio", ctypes.c_double * 3), ("has_divisor_override", ctypes.c_int32),
                ("return_indices", ctypes.c_int32), ("divisor_override", ctypes.c_int64), ("norm_type", ctypes.c_double),
                ("index_kind", ctypes.c_int32)]


class Run(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_void_p) for name in (
        "input", "output", "indices", "saved_indices", "random_samples", "grad_output", "grad_input", "stream")] + [
        ("threads", ctypes.c_int32)]


class Library:
    """The C interface, as far as this program needs it."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.cenote_last_error.restype = ctypes.c_char_p
        self.c.cenote_plan_explain.restype = ctypes.c_char_p
        self.c.cenote_plan_bytes_moved.restype = ctypes.c_int64
        self.c.cenote_plan_explain.argtypes = self.c.cenote_plan_bytes_moved.argtypes = [ctypes.c_void_p]
        self.c.cenote_plan_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.c.cenote_plan_check.argtypes = self.c.cenote_plan_destroy.argtypes = [ctypes.c_void_p]
        self.c.cenote_plan_operand.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]

    def require(self, status):
        if status != 0:
            raise RuntimeError(self.c.cenote_last_error().decode())

    def describe(self, tensor):
        result = Tensor()
        self.c.cenote_tensor_init(ctypes.byref(result), C_DTYPES[tensor.dtype], tensor.dim(), (ctypes.c_int64 * tensor.dim())(*tensor.shape))
        for i, stride in enumerate(tensor.stride()):
            result.strides[i] = stride
        result.device_type, result.device_index = 1, tensor.device.index or 0
        return result

    def plan(self, backward, tensor, op, dims, args, indices, index_kind="flat64"):
        spec = Spec()
        self.c.cenote_spec_init(ctypes.byref(spec), OPS[op], dims)
        for name, value in args.items():
            if name in ("kernel_size", "stride", "padding", "dilation", "output_size"):
                values = [value] if isinstance(value, int) else value
                setattr(spec, name, Dims(-1 if isinstance(value, int) else len(values), (ctypes.c_int64 * 5)(*values)))
            else:
                setattr(spec, name, value)
        spec.return_indices, spec.index_kind = int(indices), INDEX_KINDS[index_kind]
        plan = ctypes.c_void_p()
        self.require(self.c.cenote_plan_create(ctypes.byref(plan), int(backward), ctypes.byref(self.describe(tensor)), ctypes.byref(spec), None))
        return plan

    def operand(self, plan, which):
        desc = Tensor()
        desc.size = ctypes.sizeof(Tensor)
        self.require(self.c.cenote_plan_operand(plan, which, ctypes.byref(desc)))
        shape, strides = list(desc.shape[:desc.rank]), list(desc.strides[:desc.rank])
        return torch.empty_strided(shape, strides, dtype=TORCH_DTYPES[desc.dtype], device="cuda")

    def runner(self, plan, **pointers):
        run = Run()
        self.c.cenote_run_init(ctypes.byref(run))
        for name, tensor in pointers.items():
            setattr(run, name, tensor.data_ptr())
        run.stream = torch.cuda.current_stream().cuda_stream
        address, function = ctypes.byref(run), self.c.cenote_plan_run

        def call():
            if function(plan, address) != 0:
                raise RuntimeError(self.c.cenote_last_error().decode())

        call.keep = (run, pointers)
        return call


class Cudnn:
    """cuDNN's pooling, where it can do the same."""

    DTYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 9}
    MAX, AVERAGE_WITH_PADDING, AVERAGE_WITHOUT = 0, 1, 2
    PROPAGATE_NAN = 1

    def __init__(self):
        self.c = ctypes.CDLL("libcudnn.so.9")
        self.handle = ctypes.c_void_p()
        self.require(self.c.cudnnCreate(ctypes.byref(self.handle)))
        self.require(self.c.cudnnSetStream(self.handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)

    @staticmethod
    def require(status):
        if status != 0:
            raise RuntimeError(f"cuDNN status {status}")

    def describe(self, tensor):
        # Planes of two axes at least: a pool along one axis has rows of height 1.
        shape, strides = list(tensor.shape), list(tensor.stride())
        if len(shape) == 3:
            shape.insert(2, 1)
            strides.insert(2, shape[3])
        desc, ints = ctypes.c_void_p(), ctypes.c_int * len(shape)
        self.require(self.c.cudnnCreateTensorDescriptor(ctypes.byref(desc)))
        self.require(self.c.cudnnSetTensorNdDescriptor(desc, self.DTYPES[tensor.dtype], len(shape), ints(*shape), ints(*strides)))
        return desc

    def windows(self, op, dims, args, shape, output_shape):
        """Window, padding, stride and mode, or None where cuDNN has no such pool."""
        def per_axis(value):
            return [value] * dims if isinstance(value, int) else list(value)
        if op in ("adaptive_max_pool", "adaptive_avg_pool"):
            if any(i % o for i, o in zip(shape[2:], output_shape[2:])):
                return None
            kernel = [i // o for i, o in zip(shape[2:], output_shape[2:])]
            stride, padding = kernel, [0] * dims
        elif op in ("max_pool", "avg_pool"):
            kernel, padding = per_axis(args["kernel_size"]), per_axis(args.get("padding", 0))
            stride = per_axis(args.get("stride", kernel))
            if any(d != 1 for d in per_axis(args.get("dilation", 1))) or args.get("divisor_override"):
                return None
            if any((i + 2 * p - k) // s + 1 != o for i, p, k, s, o in zip(shape[2:], padding, kernel, stride, output_shape[2:])):
                return None
        else:
            return None
        if dims == 1:
            kernel, stride, padding = [1] + kernel, [1] + stride, [0] + padding
        mode = self.MAX if "max" in op else self.AVERAGE_WITH_PADDING if args.get("count_include_pad", True) else self.AVERAGE_WITHOUT
        return kernel, padding, stride, mode

    def pool(self, op, dims, args, x, y):
        """A call that pools x into y, and one from (y, dy) to dx; None where there is none."""
        windows = self.windows(op, dims, args, x.shape, y.shape) if x.dtype in self.DTYPES else None
        if windows is None:
            return None
        kernel, padding, stride, mode = windows
        ints, pooling = ctypes.c_int * len(kernel), ctypes.c_void_p()
        self.require(self.c.cudnnCreatePoolingDescriptor(ctypes.byref(pooling)))
        self.require(self.c.cudnnSetPoolingNdDescriptor(pooling, mode, self.PROPAGATE_NAN, len(kernel), ints(*kernel), ints(*padding),
                                                        ints(*stride)))
        x_desc, y_desc, one, zero = self.describe(x), self.describe(y), ctypes.byref(self.one), ctypes.byref(self.zero)

        def pointer(tensor):
            return ctypes.c_void_p(tensor.data_ptr())

        def forward():
            self.require(self.c.cudnnPoolingForward(self.handle, pooling, one, x_desc, pointer(x), zero, y_desc, pointer(y)))

        def backward(dy, dx):
            dy_desc, dx_desc = self.describe(dy), self.describe(dx)
            return lambda: self.require(self.c.cudnnPoolingBackward(
                self.handle, pooling, one, y_desc, pointer(y), dy_desc, pointer(dy), x_desc, pointer(x), zero, dx_desc, pointer(dx)))

        forward()
        return forward, backward


class Clock:
    def __init__(self, repetitions):
        self.repetitions = repetitions
        self.scratch = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
        self.driver = ctypes.CDLL("libcuda.so.1")

    def median_ns(self, call, budget_ms=60.0):
        call()
        torch.cuda.synchronize()
        times = []
        pairs = []
        for _ in range(self.repetitions):
            # The cache holds none of the operands, not even those that a kernel asked to be evicted last.
            self.driver.cuCtxResetPersistingL2Cache()
            self.scratch.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            pairs.append((begin, end))
            if len(pairs) == 3:
                torch.cuda.synchronize()
                if 3 * min(b.elapsed_time(e) for b, e in pairs) > budget_ms:
                    break
        torch.cuda.synchronize()
        times = [b.elapsed_time(e) * 1e6 for b, e in pairs]
        return statistics.median(times)

    def copy_gbps(self):
        source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
        target = torch.empty_like(source)
        return 2 * source.numel() / self.median_ns(lambda: target.copy_(source))


def torch_pool(op, dims, args):
    """The peer's forward; keyword names are PyTorch's own."""
    function = getattr(F, f"{op}{dims}d")
    return lambda x, **more: function(x, **args, **more)


def draw(shape, dtype, layout):
    x = torch.randint(0, 256, shape, dtype=dtype, device="cuda") if dtype in (torch.uint8, torch.int8) else \
        torch.randn(shape, device="cuda").to(dtype)
    if layout == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    return x


def compare(name, got, expected, exact):
    if exact:
        if not torch.equal(got, expected):
            raise AssertionError(f"{name}: {int((got != expected).sum())} elements differ from PyTorch's")
    else:
        tolerance = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(got.dtype, 2e-5)
        torch.testing.assert_close(got.float(), expected.float(), rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda m: f"{name}: {m}")


class Row:
    def __init__(self, library, clock, case, dtype, layout, pass_, saved="flat64"):
        self.library, self.clock, self.case, self.pass_, self.saved = library, clock, case, pass_, saved
        self.op, self.dims = case["op"][:-2], int(case["op"][-2])
        self.args = case["args"]
        shape = [case.get("gpu_batch", case["shape"][0])] + case["shape"][1:]
        self.x = draw(shape, DTYPES[dtype], layout)
        self.pool = torch_pool(self.op, self.dims, self.args)
        self.name = f"{case['name']} {dtype} {layout} {pass_}"

    def indices_from_windows(self):
        """Unpooling's indices: of the windows' last taps, as a pool with that kernel would have made them."""
        k = self.args["kernel_size"]
        height, width = self.x.shape[-2] * k, self.x.shape[-1] * k
        large = torch.randn(*self.x.shape[:-2], height, width, device="cuda")
        return F.max_pool2d(large, k, return_indices=True)[1]

    def prepare(self):
        """The calls to time, results compared."""
        x, library = self.x, self.library
        backward = self.pass_ == "backward"
        calls = {}
        if self.op == "max_unpool":
            indices = self.indices_from_windows()
            plan = library.plan(backward, x, self.op, self.dims, self.args, False)
            function = getattr(F, f"max_unpool{self.dims}d")
            if not backward:
                output = library.operand(plan, OUTPUT)
                calls["cenote"] = library.runner(plan, input=x, output=output, saved_indices=indices)
                calls["eager"] = lambda: function(x, indices, **self.args)
                calls["cenote"]()
                compare(self.name, output, calls["eager"](), True)
            else:
                leaf = x.clone().requires_grad_()
                y = function(leaf, indices, **self.args)
                g = torch.randn_like(y)
                result = library.operand(plan, GRAD_INPUT)
                calls["cenote"] = library.runner(plan, saved_indices=indices, grad_output=g, grad_input=result)
                calls["eager"] = lambda: torch.autograd.grad(y, leaf, g, retain_graph=True)[0]
                calls["cenote"]()
                compare(self.name, result, calls["eager"](), True)
        elif not backward:
            indices_wanted = self.pass_ == "forward_indices"
            plan = library.plan(False, x, self.op, self.dims, self.args, indices_wanted)
            output = library.operand(plan, OUTPUT)
            pointers = {"input": x, "output": output}
            if indices_wanted:
                pointers["indices"] = library.operand(plan, INDICES)
            calls["cenote"] = library.runner(plan, **pointers)
            calls["cenote"]()
            floating = x.dtype.is_floating_point
            if indices_wanted:
                calls["eager"] = lambda: self.pool(x, return_indices=True)
                expected, expected_indices = calls["eager"]()
                compare(self.name + " indices", pointers["indices"], expected_indices, True)
            elif floating:
                calls["eager"] = lambda: self.pool(x)
                expected = calls["eager"]()
            else:
                expected = self.pool(x.to(torch.float16)).to(x.dtype)
            compare(self.name, output, expected, self.op in MAX_FAMILY)
        else:
            leaf = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
            indexed = self.op in MAX_FAMILY
            y = self.pool(leaf)
            g = torch.randn_like(y)
            plan = library.plan(True, x, self.op, self.dims, self.args, False, self.saved)
            result = library.operand(plan, GRAD_INPUT)
            pointers = {"grad_output": g, "grad_input": result}
            desired = library.operand(plan, GRAD_OUTPUT)
            if desired.stride() != g.stride():
                pointers["grad_output"] = desired.copy_(g)
            if indexed:
                pointers["saved_indices"] = library.operand(plan, INDICES)
                forward = library.plan(False, x, self.op, self.dims, self.args, True, self.saved)
                library.runner(forward, input=x, output=library.operand(forward, OUTPUT), indices=pointers["saved_indices"])()
                torch.cuda.synchronize()
                library.c.cenote_plan_destroy(forward)
            if self.op == "lp_pool":
                pointers["input"] = x
            calls["cenote"] = library.runner(plan, **pointers)
            calls["eager"] = lambda: torch.autograd.grad(y, leaf, g, retain_graph=True)[0]
            calls["cenote"]()
            # Checked against PyTorch's planar gradient: its channels-last average gradient with padding is wrong up to 2.11.
            planar = x.detach().contiguous().clone().requires_grad_()
            expected = torch.autograd.grad(self.pool(planar), planar, g.contiguous())[0]
            compare(self.name, result, expected, False)
        library.require(library.c.cenote_plan_check(plan))
        self.plan = plan
        self.bytes = library.c.cenote_plan_bytes_moved(plan)
        self.explain = library.c.cenote_plan_explain(plan).decode()
        return calls

    def add_cudnn(self, calls, cudnn):
        """The same pool by cuDNN, its result compared as well."""
        if self.op == "max_unpool" or self.pass_ == "forward_indices":
            return
        with torch.no_grad():
            expected = self.pool(self.x)
            y = torch.empty_like(expected)
            pool = cudnn.pool(self.op, self.dims, self.args, self.x, y)
        if pool is None:
            return
        compare(self.name + " cuDNN", y, expected, False)
        forward, backward = pool
        if self.pass_ == "forward":
            calls["cudnn"] = forward
        else:
            calls["cudnn"] = backward(torch.randn_like(y), torch.empty_like(self.x))
        calls["cudnn"]()
        torch.cuda.synchronize()

    def add_compiled(self, calls):
        """torch.compile of the same function; ops it hands back to eager cost eager's time."""
        if "eager" not in calls or self.op == "max_unpool":
            return
        torch._dynamo.reset()
        if self.pass_ == "forward":
            function = torch.compile(self.pool, dynamic=False)
            calls["compile"] = lambda: function(self.x)
        elif self.pass_ == "forward_indices":
            function = torch.compile(lambda x: self.pool(x, return_indices=True), dynamic=False)
            calls["compile"] = lambda: function(self.x)
        else:
            leaf = self.x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
            y = torch.compile(self.pool, dynamic=False)(leaf)
            g = torch.randn_like(y)
            calls["compile"] = lambda: torch.autograd.grad(y, leaf, g, retain_graph=True)[0]
        if "compile" in calls:
            calls["compile"]()

    def measure(self, peers, copy_gbps, cudnn):
        with torch.no_grad() if self.pass_ != "backward" else torch.enable_grad():
            calls = self.prepare()
            if cudnn is not None and self.x.dtype.is_floating_point:
                try:
                    self.add_cudnn(calls, cudnn)
                except (RuntimeError, AssertionError) as error:  # a peer less, not a failed run
                    calls.pop("cudnn", None)
                    print(f"{self.name}: cuDNN: {str(error)[:100]}", file=sys.stderr)
            if "compile" in peers:
                try:
                    self.add_compiled(calls)
                except Exception as error:  # a compiler that fails is a peer less, not a failed run
                    calls.pop("compile", None)
                    print(f"{self.name}: torch.compile: {str(error)[:100]}", file=sys.stderr)
            ns = {name: self.clock.median_ns(call) for name, call in calls.items() if name == "cenote" or name in peers}
        self.library.c.cenote_plan_destroy(self.plan)
        others = {name: time for name, time in ns.items() if name != "cenote"}
        best = min(others, key=others.get) if others else None
        return {"case": self.case["name"], "op": self.case["op"], "bytes": self.bytes, "pass": self.pass_, "ns": ns,
                "share_of_copy": self.bytes / ns["cenote"] / copy_gbps, "best_peer": best,
                "ratio_to_best_peer": others[best] / ns["cenote"] if best else None, "explain": self.explain}


def graph_of_pools(library, count=20):
    """A captured graph of small pools, against the time of its kernels alone, as the profiler reports it. What lies between two events
    with nothing between them is part of the graph's time, but not its own."""
    x = torch.randn(1, 64, 28, 28, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        plan = library.plan(False, x, "max_pool", 2, {"kernel_size": 2}, False)
        call = library.runner(plan, input=x, output=library.operand(plan, OUTPUT))
        call()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(count):
                call()

        def median_us(work):
            times = []
            for _ in range(60):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                torch.cuda._sleep(500_000)  # the device is busy until all of it is queued: no host in the time measured
                begin.record()
                work()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e3)
            return statistics.median(times[10:])

        graph_us, events_us = median_us(graph.replay), median_us(lambda: None)
        # One at a time: in the graph a kernel is on its multiprocessors, waiting, before the one ahead of it is done.
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            for _ in range(count):
                call()
                torch.cuda.synchronize()
        kernels = [event.device_time_total for event in profiler.events() if "cenote" in event.name or "fold" in event.name]
    library.c.cenote_plan_destroy(plan)
    return {"pools": count, "graph_us": graph_us, "events_us": events_us, "kernels_us": sum(kernels), "kernels": len(kernels)}


def describe_graph(graph):
    return (f"a graph of {graph['pools']} small pools: {graph['graph_us']:.1f} us, of which two events with nothing between them are "
            f"{graph['events_us']:.1f}; its {graph['kernels']} kernels alone: {graph['kernels_us']:.1f} us")


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def print_row(row):
    peers = "  ".join(f"{name} {time / 1e3:9.1f}" for name, time in row["ns"].items() if name != "cenote")
    ratio = f"{row['ratio_to_best_peer']:6.2f}x" if row["best_peer"] else "      -"
    print(f"{row['case']:20s} {row['dtype']:5s} {row['layout'][:8]:8s} {row['pass'][:11]:11s} {row['bytes'] / 1e6:8.1f} MB "
          f"{row['ns']['cenote'] / 1e3:9.1f} us {100 * row['share_of_copy']:5.1f} % {ratio}   {peers}", flush=True)


def print_means(rows):
    for pass_ in ("forward", "forward_indices", "backward"):
        eager = [r["ns"]["eager"] / r["ns"]["cenote"] for r in rows if r["pass"] == pass_ and "eager" in r["ns"]]
        if eager:
            print(f"{pass_:15s} eager/cenote, geometric mean of {len(eager)} rows: {geometric_mean(eager):.2f}")
    for pass_ in ("forward", "forward_indices", "backward"):
        for layout in ("planar", "channels_last"):
            chosen = [r for r in rows if r["pass"] == pass_ and r["layout"] == layout]
            eager = [r["ns"]["eager"] / r["ns"]["cenote"] for r in chosen if "eager" in r["ns"]]
            best = [r["ratio_to_best_peer"] for r in chosen if r["best_peer"]]
            if chosen:
                print(f"{pass_:15s} {layout:13s} geometric means: share of copy {100 * geometric_mean([r['share_of_copy'] for r in chosen]):5.1f} %"
                      f"   eager/cenote {geometric_mean(eager):6.2f}   best peer/cenote {geometric_mean(best):6.2f}")
    behind = [r for r in rows if r["best_peer"] and r["ratio_to_best_peer"] < 0.95]
    print(f"{len(rows)} rows, {len(behind)} behind the best peer by more than 5 %")
    for r in behind:
        print(f"  behind: {r['case']} {r['dtype']} {r['layout']} {r['pass']}: {r['ratio_to_best_peer']:.2f}x of {r['best_peer']}")


def write_markdown(file, rows, copy_gbps, device, graph, saved):
    peers = [name for name in ("eager", "compile", "cudnn") if any(name in r["ns"] for r in rows)]
    print(f"copy {copy_gbps:.0f} GB/s, {device}, torch {torch.__version__}; cenote's max backwards from {saved} indices\n", file=file)
    if graph:
        print(f"{describe_graph(graph).capitalize()}.\n", file=file)
    print("| case | dtype | layout | pass | MB | cenote us | share of copy | " + "".join(f"{name} us | " for name in peers) +
          "ratio to best |", file=file)
    print("|---" * (8 + len(peers)) + "|", file=file)
    for r in rows:
        times = "".join(f"{r['ns'][name] / 1e3:.1f} | " if name in r["ns"] else "| " for name in peers)
        ratio = f"{r['ratio_to_best_peer']:.2f}" if r["best_peer"] else ""
        print(f"| {r['case']} | {r['dtype']} | {r['layout']} | {r['pass']} | {r['bytes'] / 1e6:.0f} | {r['ns']['cenote'] / 1e3:.1f} | "
              f"{100 * r['share_of_copy']:.0f} % | {times}{ratio} |", file=file)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=os.path.join(here, "..", "build", "release", "lib", "libcenote.so"))
    parser.add_argument("--suite", default=os.path.join(here, "suite.json"))
    parser.add_argument("--filter", default="", help="rows whose 'case dtype layout pass' matches this regular expression")
    parser.add_argument("--peers", default="eager,compile,cudnn", help="comma-separated: eager, compile, cudnn; or none")
    parser.add_argument("--saved", default="window", choices=list(INDEX_KINDS),
                        help="indices that cenote's max backward is given: those its tape keeps (default), or torch's")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no row begins later than this; what there is by then is written")
    parser.add_argument("--json")
    parser.add_argument("--markdown", help="the table as a page")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.manual_seed(1)
    torch._functorch.config.donated_buffer = False  # a compiled backward is run many times on one graph
    peers = options.peers.split(",")
    cudnn = None
    if "cudnn" in peers:
        try:
            cudnn = Cudnn()
        except (OSError, RuntimeError) as error:
            print(f"no cuDNN: {error}", file=sys.stderr)
    library, clock = Library(options.library), Clock(options.repetitions)
    with open(options.suite) as file:
        suite = json.load(file)
    copy_gbps = clock.copy_gbps()
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, copy {copy_gbps:.0f} GB/s")
    rows, skipped, last_begin = [], 0, time.monotonic() + options.seconds
    for case in suite["cases"]:
        for dtype in case["dtypes"]:
            for layout in case["layouts"]:
                for pass_ in case["passes"]:
                    if not re.search(options.filter, f"{case['name']} {dtype} {layout} {pass_}"):
                        continue
                    if time.monotonic() > last_begin:
                        skipped += 1
                        continue
                    try:
                        row = Row(library, clock, case, dtype, layout, pass_, options.saved).measure(peers, copy_gbps, cudnn)
                    except (RuntimeError, AssertionError) as error:
                        print(f"FAILED {case['name']} {dtype} {layout} {pass_}: {str(error)[:300]}", flush=True)
                        continue
                    row.update(dtype=dtype, layout=layout)
                    rows.append(row)
                    print_row(row)
    if skipped:
        print(f"out of time: {skipped} rows left out")
    print_means(rows)
    graph = graph_of_pools(library)
    print(describe_graph(graph))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"copy_gbps": copy_gbps, "device": device, "torch": torch.__version__, "saved": options.saved,
                       "graph": graph, "rows": rows}, file, indent=1)
    if options.markdown:
        with open(options.markdown, "w") as file:
            write_markdown(file, rows, copy_gbps, device, graph, options.saved)


if __name__ == "__main__":
    main()
