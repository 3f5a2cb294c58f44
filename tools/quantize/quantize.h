/* SPDX-License-Identifier: MIT */
/* quantize.h - what the parts of gguf-quantize share */
#ifndef TOOLS_QUANTIZE_QUANTIZE_H
#define TOOLS_QUANTIZE_QUANTIZE_H

#include "tools/common/opt.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"
#include "tools/common/scaled_file.h"

#include <gguf/target.h>
#include <gguf/text.h>

#include <stdbool.h>
#include <stdio.h>

/* One output of a run. */
struct target {
    const char *path;  /* NULL: dry run without one */
    const char *type;  /* as given: a preset's name, or the recipe's file */
    bool is_file;      /* type is a file */
    uint64_t max_size; /* bytes, or */
    double max_bpw;    /* bits per weight, that it is to keep to; 0: any */
    struct gguf_target_result result; /* if it keeps to either */
    struct gguf_recipe *recipe;
    struct gguf_quant *job;
};

static inline bool has_size_limit(const struct target *t)
{
    return t->max_size || t->max_bpw > 0;
}

enum { MAX_TARGETS = 64, MAX_PRUNE = 1024 };

/* What an argument of --tensor-type and --tensor-type-file is. */
enum { TYPE_TEXT, TYPE_FILE };

/* What the command line says. */
struct options {
    struct gguf_quant_params params;
    struct gguf_quant_override *overrides; /* patterns are allocated */
    size_t n_overrides, room_overrides;
    struct target targets[MAX_TARGETS];
    size_t n_targets;
    struct opt_list outputs; /* of --output: OUT=TYPE */
    const char *in, *recipe_file, *print_recipe;
    struct opt_list types; /* --tensor-type and -file, with TYPE_... */
    const char *output_type, *embedding_type; /* names, or NULL */
    struct gguf_target_params target;         /* no limit: not asked for */
    const char *target_types; /* names, separated by commas, or NULL, */
    uint32_t target_type_ids[GGUF_TARGET_MAX_TYPES]; /* and what they are */
    struct gguf_meta *meta;                          /* of --override-kv */
    struct opt_list kv_texts;
    const char *prune_layers;  /* numbers, separated by commas, or NULL, */
    uint32_t prune[MAX_PRUNE]; /* and what they are */
    struct gguf_imatrix *imatrix;
    struct opt_list imatrix_paths, include, exclude;
    struct opt_list lora_texts;
    struct scaled_list loras; /* once parsed, of these */
    struct gguf_file **lora_files;
    struct gguf_quant_lora *lora_list;
    struct gguf_limits limits;
    unsigned threads;
    const char *report; /* a file's name */
    bool dry_run, explain, verbose, json, quiet, force, resume, list_types;
    bool began; /* to make outputs */
    char *default_out;
    char *imatrix_names;        /* names of all files of importance data */
    gguf_quant_check_fn *check; /* asked before outputs get their names */
    void *check_user;
};
#define OPTIONS_INIT                                                          \
    {                                                                         \
        .params = GGUF_QUANT_PARAMS_INIT, .target = GGUF_TARGET_PARAMS_INIT,  \
        .limits = GGUF_LIMITS_INIT                                            \
    }

/* The type where a size is asked for and no type: nothing is decided. */
#define TYPE_AUTO "auto"
/* The recipe that changes no type. */
#define TYPE_COPY "COPY"

/* run.c: what jobs are made with; a pool for that, NULL where
 * nothing is computed. The caller destroys it after the jobs. */
enum gguf_status start_run(struct options *o, struct progress *bar,
                           struct gguf_pool **pool, struct gguf_error *err);
/* Make the outputs of all targets, whose jobs are planned.
 * doing: a word for the progress; *about: the path that an error is about. */
enum gguf_status run_targets(const struct options *o, const char *doing,
                             const struct gguf_paths *noted,
                             struct progress *bar, const char **about,
                             struct gguf_error *err);
/* Choose the types of target i, if it is to keep to a size, once its job and
 * those before it are there: what was measured for one is so for all. */
enum gguf_status choose_target_types(struct options *o, size_t i,
                                     struct progress *bar,
                                     struct gguf_error *err);
/* Does target i get types with which other programs do not compute? By force a
 * warning says so, else GGUF_E_UNSUPPORTED. */
enum gguf_status reject_unsupported_types(const struct options *o, size_t i,
                                          struct gguf_error *err);
/* Of a run that made outputs and ended so: what is left for the next. */
void print_resume_hint(const struct options *o, enum gguf_status st);
/* The jobs and recipes of all targets. */
void destroy_targets(struct options *o);
/* What is read besides the source, which the library knows. */
void record_inputs(const struct options *o, struct gguf_paths *p);

/* options.c: fill o, which was initialised; ends the program where
 * something is wrong, or where nothing but text was asked for. */
void parse_command_line(struct options *o, int argc, char **argv);

/* args.c: the types of tensors and layers that o names, as
 * numbers; importance data as the jobs get them, and the names that are
 * recorded: not the paths, which tell about the machine. */
void parse_types(struct options *o);
/* OUT=[TYPE][@SIZE] as t, or OUT with none set if there is no '=', which counts
 * if TYPE is one or a size follows; arg is cut. What is wrong with a size ends
 * the program. */
void parse_output(struct target *t, char *arg, const char *none);
/* Of --target-size, for the first output; types without any size end the
 * program. */
void apply_target_size(struct options *o, struct target *first);
void load_importance(struct options *o);
/* Open the adapters that o names; they are closed when the jobs are gone. */
void open_loras(struct options *o);
void options_fini(struct options *o);
/* A recipe that the library has? */
bool is_preset(const char *name);
/* Which one may be meant by name: gguf_suggestion_text. */
const char *suggest_preset(const char *name, char out[GGUF_SUGGESTION_SIZE]);

/* kv.c: the keys of --override-kv, once --compat is known. */
void parse_overrides(struct options *o);
/* May the input get them? false: a message says why not. */
bool check_overrides(const struct options *o);

/* Of several outputs: a line that says which one the table below it is about;
 * an empty one before it, if there are others above. */
void print_heading(const struct target *t, bool others);

/* The tensors as a table: shape, types, sizes, with explain what decided. */
void print_plan(const struct target *t, bool explain);

/* What encoding did to each tensor. */
void print_loss(const struct target *t);

/* "x.gguf: Q4_K_M, 57 tensors, 11.0 MiB -> 3.5 MiB, 4.95 bits per weight". The
 * message goes to standard error. seconds < 0: nothing was written. */
void print_summary(const struct target *t, double seconds);

/* How many norms of adapters were not merged; t is any target. */
void print_skipped_norms(const struct target *t);
/* Warn if the input is an adapter. */
void print_adapter(const struct options *o);

/* Importance data that the model has no tensor for; then for each of n targets
 * the tensors that lack some, unless that was asked for (filtered). */
void print_imatrix(const char *in, const struct target *t, size_t n,
                   bool filtered);

/* The weights of the input that were NaN or infinite: a line for each tensor;
 * t is any target. */
void print_nonfinite(const char *in, const struct target *t, int kept);

/* Of each tensor once, not for each of the n targets: importance data that had
 * to be replaced. */
void print_replaced_importance(const char *in, const struct target *t,
                               size_t n);

/* One output as an object that is left open: what the caller adds follows.
 * gguf-quantize.1 has its members. */
struct json;
void json_target(struct json *j, const struct target *target);

/* All of it as one JSON document. */
void print_json(FILE *f, const char *in, const struct target *t, size_t n,
                double seconds);

/* groups.c: options that set struct options. quantize_rest has those for
 * --help=all, and the rules between all of them. */
extern const struct opt_group quantize_mix;  /* --tensor-type, --imatrix */
extern const struct opt_group quantize_work; /* --resume, -t and others */
extern const struct opt_group quantize_plan; /* --dry-run, --json and others */
extern const struct opt_group quantize_rest;

#endif
