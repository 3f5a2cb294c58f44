/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-quantize */
#include "config.h"
#include "tools/quantize/calibration.h"
#include "tools/common/remote.h"
#include "base/os/os_path.h"

#include <stdlib.h>
#include <string.h>

#define AT(member) OPT_AT(struct options, member)

static const struct opt table[] = {
    { .help = "Which types:" },
    { "--target-size", "SIZE",
      "choose types so that OUT has at most SIZE bytes; TYPE may be left "
      "out",
      OPT_SIZE, AT(target.max_size) },
    { .group = &quantize_mix },
    { "-r --recipe", "FILE", "use the recipe in FILE instead of TYPE", OPT_STR,
      AT(recipe_file) },
    { "--list-types", NULL, "list the values of TYPE and exit", OPT_FLAG,
      AT(list_types) },
    { .help = "Better bytes of the same types:" },
    { "--calibrate", "TEXT",
      "fit the tensors to the original's activations on TEXT, plain or "
      "compressed; may be given several times",
      OPT_LIST, AT(calib_texts) },
    { "--calib-tokens", "N",
      "use at most N tokens of the texts, such as 16k or 1M (default: 64k)",
      OPT_UINT, AT(calib_tokens), .min = CALIBRATION_CTX, .max = UINT32_MAX,
      .kilo = true },
    { "--effort", "0..2",
      "0: error feedback; 1: with gradients, about three times as long; 2: "
      "then coordinate descent (default: 0)",
      OPT_UINT, AT(effort), .min = 0, .max = 2 },
    { "--mpi", NULL,
      "calibrate as one rank of an MPI job: ranks share the work, rank 0 "
      "writes (build: --with-mpi)",
      OPT_FLAG, AT(mpi) },
    { "--tune", "STEPS",
      "then fit norms and scales of blocks to the original's predictions, by "
      "STEPS steps, such as 32",
      OPT_UINT, AT(tune_steps), .min = 1, .max = 100000 },
    { "--as", "NAME",
      "calibrate a model of an unknown architecture as one of architecture "
      "NAME",
      OPT_STR, AT(calib_as) },
    { .help = "What is written:" },
    { "-o --output", "OUT=[TYPE][@SIZE]",
      "write another output from the same reading; @SIZE limits its bytes, "
      "@Xbpw its bits per weight",
      OPT_LIST, AT(outputs) },
    { "--repack-to", "NAME",
      "move rows into ik_llama.cpp's groups of rows or out of them: plain, "
      "interleaved, or a type such as IQ4_K_R4; TYPE is COPY",
      OPT_STR, AT(repack_to) },
    { "--allow-requantize", NULL,
      "also quantize tensors that are quantized already, which costs "
      "quality",
      OPT_FLAG, AT(params.allow_requantize) },
    { "-f --force", NULL, "replace output files that exist", OPT_FLAG,
      AT(force) },
    { .group = &quantize_work },
    { .help = "What is shown:" },
    { .group = &quantize_plan },
    { "-v --verbose", NULL, "list the tensors", OPT_FLAG, AT(verbose) },
    { "--report", "[FILE]",
      "report the error of each tensor as a table, or as JSON in FILE",
      OPT_STR, AT(report), OPT_BITS(struct options, params.measure, 1) },
    { .help = "Layers, adapters and files:", .rare = true },
    { "--print-recipe", "TYPE", "print the recipe of TYPE and exit", OPT_STR,
      AT(print_recipe) },
    { "--lora", "FILE[=SCALE]",
      "merge a LoRA adapter, times SCALE (default: 1), into the weights; may be "
      "given several times",
      OPT_LIST, AT(lora_texts), .value = SCALED_OPTIONAL },
    { "--lora-scaled", "FILE:SCALE",
      "merge a LoRA adapter, in the syntax of llama.cpp", OPT_LIST,
      AT(lora_texts), .value = SCALED_REQUIRED },
    { "--prune-layers", "N,...",
      "leave out these layers, counted from 0; later layers move up", OPT_STR,
      AT(prune_layers) },
    { "--keep-split", NULL,
      "split the output like IN: OUT-00001-of-0000N.gguf ...", OPT_FLAG,
      AT(params.keep_split) },
    { "--compat", NULL, "write the same bytes as llama-quantize", OPT_FLAG,
      AT(params.compat) },
    { .group = &quantize_rest },
    /* options of llama-quantize and its relatives */
    ROW_REFUSED("--attn-q-type --attn-k-type --attn-v-type --attn-qkv-type "
                "--attn-output-type --ffn-gate-type --ffn-down-type "
                "--ffn-up-type --ffn-gate-inp-type "
                "--per-layer-token-embedding-type",
                "TYPE",
                "--tensor-type PATTERN=TYPE does that for any tensors, such "
                "as attn_v=Q6_K"),
    ROW_REFUSED("--custom-q", "LIST",
                "--tensor-type PATTERN=TYPE may be given several times, and "
                "--tensor-type-file reads rules from a file"),
    ROW_REFUSED("--extra-output-tensor", "TYPE",
                "no tensor is added; --output-tensor-type TYPE sets the type "
                "of output.weight"),
    ROW_REFUSED("--ignore-imatrix-rules", NULL,
                "--tensor-type and recipes decide first; leave it out"),
    ROW_REFUSED("--partial-requant", NULL,
                "--resume continues an interrupted run"),
    ROW_REFUSED("--repack --repack-pattern", NULL,
                "--repack-to interleaved repacks a file"),
    ROW_REFUSED("--slow-iq2ks --symmetric-q40", NULL,
                "each type has one encoder; leave it out"),
    ROW_REFUSED("--nthread --nthreads", "N",
                "--threads N sets the number of threads"),
    ROW_REFUSED("--max-buffer-size", "SIZE",
                "--max-memory SIZE limits buffers"),
    ROW_REFUSED(
        "--hide-imatrix", NULL,
        "only the name of the file is recorded, and gguf-edit --delete "
        "quantize.imatrix.file removes it"),
    { .names = NULL },
};

static const struct opt_rule rules[] = {
    { "--keep-split", OPT_EXCLUDES, "--split-max-size" },
    { "--lora --lora-scaled", OPT_EXCLUDES, "--compat" },
    { "--repack-to", OPT_EXCLUDES,
      "--calibrate --lora --lora-scaled --compat --target-size" },
    { "--calibrate", OPT_EXCLUDES,
      "--compat --lora --lora-scaled --prune-layers" },
    { "--calib-tokens --effort --tune --mpi --as", OPT_NEEDS, "--calibrate" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-quantize",
    "[OPTION]... IN OUT TYPE [THREADS]\n[OPTION]... IN TYPE [THREADS]\n"
    "[OPTION]... --recipe FILE IN OUT [THREADS]\n"
    "[OPTION]... --target-size SIZE IN OUT [TYPE [THREADS]]\n"
    "[OPTION]... IN -o OUT=[TYPE][@SIZE]...\n"
    "[OPTION]... --repack-to NAME IN OUT",
    "Write the model IN, of any architecture, as OUT with tensors of smaller "
    "types. TYPE is a recipe that chooses a type for each tensor, such as "
    "Q4_K_M, or its number in general.file_type. IN may be any shard of a "
    "split model. Without OUT the output is ggml-model-TYPE.gguf beside IN. "
    "It appears under its name when it is complete.",
    table,
    rules,
    "[IN] [OUT] [TYPE] [THREADS]",
    NULL
};

static struct target *next_target(struct options *o)
{
    if (o->n_targets == MAX_TARGETS)
        opt_usage("more than %d outputs", MAX_TARGETS);
    return &o->targets[o->n_targets++];
}

static void add_target(struct options *o, const char *path, const char *type)
{
    *next_target(o) =
        (struct target){ .path = opt_check_output(path),
                         .type = type,
                         .is_file = o->recipe_file && type == o->recipe_file };
}

static void list_types(void)
{
    for (size_t i = 0; gguf_recipe_preset_name(i); i++)
        printf("%-10s %s\n", gguf_recipe_preset_name(i),
               gguf_recipe_preset_about(i));
    exit(msg_exit(MSG_DONE));
}

static void print_recipe(const char *name)
{
    struct gguf_recipe *r;
    struct gguf_error err;
    if (gguf_recipe_preset(&r, name, NULL, &err) != GGUF_OK)
        opt_usage("--print-recipe: %s", err.message);
    struct gguf_str text = gguf_recipe_text(r);
    fwrite(text.data, 1, text.size, stdout);
    gguf_recipe_destroy(r);
    exit(msg_exit(MSG_DONE));
}

static void add_output(struct options *o, char *arg)
{
    struct target *t = next_target(o);
    const char *eq = strrchr(arg, '=');
    char hint[GGUF_SUGGESTION_SIZE];
    parse_output(t, arg, NULL);
    if (!t->type && has_size_limit(t))
        t->type = TYPE_AUTO;
    if (!t->type)
        opt_usage("--output: '%s' is not OUT=TYPE%s", arg,
                  eq ? suggest_preset(eq + 1, hint) : "");
    t->path = opt_check_output(arg);
}

/* Default output, as of llama-quantize: ggml-model-TYPE.gguf in the folder of
 * IN. */
static const char *default_out(struct options *o, const char *type)
{
    const size_t dir = remote_is_url(o->in)
                           ? 0
                           : gg_os_path_folder_size(o->in, strlen(o->in));
    struct gguf_recipe *r;
    if (gguf_recipe_preset(&r, type, NULL, NULL) != GGUF_OK)
        return NULL;
    const char *name = gguf_recipe_name(r);
    size_t size = dir + strlen(name) + sizeof "ggml-model-.gguf";
    o->default_out = msg_must(malloc(size));
    snprintf(o->default_out, size, "%.*sggml-model-%s.gguf", (int)dir, o->in,
             name);
    gguf_recipe_destroy(r);
    return o->default_out;
}

/* Parse the n operands. IN, OUT, TYPE and THREADS may each be missing. */
static void parse_operands(struct options *o, char **arg, int n)
{
    uint64_t threads;
    char hint[GGUF_SUGGESTION_SIZE];
    if (n < 1)
        opt_usage("IN is missing");
    remote_args(arg, 1);
    o->in = arg[0];
    for (size_t i = 0; i < o->imatrix_paths.n; i++)
        paths_require_local(o->imatrix_paths.arg[i]);
    o->params.opener = remote_opener();
    arg++;
    n--;
    bool sized = o->target.max_size || o->target.max_bpw > 0;
    size_t n_outputs = o->n_targets;
    if (o->recipe_file) {
        if (n < 1 && !o->dry_run)
            opt_usage("OUT is missing: --recipe needs IN and OUT");
        add_target(o, n ? arg[0] : NULL, o->recipe_file);
        arg += n > 0;
        n -= n > 0;
    } else if (n && is_preset(arg[0])) { /* TYPE without OUT */
        add_target(o, default_out(o, arg[0]), arg[0]);
        arg++;
        n--;
    } else if (o->repack_to && n == 1) { /* OUT without TYPE */
        add_target(o, arg[0], TYPE_COPY);
        arg++;
        n--;
    } else if (sized &&
               (n == 1 || (!n && o->dry_run))) { /* OUT without TYPE */
        add_target(o, n ? arg[0] : NULL, TYPE_AUTO);
        arg += n;
        n = 0;
    } else if (n > 1 ||
               (n && *suggest_preset(arg[0], hint))) { /* OUT and TYPE */
        const char *type = arg[n > 1];
        if (!is_preset(type))
            opt_usage("'%s' is not a type that --list-types lists%s", type,
                      suggest_preset(type, hint));
        add_target(o, arg[0], arg[1]);
        arg += 2;
        n -= 2;
    } else if (!o->n_targets || n) {
        opt_usage(n ? "TYPE is missing; --list-types lists them"
                    : "OUT and TYPE are missing");
    }
    if (sized && o->n_targets == n_outputs)
        opt_usage("OUT is missing: --target-size and --target-bpw apply to "
                  "it");
    apply_target_size(o, &o->targets[n_outputs]);
    if (n == 1 && opt_parse_u64(arg[0], &threads) && threads >= 1 &&
        threads <= GGUF_POOL_MAX_THREADS) {
        o->threads = (unsigned)threads;
        n = 0;
    }
    if (n)
        opt_usage("'%s' is one argument too many", arg[0]);
}

/* The argument of --repack-to. */
static void parse_packing(struct options *o)
{
    const char *name = o->repack_to;
    if (!name)
        return;
    const struct gguf_dtype_info *t = gguf_dtype_find_name(name);
    if (!strcmp(name, "plain"))
        o->params.repack_to = GGUF_REPACK_PLAIN;
    else if (!strcmp(name, "interleaved"))
        o->params.repack_to = GGUF_REPACK_INTERLEAVED;
    else if (t && t->id)
        o->params.repack_to = t->id;
    else
        opt_usage("--repack-to %s: not a type, plain or interleaved", name);
}

void parse_command_line(struct options *o, int argc, char **argv)
{
    o->calib_tokens = CALIBRATION_TOKENS;
    int n = opt_parse(&tool, argc, argv, o);
    if (o->list_types)
        list_types();
    if (o->print_recipe)
        print_recipe(o->print_recipe);
    if (o->report && !strcmp(o->report, "-")) {
        o->json = true;
        o->report = NULL;
    }
    o->params.limits = &o->limits;
    for (size_t i = 0; i < o->outputs.n; i++)
        add_output(o, (char *)(uintptr_t)o->outputs.arg[i]);
    scaled_parse(&o->loras, "--lora", &o->lora_texts);
    parse_types(o);
    parse_packing(o);
    parse_operands(o, argv + 1, n);
    for (size_t i = 0; i < o->calib_texts.n && o->mpi; i++)
        if (!strcmp(o->calib_texts.arg[i], "-"))
            opt_usage("--mpi: only one rank has standard input, and every "
                      "rank reads the text: give a file");
    load_importance(o);
    open_loras(o);
    parse_overrides(o);
}
