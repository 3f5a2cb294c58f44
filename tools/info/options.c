/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-info */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/cache_type.h"
#include "tools/common/opt.h"
#include "tools/common/style.h"

#include <gguf/digest.h>
#include <gguf/pool.h>

#define AT(member) OPT_AT(struct info_options, member)
#define SHOW(part) OPT_BITS(struct info_options, show, SHOW_##part)

static const struct opt_word checks[] = {
    { "all", false },
    { "header", true },
    { NULL, 0 },
};
static const struct opt_word algorithms[] = {
    { "xxh64", GGUF_DIGEST_XXH64 },
    { "xxh3-128", GGUF_DIGEST_XXH3_128 },
    { "sha256", GGUF_DIGEST_SHA256 },
    { NULL, 0 },
};
static const struct opt_word orders[] = {
    { "name", INFO_BY_NAME },     { "size", INFO_BY_SIZE },
    { "type", INFO_BY_TYPE },     { "elements", INFO_BY_ELEMENTS },
    { "offset", INFO_BY_OFFSET }, { NULL, 0 },
};
static const struct opt_word whens[] = {
    { "auto", STYLE_AUTO },
    { "always", STYLE_ALWAYS },
    { "never", STYLE_NEVER },
    { NULL, 0 },
};
static const struct opt_word all[] = { { "all", UINT64_MAX }, { NULL, 0 } };

static const struct opt table[] = {
    { .help = "What is shown (default: everything):" },
    { "--summary", NULL, "show architecture, parameters and sizes", OPT_FLAG,
      SHOW(SUMMARY) },
    { "--metadata", NULL, "show metadata keys and values", OPT_FLAG,
      SHOW(METADATA) },
    { "--tensors", "[GLOB]",
      "show names, shapes and types of the tensors, or of those that match "
      "GLOB",
      OPT_STR, AT(glob), SHOW(TENSORS) },
    { "--types", NULL, "show totals for each tensor type", OPT_FLAG,
      SHOW(TYPES) },
    { "--memory", NULL,
      "show the memory for weights, key/value cache and computation", OPT_FLAG,
      SHOW(MEMORY) },
    { "--key", "NAME",
      "print only the value of NAME: a string as its bytes, an array with an "
      "element on each line",
      OPT_STR, AT(key) },
    { "--table", NULL, "show all files in one table, a line for each",
      OPT_FLAG, AT(lines) },
    { "--diff", NULL,
      "compare two models: keys, shapes, types and values; with --metadata or "
      "--tensors only these",
      OPT_FLAG, AT(diff) },
    { .help = "What reads tensor data:" },
    { "--check", "[WHAT]",
      "look for faults: 'header' reads no tensor data, 'all' checks every "
      "number (default: all)",
      OPT_WORD, AT(check_header), SHOW(CHECK), .words = checks },
    { "--stats", "[GLOB]",
      "show range, mean, rms, kurtosis, zeros, histogram of the tensors, or of "
      "those that match GLOB",
      OPT_STR, AT(glob), SHOW(STATS) },
    { "--hash", "[ALGO]",
      "print checksums: xxh64 or xxh3-128 of tensors and model, sha256 of "
      "whole files (default: xxh64)",
      OPT_WORD, AT(hash), SHOW(HASH), .words = algorithms,
      .value = GGUF_DIGEST_XXH64 },
    { "--manifest", "FILE",
      "compare with the checksums that --hash, llama-gguf-hash or sha256sum "
      "wrote to FILE",
      OPT_STR, AT(manifest) },
    { .help = "How it is shown:" },
    { "-j --json", NULL, "print one JSON document", OPT_FLAG, AT(json) },
    { "--markdown", NULL, "print Markdown, for model cards", OPT_FLAG,
      AT(markdown) },
    { "--sort", "WORD",
      "list tensors by name, size, type, elements or offset (default: order "
      "of the file)",
      OPT_WORD, AT(sort), .words = orders },
    { "-q --quiet", NULL, "print no warnings", OPT_FLAG, AT(quiet) },
    { .help = "Values, memory and limits:", .rare = true },
    { "--raw", NULL,
      "with --key: print the bytes of a string without a newline after them",
      OPT_FLAG, AT(raw) },
    { "--values", "NAME",
      "print only the numbers of tensor NAME, a row on each line", OPT_STR,
      AT(values) },
    { "--arrays", "N",
      "show N elements of each array, or 'all' (default: 6; all with --json "
      "and --key)",
      OPT_UINT, AT(limits.elems), .max = UINT64_MAX, .words = all,
      OPT_BITS(struct info_options, limits_given, INFO_ARRAYS) },
    { "--strings", "N",
      "show N bytes of each string, or 'all' (default: 120; all with --json "
      "and --key)",
      OPT_UINT, AT(limits.bytes), .max = UINT64_MAX, .words = all,
      OPT_BITS(struct info_options, limits_given, INFO_STRINGS) },
    { "-c --ctx-size", "N",
      "tokens of the cache for --memory, such as 8192 or 8k (default: the "
      "model's context length)",
      OPT_UINT, AT(n_ctx), .min = 1, .max = UINT32_MAX, .kilo = true },
    { "--cache-type", "TYPE",
      "cache type for --memory: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, "
      "iq4_nl (default: f16)",
      OPT_WORD, AT(cache_dtype), .words = cache_type_words },
    { "--alone", NULL,
      "show one shard of a split model by itself, as a single file", OPT_FLAG,
      AT(alone) },
    { "--color", "WHEN",
      "colour the text: always, never or auto (default: auto, on a terminal "
      "only)",
      OPT_WORD, AT(color), .words = whens },
    { "-t --threads", "N", "use N threads (default: one for each processor)",
      OPT_UINT, AT(n_threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(file_limits) },
    /* options of gguf_dump.py */
    ROW_REFUSED("--no-tensors", NULL,
                "--summary and --metadata show no tensors"),
    ROW_REFUSED("--json-array", NULL, "--json prints all elements of arrays"),
    ROW_REFUSED("--data-offset --data-alignment", NULL,
                "--json prints data_offset and alignment of each file"),
    ROW_REFUSED("-v --verbose", NULL, "everything is shown; leave it out"),
    /* options of llama-gguf-hash */
    ROW_REFUSED("--xxh64", NULL, "--hash prints XXH64"),
    ROW_REFUSED("--sha256", NULL, "--hash=sha256 prints it for each file"),
    ROW_REFUSED("--sha1 --uuid --all", NULL,
                "--hash has xxh64, xxh3-128 and sha256"),
    ROW_REFUSED("--no-layer", NULL,
                "--hash prints tensors and model, --hash=sha256 whole files"),
    ROW_REFUSED("--progressbar", NULL,
                "a bar is shown on a terminal; leave it out"),
    { .names = NULL },
};

#define ALONE "--key --values --manifest --diff --table"

static const struct opt_rule rules[] = {
    { "--json", OPT_EXCLUDES, "--markdown --values --manifest --table" },
    { "--markdown", OPT_EXCLUDES, "--key --values --manifest --diff" },
    { ALONE, OPT_EXCLUDES, NULL },
    { "--raw", OPT_NEEDS, "--key" },
    { "--raw", OPT_EXCLUDES, "--json" },
    { "--key --values --manifest --table", OPT_EXCLUDES,
      "--metadata --tensors" },
    { ALONE, OPT_EXCLUDES,
      "--summary --types --memory --check --stats --hash" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-info",
    "[OPTION]... FILE...\n--diff [OPTION]... FILE-A FILE-B",
    "Show the contents of GGUF files: the model, its metadata, its tensors. FILE "
    "may also be a split model, by any shard, its folder or its prefix.",
    table,
    rules,
    "FILE...",
    NULL
};

int info_parse_options(struct info_options *o, int argc, char **argv)
{
    *o = (struct info_options){ .limits = { 6, 120 },
                                .cache_dtype = GGUF_DTYPE_F16,
                                .file_limits = GGUF_INIT(struct gguf_limits) };
    int n = opt_parse(&tool, argc, argv, o);
    if (o->diff && n != 2)
        opt_usage("--diff: expected 2 files, found %d", n);
    /* Markdown is not styled */
    style_init(o->markdown ? STYLE_NEVER : (enum style_when)o->color);
    if (!o->show)
        o->show = SHOW_ALL;
    return n;
}
