/* gguf-convert-opt.c - what the command line of gguf-convert says */
#include "config.h"
#include "tools/gguf-convert.h"

#include <stdlib.h>
#include <string.h>

#define AT(member) OPT_AT(struct convert_options, member)

static const struct opt_word nonfinites[] = {
    { "error", GGUF_NONFINITE_ERROR },
    { "zero", GGUF_NONFINITE_ZERO },
    { "keep", GGUF_NONFINITE_KEEP },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What is read:" },
    { "--pre", "NAME",
      "how words are cut, as tokenizer.ggml.pre names it, instead of what the "
      "tokenizer's description is recognised as",
      OPT_STR, AT(params.pre) },
    { "--ignore", "PATTERN",
      "leave out tensors of DIR whose names match PATTERN, a regular "
      "expression; may be given again",
      OPT_LIST, AT(ignore) },
    { .help = "What is written:" },
    { "-o --output", "OUT[=TYPE]",
      "write OUT with tensors of TYPE, a recipe as gguf-quantize has it; "
      "without one, of the types that they have. May be given again: DIR is "
      "read once for all",
      OPT_LIST, AT(q.outputs) },
    { "--override-kv", "KEY=TYPE:VALUE",
      "set a metadata key; TYPE is int, float, bool, str, or a type of GGUF "
      "such as u64 or i8. May be given again",
      OPT_LIST, AT(q.kv_texts) },
    { "--split-max-size", "SIZE", "write several files of at most SIZE bytes",
      OPT_SIZE, AT(q.params.max_file_size) },
    { "-f --force", NULL, "replace output files that exist", OPT_FLAG,
      AT(q.force) },
    { "--resume", NULL,
      "note in OUT.resume what is complete; if the run is interrupted, the "
      "same command goes on from there",
      OPT_FLAG, AT(q.resume) },
    { .help = "Which types:" },
    { "--pure", NULL, "every tensor that can be quantized gets the base type",
      OPT_FLAG, AT(q.params.pure) },
    { "--output-tensor-type", "TYPE",
      "type of output.weight, or of the token embedding where that is both",
      OPT_STR, AT(q.output_type) },
    { "--token-embedding-type", "TYPE", "type of the token embedding", OPT_STR,
      AT(q.embedding_type) },
    { "--leave-output-tensor", NULL, "output.weight keeps its type", OPT_FLAG,
      AT(q.params.leave_output) },
    { "--tensor-type", "PATTERN=TYPE",
      "type of the tensors whose names match PATTERN, a regular expression; "
      "may be given again, the first that matches counts; one that matches "
      "nothing is an error",
      OPT_LIST, AT(q.types), .value = TYPE_TEXT },
    { "--tensor-type-file", "FILE",
      "the same from a file: PATTERN=TYPE, separated by blanks or lines",
      OPT_LIST, AT(q.types), .value = TYPE_FILE },
    { "--target-size", "SIZE",
      "choose types such that the first OUT has at most SIZE bytes and the "
      "damage is least; what options and rules of its TYPE decide stays",
      OPT_SIZE, AT(q.target.max_size) },
    { "--target-bpw", "X", "the same with at most X bits per weight",
      OPT_DOUBLE, AT(q.target.max_bpw), .low = 0.01, .high = 64 },
    { "--target-types", "TYPE,...", "choose from these types only", OPT_STR,
      AT(q.target_types) },
    { "--outer-scales", NULL,
      "tensors that become NVFP4 get a scale of their own, NAME.scale, so that "
      "small weights lose less",
      OPT_FLAG, AT(q.params.outer_scales) },
    { "--on-nonfinite", "WHAT",
      "weights that are NaN or infinite: error (the default) ends the run, "
      "zero takes them as 0, keep encodes what comes",
      OPT_WORD, AT(q.params.nonfinite), .words = nonfinites },
    { .help = "What matters:" },
    { "--imatrix", "FILE",
      "importance data, in GGUF or the older form (.dat); given again, the "
      "data are added up",
      OPT_LIST, AT(q.imatrix_paths) },
    { "--include-weights", "TEXT",
      "use importance data only for tensors whose names contain TEXT; may be "
      "given again",
      OPT_LIST, AT(q.include) },
    { "--exclude-weights", "TEXT",
      "use none for such tensors; excludes --include-weights", OPT_LIST,
      AT(q.exclude) },
    { .help = "What is shown:" },
    { "-n --dry-run", NULL, "show the plan; read no tensor data", OPT_FLAG,
      AT(q.dry_run) },
    { "--explain", NULL, "list the tensors with the rule that chose each type",
      OPT_FLAG, AT(q.explain) },
    { "-v --verbose", NULL, "list the tensors, and what each is made of",
      OPT_FLAG, AT(q.verbose) },
    { "-j --json", NULL, "print plan and result as one JSON document",
      OPT_FLAG, AT(q.json) },
    { "-q --quiet", NULL, "no progress, no summary", OPT_FLAG, AT(q.quiet) },
    { .help = "How it is done:" },
    { "-t --threads", "N", "threads; the default is the number of processors",
      OPT_UINT, AT(q.threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { "--max-memory", "SIZE",
      "bytes of buffers at most, 128Mi by default; the input is mapped and "
      "does not count",
      OPT_SIZE, AT(q.params.max_memory) },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(q.limits) },
    { .names = NULL },
};

static const struct opt_rule rules[] = {
    { "--target-size", OPT_EXCLUDES, "--target-bpw" },
    { "--target-types", OPT_NEEDS, "--target-size --target-bpw" },
    { "--include-weights", OPT_EXCLUDES, "--exclude-weights" },
    { "--include-weights --exclude-weights", OPT_NEEDS, "--imatrix" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-convert",
    "[OPTION]... DIR -o OUT[=TYPE]...\n[OPTION]... --dry-run DIR",
    "Make a GGUF file of the model in DIR, a folder as Hugging Face's "
    "transformers have it: config.json, weights as safetensors, a tokenizer. "
    "OUT appears under its name when it is complete.",
    table,
    rules,
    "DIR",
    NULL
};

static bool is_preset(const char *name)
{
    struct gguf_recipe *r;
    bool yes = gguf_recipe_preset(&r, name, NULL, NULL) == GGUF_OK;
    gguf_recipe_destroy(r);
    return yes;
}

/* OUT=TYPE is cut at the last '=' if TYPE is one. */
static void add_target(struct options *o, const char *path)
{
    if (o->n_targets == MAX_TARGETS)
        opt_usage("more than %d outputs", MAX_TARGETS);
    struct target *t = &o->targets[o->n_targets++];
    char *eq = path ? strrchr(path, '=') : NULL;
    *t = (struct target){ .type = TYPE_COPY };
    if (eq && eq != path && is_preset(eq + 1)) {
        *eq = 0;
        t->type = eq + 1;
    }
    t->path = path ? opt_out(path) : NULL;
}

void parse_convert(struct convert_options *o, int argc, char **argv)
{
    struct options *q = &o->q;
    const int n = opt_parse(&tool, argc, argv, o);
    if (n != 1)
        opt_usage(n ? "'%s' is one argument too many" : "DIR is missing",
                  n ? argv[2] : "");
    q->in = argv[1];
    q->params.limits = o->params.limits = &q->limits;
    for (size_t i = 0; i < q->outputs.n; i++)
        add_target(q, (char *)(uintptr_t)q->outputs.arg[i]);
    if (!q->n_targets && !q->dry_run)
        opt_usage("no output: --output is missing");
    if (!q->n_targets)
        add_target(q, NULL);
    if (q->target.max_size || q->target.max_bpw > 0)
        q->targets[0].sized = true;
    o->params.ignore = o->ignore.arg;
    o->params.n_ignore = o->ignore.n;
    use_types(q);
    use_imatrix(q);
    use_kv_texts(q);
}

void convert_options_fini(struct convert_options *o)
{
    struct options *q = &o->q;
    struct opt_list *lists[] = { &q->types,   &q->imatrix_paths, &q->include,
                                 &q->exclude, &q->outputs,       &q->kv_texts,
                                 &o->ignore };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        opt_list_fini(lists[i]);
    for (size_t i = 0; i < q->n_overrides; i++)
        free((char *)(uintptr_t)q->overrides[i].pattern);
    free(q->overrides);
    gguf_imatrix_destroy(q->imatrix);
    gguf_meta_destroy(q->meta);
    gguf_convert_close(o->from);
}
