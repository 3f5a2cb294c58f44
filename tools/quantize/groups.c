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
      "type of tensors whose names match the regular expression PATTERN; the "
      "first match counts",
      OPT_LIST, AT(types), .value = TYPE_TEXT },
    { "--imatrix", "FILE",
      "weigh errors by importance data (GGUF or .dat); several files are "
      "added up",
      OPT_LIST, AT(imatrix_paths) },
    { .names = NULL },
};
const struct opt_group quantize_mix = { mix, NULL };

static const struct opt work[] = {
    { "--split-max-size", "SIZE", "write several files of at most SIZE bytes",
      OPT_SIZE, AT(params.max_file_size) },
    { "--resume", NULL,
      "note progress in OUT.resume; after an interruption the same command "
      "continues",
      OPT_FLAG, AT(resume) },
    { "-t --threads", "N", "use N threads (default: one for each processor)",
      OPT_UINT, AT(threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },
    { .names = NULL },
};
const struct opt_group quantize_work = { work, NULL };

static const struct opt plan[] = {
    { "-n --dry-run", NULL, "show the plan; read no tensor data", OPT_FLAG,
      AT(dry_run) },
    { "--explain", NULL, "list the tensors with the rule that chose each type",
      OPT_FLAG, AT(explain) },
    { "-j --json", NULL, "print plan and result as one JSON document",
      OPT_FLAG, AT(json) },
    { "-q --quiet", NULL, "print no progress and no summary", OPT_FLAG,
      AT(quiet) },
    { .names = NULL },
};
const struct opt_group quantize_plan = { plan, NULL };

static const struct opt rest[] = {
    { .help = "Types of single tensors:", .rare = true },
    { "--pure", NULL, "give every tensor that can be quantized the base type",
      OPT_FLAG, AT(params.pure) },
    { "--output-tensor-type", "TYPE",
      "give output.weight this type (or the token embedding, if that is the "
      "output matrix, too)",
      OPT_STR, AT(output_type) },
    { "--token-embedding-type", "TYPE", "give the token embedding this type",
      OPT_STR, AT(embedding_type) },
    { "--leave-output-tensor", NULL, "keep the type of output.weight",
      OPT_FLAG, AT(params.leave_output) },
    { "--tensor-type-file", "FILE",
      "read PATTERN=TYPE rules from FILE, separated by blanks or lines; each "
      "must match a tensor",
      OPT_LIST, AT(types), .value = TYPE_FILE },
    { "--outer-scales", NULL,
      "give each NVFP4 tensor a scale tensor NAME.scale, so that small "
      "weights lose less",
      OPT_FLAG, AT(params.outer_scales) },
    { "--on-nonfinite", "WHAT",
      "NaN or infinite weights: error ends the run, zero writes 0, keep "
      "encodes them (default: error)",
      OPT_WORD, AT(params.nonfinite), .words = nonfinites },
    { .help = "Types by size and importance:", .rare = true },
    { "--target-bpw", "X", "choose types for at most X bits per weight",
      OPT_DOUBLE, AT(target.max_bpw), .low = 0.01, .high = 64 },
    { "--target-types", "TYPE,...",
      "let --target-size and --target-bpw choose only from these types",
      OPT_STR, AT(target_types) },
    { "--include-weights", "TEXT",
      "use importance data only for tensors whose names contain TEXT; may be "
      "given several times",
      OPT_LIST, AT(include) },
    { "--exclude-weights", "TEXT",
      "use no importance data for tensors whose names contain TEXT; may be "
      "given several times",
      OPT_LIST, AT(exclude) },
    { .help = "Metadata and memory:", .rare = true },
    { "--override-kv", "KEY=TYPE:VALUE",
      "set a metadata key; TYPE is int, float, bool, str, or a type of GGUF "
      "such as u64 or i8",
      OPT_LIST, AT(kv_texts) },
    { "--max-memory", "SIZE",
      "use at most SIZE bytes for buffers, besides the mapped input "
      "(default: 128Mi)",
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
