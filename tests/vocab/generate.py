#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py - writes texts.txt, and the digests of ids in digests.txt

    generate.py [--check] FOLDER DIRECTORY

FOLDER has corpus.tsv and ids-trained-llama.tsv, llama.cpp's ids for it.
check-text-digests.c explains the files. --check writes nothing and fails if the
files in DIRECTORY differ. Digests of words are this library's own:
check-text-digests prints those that differ.
"""
import sys


def fnv1a(h, data):
    for b in data:
        h = (h ^ b) * 0x100000001b3 & (1 << 64) - 1
    return h


def escaped(text):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else "\\%02x" % b
                   for b in text)


def id_lines(texts, rows):
    for mode in "special+parse", "special", "plain":
        h = back = 0xcbf29ce484222325
        for text, (_, _, ids, again) in zip(
                texts, (r for r in rows if r[1] == mode)):
            h = fnv1a(h, ids.encode() + b"\n")
            back = fnv1a(back, text if again == "=" else b"" if again[:1] == "-"
                         else bytes.fromhex(again))
        yield "ids %s 0x%016x" % (mode, h)
    yield "ids text 0x%016x" % back


def main(args):
    check = args[:1] == ["--check"]
    folder, to = args[check:]
    with open(folder + "/corpus.tsv") as f:
        texts = [bytes.fromhex(line.rstrip("\n").rpartition("\t")[2])
                 for line in f.readlines()[1:]]
    with open(folder + "/ids-trained-llama.tsv") as f:
        rows = [line.rstrip("\n").split("\t") for line in f
                if not line.startswith("#")]
    with open(to + "/digests.txt") as f:
        words = [line for line in f if not line.startswith("ids ")]
    new = {"texts.txt": "".join(escaped(t) + "\n" for t in texts),
           "digests.txt": "".join(line + "\n" for line in id_lines(texts, rows)) +
                          "".join(words)}
    bad = 0
    for name, text in new.items():
        with open(to + "/" + name) as f:
            same = f.read() == text
        print("%s is %s" % (name, "as it was" if same else "another one"))
        bad += not same
        if not check:
            with open(to + "/" + name, "w") as f:
                f.write(text)
    return check and bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
