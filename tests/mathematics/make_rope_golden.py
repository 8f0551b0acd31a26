#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints rope_golden.txt: frequencies and rotated vectors of rotary encodings, in 50 digits and without quire.

The formulas are those of the papers and of the published model configurations: RoFormer, position interpolation, NTK-aware
scaling, YaRN (ramp over pairs, magnitude 0.1 ln s + 1), Llama 3.1 (wavelength bands), Phi-3 (long and short factors).
Needs mpmath. The output is a list of C++ initialisers: {"name", magnitude, {frequencies}, {rotated}},
"rotated" is the vector x_d = (d + 1) / width, turned for position 12345 and multiplied by the magnitude.
"""
from mpmath import mp, mpf, ceil, cos, floor, log, pi, sin, sqrt

mp.dps = 50
POSITION = 12345


def plain(base, width):
    return [1 / mpf(base) ** (mpf(2 * i) / width) for i in range(width // 2)]


def ntk(base, width, stretch):
    return plain(mpf(base) * mpf(stretch) ** (mpf(width) / (width - 2)), width)


def yarn(base, width, factor, original, fast=32, slow=1, rounded=True):
    def dim(turns):
        return width * log(mpf(original) / (turns * 2 * pi)) / (2 * log(mpf(base)))

    low, high = dim(mpf(fast)), dim(mpf(slow))
    if rounded:
        low, high = floor(low), ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    out = []
    for i, theta in enumerate(plain(base, width)):
        keep = 1 - min(max((i - low) / (high - low), 0), 1)
        out.append(theta / factor * (1 - keep) + theta * keep)
    return out


def mscale(factor, coefficient=1):
    return mpf(coefficient) * log(mpf(factor)) / 10 + 1


def llama3(base, width, factor, original, low, high):
    out = []
    for theta in plain(base, width):
        wave = 2 * pi / theta
        if wave < mpf(original) / high:
            out.append(theta)
        elif wave > mpf(original) / low:
            out.append(theta / factor)
        else:
            s = (original / wave - low) / (high - low)
            out.append((1 - s) * theta / factor + s * theta)
    return out


def show(name, frequencies, magnitude=mpf(1), interleaved=False, extra=0):
    width = 2 * len(frequencies)
    x = [mpf(d + 1) / width for d in range(width + extra)]
    y = list(x)
    for i, theta in enumerate(frequencies):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + width // 2)
        c, s = cos(POSITION * theta) * magnitude, sin(POSITION * theta) * magnitude
        y[a], y[b] = x[a] * c - x[b] * s, x[b] * c + x[a] * s

    def row(values):
        return "{" + ", ".join(mp.nstr(v, 20, min_fixed=-1, max_fixed=1) for v in values) + "}"

    print(f'{{"{name}", {mp.nstr(magnitude, 20)}, {row(frequencies)}, {row(y)}}},')


factors = [mpf(1) + mpf(i) / 8 for i in range(4)]
long = [mpf(4) + mpf(i) * 16 for i in range(4)]
show("half_split", plain(10000, 8))
show("interleaved", plain(10000, 8), interleaved=True)
show("partial", plain(10000, 8), extra=4)
show("linear", [t / 4 for t in plain(10000, 8)])
show("ntk", ntk(10000, 8, 4))
for length in (1000, 2048, 2049, 5000):
    show(f"dynamic_{length}", ntk(10000, 8, mpf(2) * max(length, 2048) / 2048 - 1))
show("yarn_qwen", yarn(1000000, 64, 4, 32768), mscale(4))
show("yarn_deepseek_v2", yarn(10000, 64, 40, 4096), mscale(40, mpf(707) / 1000) / mscale(40, mpf(1) / 2))
show("yarn_exact_ramp", yarn(150000, 64, 32, 4096, rounded=False), mscale(32))
show("llama3", llama3(500000, 128, 8, 8192, 1, 4))
show("short_factors", [t / f for t, f in zip(plain(10000, 8), factors)], sqrt(1 + log(mpf(32)) / log(mpf(4096))))
show("long_factors", [t / f for t, f in zip(plain(10000, 8), long)], sqrt(1 + log(mpf(32)) / log(mpf(4096))))
