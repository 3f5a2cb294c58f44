/* SPDX-License-Identifier: MIT */
/* quantize.h - declarations that the parts of gguf-quantize share */
#ifndef TOOLS_QUANTIZE_QUANTIZE_H
#define TOOLS_QUANTIZE_QUANTIZE_H

#include "tools/common/opt.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"
#include "tools/common/scaled_file.h"

#include <gguf/calibrate.h>
#include <gguf/target.h>
#include <gguf/text.h>

#include <stdbool.h>
#include <stdio.h>

/* Result of a calibration for a tensor. */
struct calibration_tensor {
    bool have;       /* the tensor was tried */
    bool feedback;   /* it has new bytes; false: those of the plain encoder */
    double strength; /* strength of the correction, 0 to 1 */
    double error_before, error_after; /* output errors on held-out tokens,
                                       * relative to the output's power */
    size_t n_matrices, n_new;         /* matrices; those with new bytes */
    char *note;                       /* reason for plain bytes; NULL: none */
};
/* Result of the calibration of an output. */
struct calibration_result {
    struct calibration_tensor *tensors; /* [n_tensors] of the job */
    size_t n_tensors;
    size_t n_tried, n_new;       /* tensors; those with new bytes */
    size_t n_tokens, n_held_out; /* tokens; those held out */
    size_t n_left_out;           /* chunks with NaN or infinite activations */
    double divergence_before, divergence_after; /* on held-out tokens, nats */
    /* divergence before the first step of --tune, and with the new values */
    double divergence_untuned, divergence_tuned;
    size_t n_tuned; /* tensors with new values of --tune */
    double seconds;
    char no_gradients[160]; /* reason; "": gradients were used or not wanted */
    char tune_note[GGUF_CALIBRATE_NOTE_SIZE]; /* reason why no new values of
                                               * --tune are used; "": none */
};

/* One output of a run. */
struct target {
    /* path of the output; NULL: a dry run that names none */
    const char *path;
    const char *type;  /* name of a recipe, or path of a recipe file */
    bool is_file;      /* type is a path */
    uint64_t max_size; /* most bytes; 0: any */
    double max_bpw;    /* most bits per weight; 0: any */
    /* result of the choice of types, if there is a limit */
    struct gguf_target_result result;
    /* predicted divergence of the plan; without tensors: no prediction */
    struct gguf_quant_prediction prediction;
    struct gguf_recipe *recipe;
    struct gguf_quant *job;
    struct calibration_result *calibration; /* owned; NULL: not calibrated */
    char *rank_path; /* path, owned; NULL: that of the command line */
};

static inline bool has_size_limit(const struct target *t)
{
    return t->max_size || t->max_bpw > 0;
}

enum { MAX_TARGETS = 64, MAX_PRUNE = 1024 };

/* Arguments in options.types: of --tensor-type and --tensor-type-file. */
enum { TYPE_TEXT, TYPE_FILE };

/* The command line. */
struct options {
    struct gguf_quant_params params;
    struct gguf_quant_override *overrides; /* patterns are owned */
    size_t n_overrides, room_overrides;
    struct target targets[MAX_TARGETS];
    size_t n_targets;
    struct opt_list outputs; /* arguments of --output: OUT=TYPE */
    const char *in, *recipe_file, *print_recipe;
    /* arguments of --tensor-type and --tensor-type-file, with TYPE_... */
    struct opt_list types;
    const char *output_type, *embedding_type; /* names of types, or NULL */
    struct gguf_target_params target;         /* limits for the first output */
    const char *target_types; /* names, separated by commas; NULL: any */
    uint32_t target_type_ids[GGUF_TARGET_MAX_TYPES]; /* target_types */
    /* keys of --override-kv, or NULL */
    struct gguf_meta *meta;
    struct opt_list kv_texts;
    const char *prune_layers;  /* numbers, separated by commas; or NULL */
    uint32_t prune[MAX_PRUNE]; /* prune_layers */
    struct gguf_imatrix *imatrix;
    struct opt_list imatrix_paths, include, exclude;
    struct opt_list lora_texts;
    struct scaled_list loras; /* adapters, parsed from lora_texts */
    struct gguf_file **lora_files;
    struct gguf_quant_lora *lora_list;
    struct gguf_limits limits;
    unsigned threads;
    const char *report; /* path of the report, or NULL */
    bool dry_run, explain, verbose, json, quiet, force, resume, list_types;
    bool began; /* outputs are being written */
    char *default_out;
    char *imatrix_names; /* names of all files of importance data */
    /* Called before outputs get their names. */
    struct gguf_quant_check_callback check;
    /* Called before that, to replace tensors by better ones. */
    struct gguf_quant_improve_callback improve;
    uint8_t improve_digest[16];  /* see gguf_quant_output */
    struct opt_list calib_texts; /* arguments of --calibrate */
    const char *calib_as;        /* --as, or NULL */
    const char *repack_to;       /* --repack-to, or NULL */
    uint64_t calib_tokens;       /* tokens of --calib-tokens */
    unsigned effort;             /* 0 to 2 */
    unsigned tune_steps;         /* steps of --tune; 0: none */
    bool mpi;                    /* this process is one rank of several */
    bool gave_up; /* this rank's outputs were complete, and given up */
    struct calibration *calibration; /* texts and model; NULL: none */
};
#define OPTIONS_INIT                                                          \
    {                                                                         \
        .params = GGUF_QUANT_PARAMS_INIT, .target = GGUF_TARGET_PARAMS_INIT,  \
        .limits = GGUF_INIT(struct gguf_limits)                               \
    }

/* Type of an output that has a size but no recipe: all types are chosen. */
#define TYPE_AUTO "auto"
/* Recipe that changes no type. */
#define TYPE_COPY "COPY"

/* run.c: create the thread pool and set what all jobs need. *pool is NULL if
 * nothing is computed; destroy it after the jobs. */
enum gguf_status start_run(struct options *o, struct progress *bar,
                           struct gguf_pool **pool, struct gguf_error *err);
/* Write the outputs of all targets, whose jobs are planned.
 *
 * doing   Word for the progress bar.
 * about   Receives the path that an error is about.
 */
enum gguf_status run_targets(const struct options *o, const char *doing,
                             const struct gguf_paths *noted,
                             struct progress *bar, const char **about,
                             struct gguf_error *err);
/* Choose the types of target i if its size is limited. The jobs of earlier
 * targets must exist: measurements are shared. */
enum gguf_status choose_target_types(struct options *o, size_t i,
                                     struct progress *bar,
                                     struct gguf_error *err);
/* Refuse tensor types of target i with which other programs cannot compute:
 * GGUF_E_UNSUPPORTED, or a warning with --force. */
enum gguf_status reject_unsupported_types(const struct options *o, size_t i,
                                          struct gguf_error *err);
/* After a run that failed with st, name the files that are kept for the next
 * run. */
void print_resume_hint(const struct options *o, enum gguf_status st);
/* Destroy the jobs and recipes of all targets. */
void destroy_targets(struct options *o);
/* Record the files that are read besides the source and the outputs, which the
 * library records. */
void record_inputs(const struct options *o, struct gguf_paths *p);

/* options.c: parse the command line into o, which is initialised. Ends the
 * program after an error or after printing text that was asked for. */
void parse_command_line(struct options *o, int argc, char **argv);

/* args.c: parse the types of tensors, and the layers to prune. */
void parse_types(struct options *o);
/* Parse OUT=[TYPE][@SIZE] into t, cutting arg. Without '=', or if the text
 * after it is neither a recipe nor followed by a size, all of arg is the name.
 * none is the recipe if arg has no TYPE. An error in a size ends the program.
 */
void parse_output(struct target *t, char *arg, const char *none);
/* Apply --target-size and --target-bpw to the first output. --target-types
 * without any size ends the program. */
void apply_target_size(struct options *o, struct target *first);
/* Load the files of --imatrix, add them up, and apply --include-weights and
 * --exclude-weights. The output records only their names: paths would tell
 * about the machine. */
void load_importance(struct options *o);
/* Open the adapters of --lora. options_fini() closes them; destroy the jobs
 * first. */
void open_loras(struct options *o);
void options_fini(struct options *o);
/* Is name a recipe of the library? */
bool is_preset(const char *name);
/* Write "; did you mean ...?" with a recipe that is similar to name, or "".
 * Returns out. */
const char *suggest_preset(const char *name, char out[GGUF_SUGGESTION_SIZE]);

/* kv.c: parse the keys of --override-kv; --compat must be known. */
void parse_overrides(struct options *o);
/* Check that the input may get these keys. Returns false after a message. */
bool check_overrides(const struct options *o);

/* Print a line that says which output the table below it is about. others:
 * print an empty line first. */
void print_heading(const struct target *t, bool others);

/* Print the tensors as a table: shape, types, sizes, and with explain the rule
 * that decided. */
void print_plan(const struct target *t, bool explain);

/* Print the quantization error of each tensor. */
void print_loss(const struct target *t);

/* Print a summary as a note, such as "x.gguf: Q4_K_M, 57 tensors, 11.0 MiB ->
 * 3.5 MiB, 4.95 bits per weight". seconds < 0: nothing was written. */
void print_summary(const struct target *t, double seconds);

/* Warn about norms of adapters that were not merged; t is any target. */
void print_skipped_norms(const struct target *t);
/* Warn if the input is an adapter. */
void print_adapter(const struct options *o);

/* Warn about importance data for tensors that the model does not have, and for
 * each of n targets about tensors that lack data. filtered: no warning about
 * the latter, which options asked for. */
void print_imatrix(const char *in, const struct target *t, size_t n,
                   bool filtered);

/* Report weights of the input that were NaN or infinite, a line for each
 * tensor; t is any target. */
void print_nonfinite(const char *in, const struct target *t, int kept);

/* Report importance data that were replaced, once for each tensor even if
 * several targets have it. */
void print_replaced_importance(const char *in, const struct target *t,
                               size_t n);

/* Write one output as a JSON object, and leave it open so that the caller can
 * add members. gguf-quantize(1) lists the members. */
struct json;
void json_target(struct json *j, const struct target *target);

/* Write all outputs as one JSON document. c: calibration; NULL: none. */
struct calibration;
void print_json(FILE *f, const char *in, const struct target *t, size_t n,
                const struct calibration *c, double seconds);

/* calibration_print.c: results of a calibration. r may be NULL. */
struct calibration_result *calibration_result_create(size_t n_tensors);
void calibration_result_destroy(struct calibration_result *r);
/* Print the choice for each tensor, as a table. */
void print_calibration(const struct target *t);
/* Print a line of the summary. */
void print_calibration_summary(const struct target *t);
/* Add the member "calibration": of the run, with texts and settings; of an
 * output; of tensor i. c may be NULL. */
void json_calibration(struct json *j, const struct calibration *c);
void json_calibration_result(struct json *j,
                             const struct calibration_result *r);
void json_calibrated_tensor(struct json *j, const struct calibration_result *r,
                            size_t i);

/* groups.c: groups of options that set struct options. quantize_rest has those
 * of --help=all, and the rules between all of them. */
extern const struct opt_group quantize_mix;  /* --tensor-type, --imatrix */
extern const struct opt_group quantize_work; /* --resume, -t and others */
extern const struct opt_group quantize_plan; /* --dry-run, --json and others */
extern const struct opt_group quantize_rest;

#endif
