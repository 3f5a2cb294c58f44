#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py FOLDER > types.txt - digests of the types that a reference chose

FOLDER has shapes.tsv, tensors.tsv and recipes.tsv: golden/recipes of ../shared.
check-types.c explains the output.
"""
import os
import re
import sys

MASK = (1 << 64) - 1


def fnv1a(text):
    h = 0xcbf29ce484222325
    for b in text.encode():
        h = ((h ^ b) * 0x100000001b3) & MASK
    return h


def rows(folder, name):
    with open(os.path.join(folder, name), encoding='utf-8') as f:
        next(f)
        return [line.rstrip('\n').split('\t') for line in f]


def show_tensors(tensors):
    """In order: a choice depends on the tensors before it."""
    parts = []      # [first layer, last, lines], or [None, None, lines]
    for name, dims, kind in tensors:
        m = re.match(r'blk\.(\d+)\.(.*)', name)
        il = int(m[1]) if m else None
        if not parts or parts[-1][0] != il:
            parts.append([il, il, []])
        parts[-1][2].append('%s %s %s' % (
            m[2] if m else name, kind,
            re.sub(r'(x1)+$', '', dims).replace('x', ' ')))
    merged = []
    for first, last, lines in parts:
        if merged and first is not None and merged[-1][1] == first - 1 and \
                merged[-1][2] == lines:
            merged[-1][1] = last
        else:
            merged.append([first, last, lines])
    for first, last, lines in merged:
        if first is not None:
            print('in %d-%d' % (first, last))
        elif lines is not merged[0][2]:
            print('in -')
        for line in lines:
            print(line)


def unrolled(text):
    for word in text.split(','):
        kind, _, n = word.partition('*')
        for _ in range(int(n or 1)):
            yield kind


def main(folder):
    facts, tensors, sums, odd = {}, {}, {}, {}
    for shape, key, value in rows(folder, 'shapes.tsv'):
        facts.setdefault(shape, {})[key] = value
    for shape, _, name, dims, kind in rows(folder, 'tensors.tsv'):
        tensors.setdefault(shape, []).append((name, dims, kind))
    for shape, f in facts.items():
        print('shape', shape, f['arch'], f['layers'], f['heads'], f['kv'],
              f.get('experts', '0'))
        show_tensors(tensors[shape])
    for shape, recipe, imatrix, status, types, message in \
            rows(folder, 'recipes.tsv'):
        key = (recipe, imatrix)
        sums.setdefault(key, 0)
        odd.setdefault(key, [])
        if status != '0':
            odd[key].append(shape + '!')
            continue
        if message.startswith('fallbacks'):
            odd[key].append(shape + '?')
        elif message == 'needs_imatrix':
            sums[key] += fnv1a('%s needs' % shape)
        for (name, _, _), kind in zip(tensors[shape], unrolled(types)):
            sums[key] += fnv1a('%s %s %s' % (shape, name, kind.lower()))
    listed = {(r[1], r[2], r[0]) for r in rows(folder, 'recipes.tsv')}
    for key, total in sums.items():
        odd[key] += [s + '!' for s in facts if (*key, s) not in listed]
        print('types %s %s 0x%016x' % (*key, total & MASK), *odd[key])


main(sys.argv[1])
