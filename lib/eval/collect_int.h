/* SPDX-License-Identifier: MIT */
/* collect_int.h - importance data that is being collected
 *
 * Each matrix has an entry. Within a chunk, squares are summed in double
 * precision. Sums of a complete chunk are added to the totals, or dropped. */
#ifndef GG_EVAL_COLLECT_INT_H
#define GG_EVAL_COLLECT_INT_H

#include "base/index.h"
#include "base/mem.h"
#include "eval/origin.h"
#include "eval/window.h"
#include "gguf/collect.h"

/* A total has two digits in base 2^32, and each digit may grow to a uint64_t:
 * (high * 2^32 + low) * 2^(32 * (place - 1)). Numbers are divided into digits
 * at multiples of 32 bits, and digits below these two are dropped. place is
 * that of the largest number that was added. A digit that is kept has been
 * kept from the start, so that the order of additions does not matter. 2^31
 * chunks fit. */
struct gg_collect_total {
    uint64_t *high, *low;
    int8_t *place;
};
enum { GG_COLLECT_NO_PLACE = -128 }; /* place of a total of 0 */

struct gg_collect_entry {
    const char *name;
    uint64_t n_cols, n_mats;
    double *chunk;         /* [n_mats][n_cols], sums of the current chunk */
    uint64_t *chunk_count; /* [n_mats], rows of the current chunk */
    /* Further sums, for a matrix that a pass uses more than once: one set for
     * each further use, so that sums are in the order of tokens, however a
     * chunk is divided into passes. */
    double **again;
    size_t n_again, cap_again;
    size_t n_used; /* uses in the current pass, so far */
    bool met;      /* used since its sums were last added to the totals */
    size_t n_ends; /* number of times that its sums were added */
    struct gg_collect_total total;
    uint64_t *count; /* [n_mats], rows of all chunks */
};

struct gguf_collect {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena;
    uint32_t n_ctx;
    bool output;
    const char *filter; /* lines "+TEXT\n" and "-TEXT\n" */
    char precision[32]; /* precision of matrix products, a name */

    struct gg_origin of; /* model and text; set if n_chunks is not 0 */

    struct gg_collect_entry **entries;
    size_t n_entries, cap_entries;
    struct gg_index index;
    uint8_t *state; /* enum gguf_collect_state of each chunk */
    size_t n_chunks;
    const char **datasets;
    size_t n_datasets, cap_datasets;
};

/* ---- collect_sum.c ---- */

/* Entry of a name; NULL: none. */
struct gg_collect_entry *gg_collect_find(const struct gguf_collect *c,
                                         struct gguf_str name);
/* Add an entry with zeros. GGUF_E_NOMEM, GGUF_E_OVERFLOW. */
enum gguf_status gg_collect_add_entry(struct gguf_collect *c,
                                      struct gguf_str name, uint64_t n_cols,
                                      uint64_t n_mats,
                                      struct gg_collect_entry **out,
                                      struct gguf_error *err);
/* Are matrices of this name collected? */
bool gg_collect_is_wanted(const struct gguf_collect *c, const char *name);
enum gguf_status gg_collect_add_dataset(struct gguf_collect *c,
                                        struct gguf_str name,
                                        struct gguf_error *err);

/* Add v, finite and not negative, to total i. Then: add the digits of another
 * total; value of total i. */
void gg_collect_add_number(struct gg_collect_total *t, uint64_t i, double v);
void gg_collect_add_digits(struct gg_collect_total *t, uint64_t i,
                           uint64_t high, uint64_t low, int place);
double gg_collect_total_value(const struct gg_collect_total *t, uint64_t i);

/* Sums for the next use of the entry in this pass; NULL: no memory. */
double *gg_collect_next_sums(struct gguf_collect *c,
                             struct gg_collect_entry *e,
                             struct gguf_error *err);
/* Begin a pass: no entry was used yet. */
void gg_collect_begin_pass(struct gguf_collect *c);
/* Drop the sums of entries that were used. */
void gg_collect_begin_chunk(struct gguf_collect *c);
/* Add the sums of entries that were used, by a chunk or some of its layers, to
 * the totals, and set them to 0. If a sum is not finite, nothing is added, and
 * the name of that entry is returned. drop: add nothing in any case. */
const char *gg_collect_add_chunk(struct gguf_collect *c, bool drop);

/* ---- collect_node.c ---- */

/* Callbacks on the graphs of a session. */
struct gg_collect_watch;
/* Watch a session for c. GGUF_E_NOMEM. */
enum gguf_status gg_collect_watch(struct gg_collect_watch **out,
                                  struct gguf_collect *c,
                                  struct gguf_session *s,
                                  struct gguf_pool *pool,
                                  struct gguf_error *err);
/* Restore the callbacks of the session. *err receives the reason if the watch
 * stopped a computation. */
enum gguf_status gg_collect_unwatch(struct gg_collect_watch *w,
                                    struct gguf_error *err);
/* Collect for c from now on. */
void gg_collect_watch_set_target(struct gg_collect_watch *w,
                                 struct gguf_collect *c);
/* Add n rows of states, which are inputs of the output matrix. */
enum gguf_status gg_collect_states(struct gg_collect_watch *w,
                                   const float *states, size_t n,
                                   struct gguf_error *err);

/* ---- collect.c ---- */

/* Make an object with the settings of c, which must outlive it, and no data.
 */
enum gguf_status gg_collect_create_like(struct gguf_collect **out,
                                        const struct gguf_collect *c,
                                        struct gguf_error *err);
/* Add an entry of another object. */
enum gguf_status gg_collect_merge_entry(struct gguf_collect *c,
                                        const struct gg_collect_entry *b,
                                        struct gguf_error *err);

/* A run of gguf_collect_run(). */
struct gg_collect_job {
    struct gguf_collect *c;
    const struct gguf_collect_run_params *run;
    struct gguf_session *s;
    struct gg_collect_watch *w;
    const gguf_token *text;
    struct gg_window_list windows; /* chunks of the text */
    gguf_token *token;             /* [n_ctx], tokens of a chunk */
    bool *want;                    /* [n_ctx], all true */
    size_t n_done, n_all;
};
/* Make a batch of a chunk, with its tokens at token. */
struct gguf_batch gg_collect_fill_batch(const struct gg_collect_job *j,
                                        size_t chunk, gguf_token *token);
/* Add the inputs of the output matrix, after a chunk was decoded. */
enum gguf_status gg_collect_add_outputs(const struct gg_collect_job *j,
                                        struct gguf_error *err);
/* Report that n_tok tokens of the run are done. GGUF_E_CANCELLED. */
enum gguf_status gg_collect_report(const struct gg_collect_job *j,
                                   uint64_t n_tok, struct gguf_error *err);
/* Report that a chunk was added or, because of matrix bad, left out. */
enum gguf_status gg_collect_finish_chunk(struct gg_collect_job *j,
                                         size_t chunk, const char *bad,
                                         struct gguf_error *err);

/* ---- collect_layered.c ---- */

/* Collect the chunks of a run layer by layer, all chunks that may be stored at
 * once. */
enum gguf_status gg_collect_run_layered(struct gg_collect_job *j,
                                        struct gguf_error *err);

#endif
