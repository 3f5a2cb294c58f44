# SPDX-License-Identifier: MIT
"""xxh64.py FILE...: the XXH64 of each file, seed 0, as 16 digits.

After the description of the algorithm (xxHash, doc/xxhash_spec.md), so that
digests of ours are compared with something that is not the library's.
"""
import sys

M = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F,
                      0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)


def rotl(x, r):
    return (x << r | x >> 64 - r) & M


def step(acc, lane):
    return rotl((acc + lane * P2) & M, 31) * P1 & M


def xxh64(data):
    n, at = len(data), 0
    if n >= 32:
        acc = [(P1 + P2) & M, P2, 0, -P1 & M]
        while at + 32 <= n:
            for k in range(4):
                lane = int.from_bytes(data[at + 8 * k:at + 8 * k + 8],
                                      "little")
                acc[k] = step(acc[k], lane)
            at += 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & M
        for a in acc:
            h = ((h ^ step(0, a)) * P1 + P4) & M
    else:
        h = P5
    h = (h + n) & M
    while at + 8 <= n:
        h ^= step(0, int.from_bytes(data[at:at + 8], "little"))
        h = (rotl(h, 27) * P1 + P4) & M
        at += 8
    if at + 4 <= n:
        h ^= int.from_bytes(data[at:at + 4], "little") * P1 & M
        h = (rotl(h, 23) * P2 + P3) & M
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ byte * P5 & M, 11) * P1 & M
    h = (h ^ h >> 33) * P2 & M
    h = (h ^ h >> 29) * P3 & M
    return h ^ h >> 32


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, "rb") as f:
            print(f"{xxh64(f.read()):016x}")
