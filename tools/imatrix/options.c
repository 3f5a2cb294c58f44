/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-imatrix */
#include "config.h"
#include "tools/imatrix/imatrix.h"
#include "tools/common/foreign.h"
#include "tools/common/precision.h"
#include "tools/common/range.h"
#include "tools/common/stored.h"

#include <string.h>

#define AT(member) OPT_AT(struct im_options, member)
enum { MOST_TOKENS = 1 << 24 };

static const struct opt_word forms[] = {
    { "gguf", GGUF_IMATRIX_GGUF },
    { "dat", GGUF_IMATRIX_DAT },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What is read:" },
    { "-m --model", "MODEL",
      "with --file: the model that is evaluated. Without: compare with it: "
      "which tensors have no data, or of another shape",
      OPT_STR, AT(model) },
    { "-f --file", "TEXT",
      "collect data: evaluate the model on this text, plain or compressed by "
      "gzip; - for standard input",
      OPT_STR, AT(text) },
    { "--merge-parts", NULL, "the files are parts, from --save-part", OPT_FLAG,
      AT(merge_parts) },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(limits) },
    { .help = "How data are collected:" },
    { "-c --ctx-size", "N",
      "tokens of a chunk, of which each counts; 512 without this option",
      OPT_UINT, AT(n_ctx), .min = 1, .max = MOST_TOKENS },
    { "--chunks", "N|A..B",
      "only N chunks; or those from A up to, without, B, counted from 0. B "
      "may be left out",
      OPT_STR, AT(chunks) },
    { "--from-chunk --chunk", "N", "not the first N chunks", OPT_UINT,
      AT(from_chunk), .min = 0, .max = UINT32_MAX },
    { "--process-output", NULL, "data of the output matrix, too", OPT_FLAG,
      AT(output) },
    { "--parse-special", NULL,
      "texts of control tokens, such as </s>, are tokens", OPT_FLAG,
      AT(parse_special) },
    { "-ub --ubatch-size", "N",
      "tokens that go through the matrices together, at most; 512 without "
      "this option. No digit depends on it",
      OPT_UINT, AT(n_ubatch), .min = 1, .max = MOST_TOKENS },
    { "-b --batch-size", "N", "the same, where it is less", OPT_UINT,
      AT(n_batch), .min = 1, .max = MOST_TOKENS },
    { "-t --threads", "N",
      "threads; without this option, one for each processor. No digit "
      "depends on it",
      OPT_UINT, AT(n_threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { "--precision", "KIND", PRECISION_HELP, OPT_WORD, AT(precision),
      .words = precision_words },
    { "--repack", "[SIZE]", REPACK_HELP, OPT_SIZE, AT(repack),
      .value = GGUF_CPU_REPACK_FREE },
    { "--no-fuse", NULL, NO_FUSE_HELP, OPT_FLAG, AT(no_fuse) },
    { "--layer-major", NULL, STORED_HELP, OPT_FLAG, AT(layer_major) },
    { "--max-memory", "SIZE",
      "with --layer-major: use so many bytes beside the weights and the sums; "
      "1Gi without this option",
      OPT_SIZE, AT(max_memory) },
    { "--max-text", "SIZE",
      "refuse a text of more bytes, unpacked; 1Gi without this option",
      OPT_SIZE, AT(max_text) },
    { "--no-check", NULL,
      "do not look for NaN and infinities among the weights first", OPT_FLAG,
      AT(no_check) },
    { "--no-ppl", NULL, "for scripts: perplexity is not computed anyway",
      OPT_FLAG, AT(no_ppl) },
    { .help = "What is written:" },
    { "-o --output --output-file", "OUT",
      "write the data, of several files all together; without it they are "
      "shown",
      OPT_OUT, AT(out) },
    { "--output-format", "FORM",
      "gguf or dat; the default is dat where OUT ends so, else gguf", OPT_WORD,
      AT(form), .words = forms },
    { "--save-part", "PART",
      "write all that is known of these chunks, exactly, to merge it with "
      "other parts of the text",
      OPT_OUT, AT(part) },
    { "--save-every --save-frequency -ofreq --output-frequency", "N",
      "after every N chunks write PART, or OUT.part, from which --resume "
      "goes on; OUT.part is removed at the end",
      OPT_UINT, AT(save_every), .min = 1, .max = UINT32_MAX },
    { "--resume", NULL,
      "go on with PART or OUT.part, if it is there; chunks that it has are "
      "not evaluated again",
      OPT_FLAG, AT(resume) },
    { "--mpi", NULL,
      "this is one rank of an MPI job: all of them share the chunks, and rank "
      "0 writes. Only in a build configured --with-mpi",
      OPT_FLAG, AT(mpi) },
    { "--include", "TEXT",
      "only tensors whose names contain TEXT; may be given again", OPT_LIST,
      AT(include) },
    { "--exclude", "TEXT", "no such tensors; excludes --include", OPT_LIST,
      AT(exclude) },
    { "--keep-paths", NULL,
      "keep the folders in the names of the texts that were read", OPT_FLAG,
      AT(keep_paths) },
    { "--force", NULL,
      "replace files that exist, and take a text that is not UTF-8", OPT_FLAG,
      AT(force) },
    { .help = "What is shown:" },
    { "-s --show --show-statistics", NULL, "statistics, also with --output",
      OPT_FLAG, AT(show) },
    { "-j --json", NULL, "print one JSON document", OPT_FLAG, AT(json) },
    { "-q --quiet", NULL, "no progress bar, no summary, no warnings", OPT_FLAG,
      AT(quiet) },
    /* of llama-imatrix */
    ROW_FOREIGN("--in-file", "FILE",
                "files to read are operands, without an option"),
    ROW_FOREIGN("--ppl", NULL, "gguf-ppl computes it; leave it out"),
    ROW_FOREIGN("-tb --threads-batch", "N", "--threads says how many"),
    ROW_FOREIGN("-C --cpu-mask -Cr --cpu-range", "X",
                "--threads says how many, taskset(1) where"),
    ROW_FOREIGN("--lora --lora-scaled", "FILE",
                "gguf-quantize --lora merges one into the model first"),
    ROW_FOREIGN("--control-vector --control-vector-scaled "
                "--control-vector-layer-range",
                "X", "data are of the model alone; leave it out"),
    ROW_FOREIGN("--rope-scaling --rope-scale --rope-freq-base "
                "--rope-freq-scale --yarn-orig-ctx --yarn-ext-factor "
                "--yarn-attn-factor --yarn-beta-slow --yarn-beta-fast "
                "--override-kv",
                "X", "the file says that; gguf-edit --set changes it"),
    ROW_FOREIGN("-ctk --cache-type-k -ctv --cache-type-v", "TYPE",
                "keys and values are kept as computed, in f32; leave it out"),
    ROW_FOREIGN("--swa-full -kvu --kv-unified", NULL,
                "no digit depends on it; leave it out"),
    ROW_FOREIGN("--mlock --no-mmap --numa -ot --override-tensor", NULL,
                "weights are used as they lie in the file; leave it out"),
    ROWS_FOREIGN,
    { .names = NULL },
};

#define COLLECTS                                                              \
    "--ctx-size --chunks --from-chunk --process-output --parse-special "      \
    "--ubatch-size --batch-size --threads --precision --repack --no-fuse "    \
    "--max-text --no-check --no-ppl --save-every --resume --layer-major "     \
    "--mpi"

static const struct opt_rule rules[] = {
    { "--include", OPT_EXCLUDES, "--exclude" },
    { "--output-format", OPT_NEEDS, "--output" },
    { "--file", OPT_NEEDS, "--model" },
    { "--file", OPT_NEEDS, "--output --save-part --show --json" },
    { "--file", OPT_EXCLUDES, "--merge-parts" },
    { COLLECTS, OPT_NEEDS, "--file" },
    { "--max-memory", OPT_NEEDS, "--layer-major" },
    { "--save-part", OPT_NEEDS, "--file --merge-parts" },
    { "--save-every --resume", OPT_NEEDS, "--output --save-part" },
    { "--mpi", OPT_EXCLUDES, "--save-every --resume --layer-major" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-imatrix",
    "[OPTION]... -m MODEL -f TEXT -o OUT\n"
    "[OPTION]... IN...",
    "Collect importance data, as gguf-quantize --imatrix reads them, by "
    "evaluating a model on a text; or show, in GGUF or in the older form "
    "(.dat), those of files, add up several, and write them in either.",
    table,
    rules,
    "[IN]...",
    NULL
};

/* "N", "A..B" or "A.." into first and number. */
static void parse_chunks(struct im_options *o)
{
    uint64_t first, n;
    const bool range = strstr(o->chunks, "..") != NULL;
    if (!range_parse(o->chunks, &first, &n))
        opt_usage("--chunks: '%s' is not a number of chunks, or A..B",
                  o->chunks);
    if (range && o->from_chunk)
        opt_usage("--from-chunk: --chunks %s says it, too", o->chunks);
    if (range)
        o->from_chunk = first;
    o->n_chunks = n;
}

int im_parse_options(struct im_options *o, int argc, char **argv)
{
    *o = (struct im_options){ .form = -1,
                              .n_ctx = 512,
                              .n_batch = MOST_TOKENS,
                              .n_ubatch = 512,
                              .max_text = UINT64_C(1) << 30,
                              .max_memory = UINT64_C(1) << 30,
                              .limits = GGUF_LIMITS_INIT,
                              .files = GGUF_FILE_PARAMS_INIT };
    const int n = opt_parse(&tool, argc, argv, o);
    o->files.limits = &o->limits;
    if (o->text && n)
        opt_usage("--file collects data: '%s' cannot be read as well",
                  argv[1]);
    if (!o->text && !n)
        opt_usage("IN is missing");
    if (o->mpi && !strcmp(o->text, "-"))
        opt_usage("--mpi: standard input is that of one rank, and each reads "
                  "the text: give a file");
    if (o->chunks)
        parse_chunks(o);
    if (!o->n_threads)
        o->n_threads = gguf_cpu_count();
    if (o->n_batch < o->n_ubatch)
        o->n_ubatch = o->n_batch;
    return n;
}
