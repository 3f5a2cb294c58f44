/* SPDX-License-Identifier: MIT */
/* heldout.c - tokens of a calibration text that no sum contains */
#include "config.h"
#include "calibrate/heldout.h"

#include "base/compiler.h"

#include <stdint.h>

enum { EVERY = GG_HELDOUT_EVERY };

void gg_heldout_init(struct gg_heldout *h, size_t n_tokens, size_t n_ctx,
                     size_t most_rows)
{
    const bool has_chunks = n_ctx && n_tokens / n_ctx >= EVERY;
    h->n_tokens = n_tokens;
    h->part = has_chunks ? n_ctx : GG_MAX(n_tokens / EVERY, 1);
    const size_t n_parts = n_tokens / h->part, rest = n_tokens % h->part;
    h->n_held = n_parts / EVERY * h->part;
    if (n_parts % EVERY == EVERY - 1)
        h->n_held += rest;
    h->n_rows = GG_MIN(h->n_held, most_rows);
}

bool gg_heldout_has(const struct gg_heldout *h, size_t token)
{
    return token < h->n_tokens && token / h->part % EVERY == EVERY - 1;
}

/* Place below n for a run: multiples of the golden ratio are spread evenly
 * (Knuth, The Art of Computer Programming, 6.4). */
static size_t choose_place(size_t run, size_t n)
{
    const uint32_t fraction = (uint32_t)run * UINT32_C(2654435769);
    return (size_t)((uint64_t)fraction * n >> 32);
}

size_t gg_heldout_row(const struct gg_heldout *h, size_t token)
{
    if (!h->n_rows || !gg_heldout_has(h, token))
        return SIZE_MAX;
    const size_t at = token / h->part / EVERY * h->part + token % h->part;
    /* Run i is held-out tokens floor(i n_held / n_rows) and up. */
    const size_t run = ((at + 1) * h->n_rows - 1) / h->n_held;
    const size_t first = run * h->n_held / h->n_rows;
    const size_t end = (run + 1) * h->n_held / h->n_rows;
    return at == first + choose_place(run, end - first) ? run : SIZE_MAX;
}
