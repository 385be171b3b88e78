"""Pictures: every depth and colour type in, the same out; bombs and liars refused."""
import subprocess
import unittest

import numpy as np

from support import ADDRESS_LIMIT, CENOTE, INPUT, OUTPUT, REFUSED, USAGE, ToolTest, cenote, png_bytes, pool2d, read_png, write_png


def picture(height, width, channels, dtype, seed=2):
    return np.random.RandomState(seed).randint(0, np.iinfo(dtype).max + 1, (height, width, channels)).astype(dtype)


def pooled(x, op, kernel, stride=None):
    planes = np.moveaxis(x.astype("f4"), -1, 0)
    values = np.moveaxis(pool2d(planes, op, kernel, stride)[0], 0, -1)
    return np.rint(values).astype(x.dtype)


class Pictures(ToolTest):
    def test_depths_and_colours(self):
        for dtype in [np.uint8, np.uint16]:
            for channels in [1, 2, 3, 4]:
                for op in ["max", "avg"]:
                    with self.subTest(dtype=dtype, channels=channels, op=op):
                        x = picture(9, 10, channels, dtype)
                        write_png(self.dir / "x.png", x)
                        cenote("pool", self.dir / "x.png", self.dir / "y.png", "--op", op, "--kernel", 3, "--stride", 2)
                        y = read_png(self.dir / "y.png")
                        self.assertEqual(y.dtype, x.dtype)
                        np.testing.assert_array_equal(y, pooled(x, op, 3, 2))

    def test_interlaced(self):
        x = picture(13, 11, 3, np.uint8)
        write_png(self.dir / "x.png", x, interlaced=True)
        cenote("pool", self.dir / "x.png", self.dir / "y.png", "--op", "max", "--kernel", 2)
        np.testing.assert_array_equal(read_png(self.dir / "y.png"), pooled(x, "max", 2))

    def test_palette(self):
        colours = np.array([[1, 2, 3], [40, 50, 60], [200, 10, 90]], np.uint8)
        chosen = np.random.RandomState(1).randint(0, 3, (4, 6)).astype(np.uint8)
        raw = b"".join(b"\0" + row.tobytes() for row in chosen)
        (self.dir / "x.png").write_bytes(png_bytes(6, 4, 8, 3, raw, colours.tobytes()))
        cenote("pool", self.dir / "x.png", self.dir / "y.png", "--op", "max", "--kernel", 2)
        np.testing.assert_array_equal(read_png(self.dir / "y.png"), pooled(colours[chosen], "max", 2))

    def test_narrow_greys(self):
        for bits in [1, 2, 4]:
            values = np.random.RandomState(bits).randint(0, 2**bits, (4, 8))
            raw = b""
            for row in values:
                joined = int("".join(format(v, f"0{bits}b") for v in row), 2)
                raw += b"\0" + joined.to_bytes(bits, "big")
            (self.dir / "x.png").write_bytes(png_bytes(8, 4, bits, 0, raw))
            cenote("pool", self.dir / "x.png", self.dir / "y.png", "--op", "max", "--kernel", 2)
            wide = (values * (255 // (2**bits - 1))).astype(np.uint8)[..., None]
            np.testing.assert_array_equal(read_png(self.dir / "y.png"), pooled(wide, "max", 2))

    def test_between_formats(self):
        x = picture(6, 8, 3, np.uint8)
        write_png(self.dir / "x.png", x)
        cenote("pool", self.dir / "x.png", self.dir / "y.npy", "--op", "avg", "--kernel", 2, "--memory", "100")
        y = np.load(self.dir / "y.npy")
        self.assertEqual((y.shape, y.dtype), ((3, 4, 3), np.float32))
        np.testing.assert_array_equal(y, np.moveaxis(pool2d(np.moveaxis(x.astype("f4"), -1, 0), "avg", 2)[0], 0, -1))
        np.save(self.dir / "grey.npy", x[..., 0])
        cenote("pool", self.dir / "grey.npy", self.dir / "grey.png", "--op", "max", "--kernel", 2)
        np.testing.assert_array_equal(read_png(self.dir / "grey.png")[..., 0], pooled(x[..., :1], "max", 2)[..., 0])
        np.save(self.dir / "deep.npy", np.array([[70000.0, -3.0], [1.5, 2.5]], "f4"))
        cenote("pool", self.dir / "deep.npy", self.dir / "deep.png", "--op", "max", "--kernel", 1, "--bits", 16)
        np.testing.assert_array_equal(read_png(self.dir / "deep.png")[..., 0], [[65535, 0], [2, 2]])
        np.save(self.dir / "many.npy", np.zeros((5, 4, 4), "f4"))
        self.refuses(OUTPUT, "pool", self.dir / "many.npy", self.dir / "many.png", "--op", "max", "--kernel", 2, says=["many.png", "[5, 2, 2]", "nhwc"])
        np.save(self.dir / "one.npy", x[None, ..., 0])
        cenote("pool", self.dir / "one.npy", self.dir / "one.png", "--op", "max", "--kernel", 2)
        self.assertEqual((self.dir / "one.png").read_bytes(), (self.dir / "grey.png").read_bytes())
        np.save(self.dir / "hwc.npy", x)
        cenote("pool", self.dir / "hwc.npy", self.dir / "hwc.png", "--op", "max", "--kernel", 2, "--layout", "nhwc")
        np.testing.assert_array_equal(read_png(self.dir / "hwc.png"), pooled(x, "max", 2))

    def test_rows_of_a_picture_in_pieces(self):
        x = picture(64, 48, 4, np.uint16)
        write_png(self.dir / "x.png", x)
        for memory in ["1G", "4K", "1"]:
            cenote("pool", self.dir / "x.png", self.dir / "y.png", "--op", "max", "--kernel", 3, "--stride", 2, "--memory", memory)
            np.testing.assert_array_equal(read_png(self.dir / "y.png"), pooled(x, "max", 3, 2))

    def test_directory(self):
        (self.dir / "in").mkdir()
        pictures = {f"{name}.png": picture(6, 6, 3, np.uint8, seed) for seed, name in enumerate("abc")}
        for name, x in pictures.items():
            write_png(self.dir / "in" / name, x)
        (self.dir / "in" / "notes.txt").write_text("not a picture")
        cenote("pool", self.dir / "in", self.dir / "out", "--op", "avg", "--kernel", 2, "--indices", self.dir / "i", code=USAGE)
        cenote("pool", self.dir / "in", self.dir / "out", "--op", "max", "--kernel", 2, "--indices", self.dir / "i")
        self.assertEqual(self.listing(self.dir / "out"), sorted(pictures))
        self.assertEqual(self.listing(self.dir / "i"), ["a.npy", "b.npy", "c.npy"])
        for name, x in pictures.items():
            np.testing.assert_array_equal(read_png(self.dir / "out" / name), pooled(x, "max", 2))
        cenote("pool", self.dir / "in" / "a.png", self.dir / "in" / "b.png", self.dir / "two", "--op", "max", "--kernel", 3)
        self.assertEqual(self.listing(self.dir / "two"), ["a.png", "b.png"])
        self.refuses(USAGE, "pool", self.dir / "in" / "a.png", self.dir / "out" / "a.png", self.dir / "three", "--op", "max", "--kernel", 3,
                     says=["a.png", "both"])
        self.refuses(USAGE, "pool", self.dir / "in" / "a.png", self.dir / "in" / "b.png", self.dir / "c.png", "--op", "max", "--kernel", 3,
                     says=["c.png", "directory"])


class Hostile(ToolTest):
    def refuse(self, data, says):
        (self.dir / "bad.png").write_bytes(data)
        done = subprocess.run([*ADDRESS_LIMIT, CENOTE, "pool", self.dir / "bad.png", self.dir / "y.png", "--op", "max", "--kernel", "2",
                               "--threads", "1"], capture_output=True, timeout=20)
        self.assertEqual(done.returncode, INPUT, done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        for word in ["bad.png", *says]:
            self.assertIn(word, done.stderr.decode())
        self.assertFalse((self.dir / "y.png").exists())

    def test_claims(self):
        self.refuse(png_bytes(2**31 - 1, 2**31 - 1, 16, 6, b"\0"), ["more pixels than any .png"])
        self.refuse(png_bytes(60000, 60000, 8, 6, b"\0"), ["60000 x 60000"])
        self.refuse(png_bytes(5000, 5000, 8, 6, b"\0"), ["5000 x 5000", "more than a file of"])
        self.refuse(png_bytes(60000, 60000, 8, 6, b"\0" * 100000, interlaced=True), ["60000 x 60000"])
        self.refuse(png_bytes(0, 5, 8, 0, b"\0"), [])
        self.refuse(png_bytes(5, 5, 7, 0, b"\0"), [])

    def test_cut_and_damaged(self):
        x = picture(8, 8, 3, np.uint8)
        write_png(self.dir / "x.png", x)
        whole = (self.dir / "x.png").read_bytes()
        for length in [8, 20, 33, 60, len(whole) // 2]:
            self.refuse(whole[:length], ["ends early"])
        for length in [len(whole) - 1, len(whole) - 6, len(whole) - 12]:  # all pixels are there, the end is not
            self.refuse(whole[:length], ["ends early"])
        self.refuse(whole + b"more", ["goes on after the end of its picture"])
        damaged = bytearray(whole)
        damaged[60] ^= 0xff
        self.refuse(bytes(damaged), ["not a valid .png"])

    def test_a_picture_has_two_axes(self):
        write_png(self.dir / "x.png", picture(8, 8, 3, np.uint8))
        self.refuses(REFUSED, "pool", self.dir / "x.png", self.dir / "y.png", "--op", "max_pool3d", "--kernel", 2, says=["2 spatial axes"])


if __name__ == "__main__":
    unittest.main()
