/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-eval */
#include "config.h"
#include "tools/eval/eval.h"
#include "tools/common/paths.h"

#include <stdlib.h>

#define AT(member) OPT_AT(struct eval_options, member)
#define EV         .at = offsetof(struct eval_options, ev)

static const struct opt_word poolings[] = {
    { "none", GGUF_POOLING_NONE }, { "mean", GGUF_POOLING_MEAN },
    { "cls", GGUF_POOLING_CLS },   { "last", GGUF_POOLING_LAST },
    { "rank", GGUF_POOLING_RANK }, { NULL, 0 },
};
static const struct opt_word yes_no[] = {
    { "yes", EVAL_NORMALIZE_YES },
    { "no", EVAL_NORMALIZE_NO },
    { NULL, 0 },
};
static const struct opt_word graph_forms[] = {
    { "text", EVAL_GRAPH_TEXT },
    { "dot", EVAL_GRAPH_DOT },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What is evaluated:" },
    { "-m --model", "MODEL",
      "GGUF file, or any shard, the folder or the prefix of a split "
      "model",
      OPT_STR, AT(model) },
    { "--tokens", "FILE",
      "evaluate the token ids in FILE: decimal, separated by white "
      "space; one chunk, no BOS",
      OPT_STR, AT(tokens) },
    { "-f --file", "TEXT",
      "text, plain or compressed; - is standard input; with --profile "
      "may be repeated or a pattern",
      OPT_LIST, AT(texts.args) },
    { "-c --ctx-size", "N", "context length in tokens (default: 512)",
      OPT_UINT, AT(ev.n_ctx), .min = 4, .max = EV_MOST_TOKENS },
    { .group = &ev_threads, EV },
    { .help = "What is saved (rows of 32-bit floats, little-endian):" },
    { "--save-logits", "FILE",
      "save a row for each token id: its logits, or the last states of "
      "an encoder",
      OPT_OUT, AT(logits) },
    { "--save-embeddings", "FILE",
      "save a row for each line of TEXT: its pooled states, or the "
      "scores of a classifier",
      OPT_OUT, AT(embeddings) },
    { "--pooling", "KIND",
      "mean, cls (first token), last, rank (classifier) or none: a row "
      "per token (default: the file's)",
      OPT_WORD, AT(pooling), .words = poolings },
    { "--normalize", "[no]",
      "divide each vector by its Euclidean length, or with =no do not "
      "(default: as the file says; else no)",
      OPT_WORD, AT(normalize), .words = yes_no, .value = EVAL_NORMALIZE_YES },
    { "--prompt-name", "NAME",
      "put the file's prompt NAME in front of each line; empty: none "
      "(default: the file's default_prompt_name)",
      OPT_STR, AT(prompt_name) },
    { "--pairs", NULL,
      "lines are pairs, a query and a document with a tab between: save "
      "the scores of a reranker",
      OPT_FLAG, AT(pairs) },
    { .help = "What is printed:" },
    { "--print-graph", "[dot]",
      "print the graphs as text, or with =dot for Graphviz", OPT_WORD,
      AT(print_graph), .words = graph_forms, .value = EVAL_GRAPH_TEXT },
    { "--print-assignments", NULL,
      "print the backend of each node, and the tensors that are copied "
      "between backends",
      OPT_FLAG, AT(print_assignments) },
    { "--print-plan", NULL, "print where each tensor lies in memory", OPT_FLAG,
      AT(print_plan) },
    { "--profile", NULL,
      "print time and rate of each operation and the time of each "
      "layer on TEXT",
      OPT_FLAG, AT(profile) },
    { .group = &ev_chunks, EV },
    { .group = &ev_output, EV },
    { "--force", NULL, "accept text that is not UTF-8", OPT_FLAG,
      AT(ev.force) },
    { .group = &ev_speed, EV },
    { .group = &ev_all_rare, EV },
    { .names = NULL },
};

#define PRINTS "--print-graph --print-assignments --print-plan"

static const struct opt_rule rules[] = {
    { NULL, OPT_NEEDS, "--model" },
    { NULL, OPT_NEEDS, "--save-logits --save-embeddings --profile " PRINTS },
    { "--save-logits --save-embeddings --profile", OPT_EXCLUDES, NULL },
    { "--save-logits", OPT_NEEDS, "--tokens" },
    { "--tokens", OPT_NEEDS, "--save-logits" },
    { "--tokens", OPT_EXCLUDES, "--file" },
    { "--save-embeddings --profile", OPT_NEEDS, "--file" },
    { PRINTS, OPT_EXCLUDES,
      "--save-logits --save-embeddings --profile --json" },
    { "--pooling --normalize --prompt-name --pairs", OPT_NEEDS,
      "--save-embeddings" },
    { "--pairs", OPT_EXCLUDES, "--pooling --normalize --prompt-name" },
    { "--chunks", OPT_NEEDS, "--profile" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-eval",
    "[OPTION]... -m MODEL --tokens FILE --save-logits FILE\n"
    "[OPTION]... -m MODEL -f LINES --save-embeddings FILE\n"
    "[OPTION]... -m MODEL --print-graph\n"
    "[OPTION]... -m MODEL -f TEXT --profile",
    "Evaluate a model on token ids and save its logits or states, or on lines "
    "of text and save an embedding of each. Or print the graph that is "
    "computed, or the time of each operation.",
    table,
    rules,
    "",
    NULL
};

/* End the program if an output is an input. */
static void check_paths(const struct eval_options *o)
{
    if (!o->logits && !o->embeddings)
        return;
    struct gguf_paths *p = paths_new();
    paths_read_model(p, o->model, NULL, "--model");
    paths_read(p, o->tokens, "--tokens");
    for (size_t i = 0; i < o->texts.n; i++)
        paths_read(p, o->texts.path[i], "--file");
    ev_add_adapter_inputs(p, &o->ev);
    paths_write(p, o->logits, "--save-logits");
    paths_write(p, o->embeddings, "--save-embeddings");
    gguf_paths_destroy(p);
}

void eval_parse_options(struct eval_options *o, int argc, char **argv)
{
    *o = (struct eval_options){ .ev = EV_OPTIONS_INIT };
    (void)opt_parse(&tool, argc, argv, o);
    paths_require_local(o->model);
    paths_require_local(o->tokens);
    for (size_t i = 0; i < o->texts.args.n; i++)
        paths_require_local(o->texts.args.arg[i]);
    if (!ev_find_files(&o->texts))
        exit(msg_exit(MSG_FAILED));
    o->text = o->texts.n ? o->texts.path[0] : NULL;
    if (o->texts.n > 1 && !o->profile)
        opt_usage("%zu texts, expected 1: only --profile takes several",
                  o->texts.n);
    if (!o->ev.n_ctx)
        o->ev.n_ctx = 512;
    if (o->pairs)
        o->pooling = GGUF_POOLING_RANK;
    if (o->embeddings)
        o->ev.pooling = (enum gguf_pooling)o->pooling;
    ev_finish_options(&o->ev);
    check_paths(o);
}
