"""What a person sees: a progress bar on a terminal and only there, colour and width as the terminal has them."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

import numpy as np

from support import CENOTE, ToolTest, cenote, numbers
from test_files import sparse_npy

ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def on_terminal(*arguments, columns=80, streams=("stdout", "stderr"), environment=None):
    """Runs the tool with the named streams on a pseudo-terminal; (what appeared there, exit code)."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kinds = {name: follower if name in streams else subprocess.DEVNULL for name in ("stdout", "stderr")}
    env = {**os.environ, "TERM": "xterm", **(environment or {})}
    env.pop("NO_COLOR", None) if not environment else None
    process = subprocess.Popen([CENOTE, *map(str, arguments)], stdin=subprocess.DEVNULL, env=env, **kinds)
    os.close(follower)
    text = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(leader)
    return text.decode(), process.wait(120)


class Progress(ToolTest):
    def setUp(self):
        super().setUp()
        sparse_npy(self.dir / "x.npy", (160, 1, 2048, 4096))  # 5 GiB, long enough for a bar on a fast machine
        self.call = ["pool", self.dir / "x.npy", self.dir / "y.npy", "--op", "max", "--kernel", 4, "--memory", "16M", "--threads", 1]

    def test_bar(self):
        for columns in [40, 80, 200]:
            text, code = on_terminal(*self.call, columns=columns)
            self.assertEqual(code, 0, text)
            frames = [ESCAPES.sub("", frame) for frame in text.split("\r") if "%" in frame]
            self.assertGreater(len(frames), 2, text)
            for frame in frames:
                self.assertLess(len(frame.split("\n")[0]), columns, frame)
                self.assertIn("%", frame)
            percents = [int(re.search(r"(\d+) %", frame).group(1)) for frame in frames]
            self.assertEqual(percents, sorted(percents))
            if columns >= 80:
                self.assertRegex(frames[-1], r"█.* \d+ %  .*B/s  .* left")
            self.assertTrue(ESCAPES.sub("", text.split("\r")[-1 if "\n" not in text else -2]).strip() == "" or "->" in text)

    def test_summary_names_the_result(self):
        text, _ = on_terminal(*self.call)
        self.assertIn("[160, 1, 512, 1024]", text)

    def test_silent_otherwise(self):
        done = cenote(*self.call)
        self.assertEqual((done.stdout, done.stderr), (b"", b""))
        text, code = on_terminal(*self.call, "--quiet")
        self.assertEqual((text, code), ("", 0))
        text, code = on_terminal(*self.call, streams=("stdout",))  # standard error elsewhere: nobody watches
        self.assertEqual((text, code), ("", 0))

    def test_json(self):
        done = cenote(*self.call, "--json")
        self.assertEqual(done.stderr, b"")
        result = json.loads(done.stdout)
        self.assertEqual(result["output_shape"], [160, 1, 512, 1024])
        self.assertEqual(result["input_shape"], [160, 1, 2048, 4096])
        self.assertEqual(result["dtype"], "f32")
        self.assertGreater(result["pieces"], 1)
        text, _ = on_terminal(*self.call, "--json", streams=("stderr",))
        self.assertEqual(text, "")


class Width(ToolTest):
    CALLS = [["--op", "max", "--kernel", 3, "--stride", 2, "--padding", 1, "--size", "6x6"], ["--op", "avg", "--kernel", 5, "--size", 40],
             ["--op", "max", "--kernel", 2, "--size", "4x4x4"], ["--op", "adaptive-avg", "--output-size", "3x12", "--size", "5x60"],
             ["--op", "unpool", "--kernel", 2, "--size", "3x3"], ["--op", "lp", "--kernel", 2, "--size", "3x33"],
             ["--op", "fractional", "--kernel", 2, "--output-size", 3, "--size", "7x7"]]

    def test_never_wider_than_the_terminal(self):
        for columns in [20, 30, 40, 61, 80, 132]:
            for call in self.CALLS:
                with self.subTest(columns=columns, call=call):
                    text, code = on_terminal("explain", *call, columns=columns)
                    self.assertEqual(code, 0)
                    for line in ESCAPES.sub("", text).replace("\r", "").split("\n"):
                        self.assertLessEqual(len(line), columns, line)

    def test_colour(self):
        call = ["explain", *self.CALLS[0]]
        self.assertIn("\x1b[", on_terminal(*call)[0])
        self.assertNotIn("\x1b[", on_terminal(*call, environment={"NO_COLOR": "1"})[0])
        self.assertNotIn(b"\x1b", cenote(*call).stdout)
        self.assertIn(b"\x1b[", cenote(*call, "--color", "always").stdout)
        coloured = ESCAPES.sub("", cenote(*call, "--color", "always").stdout.decode())
        self.assertEqual(coloured, cenote(*call).stdout.decode())


if __name__ == "__main__":
    unittest.main()
