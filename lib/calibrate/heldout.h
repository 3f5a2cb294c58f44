/* SPDX-License-Identifier: MIT */
/* heldout.h - tokens of a calibration text that no sum contains
 *
 * One part in GG_HELDOUT_EVERY of the text is held out: the last chunk of each
 * eight. A text of fewer chunks is cut into eighths, and the last is held out.
 * Of the tokens held out, a limited number is kept: rows of activations on
 * which encoded matrices are compared. They are cut into runs of equal length,
 * and one token of each run is kept, at a place that changes from run to run:
 * the first tokens of chunks have unusual activations and must not be kept more
 * often than others. */
#ifndef GG_CALIBRATE_HELDOUT_H
#define GG_CALIBRATE_HELDOUT_H

#include <stdbool.h>
#include <stddef.h>

enum { GG_HELDOUT_EVERY = 8, GG_HELDOUT_MOST_ROWS = 1024 };

struct gg_heldout {
    size_t n_tokens; /* tokens of the text */
    size_t part;     /* tokens of a part; every eighth part is held out */
    size_t n_held;   /* tokens held out; 0 if the text has less than eight */
    size_t n_rows;   /* tokens kept; at most n_held */
};

/* Divide a text of n_tokens tokens in chunks of n_ctx. Keep at most most_rows
 * tokens. */
void gg_heldout_init(struct gg_heldout *h, size_t n_tokens, size_t n_ctx,
                     size_t most_rows);

/* Is a token held out? */
bool gg_heldout_has(const struct gg_heldout *h, size_t token);

/* Row of a token among those kept. SIZE_MAX: it is not kept. */
size_t gg_heldout_row(const struct gg_heldout *h, size_t token);

#endif
