#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py - models of tests/family, from JSON and llama.cpp's outputs

    generate.py [--check] FOLDER FAMILIES [NAME...]
    generate.py --digest LOGITS WIDTH

FOLDER has skeletons/NAME.json and logits/NAME.f32.gz; FAMILIES is tests/family.
A model NAME without a text is left out if NAME-t has one, which replaces it: a
model whose indexer has no equal scores, the order of which nothing defines.
Writes the model's section of each text (skeleton.h), with a digest if the text
has one or NAME is given; other sections stay. A model without a text is written
to FAMILIES itself. --check writes nothing: it prints the number of texts that
agree with FOLDER, and fails if one does not. --digest prints the line of a text
for LOGITS, rows of WIDTH floats, which may be compressed by gzip.
"""
import glob
import gzip
import json
import os
import re
import struct
import sys

SUMS, TOKENS = 16, 64


def f32(v):
    """The shortest %g text that gives the same single-precision number."""
    want = struct.pack("f", v)
    for n in range(1, 10):
        text = "%.*g" % (n, struct.unpack("f", want)[0])
        if struct.pack("f", float(text)) == want:
            return text


def value(kind, v):
    if kind.startswith("arr:"):
        return " ".join(value(kind[4:], x) for x in v)
    return f32(v) if kind == "f32" else "%d" % v if kind != "str" else v


def layer_of(name):
    m = re.match(r"((?:.*\.)?blk)\.(\d+)\.(.*)", name)
    return m.groups() if m else (None, None, name)


def tensor_lines(tensors):
    """Lines of the tensors; layers with equal tensors share their lines."""
    runs = []
    for name, _, dims in tensors:
        prefix, il, rest = layer_of(name)
        if not runs or runs[-1][0] != (prefix, il):
            runs.append(((prefix, il), []))
        runs[-1][1].append("%s %s" % (rest, " ".join(map(str, dims))))
    top, done = True, set()
    for i, ((prefix, il), lines) in enumerate(runs):
        if i in done:
            continue
        if il is None:
            if not top:
                yield "in -"
        else:
            alike = [k for k in range(i, len(runs))
                     if runs[k][0][0] == prefix and runs[k][1] == lines]
            done.update(alike)
            yield "in %s %s" % (prefix, ranges(int(runs[k][0][1]) for k in alike))
        top = il is None
        yield from lines


def ranges(numbers):
    out = []
    for n in numbers:
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in out)


def digest(path, width):
    """SUMS sums, each over a part of the rows with random signs."""
    mask, sums = (1 << 64) - 1, [0.0] * SUMS
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        x = struct.unpack("<%df" % (TOKENS * width), f.read(4 * TOKENS * width))
    for i, v in enumerate(x):
        z = (i + 1) * 0x9e3779b97f4a7c15 & mask
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & mask
        z = (z ^ z >> 27) * 0x94d049bb133111eb & mask
        sums[i // width * SUMS // TOKENS] += v if z >> 63 else -v
    return "digest %d %d %s" % (TOKENS, width, " ".join("%.9g" % s for s in sums))


def section(m, old, folder, wanted):
    keys = {k: v for k, _, v in m["kv"]}
    arch = keys["general.architecture"]
    yield from (line for line in old if line.startswith("#"))
    yield "seed 0x%016x" % int(m["seed"], 0)
    for pattern, factor in m.get("gain", {}).items():
        yield "gain %s %g" % (pattern, factor)
    yield "run %s" % m["run"]
    yield from (line for line in old if line.startswith("tol "))
    for k, kind, v in m["kv"]:
        short = k[len(arch):] if k.startswith(arch + ".") else k
        yield "key %s %s %s" % (short, kind, value(kind, v))
    yield from tensor_lines(m["tensors"])
    if wanted:
        width = "embedding_length" if m["run"] == "embed" else "vocab_size"
        yield digest("%s/logits/%s.f32.gz" % (folder, m["name"]),
                     keys["%s.%s" % (arch, width)])


def main(args):
    if args[:1] == ["--digest"]:
        print(digest(args[1], int(args[2])))
        return 0
    check = args[:1] == ["--check"]
    folder, families, *names = args[check:]
    n = n_same = 0
    for path in sorted(glob.glob(folder + "/skeletons/*.json")):
        with open(path) as f:
            m = json.load(f)
        text = (glob.glob("%s/*/%s.txt" % (families, m["name"])) +
                ["%s/%s.txt" % (families, m["name"])])[0]
        old, rest = "", ""
        if os.path.exists(text):
            with open(text) as f:
                old, mark, rest = f.read().partition("\n[")
            rest = mark + rest
        elif glob.glob("%s/*/%s-t*.txt" % (families, m["name"])):
            continue
        lines = old.split("\n")
        wanted = m["name"] in names or any(x.startswith("digest ") for x in lines)
        new = "\n".join(section(m, lines, folder, wanted)) + "\n"
        n += 1
        n_same += new == old
        if new != old:
            print("# %s has no text, or another" % m["name"])
        if not check:
            with open(text, "w") as f:
                f.write(new + rest)
    print("%d of %d texts say what is there" % (n_same, n))
    return check and (not n or n_same != n)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
