/* SPDX-License-Identifier: MIT */
/* sensitivity_int.h - chunks that pass the layers of a model, and disturbances
 *
 * All chunks of a run stand before the same layer: the tensors that they carry
 * into it are stored. A trial computes a chunk from there to the end of the
 * model, with noise on the results of products with one weight. */
#ifndef GG_EVAL_SENSITIVITY_INT_H
#define GG_EVAL_SENSITIVITY_INT_H

#include "data/gguf_list.h"
#include "eval/weight_noise.h"
#include "eval/window.h"
#include "gguf/kld.h"
#include "gguf/sensitivity.h"
#include "run/graph_cuts.h"
#include "run/session_int.h"

struct gg_sensitivity_run {
    struct gguf_imatrix *im;
    struct gguf_session *s;
    const struct gguf_sensitivity_params *p;
    const struct gguf_allocator *a;
    const gguf_token *text;
    struct gg_kern kern;
    struct gg_data_gguf list;
    struct gg_window_list windows;
    size_t n_chunks;
    size_t *chunk; /* [n_chunks], number of each chunk in the text */
    gguf_token *token;
    bool *want;
    struct gguf_batch batch;
    struct gg_graph_cuts cuts;
    uint32_t layer;  /* layer before which the chunks stand */
    char *store;     /* [n_chunks][cuts.most], tensors that they carry */
    uint64_t stored; /* bytes of one chunk in the store */
    float *states;   /* [n_chunks][n_ctx][n_embd], undisturbed final states */
    float *logits;   /* [max_logits][n_vocab], logits of some rows */
    struct gguf_kld_token *kld; /* [max_logits] */
    /* uses of weights that are measured, or cannot be */
    struct gg_sensitivity_use {
        const struct gguf_tensor *weight;
        bool table; /* rows are looked up */
    } * seen;
    size_t n_seen, cap_seen;
    size_t n_measured;
    uint64_t done, total; /* tokens times layers */
};

/* The weight that is measured. */
struct gg_sensitivity_trial {
    struct gg_weight_noise noise;
    const struct gguf_tensor *weight;
    char name[GGUF_TENSOR_NAME];
    bool head;                        /* a product in the graph of logits */
    bool table;                       /* rows are looked up */
    struct gg_weight_noise_sums sums; /* sums over the last pass */
};

/* ---- sensitivity_pass.c ---- */

/* First node of a layer, and the node after its last. */
size_t gg_sensitivity_begin_of_layer(const struct gg_sensitivity_run *r,
                                     uint32_t il);
size_t gg_sensitivity_end_of_layer(const struct gg_sensitivity_run *r,
                                   uint32_t il);

/* Plan chunk c and prepare its graph. Then, after its nodes were computed: make
 * its states outputs of the session. Both fail as decoding does. */
enum gguf_status gg_sensitivity_begin_chunk(struct gg_sensitivity_run *r,
                                            size_t c, struct gguf_error *err);
enum gguf_status gg_sensitivity_finish_chunk(struct gg_sensitivity_run *r,
                                             struct gguf_error *err);

/* Move all chunks over a layer, undisturbed. */
enum gguf_status gg_sensitivity_advance_layer(struct gg_sensitivity_run *r,
                                              struct gguf_error *err);

/* Compute chunk c to the end, disturbed. *kld receives the mean divergence of
 * its tokens from the undisturbed ones. */
enum gguf_status gg_sensitivity_try_chunk(struct gg_sensitivity_run *r,
                                          struct gg_sensitivity_trial *t,
                                          size_t c, double *kld,
                                          struct gguf_error *err);

#endif
