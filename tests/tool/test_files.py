"""The disk as it really is: full, read-only, forbidden, interrupted. A result is whole or not there."""
import os
import pathlib
import resource
import signal
import subprocess
import time
import unittest

import numpy as np

from support import (CENOTE, INPUT, OUTPUT, SANITIZED, USAGE, ToolTest, cenote, numbers, png_bytes, pool2d, read_png, seconds, write_png)


def sparse_npy(path, shape, dtype="<f4"):
    """An array of zeros that takes no disk: only the header is written."""
    header = np.lib.format.header_data_from_array_1_0(np.zeros(0, dtype))
    header["shape"] = shape
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        offset = file.tell()
        file.truncate(offset + int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
    return offset


class Outputs(ToolTest):
    def setUp(self):
        super().setUp()
        self.x = numbers((1, 4, 64, 64), "f4")
        np.save(self.dir / "x.npy", self.x)
        self.call = ["pool", self.dir / "x.npy"]
        self.op = ["--op", "max", "--kernel", 2]

    def test_replaces_and_never_mixes(self):
        (self.dir / "y.npy").write_bytes(b"old")
        cenote(*self.call, self.dir / "y.npy", *self.op)
        np.testing.assert_array_equal(np.load(self.dir / "y.npy"), pool2d(self.x, "max", 2)[0])
        cenote(*self.call, self.dir / "x.npy", *self.op)  # onto itself
        np.testing.assert_array_equal(np.load(self.dir / "x.npy"), pool2d(self.x, "max", 2)[0])
        self.assertEqual(self.listing(), ["x.npy", "y.npy"])
        umask = os.umask(0)
        os.umask(umask)
        self.assertEqual((self.dir / "y.npy").stat().st_mode & 0o777, 0o666 & ~umask)

    def test_no_result_replaces_another_or_what_it_needs(self):
        """Names are compared as files, however they are spelt."""
        before = (self.dir / "x.npy").read_bytes()
        for name in ["o.npy", "./o.npy", f"../{self.dir.name}/o.npy"]:
            self.refuses(USAGE, "pool", "x.npy", "o.npy", "--indices", name, *self.op, cwd=self.dir, says=["output's name too"])
        self.refuses(USAGE, "pool", "x.npy", "o.npy", "--indices", "./x.npy", *self.op, cwd=self.dir, says=["is the input"])
        self.refuses(USAGE, "explain", "x.npy", "--op", "max", "--kernel", 2, "--crop", "4x4+0+0", "--svg", "./x.npy", cwd=self.dir,
                     says=["is the input"])
        self.assertEqual((self.dir / "x.npy").read_bytes(), before)
        self.assertEqual(self.listing(), ["x.npy"])
        cenote("pool", "x.npy", "o.npy", "--indices", "i.npy", *self.op, cwd=self.dir)
        before = (self.dir / "i.npy").read_bytes()
        self.refuses(USAGE, "unpool", "o.npy", "./i.npy", "--indices", "i.npy", "--kernel", 2, cwd=self.dir, says=["replace the indices"])
        self.assertEqual((self.dir / "i.npy").read_bytes(), before)

    def test_links_are_followed(self):
        """A link stays a link; what it names is replaced, or made."""
        (self.dir / "real").mkdir()
        (self.dir / "real" / "old.npy").write_bytes(b"old")
        (self.dir / "link.npy").symlink_to("real/old.npy")
        (self.dir / "dangling.npy").symlink_to("link2.npy")
        (self.dir / "link2.npy").symlink_to(self.dir / "real" / "new.npy")
        for name, target in [("link.npy", "old.npy"), ("dangling.npy", "new.npy")]:
            cenote(*self.call, self.dir / name, *self.op)
            self.assertTrue((self.dir / name).is_symlink())
            self.assertFalse((self.dir / "real" / target).is_symlink())
            np.testing.assert_array_equal(np.load(self.dir / "real" / target), pool2d(self.x, "max", 2)[0])
        self.assertEqual(self.listing(self.dir / "real"), ["new.npy", "old.npy"])
        (self.dir / "a.npy").symlink_to("b.npy")
        (self.dir / "b.npy").symlink_to("a.npy")
        self.refuses(OUTPUT, *self.call, self.dir / "a.npy", *self.op, says=["a.npy", "symbolic links"])

    def test_permissions_stay(self):
        (self.dir / "private.npy").write_bytes(b"old")
        (self.dir / "private.npy").chmod(0o600)
        cenote(*self.call, self.dir / "private.npy", *self.op)
        self.assertEqual((self.dir / "private.npy").stat().st_mode & 0o777, 0o600)

    def test_larger_than_the_disk(self):
        """Known before the work, with the numbers; nothing is left behind."""
        (self.dir / "y.npy").write_bytes(b"old")
        for extra in [[], ["--indices", self.dir / "i.npy"]]:
            self.refuses(OUTPUT, *self.call, self.dir / "y.npy", "--op", "adaptive-max", "--output-size", "1000000x100000000", *extra,
                         preexec_fn=seconds(5), says=["y.npy", "No space left", "PiB needed", "free"])
        self.refuses(OUTPUT, *self.call, self.dir / "y.png", "--layout", "nhwc", "--op", "adaptive-max", "--output-size", "200000x200000",
                     preexec_fn=seconds(5), says=["y.png"])
        np.save(self.dir / "v.npy", np.ones((1, 1), "f4"))
        np.save(self.dir / "w.npy", np.zeros((1, 1), "i8"))
        self.refuses(OUTPUT, "unpool", self.dir / "v.npy", self.dir / "z.npy", "--indices", self.dir / "w.npy", "--kernel", 2**24,
                     preexec_fn=seconds(5), says=["z.npy", "1.00 PiB needed"])
        np.save(self.dir / "p.npy", numbers((4, 4), "u1"))
        self.refuses(OUTPUT, "pool", self.dir / "p.npy", self.dir / "p.png", "--op", "adaptive-max", "--output-size", "200000x200000",
                     preexec_fn=seconds(5), says=["p.png", "200000 x 200000 pixels", "8 GiB"])
        self.assertEqual((self.dir / "y.npy").read_bytes(), b"old")
        self.assertEqual(self.listing(), ["p.npy", "v.npy", "w.npy", "x.npy", "y.npy"])

    def test_full_disk(self):
        """A limit on the size of files is met like the end of the disk: in the middle of a write."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        (self.dir / "y.npy").write_bytes(b"old")
        text = self.refuses(OUTPUT, *self.call, self.dir / "y.npy", *self.op, preexec_fn=limit, says=["y.npy", "cannot be written"])
        self.assertIn("too large", text.lower())
        self.assertEqual((self.dir / "y.npy").read_bytes(), b"old")
        self.refuses(OUTPUT, *self.call, self.dir / "y.npy", "--indices", self.dir / "i.npy", *self.op, preexec_fn=limit)
        self.refuses(OUTPUT, *self.call, "/dev/full", *self.op, says=["/dev/full", "No space"])
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())
        self.assertEqual(self.listing(), ["x.npy", "y.npy"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount")
    def test_small_file_system(self):
        small = self.dir / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", small], capture_output=True).returncode != 0:
            self.skipTest("mounting is not allowed here")
        try:
            self.refuses(OUTPUT, *self.call, small / "y.npy", *self.op, says=["y.npy", "No space", "16.1 KiB needed", "16.0 KiB free"])
            # Each of two results would fit.
            self.refuses(OUTPUT, *self.call, small / "y.npy", "--indices", small / "i.npy", "--op", "max", "--kernel", 3,
                         says=["No space"])
            self.assertEqual(self.listing(small), [])
        finally:
            subprocess.run(["umount", small], check=True)

    def test_no_permission(self):
        """As a user without rights where the test itself has them all, else as it is."""
        closed = self.dir / "closed"
        closed.mkdir()
        closed.chmod(0o555)
        self.dir.chmod(0o755)
        (self.dir / "x.npy").chmod(0o644)
        as_nobody = dict(user=65534, group=65534) if os.geteuid() == 0 else {}
        if not self.reachable(as_nobody):
            self.skipTest("another user cannot run the tool where it was built")
        self.refuses(OUTPUT, *self.call, closed / "y.npy", *self.op, says=["y.npy", "Permission denied"], **as_nobody)
        (self.dir / "x.npy").chmod(0o000)
        self.refuses(INPUT, *self.call, self.dir / "y.npy", *self.op, says=["x.npy", "Permission denied"], **as_nobody)
        # A file nobody may write is not replaced by renaming another over it, even where the directory would allow that.
        (self.dir / "x.npy").chmod(0o644)
        (self.dir / "open").mkdir()
        (self.dir / "open").chmod(0o777)
        (self.dir / "open" / "y.npy").write_bytes(b"old")
        (self.dir / "open" / "y.npy").chmod(0o444)
        self.refuses(OUTPUT, *self.call, self.dir / "open" / "y.npy", *self.op, says=["y.npy", "Permission denied"], **as_nobody)
        self.assertEqual((self.dir / "open" / "y.npy").read_bytes(), b"old")

    @staticmethod
    def reachable(options):
        try:
            return subprocess.run([CENOTE, "--version"], capture_output=True, **options).returncode == 0
        except PermissionError:
            return False

    def test_places_that_are_none(self):
        self.refuses(OUTPUT, *self.call, self.dir / "nowhere" / "y.npy", *self.op, says=["nowhere", "No such file"])
        self.refuses(OUTPUT, *self.call, self.dir / "x.npy" / "y.npy", *self.op, says=["Not a directory"])
        self.refuses(INPUT, "pool", self.dir / "missing.npy", self.dir / "y.npy", *self.op, says=["missing.npy", "No such file"])
        (self.dir / "empty").mkdir()
        self.refuses(INPUT, "pool", self.dir / "empty", self.dir / "y", *self.op, says=["empty", "no .npy or .png"])
        (self.dir / "text.npy").write_text("hello")
        self.refuses(INPUT, "pool", self.dir / "text.npy", self.dir / "y.npy", *self.op, says=["text.npy", "neither"])
        self.assertEqual(self.listing(), ["empty", "text.npy", "x.npy"])

    def test_closed_pipe(self):
        with subprocess.Popen([CENOTE, *map(str, self.call), "-", "--op", "max", "--kernel", "1"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.close()
            text = process.stderr.read().decode()
            self.assertEqual(process.wait(60), OUTPUT, text)
        self.assertIn("standard output", text)


class Several(ToolTest):
    def test_stops_at_the_first_that_fails(self):
        """In the order of the names; what is done stays, what comes after is not begun."""
        (self.dir / "in").mkdir()
        for name in ["a", "c", "d"]:
            np.save(self.dir / "in" / f"{name}.npy", numbers((4, 4), "f4"))
        (self.dir / "in" / "b.npy").write_bytes(b"no array")
        (self.dir / "in" / "notes.txt").write_text("not an array, and not looked at")
        (self.dir / "in" / "deeper").mkdir()
        np.save(self.dir / "in" / "deeper" / "e.npy", numbers((4, 4), "f4"))
        self.refuses(INPUT, "pool", self.dir / "in", self.dir / "out", "--op", "max", "--kernel", 2, says=["b.npy"])
        self.assertEqual(self.listing(self.dir / "out"), ["a.npy"])
        (self.dir / "in" / "b.npy").unlink()
        cenote("pool", self.dir / "in", self.dir / "out", "--op", "max", "--kernel", 2)
        self.assertEqual(self.listing(self.dir / "out"), ["a.npy", "c.npy", "d.npy"])
        cenote("pool", self.dir / "in" / "a.npy", f"{self.dir}/new/", "--op", "max", "--kernel", 2, "--indices", f"{self.dir}/where")
        self.assertEqual((self.listing(self.dir / "new"), self.listing(self.dir / "where")), (["a.npy"], ["a.npy"]))
        self.refuses(USAGE, "pool", self.dir / "in", self.dir / "out", "--op", "max", "--kernel", 2, "--bits", 16, says=["--bits"])

    def test_every_result_has_its_own_name(self):
        (self.dir / "in").mkdir()
        np.save(self.dir / "in" / "a.npy", numbers((4, 4), "f4"))
        write_png(self.dir / "in" / "a.png", np.zeros((4, 4, 1), np.uint8))
        write_png(self.dir / "in" / "b.png", np.zeros((4, 4, 1), np.uint8))
        op = ["--op", "max", "--kernel", 2]
        # Both a.npy and a.png would have indices in a.npy.
        self.refuses(USAGE, "pool", self.dir / "in", self.dir / "out", *op, "--indices", self.dir / "i", says=["a.npy", "a.png", "both become"])
        # The indices of a.png are a.npy, which is yet to be read.
        self.refuses(USAGE, "pool", self.dir / "in" / "a.png", self.dir / "in" / "a.npy", self.dir / "out", *op, "--indices", self.dir / "in")
        self.refuses(USAGE, "pool", self.dir / "in" / "b.png", self.dir / "in" / "a.png", "-", *op, says=["-", "directory"])
        self.refuses(USAGE, "pool", self.dir / "in", self.dir / "out", "--op", "avg", "--kernel", 2, "--indices", self.dir / "i", says=["--indices"])
        self.assertEqual(self.listing(), ["in"])
        self.assertEqual(self.listing(self.dir / "in"), ["a.npy", "a.png", "b.png"])


class Endless(ToolTest):
    """Streams that never end: refused by their first bytes, or read as far as these say and no further."""

    OP = ["--op", "max", "--kernel", "2"]

    def after(self, start):
        """A pipe that brings these bytes, then zeros for ever."""
        (self.dir / "start").write_bytes(start)
        source = subprocess.Popen(["cat", self.dir / "start", "/dev/zero"], stdout=subprocess.PIPE)
        self.addCleanup(source.wait)
        self.addCleanup(source.stdout.close)
        return source.stdout

    def test_zeros(self):
        for name in ["/dev/zero", "/dev/urandom"]:
            self.refuses(INPUT, "pool", name, self.dir / "y.npy", *self.OP, preexec_fn=seconds(5), says=[name, "neither"])
        self.refuses(INPUT, "pool", "-", self.dir / "y.npy", *self.OP, stdin=self.after(b""), preexec_fn=seconds(5),
                     says=["standard input", "neither"])
        self.refuses(INPUT, "explain", "/dev/zero", *self.OP, preexec_fn=seconds(5), says=["/dev/zero"])

    def test_an_array_that_goes_on(self):
        np.save(self.dir / "x.npy", numbers((4, 4), "f4"))
        whole = (self.dir / "x.npy").read_bytes()
        self.refuses(INPUT, "pool", "-", self.dir / "y.npy", *self.OP, stdin=self.after(whole), preexec_fn=seconds(5),
                     says=["standard input", "goes on after the array of shape [4, 4]"])
        self.refuses(INPUT, "pool", "-", self.dir / "y.npy", *self.OP, stdin=self.after(whole[:8] + b"\xff\x10"), preexec_fn=seconds(5),
                     says=["standard input"])
        claim = whole[:128].replace(b"(4, 4), }              ", b"(40000000, 400000), }  ")
        self.refuses(OUTPUT, "pool", "-", self.dir / "y.npy", *self.OP, stdin=self.after(claim), preexec_fn=seconds(5),
                     says=["temporary copy of standard input", "TiB needed"])

    def test_a_picture_that_goes_on(self):
        write_png(self.dir / "x.png", np.zeros((8, 8, 3), np.uint8))
        whole = (self.dir / "x.png").read_bytes()
        self.refuses(INPUT, "pool", "-", self.dir / "y.png", *self.OP, stdin=self.after(whole), preexec_fn=seconds(10),
                     says=["standard input", "goes on after the end of its picture"])
        self.refuses(INPUT, "pool", "-", self.dir / "y.png", *self.OP, stdin=self.after(whole[:40]), preexec_fn=seconds(10), says=["standard input"])
        bomb = png_bytes(60000, 60000, 16, 6, b"")
        self.refuses(INPUT, "pool", "-", self.dir / "y.png", *self.OP, stdin=self.after(bomb), preexec_fn=seconds(5), says=["60000 x 60000"])
        with open(self.dir / "x.png", "rb") as file:
            with subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as pipe:
                cenote("pool", "-", self.dir / "y.png", *self.OP, stdin=pipe.stdout)
        self.assertEqual(read_png(self.dir / "y.png").shape, (4, 4, 3))


class Interrupted(ToolTest):
    def start(self, *options, **more):
        sparse_npy(self.dir / "big.npy", (64, 1, 4096, 2048))  # 2 GiB
        process = subprocess.Popen([CENOTE, "pool", self.dir / "big.npy", self.dir / "y.npy", "--op", "max", "--kernel", "3", "--stride", "1",
                                    "--padding", "1", "--memory", "16M", "--indices", self.dir / "i.npy", *options], stderr=subprocess.PIPE, **more)
        time.sleep(0.7)
        self.assertIsNone(process.poll(), "the run was over before it could be interrupted")
        return process

    def test_signals_leave_nothing(self):
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]:
            with self.subTest(signal=number):
                (self.dir / "y.npy").write_bytes(b"old")
                process = self.start()
                process.send_signal(number)
                process.wait(30)
                process.stderr.close()
                self.assertEqual(process.returncode, -number)
                self.assertEqual(self.listing(), ["big.npy", "y.npy"])
                self.assertEqual((self.dir / "y.npy").read_bytes(), b"old")

    @unittest.skipIf(SANITIZED or "CENOTE_NO_TMPFILE" not in os.environ, "needs a library loaded before the tool")
    def test_without_unnamed_files(self):
        """Where the file system has no files without a name, a hidden one is used, and removed by whoever can be told to."""
        environment = {**os.environ, "LD_PRELOAD": os.environ["CENOTE_NO_TMPFILE"]}
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            with self.subTest(signal=number):
                process = self.start(env=environment)
                self.assertEqual(len(self.listing()), 3, "big.npy and two hidden files")
                self.assertTrue(all(name.startswith(".") or name == "big.npy" for name in self.listing()))
                process.send_signal(number)
                process.wait(30)
                process.stderr.close()
                self.assertEqual(process.returncode, -number)
                self.assertEqual(self.listing(), ["big.npy"])
        np.save(self.dir / "x.npy", numbers((4, 4), "f4"))
        cenote("pool", self.dir / "x.npy", self.dir / "y.npy", "--op", "max", "--kernel", 2, env=environment)
        cenote("pool", self.dir / "x.npy", self.dir / "y.npy", "--op", "max", "--kernel", 1, env=environment)
        np.testing.assert_array_equal(np.load(self.dir / "y.npy"), np.load(self.dir / "x.npy"))
        self.refuses(INPUT, "pool", self.dir / "no.npy", self.dir / "z.npy", "--op", "max", "--kernel", 1, env=environment)
        self.assertEqual(self.listing(), ["big.npy", "x.npy", "y.npy"])

    def test_input_that_shrinks(self):
        process = self.start()
        os.truncate(self.dir / "big.npy", 4096)
        text = process.communicate(timeout=60)[1].decode()
        self.assertEqual(process.returncode, INPUT, text)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertEqual(self.listing(), ["big.npy"])


@unittest.skipIf(SANITIZED, "sanitizers need more than 1 GB of addresses")
class LargerThanMemory(ToolTest):
    """6 GB within 1 GB: of address space, so that nothing can be hidden in a mapping."""

    def run_limited(self, *arguments):
        limit = 1 << 30
        process = subprocess.Popen([CENOTE, *map(str, arguments), "--threads", "2", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        peak = 0
        while process.poll() is None:
            try:
                for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
                    if line.startswith("VmHWM"):
                        peak = max(peak, int(line.split()[1]) << 10)
            except OSError:
                pass
            time.sleep(0.05)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err.decode())
        self.assertLess(peak, limit)

    def test_one_huge_plane(self):
        """40000 x 40000 f32: no plane fits, so rows of it are the pieces."""
        path = self.dir / "plane.npy"
        offset = sparse_npy(path, (40000, 40000))
        self.assertGreater(path.stat().st_size, 6_000_000_000)
        marks = {(0, 0): 3.0, (39999, 39999): 5.0, (20001, 12345): 7.0, (13, 39998): 9.0}
        with open(path, "r+b") as file:
            for (row, column), value in marks.items():
                file.seek(offset + 4 * (row * 40000 + column))
                file.write(np.float32(value).tobytes())
        self.run_limited("pool", path, self.dir / "y.npy", "--op", "max", "--kernel", 16, "--indices", self.dir / "i.npy", "--index-kind", "flat32")
        y, i = np.load(self.dir / "y.npy"), np.load(self.dir / "i.npy")
        self.assertEqual(y.shape, (2500, 2500))
        self.assertEqual(int((y != 0).sum()), len(marks))
        for (row, column), value in marks.items():
            self.assertEqual(y[row // 16, column // 16], value)
            self.assertEqual(i[row // 16, column // 16], row * 40000 + column)

    def test_many_planes(self):
        path = self.dir / "planes.npy"
        offset = sparse_npy(path, (375, 16, 1000, 1000), "|u1")
        with open(path, "r+b") as file:
            file.seek(offset + 5999 * 1000 * 1000 + 999 * 1000 + 999)
            file.write(b"\xc8")
        self.run_limited("pool", path, self.dir / "y.npy", "--op", "max", "--kernel", 50)
        y = np.load(self.dir / "y.npy")
        self.assertEqual(y.shape, (375, 16, 20, 20))
        self.assertEqual((int(y.sum()), int(y[-1, -1, -1, -1])), (200, 200))


if __name__ == "__main__":
    unittest.main()
