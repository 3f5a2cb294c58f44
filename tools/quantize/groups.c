/* SPDX-License-Identifier: MIT */
/* groups.c - options that gguf-quantize and gguf-convert share */
#include "config.h"
#include "tools/quantize/quantize.h"

#define AT(member) OPT_AT(struct options, member)

static const struct opt_word nonfinites[] = {
    { "error", GGUF_NONFINITE_ERROR },
    { "zero", GGUF_NONFINITE_ZERO },
    { "keep", GGUF_NONFINITE_KEEP },
    { NULL, 0 },
};

static const struct opt mix[] = {
    { "--tensor-type", "PATTERN=TYPE",
      "type of the tensors whose names match PATTERN, a regular expression; "
      "may be given again, the first that matches counts",
      OPT_LIST, AT(types), .value = TYPE_TEXT },
    { "--imatrix", "FILE",
      "importance data, in GGUF or the older form (.dat); given again, the "
      "data are added up",
      OPT_LIST, AT(imatrix_paths) },
    { .names = NULL },
};
const struct opt_group quantize_mix = { mix, NULL };

static const struct opt work[] = {
    { "--split-max-size", "SIZE", "write several files of at most SIZE bytes",
      OPT_SIZE, AT(params.max_file_size) },
    { "--resume", NULL,
      "note in OUT.resume what is complete, for the same command to go on "
      "after an interruption",
      OPT_FLAG, AT(resume) },
    { "-t --threads", "N", "threads; the default is one for each processor",
      OPT_UINT, AT(threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { .names = NULL },
};
const struct opt_group quantize_work = { work, NULL };

static const struct opt plan[] = {
    { "-n --dry-run", NULL, "show the plan; read no tensor data", OPT_FLAG,
      AT(dry_run) },
    { "--explain", NULL, "list tensors with the rule that chose each type",
      OPT_FLAG, AT(explain) },
    { "-j --json", NULL, "print plan and result as one JSON document",
      OPT_FLAG, AT(json) },
    { "-q --quiet", NULL, "no progress, no summary", OPT_FLAG, AT(quiet) },
    { .names = NULL },
};
const struct opt_group quantize_plan = { plan, NULL };

static const struct opt rest[] = {
    { .help = "Types of single tensors:", .rare = true },
    { "--pure", NULL, "every tensor that can be quantized gets the base type",
      OPT_FLAG, AT(params.pure) },
    { "--output-tensor-type", "TYPE",
      "type of output.weight, or of the token embedding where that is both",
      OPT_STR, AT(output_type) },
    { "--token-embedding-type", "TYPE", "type of the token embedding", OPT_STR,
      AT(embedding_type) },
    { "--leave-output-tensor", NULL, "output.weight keeps its type", OPT_FLAG,
      AT(params.leave_output) },
    { "--tensor-type-file", "FILE",
      "rules of --tensor-type from a file, separated by blanks or lines; one "
      "that matches nothing is an error",
      OPT_LIST, AT(types), .value = TYPE_FILE },
    { "--outer-scales", NULL,
      "tensors that become NVFP4 get a scale of their own, NAME.scale, so "
      "that small weights lose less",
      OPT_FLAG, AT(params.outer_scales) },
    { "--on-nonfinite", "WHAT",
      "weights that are NaN or infinite: error (the default) ends the run, "
      "zero takes them as 0, keep encodes what comes",
      OPT_WORD, AT(params.nonfinite), .words = nonfinites },
    { .help = "Types by size and importance:", .rare = true },
    { "--target-bpw", "X", "as --target-size, with at most X bits per weight",
      OPT_DOUBLE, AT(target.max_bpw), .low = 0.01, .high = 64 },
    { "--target-types", "TYPE,...", "choose from these types only", OPT_STR,
      AT(target_types) },
    { "--include-weights", "TEXT",
      "use importance data only for tensors whose names contain TEXT; may be "
      "given again",
      OPT_LIST, AT(include) },
    { "--exclude-weights", "TEXT",
      "use none for such tensors; excludes --include-weights", OPT_LIST,
      AT(exclude) },
    { .help = "Metadata and memory:", .rare = true },
    { "--override-kv", "KEY=TYPE:VALUE",
      "set a metadata key; TYPE is int, float, bool, str, or a type of GGUF "
      "such as u64 or i8. May be given again",
      OPT_LIST, AT(kv_texts) },
    { "--max-memory", "SIZE",
      "bytes of buffers at most, 128Mi by default; the input is mapped and "
      "does not count",
      OPT_SIZE, AT(params.max_memory) },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(limits) },
    { .names = NULL },
};
static const struct opt_rule rest_rules[] = {
    { "--target-size", OPT_EXCLUDES, "--target-bpw" },
    { "--include-weights", OPT_EXCLUDES, "--exclude-weights" },
    { "--include-weights --exclude-weights", OPT_NEEDS, "--imatrix" },
    { .a = NULL },
};
const struct opt_group quantize_rest = { rest, rest_rules };
