/* SPDX-License-Identifier: MIT */
/* scan.h - a text on its way through models */
#ifndef GG_EVAL_SCAN_H
#define GG_EVAL_SCAN_H

#include "eval/text_counter.h"
#include "eval/window.h"
#include "gguf/eval.h"

#include <stdbool.h>

struct gguf_scan {
    const struct gguf_scan_params *p;
    struct gguf_scan_info info;
    const gguf_token *text;
    struct gg_window_list windows; /* its chunks */
    struct gguf_sink *sinks;
    size_t n_sinks, n_begun;

    struct gguf_session *const *session;
    size_t n_models;
    size_t most; /* rows of logits at once: what every session gives */
    const float **logits; /* [n_models], of the piece at hand */
    const float **rows;   /* [n_models], of the rows at hand */

    uint32_t group;  /* chunks that are computed together, at most */
    size_t piece;    /* tokens of a long chunk whose states are there at once,
                        * or fewer than twice as many at its end; SIZE_MAX: all
                        * of it */
    size_t n_groups; /* that go through a layer before it is the next one's
                        * turn */
    size_t at;       /* the first chunk of the groups at hand, */
    size_t n_filled; /* and how many there are */
    uint64_t n_tok;  /* tokens of all chunks that are scanned, */
    uint64_t n_done; /* and of those before the groups at hand */
    gguf_token *token; /* of each group n_ctx * group, as the rest */
    int32_t *seq;
    bool *want;
    struct gguf_batch *batch; /* of each group */
    const struct gguf_batch **list;

    bool wants_rows; /* some sink does */
    double *nll;     /* [n_models][n_rows], of the rows at hand */
    bool *has_nll;   /* [n_models] */
    struct gg_text_counter span;
};

/* ---- scan.c ---- */

/* Batches of j->n_groups groups. GGUF_E_NOMEM. */
enum gguf_status gg_scan_make_batches(struct gguf_scan *j,
                                      struct gguf_error *err);
void gg_scan_free_batches(struct gguf_scan *j, const struct gguf_allocator *a);

/* Chunks of the group that begins with that one. */
uint32_t gg_scan_group_size(const struct gguf_scan *j, size_t chunk);

/* Group g of those at hand: n chunks. */
void gg_scan_fill_batch(struct gguf_scan *j, size_t g, size_t chunk,
                        uint32_t n);

/* Logits of n chunks that were decoded whole, to the sinks. */
enum gguf_status gg_scan_send_group(struct gguf_scan *j, size_t chunk,
                                    uint32_t n, struct gguf_error *err);

/* n_tok tokens are done. GGUF_E_CANCELLED. */
enum gguf_status gg_scan_report(const struct gguf_scan *j, uint64_t n_tok,
                                struct gguf_error *err);

/* ---- scan_layered.c ---- */

/* How many groups fit into what may be stored: room for these instead of
 * one. GGUF_E_LIMIT, GGUF_E_UNSUPPORTED, GGUF_E_NOMEM. */
enum gguf_status gg_scan_plan_layered(struct gguf_scan *j,
                                      struct gguf_error *err);
/* All chunks, as many groups at once through each layer. */
enum gguf_status gg_scan_run_layered(struct gguf_scan *j,
                                     struct gguf_error *err);

#endif
