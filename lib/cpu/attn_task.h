/* SPDX-License-Identifier: MIT */
/* attn_task.h - tasks of an attention, and the two forms of its products
 *
 * attn.c loops over tasks and blocks of keys. A form packs panels and
 * multiplies them: attn_floats.c with the panels of exact products
 * (kern/gemm.h), attn_ints.c with integers (kern/attn_i16.h).
 */
#ifndef GG_CPU_ATTN_TASK_H
#define GG_CPU_ATTN_TASK_H

#include "cpu/attn_mask.h"

struct gg_attn_form;

/* Dimensions that follow from the arguments, in elements. */
struct gg_attn_dims {
    const struct gg_attn_form *form;
    size_t mr, nr;    /* rows and columns of a tile */
    size_t group;     /* heads that share a head of keys */
    size_t block_tok; /* tokens of a task */
    size_t n_blocks;  /* blocks of tokens */
    size_t n_tasks;   /* tasks: blocks of tokens, key heads, sequences */
    size_t cols;      /* columns of a task, rounded up to nr */
    size_t dv;        /* dv of the arguments, rounded up to mr */
    size_t keys;      /* GG_ATTN_KEYS, rounded up to mr */
    size_t v_steps;   /* values that are decoded at a time: a multiple of the
                         steps that a form packs together */
    size_t q_size;    /* bytes of a panel of queries */
    size_t k_size;    /* bytes of a panel of keys */
    size_t v_size;    /* bytes of a panel of values */
    size_t w_size;    /* bytes of a panel of weights */
    size_t buf_size;  /* bytes of scratch for packing */
};

/* Product of a panel of columns with the open keys of a block. */
struct gg_attn_part {
    size_t col, n_cols; /* first column, and number of columns */
    size_t begin, end;  /* packed keys; begin is the first key of a panel */
    bool masked;        /* the mask adds something */
};

/* Buffers of one thread. */
struct gg_attn_scratch {
    unsigned char *q; /* cols / nr panels of columns of d steps */
    unsigned char *k; /* keys / mr panels of rows of d steps */
    unsigned char *v; /* dv / mr panels of rows with a step for each key */
    unsigned char
        *w;         /* a panel of weights: columns with a step for each key */
    float *scores;  /* [nr][keys], scores of a panel of columns, then their
                         weights */
    float *out;     /* [cols][dv], sums that are not divided yet */
    float *mask;    /* [keys], mask of a column */
    void *buf;      /* scratch for packing, buf_size bytes */
    float *values;  /* [v_steps][dv], decoded values */
    float *max;     /* [cols], largest score so far */
    float *shrink;  /* [nr], factor of the sums so far after a new maximum */
    double *sum;    /* [cols], sum of exp(score - max) so far */
    float *q_scale; /* [cols], scales of integer queries */
    float *k_scale; /* [keys], scales of integer keys */
    float *v_scale; /* [keys], scales of integer values */
    float *w_scale; /* [nr], scales of integer weights */
};

/* A task in progress: some tokens of the heads that share a head of keys.
 * Column h * n_tok + t is head head0 + h and token tok0 + t. */
struct gg_attn_task {
    const struct gg_attn_args *a;
    const struct gg_attn_dims *s;
    const struct gg_attn_mask *mask;
    struct gg_attn_scratch *b;
    size_t seq, head_kv; /* sequence and head of keys */
    size_t head0;        /* first head of the group */
    size_t tok0, n_tok;  /* first token, and number of tokens */
    size_t n_cols;       /* number of columns */
};

/* Form of the products. */
struct gg_attn_form {
    /* Set mr, nr and v_steps. */
    void (*tile)(struct gg_attn_dims *s, const struct gg_attn_args *a);
    /* Set the sizes of panels and buf. keys and dv are known. */
    void (*sizes)(struct gg_attn_dims *s, const struct gg_attn_args *a);
    /* Pack n rows of queries, stride floats apart, as columns col and up of one
     * panel. */
    void (*pack_q)(const struct gg_attn_task *t, size_t col, const float *q,
                   size_t stride, size_t n);
    /* Pack n keys from position first on. */
    void (*pack_k)(const struct gg_attn_task *t, size_t first, size_t n);
    /* Pack n rows of values, stride floats apart, as steps at and up. */
    void (*pack_v)(const struct gg_attn_task *t, size_t at, const float *v,
                   size_t stride, size_t n);
    /* Multiply the keys by the columns of p, into scores. */
    void (*multiply_keys)(const struct gg_attn_task *t,
                          const struct gg_attn_part *p);
    /* Turn n scores of a column, for packed keys from at on, into weights
     * exp(score - max). Returns their sum. */
    double (*weigh)(const struct gg_attn_task *t, float *s, size_t at,
                    size_t n, float max);
    /* Add the values times the weights to out. */
    void (*multiply_values)(const struct gg_attn_task *t,
                            const struct gg_attn_part *p);
};
extern const struct gg_attn_form gg_attn_floats, gg_attn_ints;

/* Smallest multiple of `to` that is at least n. */
static inline size_t gg_attn_round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Rows of the task's keys from position first on. */
struct gg_kern_gemm_rows gg_attn_key_rows(const struct gg_attn_task *t,
                                          size_t first);
/* Are the rows aligned floats, which need no decoding? */
bool gg_attn_rows_are_f32(int type, const void *rows, size_t stride);
/* Prefetch n rows of size bytes: they lie far apart, where the hardware does
 * not prefetch. */
void gg_attn_prefetch_rows(const void *row, size_t stride, size_t n,
                           size_t size);

#endif
