/* SPDX-License-Identifier: MIT */
/* lineage.h - tokens in double precision, each with what it saw
 *
 * A token is evaluated on its own, against keys and values of given ones at
 * given positions, and leaves a key and a value for each layer. So a sequence
 * whose tokens came, moved and went in any order is known from the definition,
 * without any memory. Of llama, whose even layers may see a window.
 */
#ifndef TESTS_RUN_LINEAGE_H
#define TESTS_RUN_LINEAGE_H

#include "tests/model/gen.h"

struct line_model {
    const struct gen_spec *spec;
    int window; /* positions that layers 0, 2, .. see; 0: all */
    struct line_layer *layer;
    double *freq; /* [d / 2] what a position turns a pair by */
    float *embd, *norm, *out;
    struct line_token *pool; /* all that there are */
};

/* What a token leaves: a key, not turned yet, and a value of each layer. */
struct line_token {
    struct line_token *next;
    double *k, *v; /* [n_layer][n_head_kv * d] */
};

struct line_seen {
    const struct line_token *t;
    int pos;
};

/* Of a model that gen_model made of spec, which is kept, without
 * scaling, biases and norms of heads. */
void line_init(struct line_model *m, const struct gen *g,
               const struct gen_spec *spec, int window);
void line_fini(struct line_model *m);

/* Evaluate a token at a position that sees n others, which are at its position
 * or before: what it leaves, which belongs to the model, and its logits
 * [n_vocab], unless NULL. */
const struct line_token *line_add(struct line_model *m, int token, int pos,
                                  const struct line_seen *seen, int n,
                                  double *logits);

#endif
