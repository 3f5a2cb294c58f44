/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-imatrix */
#include "config.h"
#include "tools/imatrix/imatrix.h"

#include <string.h>

#define AT(member) OPT_AT(struct im_options, member)
#define EV         .at = offsetof(struct im_options, ev)

static const struct opt_word forms[] = {
    { "gguf", GGUF_IMATRIX_GGUF },
    { "dat", GGUF_IMATRIX_DAT },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What is read:" },
    { "-m --model", "MODEL",
      "model that is evaluated on --file; without that, model to compare the "
      "data with: which of its tensors have none",
      OPT_STR, AT(model) },
    { "-f --file", "TEXT",
      "collect data of this text, plain or packed; - for standard input",
      OPT_STR, AT(text) },
    { .group = &ev_chunks, EV },
    { "-c --ctx-size", "N",
      "tokens of a chunk, of which each counts; the default is 512", OPT_UINT,
      AT(ev.n_ctx), .min = 1, .max = EV_MOST_TOKENS },
    { .group = &ev_threads, EV },
    { .help = "What is written:" },
    { "-o --output --output-file", "OUT",
      "write the data, of several files all together; without it they are "
      "shown",
      OPT_OUT, AT(out) },
    { "--save-every --save-frequency -ofreq --output-frequency", "N",
      "after every N chunks write OUT.part, which is removed at the end",
      OPT_UINT, AT(save_every), .min = 1, .max = UINT32_MAX },
    { "--resume", NULL,
      "go on with OUT.part, if it is there: its chunks are not evaluated "
      "again",
      OPT_FLAG, AT(resume) },
    { "--force", NULL, "replace files; accept a text that is not UTF-8",
      OPT_FLAG, AT(ev.force) },
    { .help = "What is shown:" },
    { "-s --show --show-statistics", NULL, "statistics, also with --output",
      OPT_FLAG, AT(show) },
    { "-j --json", NULL, "print one JSON document", OPT_FLAG, AT(ev.json) },
    { "-q --quiet", NULL, "no progress bar, no summary, no warnings", OPT_FLAG,
      AT(ev.quiet) },
    { .help = "Tensors and tokens:", .rare = true },
    { "--include", "TEXT",
      "only tensors whose names contain TEXT; may be given again", OPT_LIST,
      AT(include) },
    { "--exclude", "TEXT", "no such tensors; excludes --include", OPT_LIST,
      AT(exclude) },
    { "--process-output", NULL, "data of the output matrix, too", OPT_FLAG,
      AT(output) },
    { "--parse-special", NULL,
      "texts of control tokens, such as </s>, are tokens", OPT_FLAG,
      AT(parse_special) },
    { "--from-chunk --chunk", "N", "leave out the first N chunks", OPT_UINT,
      AT(from_chunk), .min = 0, .max = UINT32_MAX },
    { .help = "Files:", .rare = true },
    { "--output-format", "FORM",
      "gguf or dat; the default is dat where OUT ends so, else gguf", OPT_WORD,
      AT(form), .words = forms },
    { "--keep-paths", NULL,
      "keep the folders in the names of the texts that were read", OPT_FLAG,
      AT(keep_paths) },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(limits) },
    { "--max-text", "SIZE",
      "refuse a text of more bytes, unpacked; the default is 1Gi", OPT_SIZE,
      AT(ev.max_text) },
    { .help = "Several processes:", .rare = true },
    { "--save-part", "PART",
      "write all that is known of these chunks, exactly, to merge it with "
      "other parts of the text",
      OPT_OUT, AT(part) },
    { "--merge-parts", NULL, "the files are parts, from --save-part", OPT_FLAG,
      AT(merge_parts) },
    { "--mpi", NULL,
      "this is one rank of an MPI job: all of them share the chunks, and rank "
      "0 writes. Only in a build configured --with-mpi",
      OPT_FLAG, AT(mpi) },
    { "--no-ppl", NULL, "for scripts: perplexity is not computed anyway",
      OPT_FLAG, AT(no_ppl) },
    { .group = &ev_speed, EV },
    { .group = &ev_layer_major, EV },
    ROW_REFUSED("--in-file", "FILE",
                "files to read are operands, without an option"),
    ROW_ACCEPTED("--ppl", NULL, ""),
    ROW_REFUSED("-C --cpu-mask -Cr --cpu-range", "X",
                "--threads says how many, taskset(1) where"),
    ROW_REFUSED("--lora --lora-scaled", "FILE",
                "gguf-quantize --lora merges one into the model first"),
    ROW_REFUSED("--control-vector --control-vector-scaled "
                "--control-vector-layer-range",
                "X", "data are of the model alone"),
    ROW_REFUSED("--rope-scaling --rope-scale --rope-freq-base "
                "--rope-freq-scale --override-kv",
                "X", "the file says that; gguf-edit --set changes it"),
    ROW_REFUSED("-ctk --cache-type-k -ctv --cache-type-v", "TYPE",
                "keys and values are kept as computed, in f32"),
    ROW_REFUSED("--mlock --no-mmap --numa -ot --override-tensor", NULL,
                "weights are used as they lie in the file"),
    { .group = &ev_foreign, EV },
    { .names = NULL },
};

#define COLLECTS                                                              \
    "--ctx-size --chunks --from-chunk --process-output --parse-special "      \
    "--ubatch-size --batch-size --threads --threads-batch --precision "       \
    "--repack --no-fuse --max-text --no-check --no-ppl --save-every "         \
    "--resume --layer-major --mpi"

static const struct opt_rule rules[] = {
    { "--include", OPT_EXCLUDES, "--exclude" },
    { "--output-format", OPT_NEEDS, "--output" },
    { "--file", OPT_NEEDS, "--model" },
    { "--file", OPT_NEEDS, "--output --save-part --show --json" },
    { "--file", OPT_EXCLUDES, "--merge-parts" },
    { COLLECTS, OPT_NEEDS, "--file" },
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

int im_parse_options(struct im_options *o, int argc, char **argv)
{
    *o = (struct im_options){ .ev = EV_OPTIONS_INIT,
                              .form = -1,
                              .limits = GGUF_LIMITS_INIT,
                              .files = GGUF_FILE_PARAMS_INIT };
    o->ev.n_ctx = 512;
    o->ev.n_ubatch = 512;
    o->ev.n_batch = EV_MOST_TOKENS;
    o->ev.pooling = GGUF_POOLING_MODEL;
    const int n = opt_parse(&tool, argc, argv, o);
    o->files.limits = &o->limits;
    o->ev.files = &o->files;
    if (o->text && n)
        opt_usage("--file collects data: '%s' cannot be read as well",
                  argv[1]);
    if (!o->text && !n)
        opt_usage("IN is missing");
    if (o->mpi && !strcmp(o->text, "-"))
        opt_usage("--mpi: standard input is that of one rank, and each reads "
                  "the text: give a file");
    if (o->ev.n_batch < o->ev.n_ubatch)
        o->ev.n_ubatch = o->ev.n_batch;
    ev_settle_options(&o->ev);
    const bool range = o->ev.chunks && strstr(o->ev.chunks, "..") != NULL;
    if (range && o->from_chunk)
        opt_usage("--from-chunk: --chunks %s says it, too", o->ev.chunks);
    if (o->from_chunk)
        o->ev.first_chunk = o->from_chunk;
    return n;
}
