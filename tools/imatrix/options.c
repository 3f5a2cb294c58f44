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
      "model to evaluate on --file; without --file, list its matrices "
      "that have no data",
      OPT_STR, AT(model) },
    { "-f --file", "TEXT",
      "collect data on this text, plain or compressed; - is standard "
      "input",
      OPT_STR, AT(text) },
    { .group = &ev_chunks, EV },
    { "-c --ctx-size", "N",
      "tokens per chunk, all of them counted (default: 512)", OPT_UINT,
      AT(ev.n_ctx), .min = 1, .max = EV_MOST_TOKENS },
    { .group = &ev_threads, EV },
    { "--sensitivity", NULL,
      "also measure the effect of errors of each tensor: gguf-quantize then "
      "chooses types by it; with IN, add it to that data",
      OPT_FLAG, AT(sensitivity) },
    { "--sensitivity-tokens", "N",
      "measure sensitivities on N tokens of the text (default: 2048)",
      OPT_UINT, AT(sensitivity_tokens), .min = 1, .max = UINT32_MAX },
    { .help = "What is written:" },
    { "-o --output --output-file", "OUT",
      "write the data; several inputs are added up (default: print "
      "statistics)",
      OPT_OUT, AT(out) },
    { "--save-every --save-frequency -ofreq --output-frequency", "N",
      "write a checkpoint OUT.part after every N chunks; it is removed "
      "at the end",
      OPT_UINT, AT(save_every), .min = 1, .max = UINT32_MAX },
    { "--resume", NULL,
      "continue from OUT.part, if it exists; its chunks are not "
      "evaluated again",
      OPT_FLAG, AT(resume) },
    { "--force", NULL, "replace existing files; accept text that is not UTF-8",
      OPT_FLAG, AT(ev.force) },
    { .help = "What is shown:" },
    { "-s --show --show-statistics", NULL,
      "print statistics, also with --output", OPT_FLAG, AT(show) },
    { "-j --json", NULL, "print one JSON document instead of text", OPT_FLAG,
      AT(ev.json) },
    { "-q --quiet", NULL, "print no progress bar, no summary and no warnings",
      OPT_FLAG, AT(ev.quiet) },
    { .help = "Tensors and tokens:", .rare = true },
    { "--include", "TEXT",
      "use only tensors whose names contain TEXT; may be repeated", OPT_LIST,
      AT(include) },
    { "--exclude", "TEXT",
      "leave out tensors whose names contain TEXT; may be repeated", OPT_LIST,
      AT(exclude) },
    { "--process-output", NULL, "collect data of the output matrix, too",
      OPT_FLAG, AT(output) },
    { "--parse-special", NULL,
      "read texts of control tokens, such as </s>, as these tokens", OPT_FLAG,
      AT(parse_special) },
    { "--from-chunk --chunk", "N", "skip the first N chunks", OPT_UINT,
      AT(from_chunk), .min = 0, .max = UINT32_MAX },
    { .help = "Files:", .rare = true },
    { "--output-format", "FORM",
      "gguf or dat (default: dat if OUT ends in .dat, else gguf)", OPT_WORD,
      AT(form), .words = forms },
    { "--keep-paths", NULL, "keep the folders in the recorded names of texts",
      OPT_FLAG, AT(keep_paths) },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(limits) },
    { "--max-text", "SIZE",
      "refuse a text larger than SIZE, measured unpacked (default: 1Gi)",
      OPT_SIZE, AT(ev.max_text) },
    { .help = "Several processes:", .rare = true },
    { "--save-part", "PART",
      "save the exact sums of the evaluated chunks, for --merge-parts",
      OPT_OUT, AT(part) },
    { "--merge-parts", NULL,
      "the inputs are parts, from --save-part: add them up", OPT_FLAG,
      AT(merge_parts) },
    { "--mpi", NULL,
      "run as one rank of an MPI job: ranks share the chunks, rank 0 "
      "writes (build: --with-mpi)",
      OPT_FLAG, AT(mpi) },
    { "--no-ppl", NULL, "accepted for scripts; perplexity is never computed",
      OPT_FLAG, AT(no_ppl) },
    { .group = &ev_speed, EV },
    { .group = &ev_layer_major, EV },
    { .group = &ev_arch, EV },
    ROW_REFUSED("--in-file", "FILE",
                "give input files as operands, without an option"),
    ROW_ACCEPTED("--ppl", NULL, ""),
    ROW_REFUSED(
        "-C --cpu-mask -Cr --cpu-range", "X",
        "--threads N sets the number of threads; taskset(1) binds them"),
    ROW_REFUSED("--lora --lora-scaled", "FILE",
                "merge it into the model first, with gguf-quantize --lora"),
    ROW_REFUSED("--control-vector --control-vector-scaled "
                "--control-vector-layer-range",
                "X", "data are collected from the model alone"),
    ROW_REFUSED("--rope-scaling --rope-scale --rope-freq-base "
                "--rope-freq-scale --override-kv",
                "X", "the file decides that; change it with gguf-edit --set"),
    ROW_REFUSED("-ctk --cache-type-k -ctv --cache-type-v", "TYPE",
                "keys and values are cached as computed, in f32"),
    ROW_REFUSED("--mlock --no-mmap --numa -ot --override-tensor -lm "
                "--load-mode -lzm --lazy-mode",
                NULL, "weights are used where the file is mapped"),
    { .group = &ev_llama_options, EV },
    { .names = NULL },
};

#define COLLECTS                                                              \
    "--ctx-size --chunks --from-chunk --process-output --parse-special "      \
    "--ubatch-size --batch-size --threads --threads-batch --precision "       \
    "--repack --no-fuse --max-text --no-check --no-ppl --save-every "         \
    "--resume --layer-major --mpi --as"

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
    { "--sensitivity", OPT_NEEDS, "--file" },
    { "--sensitivity", OPT_NEEDS, "--output --show --json" },
    { "--sensitivity", OPT_EXCLUDES, "--mpi --merge-parts" },
    { "--sensitivity-tokens", OPT_NEEDS, "--sensitivity" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-imatrix",
    "[OPTION]... -m MODEL -f TEXT -o OUT\n"
    "[OPTION]... IN...",
    "Collect importance data for gguf-quantize --imatrix by evaluating a model "
    "on a text. Or read files of such data (GGUF or the older .dat form): "
    "print statistics, add several files up, convert them.",
    table,
    rules,
    "[IN]...",
    NULL
};

int im_parse_options(struct im_options *o, int argc, char **argv)
{
    *o = (struct im_options){ .ev = EV_OPTIONS_INIT,
                              .form = -1,
                              .limits = GGUF_INIT(struct gguf_limits),
                              .files = GGUF_INIT(struct gguf_file_params) };
    o->ev.n_ctx = 512;
    o->ev.n_ubatch = 512;
    o->ev.n_batch = EV_MOST_TOKENS;
    o->ev.pooling = GGUF_POOLING_MODEL;
    const int n = opt_parse(&tool, argc, argv, o);
    o->files.limits = &o->limits;
    o->ev.files = &o->files;
    if (o->text && n && !o->sensitivity)
        opt_usage("--file collects data: '%s' cannot be read in the same run",
                  argv[1]);
    if (!o->text && !n)
        opt_usage("IN is missing");
    if (o->mpi && !strcmp(o->text, "-"))
        opt_usage("--mpi: only one rank has standard input, and every rank "
                  "reads the text: give a file");
    if (o->ev.n_batch < o->ev.n_ubatch)
        o->ev.n_ubatch = o->ev.n_batch;
    ev_finish_options(&o->ev);
    const bool range = o->ev.chunks && strstr(o->ev.chunks, "..") != NULL;
    if (range && o->from_chunk)
        opt_usage(
            "--from-chunk: --chunks %s already has a first chunk: leave out "
            "one of the two",
            o->ev.chunks);
    if (o->from_chunk)
        o->ev.first_chunk = o->from_chunk;
    return n;
}
