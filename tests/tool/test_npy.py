"""numpy reads what the tool writes, the tool reads what numpy writes: every dtype, order, rank and format version."""
import struct
import subprocess
import unittest

import numpy as np

from support import ADDRESS_LIMIT, INPUT, OK, REFUSED, USAGE, CENOTE, ToolTest, cenote, numbers, pool2d

DTYPES = ["f4", "f8", "f2", "i1", "u1", "i2", "i4", "i8"]


def bf16_bits(values):
    return (np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2")


class RoundTrips(ToolTest):
    def pool(self, x, *options):
        np.save(self.dir / "x.npy", x)
        cenote("pool", self.dir / "x.npy", self.dir / "y.npy", *options)
        return np.load(self.dir / "y.npy")

    def test_every_dtype_and_order(self):
        for dtype in DTYPES:
            for order in "CF":
                for byte_order in "<>":
                    with self.subTest(dtype=dtype, order=order, byte_order=byte_order):
                        x = np.array(numbers((2, 3, 7, 9), byte_order + dtype), order=order)
                        y = self.pool(x, "--op", "max", "--kernel", 3, "--stride", 2, "--padding", 1)
                        self.assertEqual(y.dtype, np.dtype("<" + dtype))
                        self.assertEqual(y.flags.f_contiguous, order == "F")
                        np.testing.assert_array_equal(y, pool2d(x, "max", 3, 2, 1)[0])

    def test_identity_keeps_every_bit(self):
        """A kernel of 1 is a copy: the bytes of any value come back, NaN and infinities too."""
        random = np.random.RandomState(3)
        for dtype in DTYPES + ["u2", "u4"]:
            for order in "CF":
                for shape in [(5,), (4, 5), (3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 4, 2)]:
                    with self.subTest(dtype=dtype, order=order, shape=shape):
                        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                        x = np.frombuffer(random.bytes(size), "<" + dtype).reshape(shape)
                        if dtype[0] == "f":
                            x = np.where(np.isnan(x), np.array(1.5, x.dtype), x)
                        x = np.array(x, order=order)
                        if dtype in ("u2", "u4"):  # index types: no pool computes in them
                            np.save(self.dir / "x.npy", x)
                            self.refuses(REFUSED, "pool", self.dir / "x.npy", self.dir / "y.npy", "--op", "max", "--kernel", 1,
                                         says=["x.npy", dtype.replace("u2", "u16").replace("u4", "u32")])
                        else:
                            y = self.pool(x, "--op", "max", "--kernel", 1)
                            self.assertEqual(y.tobytes("A"), x.tobytes("A"))
                            self.assertEqual(y.shape, x.shape)

    def test_bfloat16(self):
        x = numbers((3, 6, 6), "f4")
        for descr in ["<V2", "|V2"]:
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (3, 6, 6), }}\n".encode()
            (self.dir / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bf16_bits(x).tobytes())
            cenote("pool", self.dir / "x.npy", self.dir / "y.npy", "--op", "max", "--kernel", 2)
            y = np.load(self.dir / "y.npy")
            self.assertEqual(y.dtype, np.dtype("V2"))
            np.testing.assert_array_equal(y.view("<u2"), bf16_bits(pool2d(x, "max", 2)[0]))

    def test_format_versions(self):
        x = numbers((4, 6), "<f4")
        for version in [(1, 0), (2, 0), (3, 0)]:
            with self.subTest(version=version):
                with open(self.dir / "x.npy", "wb") as file:
                    np.lib.format.write_array(file, x, version=version)
                cenote("pool", self.dir / "x.npy", self.dir / "y.npy", "--op", "avg", "--kernel", 2)
                np.testing.assert_array_equal(np.load(self.dir / "y.npy"), pool2d(x, "avg", 2)[0])

    def test_indices_in_every_kind(self):
        x = numbers((2, 3, 8, 9), "f4")
        y, flat = pool2d(x, "max", 3, 2, 1)
        for kind, dtype in [("flat64", "<i8"), ("flat32", "<i4"), ("window", "|u1")]:
            for order in "CF":
                np.save(self.dir / "x.npy", np.array(x, order=order))
                cenote("pool", self.dir / "x.npy", self.dir / "y.npy", "--op", "max", "--kernel", 3, "--stride", 2, "--padding", 1,
                       "--indices", self.dir / "i.npy", "--index-kind", kind)
                indices = np.load(self.dir / "i.npy")
                self.assertEqual(indices.dtype, np.dtype(dtype))
                np.testing.assert_array_equal(np.load(self.dir / "y.npy"), y)
                if kind != "window":
                    np.testing.assert_array_equal(indices, flat)
                cenote("unpool", self.dir / "y.npy", self.dir / "z.npy", "--indices", self.dir / "i.npy", "--kernel", 3, "--stride", 2,
                       "--padding", 1, "--output-size", "8x9")
                expected = np.zeros_like(x)
                for plane in np.ndindex(2, 3):
                    expected[plane].reshape(-1)[flat[plane].reshape(-1)] = y[plane].reshape(-1)
                np.testing.assert_array_equal(np.load(self.dir / "z.npy"), expected)

    def test_layouts(self):
        x = numbers((2, 7, 8, 3), "f4")
        expected = np.moveaxis(pool2d(np.moveaxis(x, -1, 1), "max", 3, 2)[0], 1, -1)
        np.testing.assert_array_equal(self.pool(x, "--op", "max", "--kernel", 3, "--stride", 2, "--layout", "nhwc"), expected)
        np.testing.assert_array_equal(self.pool(x[0], "--op", "max", "--kernel", 3, "--stride", 2, "--layout", "hwc"), expected[0])

    def test_ranks(self):
        x = numbers((6,), "f4")
        np.testing.assert_array_equal(self.pool(x, "--op", "max", "--kernel", 2), x.reshape(3, 2).max(1))
        x = numbers((2, 6), "f4")
        np.testing.assert_array_equal(self.pool(x, "--op", "max", "--dims", 1, "--kernel", 2), x.reshape(2, 3, 2).max(2))
        x = numbers((4, 4, 4), "f4")
        np.testing.assert_array_equal(self.pool(x, "--op", "max_pool3d", "--kernel", 2), x.reshape(2, 2, 2, 2, 2, 2).max((1, 3, 5)))
        x = numbers((2, 3, 4, 4, 4), "f4")
        np.testing.assert_array_equal(self.pool(x, "--op", "max", "--kernel", 2), x.reshape(2, 3, 2, 2, 2, 2, 2, 2).max((3, 5, 7)))
        np.save(self.dir / "scalar.npy", np.float32(3))
        self.refuses(REFUSED, "pool", self.dir / "scalar.npy", self.dir / "y.npy", "--op", "max", "--kernel", 2, says=["scalar.npy"])

    def test_every_op(self):
        x = numbers((1, 2, 6, 6), "f8")
        np.testing.assert_array_equal(self.pool(x, "--op", "min", "--kernel", 2), -pool2d(-x, "max", 2)[0])
        np.testing.assert_allclose(self.pool(x, "--op", "sum", "--kernel", 2), 4 * pool2d(x, "avg", 2)[0])
        np.testing.assert_allclose(self.pool(x, "--op", "lp", "--kernel", 2), np.sqrt(4 * pool2d(x * x, "avg", 2)[0]))
        np.testing.assert_array_equal(self.pool(x, "--op", "adaptive-max", "--output-size", "3x2"),
                                      x.reshape(1, 2, 3, 2, 2, 3).max((3, 5)))
        np.testing.assert_allclose(self.pool(x, "--op", "adaptive-avg", "--output-size", "3xkeep"), x.reshape(1, 2, 3, 2, 6).mean(3))
        np.testing.assert_array_equal(self.pool(x, "--op", "global-max"), x.max((2, 3), keepdims=True))
        y = self.pool(x, "--op", "fractional", "--kernel", 2, "--output-size", 3, "--seed", 7)
        self.assertEqual(y.shape, (1, 2, 3, 3))
        np.testing.assert_array_equal(y, self.pool(x, "--op", "fractional", "--kernel", 2, "--output-ratio", 0.5, "--seed", 7))
        np.save(self.dir / "s.npy", np.array([[[0.3, 0.9], [0.3, 0.9]]]))
        x = np.arange(1.0, 99).reshape(1, 2, 7, 7)
        y = self.pool(x, "--op", "fractional", "--kernel", 2, "--output-size", 3, "--samples", self.dir / "s.npy")
        np.testing.assert_array_equal(y[0, 0] - 1, [[8, 11, 13], [22, 25, 27], [43, 46, 48]])
        np.testing.assert_allclose(self.pool(x, "--op", "avg", "--kernel", 2, "--divisor-override", 1),
                                   4 * pool2d(x, "avg", 2)[0])

    def test_pieces_change_nothing(self):
        """The same call cut into as many pieces as a tiny budget forces: bit for bit the same files."""
        cases = [["--op", "max", "--kernel", 3, "--stride", 2, "--padding", 1],
                 ["--op", "max", "--kernel", 3, "--stride", 1, "--padding", 1, "--dilation", 2],
                 ["--op", "max", "--kernel", 3, "--stride", 2, "--padding", 1, "--ceil-mode"],
                 ["--op", "avg", "--kernel", 3, "--stride", 2, "--padding", 1, "--ceil-mode"],
                 ["--op", "avg", "--kernel", "3x2", "--stride", "1x2", "--padding", "1:0,0:1", "--no-count-include-pad"],
                 ["--op", "avg", "--kernel", 4, "--stride", 3, "--padding", 2, "--ceil-mode"],
                 ["--op", "sum", "--kernel", 2, "--stride", 5], ["--op", "lp", "--kernel", 3, "--ceil-mode"],
                 ["--op", "min", "--kernel", 3, "--padding", "same", "--stride", 2],
                 ["--op", "adaptive-max", "--output-size", "7x5"], ["--op", "adaptive-avg", "--output-size", "6x4"],
                 ["--op", "global-avg"], ["--op", "fractional", "--kernel", 2, "--output-size", 4]]
        x = np.random.RandomState(5).randn(2, 3, 18, 20).astype("f4")
        for case in cases:
            with_indices = case[1] in ("max", "min", "adaptive-max", "fractional")
            for order, layout, array in [("C", "nchw", x), ("F", "nchw", x), ("C", "nhwc", np.moveaxis(x, 1, -1))]:
                np.save(self.dir / "x.npy", np.array(array, order=order))
                results = []
                for memory in ["1G", "8K", "1K", "1"]:
                    indices = ["--indices", self.dir / "i.npy"] if with_indices else []
                    done = cenote("pool", self.dir / "x.npy", self.dir / "y.npy", *case, "--layout", layout, "--memory", memory, *indices, "--json")
                    results.append([(self.dir / name).read_bytes() for name in ["y.npy"] + (["i.npy"] if with_indices else [])])
                for memory, result in zip(["8K", "1K", "1"], results[1:]):
                    with self.subTest(case=case, order=order, layout=layout, memory=memory):
                        self.assertEqual(result, results[0])

    def test_unpool_pieces_change_nothing(self):
        x = np.random.RandomState(6).randn(3, 4, 12, 12).astype("f4")
        np.save(self.dir / "x.npy", x)
        cenote("pool", self.dir / "x.npy", self.dir / "y.npy", "--op", "max", "--kernel", 2, "--indices", self.dir / "i.npy")
        results = []
        for memory in ["1G", "1"]:
            cenote("unpool", self.dir / "y.npy", self.dir / "z.npy", "--indices", self.dir / "i.npy", "--kernel", 2, "--memory", memory)
            results.append((self.dir / "z.npy").read_bytes())
        self.assertEqual(results[0], results[1])

    def test_standard_streams(self):
        x = numbers((4, 6), "f4")
        np.save(self.dir / "x.npy", x)
        with subprocess.Popen(["cat", self.dir / "x.npy"], stdout=subprocess.PIPE) as source:
            done = cenote("pool", "-", "-", "--op", "max", "--kernel", 2, stdin=source.stdout)
        (self.dir / "y.npy").write_bytes(done.stdout)
        np.testing.assert_array_equal(np.load(self.dir / "y.npy"), pool2d(x, "max", 2)[0])
        self.assertEqual(done.stderr, b"")


class Hostile(ToolTest):
    """Files that lie. Each is refused in one line, at once, within little memory."""

    def refuse_header(self, text, says, version=b"\x01\x00", data=b"\0" * 64):
        length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
        (self.dir / "bad.npy").write_bytes(b"\x93NUMPY" + version + length + text + data)
        # 400 MB of address space: enough to run, not enough to allocate what these headers claim.
        limited = [*ADDRESS_LIMIT, CENOTE, "pool", self.dir / "bad.npy", self.dir / "y.npy", "--op", "max", "--kernel", "2",
                   "--threads", "1"]
        done = subprocess.run(limited, capture_output=True, timeout=20)
        self.assertEqual(done.returncode, INPUT, done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        for word in ["bad.npy", *says]:
            self.assertIn(word, done.stderr.decode())
        self.assertFalse((self.dir / "y.npy").exists())

    def header(self, shape, descr="'<f4'", order="False"):
        return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()

    def test_shapes(self):
        self.refuse_header(self.header("(100000, 100000)"), ["40000000000 bytes", "the file has 64"])
        self.refuse_header(self.header("(9223372036854775807, 9223372036854775807)"), ["more bytes", "63 bits"])
        self.refuse_header(self.header("(0, 4611686018427387904, 4)"), ["more bytes", "63 bits"])
        self.refuse_header(self.header("(99999999999999999999999,)"), ["63 bits"])
        self.refuse_header(self.header("(-4, 4)"), ["negative"])
        self.refuse_header(self.header("(1, 1, 1, 1, 1, 1)"), ["more than 5 dimensions"])
        self.refuse_header(self.header("(4.5,)"), ["malformed"])
        self.refuse_header(self.header("[4]"), ["malformed"])

    def test_headers(self):
        self.refuse_header(self.header("(4,)", "'<c8'"), ["'<c8'", "f2 f4 f8"])
        self.refuse_header(self.header("(4,)", "'|b1'"), ["'|b1'"])
        self.refuse_header(self.header("(4,)", "'|O'"), ["'|O'"])
        self.refuse_header(self.header("(4,)", "[('a', '<f4')]"), ["structured"])
        self.refuse_header(self.header("(4,)", order="0"), ["fortran_order"])
        self.refuse_header(b"{'descr': '<f4', 'shape': (4,), }", ["lacks fortran_order"])
        self.refuse_header(self.header("(4,)")[:-1], ["56 bytes is too short"])
        self.refuse_header(self.header("(4,)")[:20], ["20 bytes is too short"])
        self.refuse_header(self.header("(4,)") + b"import os", ["continues"])
        self.refuse_header(self.header("(4,)").replace(b"'shape'", b"'shapes'"), ["unexpected"])
        self.refuse_header(b"", ["0 bytes is too short"])
        self.refuse_header(self.header("(4,)"), ["version 4.0"], version=b"\x04\x00")
        self.refuse_header(b" " * 20000, ["20000"], version=b"\x02\x00")

    def test_cut_short(self):
        np.save(self.dir / "whole.npy", numbers((4, 4), "f4"))
        whole = (self.dir / "whole.npy").read_bytes()
        for length in [0, 1, 5, 6, 8, 9, 10, 11, 64, 127, 128, len(whole) - 1]:
            with self.subTest(length=length):
                (self.dir / "cut.npy").write_bytes(whole[:length])
                self.refuses(INPUT, "pool", self.dir / "cut.npy", self.dir / "y.npy", "--op", "max", "--kernel", 2, says=["cut.npy"])
        cenote("pool", self.dir / "whole.npy", self.dir / "y.npy", "--op", "max", "--kernel", 2, code=OK)
        (self.dir / "two.npy").write_bytes(whole + whole)  # as numpy.save writes two arrays through one handle
        self.refuses(INPUT, "pool", self.dir / "two.npy", self.dir / "z.npy", "--op", "max", "--kernel", 2,
                     says=["two.npy", "goes on after the array of shape [4, 4]"])

    def test_indices_are_not_trusted(self):
        np.save(self.dir / "y.npy", numbers((2, 2), "f4"))
        for bad in [-1, 16, 2**62]:
            np.save(self.dir / "i.npy", np.array([[5, 7], [13, bad]], "i8"))
            self.refuses(REFUSED, "unpool", self.dir / "y.npy", self.dir / "z.npy", "--indices", self.dir / "i.npy", "--kernel", 2,
                         says=["i.npy", f"index {bad} at [1, 1]", "16 cells are 0 to 15"])
        # In pieces too the place is the file's.
        np.save(self.dir / "y.npy", numbers((3, 2, 2, 2), "f4"))
        indices = np.full((3, 2, 2, 2), 5, "i8")
        indices[2, 1, 0, 1] = 16
        for order in "CF":
            np.save(self.dir / "y.npy", np.array(numbers((3, 2, 2, 2), "f4"), order=order))
            np.save(self.dir / "i.npy", np.array(indices, order=order))
            self.refuses(REFUSED, "unpool", self.dir / "y.npy", self.dir / "z.npy", "--indices", self.dir / "i.npy", "--kernel", 2, "--memory", 1,
                         says=["i.npy: index 16 at [2, 1, 0, 1]", "0 to 15"])
        np.save(self.dir / "y.npy", numbers((2, 2), "f4"))
        np.save(self.dir / "i.npy", np.array([[0, 1], [2, 4]], "u1"))
        self.refuses(REFUSED, "unpool", self.dir / "y.npy", self.dir / "z.npy", "--indices", self.dir / "i.npy", "--kernel", 2,
                     says=["i.npy: tap 4 at [1, 1]"])
        np.save(self.dir / "i.npy", np.array([[5, 7, 13]], "i8"))
        self.refuses(REFUSED, "unpool", self.dir / "y.npy", self.dir / "z.npy", "--indices", self.dir / "i.npy", "--kernel", 2, says=["i.npy", "[1, 3]"])
        np.save(self.dir / "i.npy", np.array([[0.5, 7], [13, 15]], "f4"))
        self.refuses(REFUSED, "unpool", self.dir / "y.npy", self.dir / "z.npy", "--indices", self.dir / "i.npy", "--kernel", 2, says=["i.npy", "f32"])
        np.save(self.dir / "i.npy", np.array([[5, 7], [13, 15]], "i4"))
        self.refuses(USAGE, "unpool", self.dir / "y.npy", self.dir / "z.npy", "--indices", self.dir / "i.npy", "--kernel", 2, "--index-kind", "flat64",
                     says=["flat32"])
        self.assertNotIn("z.npy", self.listing())


if __name__ == "__main__":
    unittest.main()
