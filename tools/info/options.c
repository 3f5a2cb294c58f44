/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-info */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/cache.h"
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
    { .help = "What is shown (without these, all of it):" },
    { "--summary", NULL,
      "architecture, shape, parameters, sizes, also by tensor type", OPT_FLAG,
      SHOW(SUMMARY) },
    { "--metadata", NULL, "keys and their values", OPT_FLAG, SHOW(METADATA) },
    { "--tensors", "[GLOB]",
      "names, shapes and types of the tensors, of those that match GLOB",
      OPT_STR, AT(glob), SHOW(TENSORS) },
    { "--types", NULL, "totals by tensor type", OPT_FLAG, SHOW(TYPES) },
    { "--table", NULL, "one table of all files, a line for each", OPT_FLAG,
      AT(lines) },
    { "--memory", NULL,
      "what weights, key/value cache and computation take in memory", OPT_FLAG,
      SHOW(MEMORY) },
    { "--key", "NAME",
      "print the value of NAME and nothing else: a string as its bytes, an "
      "array one element a line",
      OPT_STR, AT(key) },
    { .help = "What reads tensor data:" },
    { "--check", "[WHAT]",
      "look for whatever is odd or wrong, down to every number; WHAT is 'all' "
      "or 'header', which reads no tensor data",
      OPT_WORD, AT(check_header), SHOW(CHECK), .words = checks },
    { "--stats", "[GLOB]",
      "extremes, mean, rms, kurtosis, zeros, what is not finite, and a "
      "histogram, of the tensors that match GLOB",
      OPT_STR, AT(glob), SHOW(STATS) },
    { "--hash", "[ALGO]",
      "print checksums of the tensors and of the model, as a manifest; ALGO is "
      "'xxh64' or 'xxh3-128', or 'sha256': of each whole file, metadata "
      "included, as sha256sum prints it",
      OPT_WORD, AT(hash), SHOW(HASH), .words = algorithms,
      .value = GGUF_DIGEST_XXH64 },
    { "--manifest", "FILE",
      "compare with the checksums in FILE, which --hash, llama-gguf-hash or "
      "sha256sum wrote",
      OPT_STR, AT(manifest) },
    { "--diff", NULL,
      "compare two models: keys, shapes, types, and the numbers after "
      "decoding; with --metadata or --tensors=GLOB, these alone",
      OPT_FLAG, AT(diff) },
    { "-t --threads", "N", "use N threads; all processors by default",
      OPT_UINT, AT(n_threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { .help = "How:" },
    { "-j --json", NULL, "one JSON document", OPT_FLAG, AT(json) },
    { "--markdown", NULL, "Markdown, for model cards", OPT_FLAG,
      AT(markdown) },
    { "--sort", "WORD",
      "list tensors by 'name', 'size', 'type', 'elements' or 'offset' "
      "instead of by their place in the file",
      OPT_WORD, AT(sort), .words = orders },
    { "-q --quiet", NULL, "no warnings", OPT_FLAG, AT(quiet) },
    { .help = "Values, memory and limits:", .rare = true },
    { "--raw", NULL,
      "with --key: the bytes of a string, and no line end after them",
      OPT_FLAG, AT(raw) },
    { "--values", "NAME",
      "print the numbers of tensor NAME and nothing else, a row on each line",
      OPT_STR, AT(values) },
    { "--arrays", "N",
      "show N elements of each array, or all of them (N is 'all'); 6 without "
      "this option, and all with --json and --key",
      OPT_UINT, AT(limits.elems), .max = UINT64_MAX, .words = all,
      OPT_BITS(struct info_options, limits_given, INFO_ARRAYS) },
    { "--strings", "N",
      "show N bytes of each string, or all of them (N is 'all'); 120 without "
      "this option, and all with --json and --key",
      OPT_UINT, AT(limits.bytes), .max = UINT64_MAX, .words = all,
      OPT_BITS(struct info_options, limits_given, INFO_STRINGS) },
    { "-c --ctx-size", "N",
      "tokens of the cache for --memory, such as 8192 or 8k; those of the "
      "model by default",
      OPT_UINT, AT(n_ctx), .min = 1, .max = UINT32_MAX, .kilo = true },
    { "--cache-type", "TYPE",
      "type of keys and values for --memory: f32, f16 (without this option), "
      "bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl",
      OPT_WORD, AT(cache_dtype), .words = cache_words },
    { "--alone", NULL,
      "show one shard of a split model as if it were a file of its own",
      OPT_FLAG, AT(alone) },
    { "--color", "WHEN",
      "'auto' (colours on a terminal only), 'always' or 'never'", OPT_WORD,
      AT(color), .words = whens },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(file_limits) },
    /* of gguf_dump.py */
    ROW_REFUSED("--no-tensors", NULL,
                "--summary and --metadata leave tensors out"),
    ROW_REFUSED("--json-array", NULL, "--json has all elements of arrays"),
    ROW_REFUSED("--data-offset --data-alignment", NULL,
                "--json has it: data_offset and alignment of each file"),
    ROW_REFUSED("-v --verbose", NULL, "all is shown; leave it out"),
    /* of llama-gguf-hash */
    ROW_REFUSED("--xxh64", NULL, "--hash prints XXH64"),
    ROW_REFUSED("--sha256", NULL, "--hash=sha256 prints it, of each file"),
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
    "Show what is in GGUF files: the model, its metadata, its tensors. FILE "
    "may be a shard, the folder or the prefix of a split model, which is then "
    "shown as one.",
    table,
    rules,
    "FILE...",
    NULL
};

int info_parse_options(struct info_options *o, int argc, char **argv)
{
    *o = (struct info_options){ .limits = { 6, 120 },
                                .cache_dtype = GGUF_DTYPE_F16,
                                .file_limits = GGUF_LIMITS_INIT };
    int n = opt_parse(&tool, argc, argv, o);
    if (o->diff && n != 2)
        opt_usage("--diff: two files are wanted, and %d given", n);
    /* Markdown has its own ways to style */
    style_init(o->markdown ? STYLE_NEVER : (enum style_when)o->color);
    if (!o->show)
        o->show = SHOW_ALL;
    return n;
}
