/* SPDX-License-Identifier: MIT */
/* scan.h - a scan that is running */
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
    struct gg_window_list windows; /* chunks of the texts */
    struct gguf_sink *sinks;
    size_t n_sinks, n_begun;

    struct gguf_session *const *session;
    size_t n_models;
    size_t most; /* most rows of logits that every session computes at once */
    const float **logits; /* [n_models], logits of the current piece */
    const float **rows;   /* [n_models], logits of the current rows */

    uint32_t group; /* most chunks that are computed together, a group */
    /* Tokens of a piece, in which a longer chunk is computed. The last piece
     * has up to twice that. SIZE_MAX: chunks are computed whole. */
    size_t piece;
    /* groups that go through one layer before the next layer */
    size_t n_groups;
    size_t at;       /* first chunk of the current groups */
    size_t n_filled; /* number of the current groups */
    uint64_t n_tok;  /* tokens of all chunks that are scanned */
    uint64_t n_done; /* tokens of chunks before the current groups */
    /* for each group n_ctx * group tokens; so are the next two */
    gguf_token *token;
    int32_t *seq;
    bool *want;
    struct gguf_batch *batch; /* [n_groups] */
    const struct gguf_batch **list;

    bool wants_rows; /* some sink takes rows */
    double *nll;     /* [n_models][n_rows], for the current rows */
    bool *has_nll;   /* [n_models], nll is computed */
    struct gg_text_counter span;
};

/* ---- scan.c ---- */

/* Make the memory for batches of n_groups groups. GGUF_E_NOMEM. */
enum gguf_status gg_scan_make_batches(struct gguf_scan *j,
                                      struct gguf_error *err);
void gg_scan_free_batches(struct gguf_scan *j, const struct gguf_allocator *a);

/* Number of chunks of the group that begins with a chunk. */
uint32_t gg_scan_group_size(const struct gguf_scan *j, size_t chunk);

/* Fill the batch of current group g with n chunks. */
void gg_scan_fill_batch(struct gguf_scan *j, size_t g, size_t chunk,
                        uint32_t n);

/* Send the logits of n chunks that were decoded whole to the sinks. */
enum gguf_status gg_scan_send_group(struct gguf_scan *j, size_t chunk,
                                    uint32_t n, struct gguf_error *err);

/* Report that n_tok tokens are done. GGUF_E_CANCELLED. */
enum gguf_status gg_scan_report(const struct gguf_scan *j, uint64_t n_tok,
                                struct gguf_error *err);

/* ---- scan_layered.c ---- */

/* Compute the number of groups for which max_stored is enough, and make memory
 * for them instead of one. GGUF_E_LIMIT, GGUF_E_UNSUPPORTED, GGUF_E_NOMEM. */
enum gguf_status gg_scan_plan_layered(struct gguf_scan *j,
                                      struct gguf_error *err);
/* Scan all chunks, n_groups groups at once through each layer. */
enum gguf_status gg_scan_run_layered(struct gguf_scan *j,
                                     struct gguf_error *err);

#endif
