"""The explanations say what is true: the numbers of the documented examples, and answers to the questions people ask."""
import shlex
import shutil
import signal
import subprocess
import unittest
import xml.etree.ElementTree as ET

import numpy as np

from support import CENOTE, OUTPUT, REFUSED, ROOT, USAGE, ToolTest, cenote, seconds, write_png

SVG = "{http://www.w3.org/2000/svg}"


def explain(*arguments, code=0):
    """The text with single blanks; narrow, so that windows stand below each other."""
    return " ".join(cenote("explain", *arguments, "--width", 60, code=code).stdout.decode().split())


class Answers(ToolTest):
    def says(self, text, *phrases):
        for phrase in phrases:
            self.assertIn(phrase, text)

    def test_indices(self):
        text = explain("--op", "max", "--kernel", 2, "--size", "4x4")
        self.says(text, "input 4 x 4, output 2 x 2", "max(1, 2, 5, 6) = 6 at row 1, column 1 index 1 * 4 + 1 = 5, tap 3", "5 7 13 15", "3 3 3 3",
                  "flat 15 is row 15 div 4 = 3, column 15 mod 4 = 3", "window index 1 * 2 + 1 = 3")

    def test_why_this_size(self):
        text = explain("--op", "max", "--kernel", 3, "--stride", 2, "--padding", 1, "--size", "6x6")
        self.says(text, "height and width: 6 -> 3", "6 + 1 + 1 = 8", "5 / 2 = 2.5, rounded down to 2", "2 + 1 = 3", "Why 3 and not 4?",
                  "ceil_mode keeps that window")
        text = explain("--op", "max", "--kernel", 3, "--stride", 2, "--padding", 1, "--size", "6x6", "--ceil-mode")
        self.says(text, "6 -> 4", "rounded up to 3", "the last window starts at cell 5", "kept")
        text = explain("--op", "max", "--kernel", 2, "--stride", 2, "--padding", 1, "--size", 3, "--ceil-mode")
        self.says(text, "3 -> 2", "dropped, 2 left")

    def test_padding(self):
        text = explain("--op", "max", "--kernel", 3, "--stride", 2, "--padding", 1, "--values", "-5 -3 -4")
        self.says(text, "minus infinity", "max(-5, -3) = -3")
        text = explain("--op", "avg", "--kernel", 3, "--stride", 2, "--padding", 1, "--size", 5)
        self.says(text, "(0 + 1 + 2) / 3 = 1", "(4 + 5 + 0) / 3 = 3", "count_include_pad")
        text = explain("--op", "avg", "--kernel", 3, "--stride", 2, "--padding", 1, "--size", 5, "--no-count-include-pad")
        self.says(text, "(1 + 2) / 2 = 1.5", "(4 + 5) / 2 = 4.5")
        text = explain("--op", "avg", "--kernel", 4, "--stride", 3, "--padding", 2, "--size", 5, "--ceil-mode")
        self.says(text, "(5 + 0 + 0) / 3 = 1.667", "hangs over the end by 1")

    def test_gradient(self):
        self.says(explain("--op", "max", "--kernel", 3, "--stride", 1, "--values", "1 5 2 3"), "a cell can win several: 2 here at most", "0 [2] 0 0")
        self.says(explain("--op", "avg", "--kernel", 3, "--stride", 2, "--padding", 1, "--ceil-mode", "--size", 4),
                  "[0.3333][0.6667][0.3333][0.8333]", "of 3 arrive", "padding")

    def test_documented_six_by_six(self):
        rows = "1 3 2 4 6 8; 5 6 1 2 3 7; 4 2 7 8 1 0; 3 5 9 4 2 1; 8 7 6 3 5 2; 1 0 4 7 8 9"
        self.says(explain("--op", "max", "--kernel", 2, "--values", rows), "The output 6 4 8 5 9 2 8 7 9")
        self.says(explain("--op", "avg", "--kernel", 2, "--values", rows), "The output 3.75 2.25 6 3.5 7 1 4 5 6", "Max or average?")
        python = "[[" + rows.replace("; ", "],[").replace(" ", ", ") + "]]"
        self.assertEqual(explain("--op", "max", "--kernel", 2, "--values", rows), explain("--op", "max", "--kernel", 2, "--values", python))

    def test_unpool(self):
        self.says(explain("--op", "unpool", "--kernel", 2, "--values", "6 8; 14 16"), "(2 - 1) * 2 + 2 - 2 * 0 = 4", "3 to 5",
                  "value 6, index 5 -> row 1, column 1")
        text = explain("--op", "unpool", "--kernel", 2, "--size", "2x2", "--output-size", 6, code=REFUSED)
        self.says(text, "6: does not fit", "Pooling 6 cells with kernel 2, stride 2, padding 0 gives 3, not the 2", "Refused")
        self.says(explain("--op", "unpool", "--kernel", 2, "--values", "1 2", "--indices", "1 4", code=REFUSED), "Refused", "4")
        for wrong in ["1.5 3", "1 nan", "1 1e30", "-inf 2"]:
            self.refuses(USAGE, "explain", "--op", "unpool", "--kernel", 2, "--values", "1 2", "--indices", wrong,
                         says=["--indices", "whole numbers"])
        self.refuses(USAGE, "explain", "--op", "max", "--kernel", 2, "--values", "1 " * 5000, says=["--values", "4096"])

    def test_refusals(self):
        self.says(explain("--op", "max", "--kernel", 2, "--padding", 2, "--size", "4x4", code=REFUSED), "at most half of the kernel", "2 / 2 = 1")
        self.says(explain("--op", "max", "--kernel", 5, "--padding", 3, "--size", "6x6", code=REFUSED), "5 / 2 = 2", "begin:end (3:3)",
                  "less than the window covers, 5")
        cenote("explain", "--op", "max", "--kernel", 5, "--padding", "3:3", "--size", "6x6")
        self.says(explain("--op", "max", "--kernel", 7, "--size", "6x6", code=REFUSED), "not even one fits", "ceil_mode")

    def test_too_large_to_draw(self):
        """Refused in one line and at once, whichever number is the huge one."""
        for call, says in [(["max", "-k", 2 * 10**8, "-p", 10**8, "--size", 4], "taps"),
                           (["max", "-k", 2000, "-p", 1000, "-s", 1000, "--size", "9x9"], "taps"),
                           (["max", "-k", 2, "-d", 10**8, "-s", 10**8, "-p", "100000000:100000000", "--size", 4], "padded input"),
                           (["adaptive-avg", "-o", 10**8, "--size", 4], "output"), (["unpool", "-k", 10**8, "--size", 4], "output"),
                           (["unpool", "-k", 10**8, "-s", 1, "-o", 10**8, "--size", 1], "output"),
                           (["max", "-k", 64, "-p", 32, "-s", 1, "--size", "64x64"], "output"),
                           (["max", "-k", 32, "-s", 1, "--size", "64x64"], "taps")]:
            with self.subTest(call=call):
                self.refuses(USAGE, "explain", "--op", *call, says=["cannot be drawn", says], preexec_fn=seconds(5))
        done = cenote("explain", "--op", "avg", "-k", 16, "-s", 1, "-p", 8, "--size", "63x63", "--svg", self.dir / "large.svg",
                      preexec_fn=seconds(20))
        self.assertIn(b"63 x 63", done.stdout)
        self.refuses(REFUSED, "explain", "--op", "max", "-k", 2, "-p", 10**8, "--size", 4, preexec_fn=seconds(5))

    def test_dilation_and_empty_windows(self):
        self.says(explain("--op", "max", "--kernel", 2, "--stride", 1, "--dilation", 2, "--size", "5x5"), "(2 - 1) * 2 + 1 = 3", "max(1, 3, 11, 13) = 13",
                  "(4 - (2)) / 2 = 1")
        self.says(explain("--op", "max", "--kernel", 2, "--stride", 2, "--padding", 1, "--dilation", 2, "--values", "1"), "no real cell", "-inf", "-1")

    def test_adaptive_and_fractional(self):
        self.says(explain("--op", "adaptive-avg", "--output-size", 3, "--size", 5), "(1 + 2) / 2 = 1.5", "(2 + 3 + 4) / 3 = 3",
                  "floor(1.667) = 1 to before ceil(3.333) = 4: cells 1..3", "3 does not divide 5")
        self.says(explain("--op", "fractional-max", "--kernel", 2, "--output-size", 3, "--size", "7x7"), "(7 - 2) / (3 - 1) = 2.5", "starts 0,")

    def test_special_values(self):
        self.says(explain("--op", "max", "--kernel", 5, "--values", "1 nan 3 nan 2"), "nan at cell 3")
        self.says(explain("--op", "max", "--kernel", 2, "--values", "-inf -inf"), "= -inf at cell 0")

    def test_every_op_and_rank(self):
        for op in [["max", "-k", 2], ["min", "-k", 2], ["avg", "-k", 2], ["sum", "-k", 2], ["lp", "-k", 2, "--norm-type", 3], ["adaptive-max", "-o", 3],
                   ["adaptive-avg", "-o", 3], ["fractional-max", "-k", 2, "-o", 2], ["global-avg"], ["global-max"], ["unpool", "-k", 2]]:
            for size in ["6", "5x6", "4x5x6"]:
                if op[0] == "fractional-max" and size == "6":
                    continue
                with self.subTest(op=op, size=size):
                    text = explain("--op", *op, "--size", size, "--svg", self.dir / "picture.svg")
                    self.says(text, "How the output size comes about", "The output", "Where the gradient goes")
                    ET.parse(self.dir / "picture.svg")

    def test_files(self):
        np.save(self.dir / "x.npy", np.arange(2 * 3 * 4 * 4, dtype="f4").reshape(2, 3, 4, 4))
        self.says(explain(self.dir / "x.npy", "--op", "max", "--kernel", 2, "--plane", 5), "plane 5 of 6", "max(80, 81, 84, 85) = 85")
        self.assertIn(b"numbered from 0", cenote("explain", self.dir / "x.npy", "--op", "max", "--kernel", 2, "--plane", 6, code=USAGE).stderr)
        x = np.arange(2 * 4 * 4 * 3, dtype="f4").reshape(2, 4, 4, 3)
        np.save(self.dir / "last.npy", x)
        text = explain(self.dir / "last.npy", "--op", "max", "--kernel", 2, "--plane", 4, "--layout", "nhwc")
        self.says(text, "plane 4 of 6", "input 4 x 4", f"= {x[1, :2, :2, 1].max():.0f} at row 1, column 1")
        x = np.arange(64 * 64 * 3, dtype=np.uint32).reshape(64, 64, 3) % 251
        write_png(self.dir / "x.png", x.astype(np.uint8))
        text = explain(self.dir / "x.png", "--op", "max", "--kernel", 2, "--crop", "4x4+10+20", "--plane", 1)
        self.says(text, "the whole becomes [32, 32, 3]", "from (10, 20)", f"= {x[10:12, 20:22, 1].max()}")
        self.says(explain(self.dir / "x.png", "--op", "max", "--kernel", 2), "input 8 x 8")
        for crop in ["65x4", "4x4+61+0", "4x4+0+9223372036854775807"]:
            self.refuses(USAGE, "explain", self.dir / "x.png", "--op", "max", "--kernel", 2, "--crop", crop, says=["--crop", "axis of 64"])


class Pictures(ToolTest):
    def test_marks_every_window_and_winner(self):
        cenote("explain", "--op", "max", "--kernel", 2, "--size", "4x4", "--svg", self.dir / "p.svg")
        root = ET.parse(self.dir / "p.svg").getroot()
        self.assertEqual(root.tag, SVG + "svg")
        texts = [element.text for element in root.iter(SVG + "text")]
        for expected in ["max_pool2d, kernel_size 2", "max(1, 2, 5, 6) = 6", "index 5, tap 3", "The indices", "Where the gradient goes"]:
            self.assertIn(expected, texts)
        width, height = float(root.get("width")), float(root.get("height"))
        cenote("explain", "--op", "max", "--kernel", 2, "--ceil-mode", "--size", "5x5", "--svg", self.dir / "p.svg")
        self.assertIn("dashed: beyond it, ignored", [element.text for element in ET.parse(self.dir / "p.svg").iter(SVG + "text")])
        for element in root.iter(SVG + "rect"):
            if element.get("x") is not None:
                self.assertGreaterEqual(float(element.get("x")), 0)
                self.assertLessEqual(float(element.get("x")) + float(element.get("width")), width)
                self.assertLessEqual(float(element.get("y")) + float(element.get("height")), height)

    def test_shipped_pictures_are_current(self):
        """assets/*.svg are what scripts/draw-pictures.sh draws today."""
        script = (ROOT / "scripts" / "draw-pictures.sh").read_text().replace("\\\n", " ")
        lines = [line for line in script.splitlines() if " explain " in line]
        self.assertEqual(len(lines), 3)
        for line in lines:
            words = [word for word in shlex.split(line)[1:] if not word.startswith(">")]
            place = words.index("--svg") + 1
            shipped = ROOT / words[place]
            words[place] = str(self.dir / "now.svg")
            cenote(*words)
            self.assertEqual((self.dir / "now.svg").read_text(), shipped.read_text(), f"{shipped.name}: run scripts/draw-pictures.sh")

    def test_a_reader_that_leaves(self):
        """`| head` ends the run as it ends other programs: silently. The picture is there by then."""
        with subprocess.Popen([CENOTE, "explain", "--op", "max", "--kernel", "2", "--size", "64x64", "--all", "--svg", self.dir / "p.svg"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual((process.stderr.read(), process.wait(60)), (b"", -signal.SIGPIPE))
        ET.parse(self.dir / "p.svg")

    def test_needs_a_place(self):
        cenote("explain", "--op", "max", "--kernel", 2, "--svg", self.dir / "no" / "p.svg", code=OUTPUT)

    @unittest.skipUnless(shutil.which("rsvg-convert"), "rsvg-convert (librsvg2-bin) is not here")
    def test_renders(self):
        """Rendered, the input panel shows the winners' colours and the page is mostly white."""
        cenote("explain", "--op", "max", "--kernel", 2, "--size", "4x4", "--svg", self.dir / "p.svg")
        subprocess.run(["rsvg-convert", "-o", self.dir / "p.png", self.dir / "p.svg"], check=True)
        cenote("pool", self.dir / "p.png", self.dir / "p.npy", "--op", "max", "--kernel", 1)
        pixels = np.load(self.dir / "p.npy")[..., :3]
        self.assertGreater((pixels == 255).all(-1).mean(), 0.5)
        for colour in [(0x25, 0x63, 0xeb), (0xea, 0x58, 0x0c), (0x05, 0x96, 0x69), (0xc0, 0x26, 0xd3)]:
            self.assertGreater((pixels == colour).all(-1).sum(), 300, colour)


if __name__ == "__main__":
    unittest.main()
