#!/usr/bin/env python3
"""Draws cenote.png: a cenote, a lake in a collapsed cave, with the sun falling through the opening.

Everything is computed: value noise for rock and water, a cone of light, vines as random walks. The same bytes on every run.
Needs numpy (Debian: python3-numpy).   python3 assets/draw_cenote.py [OUTPUT.png]
"""
import pathlib
import struct
import sys
import zlib

import numpy as np

WIDTH, HEIGHT = 480, 320


def value_noise(random, cell):
    """Smooth noise in [0, 1] with features of about `cell` pixels."""
    rows, columns = HEIGHT // cell + 3, WIDTH // cell + 3
    lattice = random.random((rows, columns))
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH] / cell
    y0, x0 = y.astype(int), x.astype(int)
    fy, fx = y - y0, x - x0
    fy, fx = fy * fy * (3 - 2 * fy), fx * fx * (3 - 2 * fx)
    top = lattice[y0, x0] * (1 - fx) + lattice[y0, x0 + 1] * fx
    bottom = lattice[y0 + 1, x0] * (1 - fx) + lattice[y0 + 1, x0 + 1] * fx
    return top * (1 - fy) + bottom * fy


def fractal(random, cell, octaves):
    total, weight, scale = np.zeros((HEIGHT, WIDTH)), 0.0, 1.0
    for _ in range(octaves):
        total += scale * value_noise(random, max(cell, 2))
        weight += scale
        cell, scale = cell // 2, scale * 0.55
    return total / weight


def mix(a, b, part):
    part = np.clip(part, 0, 1)[..., None]
    return np.asarray(a) * (1 - part) + np.asarray(b) * part


def smooth(low, high, x):
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def draw():
    random = np.random.RandomState(2026)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(float)
    u, v = (x - WIDTH * 0.47) / WIDTH, y / HEIGHT

    # Rock: strata bent by noise, darker away from the light.
    coarse, fine = fractal(random, 96, 5), fractal(random, 16, 4)
    strata = 0.5 + 0.5 * np.sin((v * 46 + coarse * 16))
    rock = mix((44, 34, 34), (186, 140, 98), 0.18 + 0.42 * coarse + 0.22 * strata + 0.30 * (fine - 0.5))
    picture = rock

    # The opening: an ellipse with a ragged edge, sky and a little cloud behind it.
    ragged = (fractal(random, 40, 4) - 0.5) * 0.22
    opening = np.sqrt((u / 0.27) ** 2 + ((v - 0.10) / 0.19) ** 2) + ragged
    cloud = smooth(0.52, 0.75, fractal(random, 64, 5))
    sky = mix(mix((80, 160, 226), (196, 228, 246), v / 0.3), (255, 255, 255), cloud)
    rim = smooth(1.5, 0.98, opening)
    picture = mix(picture, (250, 214, 150), 0.55 * rim * (opening > 1))
    picture = mix(picture, sky, smooth(1.02, 0.97, opening))

    # Water: turquoise where the light falls, deep blue elsewhere, with flat ripples.
    shore = 0.66 + 0.035 * np.sin(u * 5 + 1.0) + 0.05 * (fractal(random, 48, 3) - 0.5) - 0.06 * np.abs(u)
    depth = (v - shore) / (1 - shore)
    pool = np.exp(-((u + 0.02) / 0.22) ** 2 - ((v - 0.80) / 0.16) ** 2)
    ripples = fractal(random, 10, 3)
    stretched = 0.5 + 0.5 * np.sin(v * 150 + 7 * coarse + 2.4 * np.sin(u * 38 + v * 20) + 5 * ripples)
    water = mix((10, 48, 78), (26, 150, 168), 0.25 + 0.55 * pool + 0.25 * (1 - depth))
    water = mix(water, (150, 244, 226), 0.85 * pool * (0.35 + 0.65 * stretched))
    water = mix(water, (255, 255, 246), 0.9 * smooth(0.86, 0.99, stretched) * pool ** 0.6)
    picture = mix(picture, water, smooth(-0.004, 0.012, depth))
    picture = mix(picture, (12, 22, 28), 0.7 * np.exp(-(np.abs(depth) / 0.018) ** 2))

    # Light: a cone from the opening to the pool, streaked, and the darkness around it.
    spread = 0.13 + 0.20 * v
    streak = 0.72 + 0.28 * np.sin(np.arctan2(u + 0.02, v + 0.55) * 95 + 1.3)
    beam = np.exp(-((u + 0.02 * v) / spread) ** 4) * smooth(0.04, 0.22, v) * smooth(0.98, 0.55, v) * streak
    picture = mix(picture, (255, 246, 206), 0.42 * beam)
    shade = smooth(0.30, 0.62, np.sqrt(u ** 2 + ((v - 0.45) * 0.75) ** 2))
    picture = mix(picture, (10, 10, 18), 0.72 * shade * smooth(0.98, 1.15, opening))

    # Vines: random walks down from the rim, leaves as small discs.
    for _ in range(46):
        angle = random.uniform(0.02, 0.98) * np.pi
        px = WIDTH * (0.47 + 0.285 * np.cos(angle))
        py = HEIGHT * (0.10 + 0.19 * np.sin(angle))
        length = random.uniform(0.06, 0.34) * HEIGHT
        drift = random.uniform(-0.05, 0.05)
        lit = random.uniform(0.3, 1.0)
        for step in range(int(length)):
            px += drift + random.uniform(-0.35, 0.35)
            py += 1
            if py >= HEIGHT * 0.72 or not 1 <= px < WIDTH - 2:
                break
            leaf = random.uniform(0.7, 2.3) * (1 - 0.6 * step / length)
            mask = np.exp(-((x[int(py) - 3:int(py) + 4, int(px) - 3:int(px) + 4] - px) ** 2
                            + (y[int(py) - 3:int(py) + 4, int(px) - 3:int(px) + 4] - py) ** 2) / (leaf * leaf))
            patch = picture[int(py) - 3:int(py) + 4, int(px) - 3:int(px) + 4]
            green = np.array((34, 70, 34)) * (1 - lit) + np.array((112, 168, 62)) * lit
            patch[...] = mix(patch, green, 0.8 * mask[:patch.shape[0], :patch.shape[1]])
    grain = random.normal(0, 2.2, (HEIGHT, WIDTH, 1))
    return np.clip(picture + grain, 0, 255).round().astype(np.uint8)


def write_png(path, picture):
    height, width, _ = picture.shape
    # Filter 1 (difference to the pixel on the left) halves the size of such a picture.
    left = np.concatenate([np.zeros_like(picture[:, :1]), picture[:, :-1]], axis=1)
    rows = np.concatenate([np.ones((height, 1), np.uint8), (picture - left).reshape(height, width * 3)], axis=1)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
                     + chunk(b"IEND", b""))


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("cenote.png")
    write_png(target, draw())
