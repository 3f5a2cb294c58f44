/* SPDX-License-Identifier: MIT */
/* shards.c - splits an input into the shards of a set
 *
 * The bytes before the first "GGUF" choose the path to open, and whether a
 * shard is missing. Each "GGUF" begins a shard.
 */
#include "config.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PIECES = 8 };

/* Split `in' into shards. *front: number of bytes before the first. Returns
 * the number of shards. */
static size_t cut_shards(struct bytes in, struct bytes *piece, size_t *front)
{
    size_t n = 0, i = 0;
    *front = in.n;
    for (; in.n - i >= 4; i++) {
        if (memcmp(in.p + i, "GGUF", 4))
            continue;
        if (n == 0)
            *front = i;
        else
            piece[n - 1].n = (size_t)(in.p + i - piece[n - 1].p);
        if (n == MAX_PIECES)
            return n;
        piece[n++] = (struct bytes){ in.p + i, in.n - i };
    }
    return n;
}

struct gguf_file *shards_open(struct bytes *in)
{
    struct bytes piece[MAX_PIECES];
    struct gguf_file *s;
    char name[64];
    struct gguf_error err;
    size_t n = cut_shards(*in, piece, &in->n);
    if (n == 0)
        return NULL;
    unsigned which = take(in), missing = take(in) == 'm';
    unsigned count = (unsigned)n + missing;
    for (unsigned i = 0; i < n; i++) {
        MUST(gguf_split_name_format(name, sizeof name, "m", i + 1, count,
                                    NULL) == GGUF_OK);
        scratch_write(scratch_path(name), piece[i].p, piece[i].n);
    }
    if (which == 'd')
        strcpy(name, ".");
    else if (which == 'p')
        strcpy(name, "m");
    else
        MUST(gguf_split_name_format(name, sizeof name, "m", 1 + which % count,
                                    count, NULL) == GGUF_OK);
    gguf_error_clear(&err);
    enum gguf_status st = gguf_file_open(&s, scratch_path(name), NULL, &err);
    MUST(st == GGUF_OK ? s != NULL : !s && err.status == st && err.message[0]);
    MUST(st != GGUF_OK || !missing);
    return s;
}
