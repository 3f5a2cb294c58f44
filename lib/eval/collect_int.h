/* SPDX-License-Identifier: MIT */
/* collect_int.h - importance data while they are collected
 *
 * A matrix has an entry. Within a chunk squares are added in double; a whole
 * chunk is then added to the totals, or forgotten.
 */
#ifndef GG_EVAL_COLLECT_INT_H
#define GG_EVAL_COLLECT_INT_H

#include "base/index.h"
#include "base/mem.h"
#include "eval/origin.h"
#include "eval/window.h"
#include "gguf/collect.h"

/* A total is a number of two digits in base 2^32, of which each may be as large
 * as a uint64_t: (high * 2^32 + low) * 2^(32 * (place - 1)). Numbers are cut
 * into digits at multiples of 32 bits wherever they are, and digits below these
 * two are dropped. place is that of the largest number that was added, so that
 * a digit that is kept was always kept: the order of additions does not matter.
 * 2^31 chunks fit. */
struct gg_collect_total {
    uint64_t *high, *low;
    int8_t *place;
};
enum { GG_COLLECT_NO_PLACE = -128 }; /* nothing above 0 was added */

struct gg_collect_entry {
    const char *name;
    uint64_t n_cols, n_mats;
    double *chunk;         /* [n_mats][n_cols]: sums of the chunk */
    uint64_t *chunk_count; /* [n_mats] */
    /* A matrix that a pass uses more than once has sums for each further time,
     * so that their order is that of the tokens, however these are cut into
     * passes. */
    double **again;
    size_t n_again, cap_again;
    size_t n_used; /* times in this pass, so far */
    bool met;      /* since its sums were taken */
    size_t n_ends; /* how often they were */
    struct gg_collect_total total;
    uint64_t *count; /* [n_mats] */
};

struct gguf_collect {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena;
    uint32_t n_ctx;
    bool output;
    const char *filter; /* "+TEXT\n" and "-TEXT\n", one after another */
    char precision[32]; /* of products of weights, a name */

    struct gg_origin of; /* once n_chunks is not 0 */

    struct gg_collect_entry **entries;
    size_t n_entries, cap_entries;
    struct gg_index index;
    uint8_t *state; /* enum gguf_collect_state of each chunk */
    size_t n_chunks;
    const char **datasets;
    size_t n_datasets, cap_datasets;
};

/* ---- collect_sum.c ---- */

/* Entry of this name, or NULL. */
struct gg_collect_entry *gg_collect_find(const struct gguf_collect *c,
                                         struct gguf_str name);
/* A new one, with zeros. GGUF_E_NOMEM, GGUF_E_OVERFLOW. */
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

/* Add v >= 0, finite, to total i; its value. */
void gg_collect_add_number(struct gg_collect_total *t, uint64_t i, double v);
void gg_collect_add_digits(struct gg_collect_total *t, uint64_t i,
                           uint64_t high, uint64_t low, int place);
double gg_collect_total_value(const struct gg_collect_total *t, uint64_t i);

/* Where the sums of the entry's next use in this pass go; NULL: no memory. */
double *gg_collect_next_sums(struct gguf_collect *c,
                             struct gg_collect_entry *e,
                             struct gguf_error *err);
/* A pass begins. */
void gg_collect_begin_pass(struct gguf_collect *c);
/* Forget the sums of what was met. */
void gg_collect_begin_chunk(struct gguf_collect *c);
/* Add the sums of what was met, a chunk's or those of a part of its layers, to
 * the totals; or, where one is not finite, none of them: that entry's name.
 * drop: add none in any case. Then they are forgotten. */
const char *gg_collect_add_chunk(struct gguf_collect *c, bool drop);

/* ---- collect_node.c ---- */

/* What looks at a session's graphs. */
struct gg_collect_watch;
/* GGUF_E_NOMEM. */
enum gguf_status gg_collect_watch(struct gg_collect_watch **out,
                                  struct gguf_collect *c,
                                  struct gguf_session *s,
                                  struct gguf_pool *pool,
                                  struct gguf_error *err);
/* The graphs of s are its own again. *err: why the watch stopped a computation,
 * if it did. */
enum gguf_status gg_collect_unwatch(struct gg_collect_watch *w,
                                    struct gguf_error *err);
/* What comes next is c's. */
void gg_collect_watch_set_target(struct gg_collect_watch *w,
                                 struct gguf_collect *c);
/* n rows of states that the output matrix would take. */
enum gguf_status gg_collect_states(struct gg_collect_watch *w,
                                   const float *states, size_t n,
                                   struct gguf_error *err);

/* ---- collect.c ---- */

/* With the settings of c, which must outlive it, and nothing collected. */
enum gguf_status gg_collect_create_like(struct gguf_collect **out,
                                        const struct gguf_collect *c,
                                        struct gguf_error *err);
/* Add what another one has of a matrix. */
enum gguf_status gg_collect_merge_entry(struct gguf_collect *c,
                                        const struct gg_collect_entry *b,
                                        struct gguf_error *err);

/* A run. */
struct gg_collect_job {
    struct gguf_collect *c;
    const struct gguf_collect_run_params *run;
    struct gguf_session *s;
    struct gg_collect_watch *w;
    const gguf_token *text;
    struct gg_window_list windows; /* its chunks */
    gguf_token *token;             /* [n_ctx], a chunk */
    bool *want;                    /* all */
    size_t n_done, n_all;
};
/* A chunk as a batch, whose tokens go to token. */
struct gguf_batch gg_collect_fill_batch(const struct gg_collect_job *j,
                                        size_t chunk, gguf_token *token);
/* What the output matrix would take of the chunk that was decoded last. */
enum gguf_status gg_collect_add_outputs(const struct gg_collect_job *j,
                                        struct gguf_error *err);
/* n_tok tokens of the run are done; GGUF_E_CANCELLED. */
enum gguf_status gg_collect_report(const struct gg_collect_job *j,
                                   uint64_t n_tok, struct gguf_error *err);
/* A chunk is in c, or left out. */
enum gguf_status gg_collect_finish_chunk(struct gg_collect_job *j,
                                         size_t chunk, const char *bad,
                                         struct gguf_error *err);

/* ---- collect_layered.c ---- */

/* The chunks of a run, as many at once through each layer as may be stored. */
enum gguf_status gg_collect_run_layered(struct gg_collect_job *j,
                                        struct gguf_error *err);

#endif
