/* SPDX-License-Identifier: MIT */
/* eval.h - the parts of gguf-eval
 *
 * struct eval has a model with its session, and its input: token ids, lines of
 * a text, or chunks of a text. Each kind of output has a file with one
 * function, which starts the session, computes, and prints text or JSON. These
 * functions return false after they printed a message.
 */
#ifndef TOOLS_EVAL_EVAL_H
#define TOOLS_EVAL_EVAL_H

#include "tools/evaluate/run.h"

struct eval_options {
    struct ev_options ev;
    const char *model;
    const char *text;       /* input of embeddings and profile, or NULL */
    const char *tokens;     /* a file of token ids, or NULL */
    const char *logits;     /* output of tokens' rows, or NULL */
    const char *embeddings; /* output of lines' rows, or NULL */
    int pooling;            /* enum gguf_pooling, of embeddings */
    bool normalize;
    bool profile;    /* print the time of each operation on a text */
    int print_graph; /* EVAL_GRAPH_..., or 0 */
    bool print_assignments, print_plan;
};
enum { EVAL_GRAPH_TEXT = 1, EVAL_GRAPH_DOT };

/* Parse the command line; ends the program where something is wrong. */
void eval_parse_options(struct eval_options *o, int argc, char **argv);

struct eval {
    const struct eval_options *o;
    struct ev_model model;
    struct ev_run run;
    struct gguf_pool *pool;
    struct gguf_tokens tokens; /* tokens of the text */
    struct ev_ids ids;         /* token ids of the file */
    char *lines;               /* [run.text_size] bytes of the text */
    /* result of eval_rows and eval_embeddings */
    size_t n_rows, width;
    enum gguf_pooling pooling;
};

/* Open the backends and begin a session with these parameters. */
bool eval_start(struct eval *e, const struct gguf_session_params *sp);
/* Store n floats in little-endian order. */
void eval_store_le(uint8_t *out, const float *row, size_t n);

bool eval_rows(struct eval *e);       /* logits or states of token ids */
bool eval_embeddings(struct eval *e); /* a vector of each line */
bool eval_graphs(struct eval *e);     /* graphs, where they are computed */
bool eval_profile(struct eval *e);    /* times of the operations on a text */

/* eval.c: print the rows that were saved, as text or JSON. */
void eval_print_rows(const struct eval *e);

#endif
