/* SPDX-License-Identifier: MIT */
/* token_reference.h - tokens in double precision, each with what it saw
 *
 * A token is evaluated on its own, against keys and values of given ones at
 * given positions, and leaves a key and a value for each layer. So a sequence
 * whose tokens came, moved and went in any order is known from the definition,
 * without any memory. Of llama, whose even layers may see a window.
 */
#ifndef TESTS_RUN_TOKEN_REFERENCE_H
#define TESTS_RUN_TOKEN_REFERENCE_H

#include "tests/model/gen.h"

struct token_ref {
    const struct gen_spec *spec;
    int window; /* positions that layers 0, 2, .. see; 0: all */
    struct token_ref_layer *layer;
    double *freq; /* [d / 2] what a position turns a pair by */
    float *embd, *norm, *out;
    struct token_ref_kv *pool; /* all that there are */
};

/* What a token leaves: a key, not turned yet, and a value of each layer. */
struct token_ref_kv {
    struct token_ref_kv *next;
    double *k, *v; /* [n_layer][n_head_kv * d] */
};

struct token_ref_visible {
    const struct token_ref_kv *t;
    int pos;
};

/* Of a model that gen_model made of spec, which is kept, without
 * scaling, biases and norms of heads. */
void token_ref_init(struct token_ref *m, const struct gen *g,
                    const struct gen_spec *spec, int window);
void token_ref_fini(struct token_ref *m);

/* Evaluate a token at a position that sees n others, which are at its position
 * or before: what it leaves, which belongs to the model, and its logits
 * [n_vocab], unless NULL. */
const struct token_ref_kv *
token_ref_evaluate(struct token_ref *m, int token, int pos,
                   const struct token_ref_visible *seen, int n,
                   double *logits);

#endif
