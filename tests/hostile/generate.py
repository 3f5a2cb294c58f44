#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py COLLECTION > files.txt - describes hostile files as rows

COLLECTION has expect.tsv and the files that it lists. hostile.h explains the
rows. Numbers of weights are left out: a word says that any floats may stand
there.
"""
import os
import sys

BASES = ['model-ok.gguf', 'model-ok-u64.gguf', 'vo-eos-range.gguf',
         'ok-plain-b.gguf', 'im-ok.gguf', 'imdat-ok.gguf',
         'split-ok/big-00001-of-00002.gguf']    # files that others change
SHORTEST = 16   # shortest copy in bytes; longer in small files
WEIGHTS = 500   # shortest run of unknown bytes that may be floats


class Files:
    """Earlier files, and an index of their bytes."""

    def __init__(self):
        self.data, self.at = [], {}

    def add(self, name, data):
        step = 1 if len(data) < 8000 else 4
        self.data.append((name, data))
        for p in range(0, len(data) - 8, step):
            places = self.at.setdefault(data[p:p + 8], [])
            if len(places) < 24:
                places.append((len(self.data) - 1, p))

    def longest(self, data, i, base):
        best = (0, None, 0)
        for f, p in self.at.get(data[i:i + 8], ()):
            src = self.data[f][1]
            n = common(src, p, data, i)
            if n > best[0] or (n == best[0] and f == base):
                best = (n, f, p)
        return best


def common(a, p, b, q):
    """Number of equal bytes in a from p and in b from q."""
    n, m, step = 0, min(len(a) - p, len(b) - q), 4096
    while n < m and a[p + n:p + n + step] == b[q + n:q + n + step]:
        n += step
    n = min(n, m)
    while n > 0 and a[p:p + n] != b[q:q + n]:
        n = max(0, n - 4096)
    while n < m and a[p + n] == b[q + n]:
        n += 1
    return n


def literal(b):
    text = all(32 <= c < 127 for c in b)
    if text and len(b) > 1:
        return ['"' + ''.join('\\%02x' % c if c in b'"\\' else chr(c)
                              for c in b) + '"']
    out, i = [], 0      # texts stand out of the bytes
    while i < len(b):
        j = i
        while j < len(b) and 32 <= b[j] < 127:
            j += 1
        if j - i >= 4:
            out += literal(b[i:j])
            i = j
            continue
        k = max(j, i + 1)
        while k < len(b) and not (len(b) - k >= 4 and
                                  all(32 <= c < 127 for c in b[k:k + 4])):
            k += 1
        out += [b[m:min(m + 32, k)].hex() for m in range(i, k, 32)]
        i = k
    return out


def flush(tokens, rest, at, big):
    """Bytes that no earlier file has: floats, if there are many."""
    if len(rest) >= WEIGHTS and big:
        cut = -(at - len(rest)) % 4
        end = (len(rest) - cut) // 4 * 4 + cut
        tokens += literal(rest[:cut]) if cut else []
        tokens.append('weights %d' % (end - cut))
        tokens += literal(rest[end:]) if rest[end:] else []
    elif rest:
        tokens += literal(rest)
    return b''


def describe(files, data):
    tokens, i, rest, base = [], 0, b'', None
    big = len(data) > 20000
    while i < len(data):
        fill = common(data, i, data, i + 1) + 1 if i + 1 < len(data) else 1
        again = max(((common(data, i, data, i - k), k)
                     for k in range(2, min(i, 128) + 1)
                     if data[i:i + 48] == data[i - k:i - k + 48]),
                    default=(0, 0))
        n, f, p = files.longest(data, i, base)
        if fill >= 7 and fill >= n:
            if fill == 7 and data[i] == 0 and rest:
                flush(tokens, rest[:-1], i, big)
                rest = flush(tokens, b'', i, big)
                tokens.append('n%d' % data[i - 1])
            else:
                rest = flush(tokens, rest, i, big)
                tokens.append('%02x*%d' % (data[i], fill))
            i += fill
        elif again[0] >= 3 * SHORTEST and again[0] > n:
            rest = flush(tokens, rest, i, big)
            tokens.append('again %d+%d' % (again[1], again[0]))
            i += again[0]
        elif n >= (SHORTEST if len(data) > 1500 else 3 * SHORTEST):
            rest = flush(tokens, rest, i, big)
            if f != base:
                tokens.append('of ' + files.data[f][0])
                base = f
            tokens.append('@%d+%d' % (p, n))
            i += n
        else:
            rest += data[i:i + 1]
            i += 1
    flush(tokens, rest, i, big)
    return tokens


def perf(name, data):
    """Words for many equal keys or tensors, which hostile.c can make."""
    if name.startswith('perf-many-kv'):
        return ['"GGUF"', '03000000', '00*8', '60ea0000', '00*4',
                'keys 60000']
    if name.startswith('perf-many-tensors'):
        i = data.index(b'blk.0.w') - 8
        head = literal(data[:i])
        end = data.rindex(b'blk.39999.w') + 11 + 24
        return head + ['tensors 40000', '00*%d' % (len(data) - end)]
    return None


def show(tokens):
    line = ''
    for t in tokens:
        if line and len(line) + len(t) > 77:
            print(line)
            line = ''
        line += ' ' + t
    if line:
        print(line)


def main(folder):
    files, rows = Files(), []
    with open(os.path.join(folder, 'expect.tsv'), encoding='utf-8') as f:
        for line in f:
            if not line.startswith('#'):
                rows.append(line.rstrip('\n'))
    rows.sort(key=lambda r: (BASES + [r.split('\t')[0]]).index(r.split('\t')[0]))
    for row in rows:
        name = row.split('\t')[0]
        with open(os.path.join(folder, name), 'rb') as f:
            data = f.read()
        print(row)
        tokens = perf(name, data)
        if tokens is None:
            tokens = describe(files, data)
            if name in BASES:
                files.add(name, data)
        show(tokens)


main(sys.argv[1])
