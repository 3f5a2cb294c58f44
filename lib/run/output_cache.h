/* SPDX-License-Identifier: MIT */
/* output_cache.h - outputs of decodes that are kept, and given again
 *
 * Who takes the same batches through a session again and again can have it
 * remember what they gave: the states before the output matrix, of which logits
 * are made anew, with the same bits. So many batches, in their order.
 */
#ifndef GG_RUN_OUTPUT_CACHE_H
#define GG_RUN_OUTPUT_CACHE_H

#include "gguf/session.h"

struct gg_output_cache {
    bool on, replays;
    float *x; /* [n_rows][n_embd] */
    size_t n_rows, cap_rows;
    struct gg_output_cache_batch {
        size_t row, n; /* its outputs */
        bool wide;
    } * batch;
    size_t n, cap;
    size_t next; /* the batch that is decoded next */
};

/* From now on what a session decodes is remembered, after all that was. */
void gg_output_cache_record(struct gguf_session *s);
/* From now on decoding gives, one by one, what was remembered, whatever the
 * batch; from the first again after each call of this. */
void gg_output_cache_replay(struct gguf_session *s);
/* No longer: everything is forgotten. */
void gg_output_cache_stop(struct gguf_session *s);

/* decode.c: after a decode; instead of one, which fails with GGUF_E_INVALID if
 * there were no more, GGUF_E_NOMEM. */
enum gguf_status gg_output_cache_store(struct gguf_session *s,
                                       struct gguf_error *err);
enum gguf_status gg_output_cache_load(struct gguf_session *s,
                                      struct gguf_error *err);

#endif
