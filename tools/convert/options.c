/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-convert */
#include "config.h"
#include "tools/convert/convert.h"
#include "tools/common/remote.h"
#include "base/os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) OPT_AT(struct convert_options, member)
#define Q          .at = offsetof(struct convert_options, q)

static const struct opt_word reranker_words[] = {
    { "auto", 0 }, { "yes", 1 }, { "no", 2 }, { NULL, 0 }
};

static const struct opt table[] = {
    { .help = "What is written:" },
    { "-o --output", "OUT[=[TYPE][@SIZE]]",
      "write OUT as TYPE of gguf-quantize (default: types of DIR); @SIZE or "
      "@Xbpw limits its size",
      OPT_LIST, AT(q.outputs) },
    { "--mmproj-output", "OUT[=TYPE]",
      "also write the part that sees or hears (the projector) as OUT", OPT_OUT,
      AT(projector.arg) },
    { "--to-safetensors", "DIR[=TYPE]",
      "write GGUF model FILE as folder DIR; TYPE is F32, F16 or BF16 "
      "(default: FILE's; quantized: F16)",
      OPT_OUT, AT(folder) },
    { .group = &quantize_work, Q },
    { "-f --force", NULL, "replace output files that exist", OPT_FLAG,
      AT(q.force) },
    { .help = "Which types:" },
    { "--target-size", "SIZE",
      "choose types so that the first OUT has at most SIZE bytes", OPT_SIZE,
      AT(q.target.max_size) },
    { .group = &quantize_mix, Q },
    { .help = "What is shown:" },
    { .group = &quantize_plan, Q },
    { "-v --verbose", NULL, "list the tensors and what each is made of",
      OPT_FLAG, AT(q.verbose) },
    { .help = "What is read:", .rare = true },
    { "--pre", "NAME",
      "use this pre-tokenizer, a value of tokenizer.ggml.pre, instead of "
      "recognising it",
      OPT_STR, AT(params.pre) },
    { "--as", "CLASS",
      "convert a folder of an unknown class as one of CLASS, a class or an "
      "architecture",
      OPT_STR, AT(params.as) },
    { "--ignore-normalizer", NULL,
      "leave out steps of the normalizer that GGUF cannot hold (default: "
      "refuse such tokenizers)",
      OPT_FLAG, AT(params.ignore_normalizer) },
    { "--ignore", "PATTERN",
      "leave out tensors of DIR whose names match the regular expression "
      "PATTERN; may be repeated",
      OPT_LIST, AT(ignore) },
    { "--base", "PATH",
      "convert the LoRA adapter in DIR for this base model, a folder or a "
      "GGUF file",
      OPT_STR, AT(params.base) },
    { "--mmproj", NULL,
      "convert the part that sees or hears, not the language model (a "
      "projector)",
      OPT_FLAG, AT(params.projector) },
    { "--reranker", "WORD",
      "convert a Qwen 3 model as a reranker: yes, no or auto (default: auto, "
      "by the files of DIR)",
      OPT_WORD, AT(params.reranker), .words = reranker_words },
    { "--sentence-transformers-dense-modules", NULL,
      "also convert the dense layers after pooling, for EmbeddingGemma "
      "(default: left out)",
      OPT_FLAG, AT(params.dense_modules) },
    { .help = "Verifying the outputs:", .rare = true },
    { "--verify", "TEXT",
      "evaluate chunks of TEXT with each complete OUT; keep none if a "
      "perplexity is above the limit",
      OPT_STR, AT(verify.text) },
    { "--verify-chunks", "N", "evaluate at most N chunks (default: 4)",
      OPT_UINT, AT(verify.n_chunks), .min = 1, .max = UINT32_MAX },
    { "--verify-ctx", "N",
      "tokens of a chunk (default: 512, or the training context if that is "
      "shorter)",
      OPT_UINT, AT(verify.n_ctx), .min = 4, .max = INT32_MAX },
    { "--verify-max", "X",
      "greatest perplexity that is kept (default: size of the vocabulary, "
      "that of random guessing)",
      OPT_DOUBLE, AT(verify.max), .low = 1, .high = 1e9 },
    { "--verify-factor", "X",
      "also refuse an OUT whose perplexity is above X times that of the first "
      "OUT",
      OPT_DOUBLE, AT(verify.factor), .low = 1, .high = 1e9 },
    { "--max-text", "SIZE",
      "refuse a TEXT of more than SIZE bytes, unpacked (default: 1Gi)",
      OPT_SIZE, AT(verify.max_text) },
    { .group = &quantize_rest, Q },
    /* options of convert_hf_to_gguf.py and its relatives */
    ROW_REFUSED(
        "--outfile", "FILE",
        "--output OUT names the file, --output OUT=TYPE also its type"),
    ROW_REFUSED("--outtype", "TYPE", "--output OUT=TYPE sets the type"),
    ROW_REFUSED("--model-name", "NAME",
                "--override-kv general.name=str:NAME sets it"),
    ROW_REFUSED("--metadata", "FILE",
                "--override-kv KEY=TYPE:VALUE sets a key"),
    ROW_REFUSED("--remote", NULL,
                "give a folder on a server as hf://OWNER/REPO"),
    ROW_REFUSED("--base-model-id", "ID", "--base hf://ID does that"),
    ROW_REFUSED("--split-max-tensors --no-tensor-first-split", "N",
                "--split-max-size SIZE limits the files, and gguf-split has "
                "more options"),
    ROW_REFUSED("--bigendian", NULL,
                "gguf-edit --to-endian big converts the file"),
    ROW_REFUSED("--use-temp-file --no-lazy", NULL,
                "memory use does not grow with the model; leave it out"),
    ROW_REFUSED("--trust-remote-code", NULL,
                "no code of DIR is run; leave it out"),
    ROW_REFUSED("--fp8-as-q8", NULL, "--output OUT=Q8_0 gives that type"),
    ROW_REFUSED("--fuse-gate-up-exps", NULL,
                "expert matrices are not fused; leave it out"),
    ROW_REFUSED("--mtp --dspark --target-model-dir", NULL,
                "draft (MTP) layers are not written to a file of their own"),
    ROW_REFUSED("--no-mtp --no-nextn", NULL,
                "draft (MTP) layers stay in the model; leave it out"),
    ROW_REFUSED("--vocab-only", NULL,
                "a vocabulary is only written with its model"),
    ROW_REFUSED("--mistral-format "
                "--disable-mistral-community-chat-template",
                NULL,
                "DIR must have config.json and the tensor names of "
                "transformers"),
    ROW_REFUSED("--print-supported-models", NULL,
                "gguf-architectures(7) lists them"),
    { .names = NULL },
};

static const struct opt_rule rules[] = {
    { "--to-safetensors", OPT_EXCLUDES,
      "--output --mmproj --mmproj-output --base --dry-run --json --resume "
      "--pre --as --ignore --reranker "
      "--sentence-transformers-dense-modules "
      "--override-kv --pure "
      "--output-tensor-type --token-embedding-type --leave-output-tensor "
      "--tensor-type --tensor-type-file --target-size --target-bpw "
      "--outer-scales --imatrix --explain --verify" },
    { "--verify-chunks --verify-ctx --verify-max --verify-factor --max-text",
      OPT_NEEDS, "--verify" },
    { "--verify", OPT_EXCLUDES, "--base" },
    { "--mmproj", OPT_EXCLUDES,
      "--mmproj-output --base --pre --reranker --verify "
      "--sentence-transformers-dense-modules" },
    { "--mmproj-output", OPT_NEEDS, "--output" },
    { "--mmproj-output", OPT_EXCLUDES, "--base" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-convert",
    "[OPTION]... DIR -o OUT[=[TYPE][@SIZE]]...\n[OPTION]... --dry-run DIR\n"
    "[OPTION]... FILE --to-safetensors DIR[=TYPE]",
    "Make a GGUF file of the model in DIR, a folder in the layout of Hugging "
    "Face's transformers: config.json, safetensors, a tokenizer. DIR may also "
    "be an image or video model: FILE.safetensors or a folder of diffusers. "
    "OUT appears under its name when it is complete.",
    table,
    rules,
    "DIR [MORE]...",
    NULL
};

/* Refuse a GGUF file as the folder to convert, or to take a projector from. */
static void refuse_gguf(const char *path, bool projector)
{
    char magic[4] = "";
    struct gg_os_stat s;
    FILE *f = gg_os_stat(path, &s) == 0 && s.kind == GG_OS_FILE
                  ? gg_os_stream_open(path, "rb")
                  : NULL;
    const bool is =
        f && fread(magic, 1, 4, f) == 4 && !memcmp(magic, "GGUF", 4);
    if (f)
        fclose(f);
    if (is && projector)
        opt_usage("a projector is converted from the folder of a model that "
                  "sees, hears or speaks, found the GGUF file '%s'",
                  path);
    if (is)
        opt_usage("expected a folder, found the GGUF file '%s'; "
                  "--to-safetensors makes a folder of it",
                  path);
}

/* Read OUT=TYPE, cutting it. NULL: an output without a name. */
static struct target read_target(char *path)
{
    struct target t = { .type = TYPE_COPY };
    if (path)
        parse_output(&t, path, TYPE_COPY);
    /* text after '=' is part of the name, unless it is almost a type */
    const char *eq = path ? strrchr(path, '=') : NULL;
    char hint[GGUF_SUGGESTION_SIZE];
    if (eq && eq != path && *suggest_preset(eq + 1, hint))
        opt_usage("'%s' is not OUT=TYPE%s", path, hint);
    t.path = path ? opt_check_output(path) : NULL;
    return t;
}

static void add_target(struct options *o, char *path)
{
    if (o->n_targets == MAX_TARGETS)
        opt_usage("more than %d outputs", MAX_TARGETS);
    o->targets[o->n_targets++] = read_target(path);
}

/* Parse DIR=TYPE of --to-safetensors in the same way. */
static void use_folder(struct convert_options *o)
{
    static const struct opt_word types[] = {
        { "F32", GGUF_DTYPE_F32 },
        { "F16", GGUF_DTYPE_F16 },
        { "BF16", GGUF_DTYPE_BF16 },
        { NULL, 0 },
    };
    char *eq = (char *)(uintptr_t)strrchr(o->folder, '=');
    o->back.limits = &o->q.limits;
    o->back.opener = remote_opener();
    o->back.max_file_size = o->q.params.max_file_size;
    o->back.force = o->q.force;
    for (size_t i = 0; eq && eq != o->folder && types[i].word; i++)
        if (!strcmp(eq + 1, types[i].word)) {
            *eq = 0;
            o->back.dtype = gguf_dtype_find((uint32_t)types[i].value);
            return;
        }
}

void parse_convert(struct convert_options *o, int argc, char **argv)
{
    struct options *q = &o->q;
    if (opt_parse(&tool, argc, argv, o) > 1)
        opt_usage("'%s' is one argument too many: --output OUT names the "
                  "output",
                  argv[2]);
    if (o->folder)
        remote_args(&argv[1], 1);
    else
        remote_folder_arg(&argv[1]);
    q->in = argv[1];
    o->params.opener = remote_opener();
    q->params.limits = o->params.limits = &q->limits;
    if (o->folder) {
        use_folder(o);
        return;
    }
    refuse_gguf(q->in, o->params.projector || o->projector.arg);
    for (size_t i = 0; i < q->outputs.n; i++)
        add_target(q, (char *)(uintptr_t)q->outputs.arg[i]);
    if (!q->n_targets && !q->dry_run)
        opt_usage("no output: --output is missing");
    if (!q->n_targets)
        add_target(q, NULL);
    apply_target_size(q, &q->targets[0]);
    if (o->projector.arg)
        o->projector.target = read_target((char *)(uintptr_t)o->projector.arg);
    o->params.ignore = o->ignore.arg;
    o->params.n_ignore = o->ignore.n;
    o->params.allow_incomplete = o->ignore.n > 0;
    o->verify.max_given = o->verify.max > 0;
    if (o->verify.factor > 0 && q->n_targets < 2)
        opt_usage("--verify-factor: found one output, expected several");
    if (o->verify.text) {
        q->check = (struct gguf_quant_check_callback){ verify_check, o };
    }
    parse_types(q);
    load_importance(q);
    parse_overrides(q);
}

void convert_options_fini(struct convert_options *o)
{
    options_fini(&o->q);
    opt_list_fini(&o->ignore);
    verify_fini(&o->verify);
    projector_fini(&o->projector);
    gguf_convert_close(o->from);
}
