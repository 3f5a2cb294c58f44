/* SPDX-License-Identifier: MIT */
/* attn_task.h - what the parts of an attention share
 *
 * attn.c goes through tasks and blocks of keys; what is in panels, and how they
 * are multiplied, is the business of one of two forms: floats, which are those
 * of an exact product (kern/gemm.h), or integers (kern/attn_i16.h).
 */
#ifndef GG_CPU_ATTN_TASK_H
#define GG_CPU_ATTN_TASK_H

#include "cpu/attn_mask.h"

struct gg_attn_form;

/* What follows from the arguments; lengths in elements. */
struct gg_attn_dims {
    const struct gg_attn_form *form;
    size_t mr, nr;    /* of tiles */
    size_t group;     /* heads that share keys */
    size_t block_tok; /* tokens of a task */
    size_t n_blocks;  /* of tokens */
    size_t n_tasks;
    size_t cols;    /* of a task, rounded up to nr */
    size_t dv;      /* rounded up to mr */
    size_t keys;    /* GG_ATTN_KEYS, rounded up to mr */
    size_t v_steps; /* values at a time: a multiple */
    /* bytes of panels of queries, keys, values and weights; and for packing */
    size_t q_size, k_size, v_size, w_size, buf_size;
};

/* Keys of a block that a panel of columns sees, from the first of a packed
 * panel of keys on. */
struct gg_attn_part {
    size_t col, n_cols;
    size_t begin, end; /* in the keys that are packed */
    bool masked;
};

/* One thread's buffers. */
struct gg_attn_scratch {
    unsigned char *q; /* columns of d steps, cols / nr panels */
    unsigned char *k; /* rows of d steps, keys / mr panels */
    unsigned char *v; /* rows of a step for each key, dv / mr panels */
    unsigned char *w; /* weights: columns of as many, a panel */
    float *scores;    /* of a panel of columns, [nr][keys], then weights */
    float *out;       /* [cols][dv], not divided by sum yet */
    float *mask;      /* [keys], of a column */
    void *buf;        /* for packing */
    float *values;    /* [v_steps][dv], decoded */
    float *max;       /* [cols], of the scores so far */
    float *shrink;    /* [nr], what was summed so far is worth */
    double *sum;      /* [cols], of exp(score - max) so far */
    /* scales of integers: [cols], [keys], [keys], [nr] */
    float *q_scale, *k_scale, *v_scale, *w_scale;
};

/* A task in progress. */
struct gg_attn_task {
    const struct gg_attn_args *a;
    const struct gg_attn_dims *s;
    const struct gg_attn_mask *mask;
    struct gg_attn_scratch *b;
    size_t seq, head_kv, head0; /* the first of the group's heads */
    size_t tok0, n_tok;
    size_t n_cols; /* column h * n_tok + t is head head0 + h, token tok0 + t */
};

struct gg_attn_form {
    /* mr, nr, v_steps and, with keys and dv known, sizes */
    void (*tile)(struct gg_attn_dims *s, const struct gg_attn_args *a);
    void (*sizes)(struct gg_attn_dims *s, const struct gg_attn_args *a);
    /* n rows of queries, stride floats apart, as columns col and up of one
     * panel */
    void (*pack_q)(const struct gg_attn_task *t, size_t col, const float *q,
                   size_t stride, size_t n);
    /* n keys from first on */
    void (*pack_k)(const struct gg_attn_task *t, size_t first, size_t n);
    /* n values as steps at and up */
    void (*pack_v)(const struct gg_attn_task *t, size_t at, const float *v,
                   size_t stride, size_t n);
    void (*multiply_keys)(const struct gg_attn_task *t,
                          const struct gg_attn_part *p);
    /* n scores of a column, the first of key at in what is packed, become
     * weights exp(score - max); returns their sum */
    double (*weigh)(const struct gg_attn_task *t, float *s, size_t at,
                    size_t n, float max);
    void (*multiply_values)(const struct gg_attn_task *t,
                            const struct gg_attn_part *p);
};
extern const struct gg_attn_form gg_attn_floats, gg_attn_ints;

static inline size_t gg_attn_round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* The keys of the task's head from position first on. */
struct gg_kern_gemm_rows gg_attn_key_rows(const struct gg_attn_task *t,
                                          size_t first);
/* Whether these are floats that need not be decoded. */
bool gg_attn_rows_are_f32(int type, const void *rows, size_t stride);
/* Ask for n rows of size bytes: they lie far apart, which hardware does not
 * foresee. */
void gg_attn_prefetch_rows(const void *row, size_t stride, size_t n,
                           size_t size);

#endif
