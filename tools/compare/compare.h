/* SPDX-License-Identifier: MIT */
/* compare.h - the parts of gguf-compare
 *
 * struct compare is a model and its base: another model, whose sessions run
 * beside its own, or the same model on another backend. Each way to compare
 * is a file with one function, which evaluates the text, and prints what it
 * found as text or JSON. They return false once a message was printed.
 */
#ifndef TOOLS_COMPARE_COMPARE_H
#define TOOLS_COMPARE_COMPARE_H

#include "tools/evaluate/files.h"
#include "tools/evaluate/run.h"

struct compare_options {
    struct ev_options ev;
    const char *model;
    const char *base;          /* another path, or NULL: the model itself */
    int base_precision;        /* enum gguf_precision */
    const char *base_backends; /* NULL: same as the model's */
    struct ev_files texts;     /* files of -f */
    bool layers;               /* --layers: the default way */
    int bisect;                /* 1 + enum gguf_bisect_by, or 0 */
    double time_budget;        /* seconds of bisect; 0: no limit */
    const char *pair;          /* two names of backends, A,B, or NULL */
    double
        tolerance; /* relative error of a node above which backends differ */
};

/* Parse the command line; ends the program where something is wrong. */
void compare_parse_options(struct compare_options *o, int argc, char **argv);

struct compare {
    const struct compare_options *o;
    struct ev_model model;
    struct ev_model base; /* empty: nodes on two backends are compared */
    struct ev_run run;    /* own is the base, or the model */
    struct gguf_pool *pool;
    struct gguf_tokens tokens;
};

/* Open a session on the model, and on the base, if there is one. */
bool compare_start(struct compare *c, gguf_session_graph_fn *on_graph,
                   void *user);
/* Parameters of a scan of the chunks, with the run's progress bar. */
struct gguf_scan_params compare_scan_params(struct compare *c);
/* The heading of a model and its base; the same as the beginning of a document
 * on standard output. */
void compare_print_head(const struct compare *c);
void compare_json_head(struct json *j, const struct compare *c);

bool compare_layers(struct compare *c); /* activation by activation */
bool compare_bisect(struct compare *c); /* weight by weight */
bool compare_nodes(struct compare *c);  /* node by node; false: one differs */

#endif
