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

#include "tools/evaluate/files.h"
#include "tools/evaluate/run.h"

#include <gguf/outfile.h>

struct eval_options {
    struct ev_options ev;
    const char *model;
    struct ev_files texts;  /* files of -f */
    const char *text;       /* the first of texts: input of embeddings and
                            * profile; or NULL */
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
    /* rows that are saved */
    const char *out; /* path */
    struct gguf_outfile *file;
    uint8_t *bytes; /* one row, encoded */
    size_t n_rows, width;
    enum gguf_pooling pooling;
    struct gguf_error err; /* why a step failed */
};

/* Open the backends and begin a session with these parameters. */
bool eval_start(struct eval *e, const struct gguf_session_params *sp);
/* Print e->err, about a file. */
bool eval_fail(struct eval *e, const char *file);

/* Open e->out; append rows of n numbers to it; and rename it if good, and print
 * the number of rows. A number that is not finite is an error, which
 * names the number by what and the row by unit and number. */
bool eval_begin_rows(struct eval *e, const char *label, const char *unit);
bool eval_write_row(struct eval *e, const float *row, size_t n,
                    const char *what, const char *unit, size_t number);
bool eval_end_rows(struct eval *e, bool good);

bool eval_rows(struct eval *e);       /* logits or states of token ids */
bool eval_embeddings(struct eval *e); /* a vector of each line */
bool eval_graphs(struct eval *e);     /* graphs, where they are computed */
bool eval_profile(struct eval *e);    /* times of the operations on a text */

#endif
