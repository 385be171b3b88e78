"""The command line: help that teaches, suggestions, exit codes, completion, the manual page, shape, info, check."""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import unittest

import numpy as np

from support import CENOTE, DEVICE, INPUT, OK, REFUSED, ROOT, USAGE, ToolTest, cenote, seconds

COMMANDS = ["pool", "unpool", "explain", "shape", "check", "explain-plan", "bench", "info", "completion"]


def options_of(command):
    """Long names in the option lines of a command's help."""
    lines = [line for line in cenote(command, "--help").stdout.decode().splitlines() if line.startswith("  -")]
    return {name for line in lines for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line[:60].split("   ")[0])}


class Help(ToolTest):
    def test_everywhere(self):
        for words in [[], ["--help"], ["-h"], ["help"]]:
            text = cenote(*words).stdout.decode()
            for command in COMMANDS:
                self.assertIn(command, text)
            self.assertIn("Exit codes", text)
        for command in COMMANDS:
            text = cenote(command, "--help").stdout.decode()
            self.assertIn(f"Usage: cenote {command}", text)
            self.assertIn("Example", text)
            self.assertEqual(text, cenote("help", command).stdout.decode())
        self.assertRegex(cenote("--version").stdout.decode(), r"^cenote \d+\.\d+\.\d+\n$")

    def test_examples_parse(self):
        """Every `cenote explain`, `shape` and `info` line of the help texts runs as written."""
        ran = 0
        for command in ["", *COMMANDS]:
            text = cenote(*([command] if command else []), "--help").stdout.decode()
            for line in re.findall(r"^  (cenote (?:explain|shape|info).*?)(?:   .*)?$", text, re.M):
                if "photo.png" in line or "COMMAND" in line:
                    continue
                line = line.split(" | ")[0].split("      ")[0]
                done = subprocess.run(["bash", "-c", line.replace("cenote", CENOTE, 1)], capture_output=True, cwd=self.dir)
                self.assertIn(done.returncode, [0, REFUSED], f"{line}\n{done.stderr.decode()}")
                if done.returncode == REFUSED:
                    self.assertIn("--output-size 6", line)  # the one that shows a refusal
                ran += 1
        self.assertGreater(ran, 8)

    def test_options_are_found(self):
        """The two tests that compare help with manual and completions see real options."""
        self.assertLessEqual({"--kernel", "--kernel-size", "--op", "--indices", "--json", "--memory"}, options_of("pool"))
        self.assertLessEqual({"--svg", "--values", "--crop"}, options_of("explain"))


class Wrong(ToolTest):
    def setUp(self):
        super().setUp()
        np.save(self.dir / "x.npy", np.zeros((4, 4), "f4"))
        self.pool = ["pool", self.dir / "x.npy", self.dir / "y.npy"]

    def test_suggestions(self):
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernle", 2, says=["--kernle", "did you mean '--kernel'?"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--paddng=1", says=["'--paddng'", "'--padding'"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--ceil_mode", says=["'--ceil-mode'"])
        self.refuses(USAGE, *self.pool, "--op", "maxx", "--kernel", 2, says=["'maxx'", "did you mean 'max'?"])
        self.refuses(USAGE, "poll", says=["'poll'", "did you mean 'pool'?"])
        self.refuses(USAGE, "explain", "--op", "adaptive-ave", "-o", 2, says=["adaptive-avg"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--index-kind", "flat63", says=["flat64"])
        text = self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--qqqqqqqq", says=["--qqqqqqqq"])
        self.assertNotIn("did you mean", text)

    def test_values(self):
        for option, value, word in [("--kernel", "two", "'two'"), ("--kernel", "3x", "'3x'"), ("--stride", "", "''"), ("--padding", "1:2:3", "'1:2:3'"),
                                    ("--dims", "4", "1, 2 or 3"), ("--threads", "0", "from 1"), ("--memory", "lots", "'lots'"), ("--device", "tpu", "'tpu'"),
                                    ("--layout", "nwhc", "'nwhc'"), ("--bits", "12", "12"), ("--kernel", "9223372036854775808", "63 bits"),
                                    ("--kernel", "2x9223372036854775808", "63 bits"), ("--padding", "0:9223372036854775808", "63 bits"),
                                    ("--padding", "keep", "no padding"), ("--seed", "-1", "negative"), ("--memory", "-1", "'-1'")]:
            with self.subTest(option=option, value=value):
                arguments = ["--op", "max", "--kernel", 2] if option != "--kernel" else ["--op", "max"]
                text = cenote(*self.pool, *arguments, option, value, code=USAGE).stderr.decode()
                self.assertEqual(text.count("\n"), 1, text)
                self.assertIn(word, text)
        self.refuses(USAGE, *self.pool, "--op", "adaptive-max", "--output-size", "-3x4", says=["--output-size", "'-3x4'", "negative"])

    def test_given_twice_or_without_value(self):
        self.refuses(USAGE, *self.pool, "--op", "max", "--op", "avg", "--kernel", 2, says=["--op is given 2 times"])
        self.refuses(USAGE, *self.pool, "--op", "max", "-k", 2, "--kernel-size", 3, says=["--kernel is given 2 times"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", says=["--kernel needs a value (SIZE)"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--json=5", says=["--json takes no value"])
        for command in ["pool", "unpool", "shape", "check", "explain-plan", "completion"]:
            self.refuses(USAGE, command, says=["missing", f"usage: cenote {command}"])
        self.refuses(USAGE, "cenote", "--help", says=["twice"])
        self.refuses(USAGE, "help", "pol", says=["'pol'", "did you mean 'pool'?"])
        self.refuses(USAGE, "-x", says=["'-x'", "see `cenote --help`"])

    def test_one_thing_for_each_stream(self):
        op = ["--op", "max", "--kernel", 2]
        self.refuses(USAGE, "pool", self.dir / "x.npy", "-", *op, "--indices", "-", says=["--indices", "standard output"])
        self.refuses(USAGE, "pool", self.dir / "x.npy", "-", *op, "--json", says=["--json", "standard output"])
        self.refuses(USAGE, "pool", self.dir / "x.npy", self.dir / "y.npy", *op, "--indices", "-", "--json", says=["--json", "standard output"])
        self.refuses(USAGE, "unpool", "-", self.dir / "y.npy", "--indices", "-", "--kernel", 2, says=["--indices", "standard input"])
        fractional = ["--op", "fractional-max", "--kernel", 2, "--output-size", 2]
        self.refuses(USAGE, "pool", self.dir / "x.npy", self.dir / "y.npy", *fractional, "--samples", "-", says=["--samples", "standard input"])
        np.save(self.dir / "s.npy", np.zeros((1, 2), "f4"))
        self.refuses(REFUSED, "pool", self.dir / "x.npy", self.dir / "y.npy", *fractional, "--samples", self.dir / "s.npy", says=["s.npy: ", "[1, 2]"])

    def test_options_that_would_change_nothing(self):
        """Refused, not ignored."""
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--index-kind", "flat32", says=["--index-kind", "--indices"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--bits", 16, says=["--bits", "y.npy is no .png"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--seed", 1, says=["--seed", "fractional-max"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--samples", self.dir / "x.npy", says=["--samples", "fractional-max"])
        self.refuses(USAGE, *self.pool, "--op", "fractional-max", "--kernel", 2, "--output-size", 2, "--samples", self.dir / "x.npy", "--seed", 1,
                     says=["--seed", "--samples"])
        self.refuses(USAGE, *self.pool, "--op", "max_pool2d", "--dims", 1, "--kernel", 2, says=["--dims 1", "says 2"])
        explain = ["explain", "--op", "max", "--kernel", 2, "--size", "4x4"]
        self.refuses(USAGE, *explain, "--crop", "2x2", says=["--crop", "file"])
        self.refuses(USAGE, *explain, "--plane", 0, says=["--plane", "file"])
        self.refuses(USAGE, *explain, "--layout", "nhwc", says=["--layout", "file"])
        self.refuses(USAGE, *explain, "--indices", "1 2 3 4", says=["--indices", "unpool"])
        self.refuses(USAGE, *explain, "--seed", 1, says=["--seed", "fractional-max"])
        self.refuses(USAGE, "unpool", self.dir / "x.npy", self.dir / "y.npy", "--indices", self.dir / "x.npy", "--kernel", 2, "--padding", "0:1",
                     says=["--padding", "both ends"])
        self.refuses(USAGE, "bench", "max2d f32 nchw n1c1 h4w4 k2", "--filter", "x", says=["--filter"])
        self.refuses(USAGE, "bench", "max2d f32 nchw n1c1 h4w4 k2", "--suite", "x", says=["--suite"])
        self.assertEqual(self.listing(), ["x.npy"])

    def test_names(self):
        """No name is empty, and none can write to the terminal what it wants."""
        for call in [["pool", "", "y.npy", "--op", "max", "-k", 2], ["pool", "x.npy", "", "--op", "max", "-k", 2],
                     ["pool", "x.npy", "y.npy", "--op", "max", "-k", 2, "--indices", ""], ["explain", "", "--op", "max", "-k", 2],
                     ["explain", "--op", "max", "-k", 2, "--svg", ""], ["unpool", "", "y.npy", "-k", 2, "-i", "x.npy"]]:
            self.refuses(USAGE, *call, cwd=self.dir, says=["empty"])
        self.assertEqual(self.listing(), ["x.npy"])
        text = self.refuses(INPUT, "pool", "a\x1b[31mb\nc\x7f\u0085\u00e9.npy", "y.npy", "--op", "max", "-k", 2, cwd=self.dir)
        self.assertIn("a\\x1b[31mb\\x0ac\\x7f\\xc2\\x85\u00e9.npy: cannot be read", text)
        odd = os.fsencode(self.dir) + b"/\xff\n.npy"
        shutil.copy(self.dir / "x.npy", odd)
        done = subprocess.run([CENOTE, "pool", odd, self.dir / "y.npy", "--op", "max", "-k", "2", "--json"], capture_output=True, check=True)
        self.assertTrue(json.loads(done.stdout.decode())["input"].endswith("/\ufffd\n.npy"))
        done = subprocess.run([CENOTE, "explain", odd, "--op", "max", "-k", "2"], capture_output=True, check=True)
        self.assertIn("/\\xff\\x0a.npy: shape", done.stdout.decode())

    def test_options_an_op_has_not(self):
        self.refuses(USAGE, *self.pool, "--op", "adaptive-avg", "--kernel", 2, says=["--kernel", "adaptive-avg", "--output-size"])
        self.refuses(USAGE, *self.pool, "--op", "max", says=["--kernel"])
        self.refuses(USAGE, *self.pool, "--op", "max", "--kernel", 2, "--norm-type", 2, says=["--norm-type", "max"])
        self.refuses(USAGE, *self.pool, "--op", "avg", "--kernel", 2, "--indices", self.dir / "i.npy", says=["--indices"])
        self.refuses(USAGE, *self.pool, "--op", "unpool", "--kernel", 2, says=["cenote unpool"])
        self.assertNotIn("unpool", self.refuses(USAGE, *self.pool, "--op", "mux", "--kernel", 2, says=["'mux'"]))
        self.refuses(USAGE, "pool", self.dir / "x.npy", "--op", "max", "--kernel", 2, says=["OUTPUT"])
        self.refuses(USAGE, "pool", self.dir / "x.npy", self.dir / "y.jpg", "--op", "max", "--kernel", 2, says=["y.jpg", ".npy or .png"])
        self.refuses(USAGE, "unpool", self.dir / "x.npy", self.dir / "y.npy", "--kernel", 2, says=["--indices"])
        self.assertEqual(self.listing(), ["x.npy"])

    def test_the_librarys_refusals(self):
        """The library's message, with the file's name in front."""
        for arguments, words in [(["--kernel", 0], ["kernel_size"]), (["--kernel", -1], ["kernel_size"]), (["--kernel", 2, "--padding", 2], ["padding"]),
                                 (["--kernel", 2, "--padding", -1], ["padding"]), (["--kernel", 5], ["output"]), (["--kernel", 2, "--dilation", 0], ["dilation"]),
                                 (["--kernel", "2,2,2"], ["dimensions"]), (["--kernel", 2**40], ["kernel_size"])]:
            with self.subTest(arguments=arguments):
                self.refuses(REFUSED, *self.pool, "--op", "max", *arguments, says=["x.npy", *words])
        self.assertEqual(self.listing(), ["x.npy"])

    def test_device(self):
        built = json.loads(cenote("info", "--json").stdout)["cuda"]
        if not built["available"]:
            self.refuses(DEVICE, *self.pool, "--op", "max", "--kernel", 2, "--device", "cuda", says=["cuda"])
        else:
            cenote(*self.pool, "--op", "max", "--kernel", 2, "--device", "cuda")


class Documented(ToolTest):
    def test_commands_of_the_page_run(self):
        """What docs/tool.md tells a reader to type, in its own order and in one folder."""
        page = (ROOT / "docs" / "tool.md").read_text()
        lines = re.findall(r"^(cenote .*)$", page, re.M) + re.findall(r"`(cenote (?:explain|shape) [^`]*)`", page)
        self.assertGreater(len(lines), 10)
        np.save(self.dir / "x.npy", np.arange(2 * 30 * 31, dtype="f4").reshape(2, 30, 31))
        (self.dir / "photos").mkdir()
        for name in ["photo.png", "photos/a.png"]:
            shutil.copy(ROOT / "assets" / "cenote.png", self.dir / name)
        for line in lines:
            done = subprocess.run(["bash", "-c", line.replace("cenote", CENOTE, 1)], capture_output=True, cwd=self.dir)
            expected = REFUSED if "unpool --kernel 2 --size 2x2 --output-size 6" in line else OK
            self.assertEqual(done.returncode, expected, f"{line}\n{done.stderr.decode()}")


class Shape(ToolTest):
    def test_resnet_and_vgg(self):
        result = json.loads(cenote("shape", "1x3x224x224", "conv c64 k7 s2 p3", "max k3 s2 p1", "adaptive-avg o1", "--json").stdout)
        layers = result["layers"]
        self.assertEqual([layer["output"] for layer in layers], [[1, 64, 112, 112], [1, 64, 56, 56], [1, 64, 1, 1]])
        self.assertEqual([layer["receptive_field"][0] for layer in layers[:2]], [7, 11])
        self.assertEqual([layer["jump"][1] for layer in layers[:2]], [2, 4])
        self.assertEqual(layers[1]["bytes"], 64 * 56 * 56 * 4)
        self.assertEqual(layers[1]["index_bytes"], 64 * 56 * 56)
        result = json.loads(cenote("shape", "3x32x32", *["conv k3 p1", "max k2"] * 3, "--dtype", "f16", "--json").stdout)["layers"]
        self.assertEqual(result[-1]["output"], [3, 4, 4])
        self.assertEqual(result[-1]["receptive_field"], [22, 22])
        self.assertEqual(result[-1]["bytes"], 3 * 4 * 4 * 2)

    def test_text_and_errors(self):
        text = cenote("shape", "3x224x224", "max k3 s2 p1", "max k2").stdout.decode()
        self.assertIn("3x112x112", text)
        self.assertIn("3x56x56", text)
        self.assertIn("5x5", text)
        self.refuses(REFUSED, "shape", "3x4x4", "max k2", "max k3", says=['"max k3"', "3x2x2"])
        self.refuses(USAGE, "shape", "3x4x4", "mox k2", says=["mox", "max"])
        self.refuses(USAGE, "shape", "3x4x4", "max z2", says=["z2"])
        self.refuses(USAGE, "shape", "3x4x4", "max k2 k3", says=["'k3'", "again"])
        self.refuses(USAGE, "shape", "3x4x4", "max k2 p1 same", says=["'same'", "again"])
        self.refuses(USAGE, "shape", "3x4x4", "max k2 ceil ceil", says=["'ceil'", "again"])
        self.refuses(USAGE, "shape", "3x4x4", "max k", says=["'k'", "number"])
        self.refuses(USAGE, "shape", "3x4x4", "max k2 c5", says=["'c5'", "conv", "keeps"])
        self.refuses(USAGE, "shape", "3x4x4", "conv k2 o5", says=["conv", "k, s, p, d and c"])
        self.refuses(USAGE, "shape", "3xfour", "max k2", says=["3xfour"])


class Others(ToolTest):
    def test_info(self):
        result = json.loads(cenote("info", "--json").stdout)
        self.assertTrue(result["targets"])
        self.assertGreaterEqual(result["threads"], 1)
        text = cenote("info").stdout.decode()
        self.assertIn(result["targets"][0], text)
        self.assertIn(result["version"], text)

    def test_check(self):
        text = cenote("check", "max2d f32 nchw n2c3 h9w8 k3x2 s2x2 p1x1 d1x1 ceil").stdout.decode()
        self.assertIn("right", text)
        self.refuses(USAGE, "check", "max2d f32 nonsense", says=["nonsense"])
        self.refuses(USAGE, "check", "max2d f32 nchw n1c1 h4w4", says=["kernel_size is missing"])
        self.refuses(REFUSED, "check", "max2d f32 nchw n1c1 h4w4 k9", says=["h4w4 k9", "does not fit"])
        self.refuses(USAGE, "check", "max2d f32 nchw n2c3 h9w8 k3x2", "--json", says=["--json"])

    def test_check_has_an_end(self):
        for problem, says in [("h400000w400000 k3", "elements"), ("h1000w1000 k300 s1", "taps"), ("h9w9 k2000000000 p1000000000", "taps")]:
            with self.subTest(problem=problem):
                self.refuses(USAGE, "check", f"max2d f32 nchw n1c1 {problem}", says=["too large to check", says], preexec_fn=seconds(5))

    def test_bench_refuses(self):
        for problem, says in [("k0", "kernel_size must be greater than 0"), ("k2 s0", "stride must be greater than 0"), ("k3 p5", "padding")]:
            self.refuses(REFUSED, "bench", f"max2d f32 nchw n1c1 h4w4 {problem}", says=[says])
        huge = 2**63 - 1
        self.refuses(REFUSED, "bench", f"max2d f32 nchw n1c1 h{huge}w{huge} k2", says=["63 bits"])
        self.refuses(USAGE, "bench", "max2d f32 nchw n1c1 h4000000w4000000 k2", says=["TiB of memory", "free"])
        self.refuses(USAGE, "bench", "max2d f32 strided n1c1 h4w4 k2", says=["nchw and nhwc"])
        self.refuses(USAGE, "bench", "--filter", "(", says=["--filter", "regular expression"])
        self.refuses(USAGE, "bench", "--filter", "no such row", says=["--filter", "no row"])
        self.refuses(USAGE, "bench", "--jsno", says=["did you mean '--json'?"])
        self.refuses(INPUT, "bench", "--suite", self.dir / "none.json", says=["none.json"])

    def test_explain_plan(self):
        text = cenote("explain-plan", "max2d f32 nchw n1c3 h9w8 k3x2 s2x2").stdout.decode()
        self.assertIn("[1, 3, 9, 8] -> [1, 3, 4, 4]", text)
        self.assertIn("backward", text)
        self.assertIn(json.loads(cenote("info", "--json").stdout)["targets"][0], text)
        self.refuses(USAGE, "explain-plan", "max2d nonsense", says=["nonsense"])
        self.refuses(REFUSED, "explain-plan", "max2d f32 nchw n1c3 h2w2 k3x3 s2x2", says=["output"])

    def test_completion(self):
        for shell in ["bash", "zsh", "fish"]:
            script = cenote("completion", shell).stdout.decode()
            for command in COMMANDS:
                self.assertIn(command, script)
                for option in options_of(command):
                    self.assertIn(option.lstrip("-") if shell == "fish" else option, script)
            if shutil.which(shell):
                (self.dir / "script").write_text(script)
                subprocess.run([shell, "-n", self.dir / "script"], check=True)
        fish = cenote("completion", "fish").stdout.decode()
        self.assertRegex(fish, r"pool'.* -l quiet -d")  # a flag takes nothing
        self.assertRegex(fish, r"pool'.* -l stride -x -d")  # a size is no file
        self.assertRegex(fish, r"pool'.* -l indices -r -d")  # a file
        self.assertRegex(fish, r"explain'.* -l indices -x -d")  # numbers
        self.assertRegex(fish, r"bench'.* -l suite -r -d")
        self.refuses(USAGE, "completion", "tcsh", says=["tcsh", "bash, zsh or fish"])

    @unittest.skipUnless(shutil.which("bash"), "bash is not here")
    def test_bash_completes(self):
        (self.dir / "script").write_text(cenote("completion", "bash").stdout.decode())

        def complete(*words):
            quoted = " ".join(f'"{word}"' for word in words)
            line = f'source {self.dir}/script; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _cenote; echo "${{COMPREPLY[@]}}"'
            return subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout.decode().split()

        self.assertEqual(complete("cenote", "sh"), ["shape"])
        self.assertEqual(complete("cenote", "pool", "--op", "adaptive"), ["adaptive-max", "adaptive-avg"])
        self.assertEqual(complete("cenote", "pool", "--op", "unp"), [])
        self.assertEqual(complete("cenote", "explain", "--op", "unp"), ["unpool"])
        self.assertIn("--kernel", complete("cenote", "pool", "--ker"))

    @unittest.skipUnless(shutil.which("fish"), "fish is not here")
    def test_fish_completes(self):
        (self.dir / "script").write_text(cenote("completion", "fish").stdout.decode())

        def complete(line):
            call = ["fish", "--no-config", "-c", f'source {self.dir}/script; complete -C "{line}"']
            done = subprocess.run(call, capture_output=True, check=True, env={**os.environ, "HOME": str(self.dir)})
            return sorted(row.split("\t")[0] for row in done.stdout.decode().splitlines())

        self.assertEqual(complete("cenote sh"), ["shape"])
        self.assertEqual(complete("cenote pool --op adaptive"), ["adaptive-avg", "adaptive-max"])
        self.assertEqual(complete("cenote completion "), ["bash", "fish", "zsh"])
        self.assertEqual(complete("cenote explain --op unp"), ["unpool"])
        self.assertIn("--kernel", complete("cenote pool --ker"))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not here")
    def test_zsh_completes(self):
        (self.dir / "_cenote").write_text(cenote("completion", "zsh").stdout.decode())
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "HOME": str(self.dir), "TERM": "dumb"})

        def read_until(wanted):
            text, end = "", time.monotonic() + 30
            while wanted not in text and time.monotonic() < end:
                if select.select([terminal], [], [], 0.2)[0]:
                    text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(terminal, 65536).decode(errors="replace"))
            self.assertIn(wanted, text)

        try:
            os.write(terminal, f"PS1=; fpath=({self.dir} $fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy\n".encode())
            read_until("ready")
            for typed, completed in [("sh", "shape"), ("pool --op adaptive-m", "pool --op adaptive-max"), ("explain --op unp", "explain --op unpool"),
                                     ("completion fi", "completion fish"), ("pool --kernel-s", "pool --kernel-size")]:
                os.write(terminal, f"cenote {typed}\t".encode())
                read_until(f"{completed} ")
                os.write(terminal, b"\x15")  # clears the line
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)

    def test_manual_is_complete(self):
        manual = (ROOT / "docs" / "man" / "cenote.1").read_text().replace("\\-", "-")
        for command in COMMANDS:
            self.assertIn(f"cenote {command}", manual)
            for option in options_of(command):
                self.assertIn(option, manual, f"{command} {option}")
        for code in range(7):
            self.assertRegex(manual, rf"\.B {code}\b")
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", ROOT / "docs" / "man" / "cenote.1"], capture_output=True, env={"MANWIDTH": "100", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
            self.assertEqual((done.returncode, done.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
