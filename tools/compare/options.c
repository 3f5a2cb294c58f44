/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-compare */
#include "config.h"
#include "tools/compare/compare.h"
#include "tools/common/paths.h"

#include <string.h>

#define AT(member) OPT_AT(struct compare_options, member)
#define EV         .at = offsetof(struct compare_options, ev)

static const struct opt_word groups[] = {
    { "weight", 1 + GGUF_BISECT_WEIGHT },
    { "kind", 1 + GGUF_BISECT_KIND },
    { "layer", 1 + GGUF_BISECT_LAYER },
    { "halves", 1 + GGUF_BISECT_HALVES },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What is compared:" },
    { "-m --model", "MODEL",
      "GGUF file, or any shard, the folder or the prefix of a split "
      "model",
      OPT_STR, AT(model) },
    { "--base", "MODEL", "model to compare with", OPT_STR, AT(base) },
    { "--base-backend", "NAME[,NAME]...",
      "backends of the base (default: the model's)", OPT_STR,
      AT(base_backends) },
    { "--base-precision", "KIND", "precision of the base (default: exact)",
      OPT_WORD, AT(base_precision), .words = ev_precision_words },
    { "-f --file", "TEXT",
      "text, plain or compressed; - is standard input; may be "
      "repeated, or a pattern such as '*.txt'",
      OPT_LIST, AT(texts.args) },
    { .group = &ev_chunks, EV },
    { .help = "How it is compared:" },
    { "--layers", NULL,
      "print the error of each activation of each layer (this is the "
      "default)",
      OPT_FLAG, AT(layers) },
    { "--bisect", "[HOW]",
      "replace weights by the base's and list what each gains; HOW: "
      "weight (default), kind, layer, halves",
      OPT_WORD, AT(bisect), .words = groups, .value = 1 + GGUF_BISECT_WEIGHT },
    { "--time-budget", "SECONDS", "stop --bisect after SECONDS", OPT_DOUBLE,
      AT(time_budget), .low = 1e-3, .high = 1e9 },
    { "--compare-backends", "A,B",
      "compute the text on both backends node by node; print the first "
      "node that differs",
      OPT_STR, AT(pair) },
    { "--tolerance", "X",
      "relative error above which a node differs (default: 1e-5)", OPT_DOUBLE,
      AT(tolerance), .low = 0, .high = 1e9 },
    { .group = &ev_context, EV },
    { .group = &ev_threads, EV },
    { .help = "What is printed:" },
    { .group = &ev_output, EV },
    { "--force", NULL, "accept text that is not UTF-8", OPT_FLAG,
      AT(ev.force) },
    { .group = &ev_speed, EV },
    { .group = &ev_all_rare, EV },
    { .names = NULL },
};

static const struct opt_rule rules[] = {
    { NULL, OPT_NEEDS, "--model" },
    { NULL, OPT_NEEDS,
      "--base --base-backend --base-precision --compare-backends" },
    { NULL, OPT_NEEDS, "--file" },
    { "--layers --bisect --compare-backends", OPT_EXCLUDES, NULL },
    { "--bisect", OPT_NEEDS, "--base" },
    { "--bisect", OPT_EXCLUDES,
      "--backend --base-backend --override-tensor --lora --lora-scaled "
      "--control-vector --control-vector-scaled" },
    { "--compare-backends", OPT_EXCLUDES,
      "--base --base-backend --base-precision --backend --override-tensor" },
    { "--time-budget", OPT_NEEDS, "--bisect" },
    { "--tolerance", OPT_NEEDS, "--compare-backends" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-compare",
    "[OPTION]... -m MODEL --base MODEL -f TEXT [--layers]\n"
    "[OPTION]... -m MODEL --base MODEL -f TEXT --bisect\n"
    "[OPTION]... -m MODEL -f TEXT --base-backend NAME\n"
    "[OPTION]... -m MODEL -f TEXT --compare-backends A,B",
    "Show where two models differ, or where one model differs on two backends "
    "or in two precisions: activation by activation, weight by weight or node "
    "by node. Without --base, the base is the model itself.",
    table,
    rules,
    "",
    NULL
};

void compare_parse_options(struct compare_options *o, int argc, char **argv)
{
    *o = (struct compare_options){ .ev = EV_OPTIONS_INIT, .tolerance = 1e-5 };
    (void)opt_parse(&tool, argc, argv, o);
    paths_require_local(o->model);
    paths_require_local(o->base);
    for (size_t i = 0; i < o->texts.args.n; i++)
        paths_require_local(o->texts.args.arg[i]);
    if (o->base && gguf_path_is_baseline(o->base))
        opt_usage(
            "--base: '%s' is a file of logits, expected a model; gguf-ppl "
            "--base reads logits",
            o->base);
    const char *comma = o->pair ? strchr(o->pair, ',') : NULL;
    if (o->pair &&
        (!comma || comma == o->pair || !comma[1] || strchr(comma + 1, ',')))
        opt_usage(
            "--compare-backends: '%s' is not A,B, the names of two backends",
            o->pair);
    if (!o->ev.n_ctx)
        o->ev.n_ctx = 512;
    ev_finish_options(&o->ev);
    if (o->pair && !o->ev.n_chunks)
        o->ev.n_chunks = 1;
}
