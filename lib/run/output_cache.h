/* SPDX-License-Identifier: MIT */
/* output_cache.h - keep the outputs of decodes, and give them again
 *
 * If the same batches are decoded again and again, a session can keep their
 * states before the output matrix. Logits computed from them have the same
 * bits. Batches are kept, and given, in their order. */
#ifndef GG_RUN_OUTPUT_CACHE_H
#define GG_RUN_OUTPUT_CACHE_H

#include "gguf/session.h"

struct gg_output_cache {
    bool on, replays;
    float *x; /* [n_rows][n_embd], states */
    size_t n_rows, cap_rows;
    struct gg_output_cache_batch {
        size_t row, n; /* first row and number of rows of its outputs */
        bool wide;
    } * batch;
    size_t n, cap;
    size_t next; /* index of the batch that is decoded next */
};

/* Keep the outputs of all decodes from now on, after those that are kept. */
void gg_output_cache_record(struct gguf_session *s);
/* Give the kept outputs from now on, one batch for each decode, whatever its
 * tokens. Each call begins with the first batch again. */
void gg_output_cache_replay(struct gguf_session *s);
/* Decode as usual from now on, and drop all outputs. */
void gg_output_cache_stop(struct gguf_session *s);

/* decode.c: keep the outputs of a decode. Then: give the next ones in place of
 * a decode. GGUF_E_INVALID: no more are kept. GGUF_E_NOMEM. */
enum gguf_status gg_output_cache_store(struct gguf_session *s,
                                       struct gguf_error *err);
enum gguf_status gg_output_cache_load(struct gguf_session *s,
                                      struct gguf_error *err);

#endif
