"""What the tool's tests share: running it, naive pooling in numpy, and a PNG codec of our own."""
import json
import os
import pathlib
import resource
import struct
import subprocess
import tempfile
import unittest
import zlib

import numpy as np

CENOTE = os.environ["CENOTE"]
# Sanitizers reserve terabytes of addresses: limits on them mean nothing there.
SANITIZED = bool(os.environ.get("CENOTE_SANITIZE"))
ADDRESS_LIMIT = [] if SANITIZED else ["prlimit", "--as=400000000"]
ROOT = pathlib.Path(__file__).resolve().parents[2]

OK, DIFFERENCE, USAGE, INPUT, OUTPUT, REFUSED, DEVICE = range(7)


def cenote(*arguments, code=OK, **options):
    """Runs the tool without a terminal; fails the test when it exits otherwise than with `code`."""
    done = subprocess.run([CENOTE, *map(str, arguments)], capture_output=True, timeout=300, **options)
    if done.returncode != code:
        raise AssertionError(f"cenote {' '.join(map(str, arguments))}: exit {done.returncode}, expected {code}\n"
                             f"{done.stdout.decode(errors='replace')}{done.stderr.decode(errors='replace')}")
    return done


def seconds(most):
    """For preexec_fn: a run that computes for longer is killed."""
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most))


class ToolTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cenote-test-")
        self.addCleanup(holder.cleanup)
        self.dir = pathlib.Path(holder.name)

    def refuses(self, code, *arguments, says=(), **options):
        """One line on standard error that holds every word of `says`, nothing else, and the exit code."""
        done = cenote(*arguments, code=code, **options)
        text = done.stderr.decode()
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("cenote: "), text)
        for word in says:
            self.assertIn(word, text)
        return text

    def listing(self, directory=None):
        return sorted(p.name for p in (directory or self.dir).iterdir())


def windows(size, kernel, stride, padding, ceil_mode=False, dilation=1):
    """(start, stop, step) of every window along one axis, unclipped."""
    reach = (kernel - 1) * dilation + 1
    room = size + 2 * padding - reach
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return [(o * stride - padding, o * stride - padding + reach, dilation) for o in range(count)]


def pool2d(x, op, kernel, stride=None, padding=0, ceil_mode=False, dilation=1):
    """Naive pooling of the last two axes; (values, flat indices). Averages count padding, as PyTorch does by default."""
    stride = stride or kernel
    height, width = x.shape[-2:]
    rows = windows(height, kernel, stride, padding, ceil_mode, dilation)
    columns = windows(width, kernel, stride, padding, ceil_mode, dilation)
    shape = x.shape[:-2] + (len(rows), len(columns))
    values, indices = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    for plane in np.ndindex(x.shape[:-2]):
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                ys = [y for y in range(*row) if 0 <= y < height]
                xs = [c for c in range(*column) if 0 <= c < width]
                cells = [(y, c) for y in ys for c in xs]
                taps = [x[plane + cell] for cell in cells]
                if op == "max":
                    best = max(range(len(taps)), key=lambda t: (taps[t], -t))
                    values[plane + (i, j)] = taps[best]
                    indices[plane + (i, j)] = cells[best][0] * width + cells[best][1]
                else:
                    divisor = (min(row[1], height + padding) - row[0]) * (min(column[1], width + padding) - column[0])
                    values[plane + (i, j)] = sum(taps) / divisor
    return values, indices


def numbers(shape, dtype, seed=1):
    """Distinct-enough values that every dtype holds exactly."""
    random = np.random.RandomState(seed)
    return random.randint(0, 100, shape).astype(dtype)


def write_png(path, picture, color_type=None, palette=None, interlaced=False):
    """picture: (height, width, channels) of uint8 or uint16."""
    height, width, channels = picture.shape
    color_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels] if color_type is None else color_type
    bits = picture.dtype.itemsize * 8
    big = picture.astype(picture.dtype.newbyteorder(">"))
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    raw = b""
    for y0, x0, dy, dx in passes:
        part = big[y0::dy, x0::dx]
        if part.size:
            raw += b"".join(b"\0" + row.tobytes() for row in part)
    path.write_bytes(png_bytes(width, height, bits, color_type, raw, palette, interlaced))


def png_bytes(width, height, bits, color_type, raw, palette=None, interlaced=False):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, bits, color_type, 0, 0, int(interlaced))
    extra = chunk(b"PLTE", palette) if palette else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def read_png(path):
    """Any non-interlaced PNG of 8 or 16 bits, all filters."""
    data = path.read_bytes()
    position, idat, header = 8, b"", None
    while position < len(data):
        length, name = struct.unpack(">I4s", data[position:position + 8])
        body = data[position + 8:position + 8 + length]
        assert zlib.crc32(name + body) == struct.unpack(">I", data[position + 8 + length:position + 12 + length])[0]
        if name == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif name == b"IDAT":
            idat += body
        position += 12 + length
    width, height, bits, color_type = header[:4]
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[color_type]
    step = channels * bits // 8
    raw = zlib.decompress(idat)
    previous, rows = bytearray(width * step), []
    for y in range(height):
        kind, line = raw[y * (width * step + 1)], bytearray(raw[y * (width * step + 1) + 1:(y + 1) * (width * step + 1)])
        for i in range(len(line)):
            left, up = line[i - step] if i >= step else 0, previous[i]
            corner = previous[i - step] if i >= step else 0
            if kind == 1:
                guess = left
            elif kind == 2:
                guess = up
            elif kind == 3:
                guess = (left + up) // 2
            elif kind == 4:
                estimate = left + up - corner
                guess = min((left, up, corner), key=lambda v: abs(estimate - v))
            else:
                guess = 0
            line[i] = (line[i] + guess) & 255
        rows.append(bytes(line))
        previous = line
    dtype = np.uint8 if bits == 8 else np.dtype(">u2")
    picture = np.frombuffer(b"".join(rows), dtype).reshape(height, width, channels)
    return picture.astype(np.uint8 if bits == 8 else np.uint16)


def parse_json_lines(done):
    return [json.loads(line) for line in done.stdout.decode().splitlines()]
