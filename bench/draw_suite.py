#!/usr/bin/env python3
"""Draws a suite of shapes that nothing has been measured with: bench/draw_suite.py SEED CASES > suite.json

Sizes, windows, channels and types are those that networks have, but in any combination, so that cenote-compare shows where a kernel is
missing rather than how well the known shapes went. The same seed draws the same suite.
"""
import argparse
import json
import math
import random

CHANNELS = [1, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 768, 1024]
SIZES = [7, 8, 10, 12, 13, 14, 16, 17, 19, 20, 21, 24, 26, 28, 32, 35, 38, 40, 48, 52, 56, 60, 64, 76, 80, 100, 112, 128, 150,
         160, 200, 224, 256, 320, 480]
FEWEST, MOST = 30_000, 16_000_000  # elements of an input


def log_uniform(rng, low, high):
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def draw_space(rng, dims):
    if dims == 1:
        return [log_uniform(rng, 16, 4000)]
    if dims == 3:
        side = rng.choice([7, 8, 14, 16, 20, 28, 32, 40, 56, 64, 96, 112])
        return [rng.choice([4, 8, 10, 16, 24, 32]), side, side]
    height = rng.choice(SIZES)
    if rng.random() < 0.7:
        return [height, height]
    return [height, min(600, max(4, int(height * rng.choice([0.5, 0.75, 1.33, 1.78, 2]))))]


def draw_kernel(rng, dims):
    if dims == 1:
        return [rng.choice([2, 2, 3, 3, 4, 5, 7, 8, 10, 16, 25, 32])]
    if dims == 3:
        side = rng.choice([2, 2, 3, 3, 3, 4, 5])
        return [side if rng.random() < 0.3 else rng.choice([1, 2, 3, 3]), side, side]
    if rng.random() < 0.8:
        return [rng.choice([2, 2, 2, 3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 11, 15])] * 2
    return [rng.choice([1, 2, 3, 4, 5]), rng.choice([1, 2, 3, 4, 5, 7])]


def draw_stride(rng, kernel):
    kind = rng.random()
    if kind < 0.45:
        return list(kernel)
    if kind < 0.7:
        return [min(2, size) for size in kernel]
    if kind < 0.92:
        return [1] * len(kernel)
    return [rng.randint(1, size) for size in kernel]


def draw_sliding(rng, family, dims, space):
    """The arguments of a sliding window, or None where none fits."""
    kernel = draw_kernel(rng, dims)
    stride = draw_stride(rng, kernel)
    padding = [size // 2 for size in kernel] if stride != kernel and rng.random() < 0.7 else [0] * dims
    if family == "lp":
        padding = [0] * dims
    dilation = rng.choice([2, 3]) if family == "max" and rng.random() < 0.12 else 1
    if max(kernel) == 1 or any((k - 1) * dilation + 1 > s + 2 * p for k, s, p in zip(kernel, space, padding)):
        return None
    args = {"kernel_size": kernel, "stride": stride}
    if dilation > 1:
        args["dilation"] = dilation
    if any(padding):
        args["padding"] = padding
        if family == "avg" and rng.random() < 0.4:
            args["count_include_pad"] = False
    if rng.random() < 0.1:
        args["ceil_mode"] = True
    if family == "lp":
        args["norm_type"] = rng.choice([1, 2, 2, 4])
    return args


def draw_case(rng, name):
    """One case, or None where what was drawn does not go together."""
    family = rng.choices(["max", "avg", "adaptive_max", "adaptive_avg", "global_max", "global_avg", "lp", "unpool"],
                         [10, 6, 2, 2, 1, 1.5, 1, 1])[0]
    dims = rng.choices([1, 2, 3], [2, 7, 2])[0]
    if family == "lp" and dims == 3:
        return None
    channels, space = rng.choice(CHANNELS), draw_space(rng, dims)
    plane = math.prod(space)
    batch = max(1, min(512, round(log_uniform(rng, 60_000, 12_000_000) / (channels * plane))))
    elements = batch * channels * plane
    if not FEWEST <= elements <= (MOST // 4 if family == "unpool" else MOST):
        return None
    if family in ("max", "avg", "lp"):
        op, args = f"{family}_pool{dims}d", draw_sliding(rng, family, dims, space)
    elif family == "unpool":
        op, args = f"max_unpool{dims}d", {"kernel_size": 2}
    elif family.startswith("global"):
        op, args = f"adaptive_{family[-3:]}_pool{dims}d", {"output_size": 1}
    else:
        size = max(1, int(space[0] / rng.uniform(1.2, 12))) if dims == 1 else rng.choice([2, 3, 4, 5, 6, 7, 8, 10, 14])
        op, args = f"{family}_pool{dims}d", {"output_size": [min(size, s) for s in space]}
    if args is None:
        return None
    other = rng.choices([None, "f16", "bf16", "f64", "u8"], [16, 30, 30, 12, 12])[0]
    if other == "u8" and family not in ("max", "avg"):
        other = None
    passes = ["forward", "forward_indices", "backward"] if family.endswith("max") else ["forward", "backward"]
    return {"name": f"{name}-{family}-{'x'.join(map(str, space))}", "op": op, "shape": [batch, channels, *space], "args": args,
            "dtypes": ["f32", other] if other else ["f32"], "layouts": ["planar", "channels_last"] if dims > 1 else ["planar"],
            "passes": passes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("cases", type=int)
    args = parser.parse_args()
    if args.cases < 1:
        parser.error(f"cases must be at least 1, got {args.cases}")
    rng = random.Random(args.seed)
    cases = []
    while len(cases) < args.cases:
        case = draw_case(rng, f"{args.seed}.{len(cases) + 1}")
        if case:
            cases.append(case)
    print(json.dumps({"format": 1, "note": f"Drawn by bench/draw_suite.py {args.seed} {args.cases}.", "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
