/* SPDX-License-Identifier: MIT */
/* rows.h - rows of options that gguf-quantize and gguf-convert
 * share; JOB(member) is a member of struct options in the tool's own
 */
#ifndef TOOLS_QUANTIZE_ROWS_H
#define TOOLS_QUANTIZE_ROWS_H

#include "tools/quantize/quantize.h"

static const struct opt_word nonfinites[] = {
    { "error", GGUF_NONFINITE_ERROR },
    { "zero", GGUF_NONFINITE_ZERO },
    { "keep", GGUF_NONFINITE_KEEP },
    { NULL, 0 },
};

/* Laid out as in a table. */
/* clang-format off */

#define ROWS_TYPES                                                            \
    { "--pure", NULL,                                                         \
      "every tensor that can be quantized gets the base type", OPT_FLAG,      \
      JOB(params.pure) },                                                     \
    { "--output-tensor-type", "TYPE",                                         \
      "type of output.weight, or of the token embedding where that is both",  \
      OPT_STR, JOB(output_type) },                                            \
    { "--token-embedding-type", "TYPE", "type of the token embedding",        \
      OPT_STR, JOB(embedding_type) },                                         \
    { "--leave-output-tensor", NULL, "output.weight keeps its type",          \
      OPT_FLAG, JOB(params.leave_output) },                                   \
    { "--tensor-type", "PATTERN=TYPE",                                        \
      "type of the tensors whose names match PATTERN, a regular expression; " \
      "may be given again, the first that matches counts; one that matches "  \
      "nothing is an error",                                                  \
      OPT_LIST, JOB(types), .value = TYPE_TEXT },                             \
    { "--tensor-type-file", "FILE",                                           \
      "the same from a file: PATTERN=TYPE, separated by blanks or lines",     \
      OPT_LIST, JOB(types), .value = TYPE_FILE }

#define ROWS_TARGET                                                           \
    { "--target-bpw", "X", "the same with at most X bits per weight",         \
      OPT_DOUBLE, JOB(target.max_bpw), .low = 0.01, .high = 64 },             \
    { "--target-types", "TYPE,...", "choose from these types only", OPT_STR,  \
      JOB(target_types) }

#define ROWS_IMATRIX                                                          \
    { .help = "What matters:" },                                              \
    { "--imatrix", "FILE",                                                    \
      "importance data, in GGUF or the older form (.dat); given again, the "  \
      "data are added up",                                                    \
      OPT_LIST, JOB(imatrix_paths) },                                         \
    { "--include-weights", "TEXT",                                            \
      "use importance data only for tensors whose names contain TEXT; may "   \
      "be given again",                                                       \
      OPT_LIST, JOB(include) },                                               \
    { "--exclude-weights", "TEXT",                                            \
      "use none for such tensors; excludes --include-weights", OPT_LIST,      \
      JOB(exclude) }

#define ROWS_OUTER                                                            \
    { "--outer-scales", NULL,                                                 \
      "tensors that become NVFP4 get a scale of their own, NAME.scale, so "   \
      "that small weights lose less",                                         \
      OPT_FLAG, JOB(params.outer_scales) }

#define ROWS_NONFINITE                                                        \
    { "--on-nonfinite", "WHAT",                                               \
      "weights that are NaN or infinite: error (the default) ends the run, "  \
      "zero takes them as 0, keep encodes what comes",                        \
      OPT_WORD, JOB(params.nonfinite), .words = nonfinites }

#define ROWS_RESUME                                                           \
    { "--resume", NULL,                                                       \
      "note in OUT.resume what is complete; if the run is interrupted, the "  \
      "same command goes on from there",                                      \
      OPT_FLAG, JOB(resume) }

#define ROWS_KV                                                               \
    { "--override-kv", "KEY=TYPE:VALUE",                                      \
      "set a metadata key; TYPE is int, float, bool, str, or a type of GGUF " \
      "such as u64 or i8. May be given again",                                \
      OPT_LIST, JOB(kv_texts) }

#define ROWS_SPLIT                                                            \
    { "--split-max-size", "SIZE",                                             \
      "write several files of at most SIZE bytes",                            \
      OPT_SIZE, JOB(params.max_file_size) }

#define ROWS_PLAN                                                             \
    { .help = "What is shown:" },                                             \
    { "-n --dry-run", NULL, "show the plan; read no tensor data", OPT_FLAG,   \
      JOB(dry_run) },                                                         \
    { "--explain", NULL,                                                      \
      "list the tensors with the rule that chose each type",                  \
      OPT_FLAG, JOB(explain) }

#define ROWS_END                                                              \
    { "-j --json", NULL, "print plan and result as one JSON document",        \
      OPT_FLAG, JOB(json) },                                                  \
    { "-q --quiet", NULL, "no progress, no summary", OPT_FLAG, JOB(quiet) },  \
    { .help = "How it is done:" },                                            \
    { "-t --threads", "N",                                                    \
      "threads; the default is the number of processors",                     \
      OPT_UINT, JOB(threads), .min = 1, .max = GGUF_POOL_MAX_THREADS },       \
    { "--max-memory", "SIZE",                                                 \
      "bytes of buffers at most, 128Mi by default; the input is mapped and "  \
      "does not count",                                                       \
      OPT_SIZE, JOB(params.max_memory) },                                     \
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, JOB(limits) },          \
    { .names = NULL }

/* clang-format on */

#endif
