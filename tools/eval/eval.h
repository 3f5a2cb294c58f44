/* SPDX-License-Identifier: MIT */
/* eval.h - the parts of gguf-eval
 *
 * struct eval has a model with its session, and its input: token ids, lines of
 * a text, or chunks of a text. rows.c, embeddings.c, graph.c and profile.c have
 * a function for each kind of output, which begins the session, computes, and
 * prints text or JSON. A function that returns bool returns false after it
 * printed a message.
 */
#ifndef TOOLS_EVAL_EVAL_H
#define TOOLS_EVAL_EVAL_H

#include "tools/evaluate/text_files.h"
#include "tools/evaluate/run.h"

#include <gguf/outfile.h>

struct eval_options {
    struct ev_options ev;
    const char *model;
    struct ev_files texts;   /* files of -f */
    const char *text;        /* the first of texts, or NULL */
    const char *tokens;      /* file of token ids, or NULL */
    const char *logits;      /* output file of --save-logits, or NULL */
    const char *embeddings;  /* output file of --save-embeddings, or NULL */
    int pooling;             /* enum gguf_pooling, for embeddings */
    int normalize;           /* EVAL_NORMALIZE_...; 0: as the file says */
    const char *prompt_name; /* prompt of embeddings; "": none; NULL: the
                              * file's default */
    bool pairs;              /* lines are pairs of texts with a tab between */
    bool profile;            /* print the time of each operation on texts */
    int print_graph;         /* EVAL_GRAPH_...; 0: do not print */
    bool print_assignments, print_plan;
};
enum { EVAL_GRAPH_TEXT = 1, EVAL_GRAPH_DOT };
enum { EVAL_NORMALIZE_YES = 1, EVAL_NORMALIZE_NO };

/* Parse the command line. A usage error ends the program. */
void eval_parse_options(struct eval_options *o, int argc, char **argv);

/* sentence.c: how lines become tokens, and vectors rows. */
struct eval_sentence {
    struct gguf_str prompt; /* text in front of each line; may be empty */
    size_t most;            /* texts are cut to this many tokens; 0: never */
    bool normalizes;        /* divide vectors by their length */
    size_t n_cut;           /* lines that were cut */
    size_t most_dims;       /* numbers of a vector that are kept; 0: all */
    bool per_token;         /* the file's vectors are those of tokens */
    struct eval_pair *pair; /* how two texts are joined; NULL: one text */
    /* [n_lines, room n_counts]: tokens of each line, for rows per token */
    size_t *count, n_lines, n_counts;
    char *text; /* [room], a line after its prompt */
    size_t room;
    struct gguf_tokens plain; /* tokens without special ones */
};

/* pair.c: how two texts become tokens. */
struct eval_pair {
    struct gguf_str template;   /* empty: special tokens between the texts */
    bool has_types;             /* the second text has type 1 */
    struct gguf_tokens text[2]; /* tokens of each text */
    uint32_t *type;             /* [n_type], types of the joined tokens */
    size_t n_type;
    char *filled; /* [room], the template with the texts */
    size_t room;
};

struct eval {
    const struct eval_options *o;
    struct ev_model model;
    struct ev_run run;
    struct gguf_pool *pool;
    struct gguf_tokens tokens; /* tokens of the texts, for a profile */
    struct ev_ids ids;         /* token ids of --tokens */
    char *lines;               /* [run.text_size], text of embeddings */
    /* the file of saved rows */
    const char *out; /* its path */
    struct gguf_outfile *file;
    uint8_t *bytes;            /* [4 * width], one row, encoded */
    size_t n_rows, width;      /* saved rows; numbers in a row */
    enum gguf_pooling pooling; /* how states became a row */
    struct eval_sentence sentence;
    struct gguf_error err; /* cause of the last failure */
};

/* Open the backends, begin a session with the parameters sp, and catch signals
 * from here on. */
bool eval_begin_session(struct eval *e, const struct gguf_session_params *sp);
/* Print e->err with the name of a file. Returns false. */
bool eval_fail(struct eval *e, const char *file);

/* Open e->out, and begin the progress bar with label and unit. */
bool eval_begin_rows(struct eval *e, const char *label, const char *unit);
/* Append a row of n numbers. A number that is not finite is an error; the
 * message calls the number what, and the row unit and number. */
bool eval_write_row(struct eval *e, const float *row, size_t n,
                    const char *what, const char *unit, size_t number);
/* good: let the file appear under its name, and print the result. Otherwise
 * remove it. */
bool eval_end_rows(struct eval *e, bool good);

/* Save logits or states of token ids. */
bool eval_rows(struct eval *e);
/* Read the file's keys and the options. The pooling must be known. */
bool eval_sentence_begin(struct eval *e, struct eval_sentence *s);
void eval_sentence_end(struct eval_sentence *s);
/* Set t to the tokens of a line after its prompt. A failure is in e->err. */
enum gguf_status eval_sentence_tokenize(struct eval *e,
                                        struct eval_sentence *s,
                                        const char *text, size_t size,
                                        struct gguf_tokens *t);
/* Read the template or the special tokens that join two texts. Returns false
 * after a message: the model lacks a classifier. */
bool eval_pair_begin(struct eval *e, struct eval_pair *p);
void eval_pair_end(struct eval_pair *p);
/* Set t to the tokens of a pair of texts, and p->type to their types. most:
 * limit of the number of tokens, 0: none; *cut: tokens were left out. A failure
 * is in e->err. */
enum gguf_status eval_pair_tokenize(struct eval *e, struct eval_pair *p,
                                    struct gguf_str query,
                                    struct gguf_str document, size_t most,
                                    bool *cut, struct gguf_tokens *t);
/* Save a vector of each line. */
bool eval_embeddings(struct eval *e);
/* Print graphs, assignments and plans. */
bool eval_graphs(struct eval *e);
/* Print the time of each operation on texts. */
bool eval_profile(struct eval *e);

#endif
