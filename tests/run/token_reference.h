/* SPDX-License-Identifier: MIT */
/* token_reference.h - llama in double precision, one token at a time
 *
 * The caller lists the tokens that a token attends to, and their positions. The
 * evaluation gives the token's logits, and its key and value in every layer for
 * later tokens. So the logits of any sequence follow from the definition,
 * however its tokens were removed, copied and moved. Even layers may have a
 * sliding window.
 */
#ifndef TESTS_RUN_TOKEN_REFERENCE_H
#define TESTS_RUN_TOKEN_REFERENCE_H

#include "tests/model/gen.h"

struct token_ref {
    const struct gen_spec *spec;
    int window; /* sliding window of layers 0, 2, ... in tokens; 0: none */
    struct token_ref_layer *layer;
    double *freq; /* [d / 2] RoPE: radians per position */
    float *embd, *norm, *out;
    struct token_ref_kv *pool; /* every token evaluated; freed by fini */
};

/* Keys, before RoPE, and values of one token in every layer. */
struct token_ref_kv {
    struct token_ref_kv *next;
    double *k, *v; /* [n_layer][n_head_kv * d] */
};

struct token_ref_visible {
    const struct token_ref_kv *t;
    int pos;
};

/* Read the weights of a llama that gen_model made of spec, without RoPE
 * scaling, biases and head norms. spec must outlive m. */
void token_ref_init(struct token_ref *m, const struct gen *g,
                    const struct gen_spec *spec, int window);
void token_ref_fini(struct token_ref *m);

/* Evaluate a token at position pos that attends to itself and to seen[n], whose
 * positions are at most pos. Returns its keys and values, which belong to m.
 * logits: [n_vocab], or NULL. */
const struct token_ref_kv *
token_ref_evaluate(struct token_ref *m, int token, int pos,
                   const struct token_ref_visible *seen, int n,
                   double *logits);

#endif
