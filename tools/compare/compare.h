/* SPDX-License-Identifier: MIT */
/* compare.h - the parts of gguf-compare
 *
 * struct compare has a model and its base. The base is another model, whose
 * session runs beside the model's, or the same model on another backend or in
 * another precision. layers.c, bisect.c and nodes.c have a function for each
 * way to compare, which evaluates the text and prints the result as text or
 * JSON. A function that returns bool returns false after it printed a message.
 */
#ifndef TOOLS_COMPARE_COMPARE_H
#define TOOLS_COMPARE_COMPARE_H

#include "tools/evaluate/text_files.h"
#include "tools/evaluate/run.h"

struct compare_options {
    struct ev_options ev;
    const char *model;
    const char *base;          /* path of the base; NULL: same as model */
    int base_precision;        /* enum gguf_precision */
    const char *base_backends; /* NULL: same as the model's */
    struct ev_files texts;     /* files of -f */
    bool layers;               /* --layers; the default if no other is given */
    int bisect;         /* 1 + enum gguf_bisect_grouping; 0: no bisection */
    double time_budget; /* seconds for bisect; 0: no limit */
    const char *pair;   /* argument A,B of --compare-backends, or NULL */
    double tolerance;   /* relative error above which a node differs */
};

/* Parse the command line. A usage error ends the program. */
void compare_parse_options(struct compare_options *o, int argc, char **argv);

struct compare {
    const struct compare_options *o;
    struct ev_model model;
    struct ev_model base; /* empty with --compare-backends */
    struct ev_run run;    /* run.own: the base; the model if base is empty */
    struct gguf_pool *pool;
    struct gguf_tokens tokens;
};

/* Open a session on the base, if there is one, and on the model. on_graph, if
 * not NULL, is called with user for each graph of a session. */
bool compare_begin_sessions(struct compare *c, gguf_session_graph_fn *on_graph,
                            void *user);
/* Parameters of a scan of the run's chunks that reports to its progress bar. */
struct gguf_scan_params compare_scan_params(struct compare *c);
/* Print the settings: model, base, text and mode. */
void compare_print_head(const struct compare *c);
/* Begin a document on standard output, and add the settings. */
void compare_json_head(struct json *j, const struct compare *c);

/* Compare each activation of each layer. */
bool compare_layers(struct compare *c);
/* Measure the gain of each weight of the base. */
bool compare_bisect(struct compare *c);
/* Compare each node on two backends. Also returns false if a node differs. */
bool compare_nodes(struct compare *c);

#endif
