/* SPDX-License-Identifier: MIT */
/* ppl.h - the parts of gguf-ppl
 *
 * struct ppl_run is the result of an evaluation. ppl.c, side_by_side.c, task.c
 * and merge.c fill it; print.c, side_by_side_print.c, text_print.c, units.c,
 * task.c and report.c write it as text, JSON, pictures and pages. struct
 * ppl_side has the models and their divergences if there is a base.
 *
 * main() calls, in this order: ppl_parse_options(), ppl_find_texts(),
 * ppl_check_paths(), ppl_set_run(); then opens the models and reads the texts;
 * then ppl_run_tasks(), ppl_side_run(), or its own evaluation of one model.
 *
 * A function that returns bool returns false after it printed a message.
 */
#ifndef TOOLS_PPL_PPL_H
#define TOOLS_PPL_PPL_H

#include "tools/common/json.h"
#include "tools/common/opt.h"
#include "tools/common/progress.h"
#include "tools/evaluate/text_files.h"
#include "tools/evaluate/run.h"

#include <gguf/model.h>

#include <stdbool.h>
#include <stddef.h>

struct ppl_options {
    struct ev_options ev;
    struct opt_list models;    /* arguments of --model */
    const char *model;         /* the first argument of --model */
    const char *base;          /* model or file of logits; NULL: no base */
    bool base_is_saved;        /* base is a file of logits */
    int base_precision;        /* enum gguf_precision */
    const char *base_backends; /* NULL: same as the models' */
    const char *kl_base;       /* --kl-divergence-base, or NULL */
    bool kl;                   /* kl_base becomes base; else save_base */
    const char *save_base;     /* output file of logits, or NULL */
    int base_form;             /* enum gguf_baseline_form of save_base */
    struct ev_files texts;     /* files of --file */
    const char *text;          /* the first of texts, or NULL */
    const char *field;         /* --field, or NULL */
    bool skip_short;
    uint32_t stride;  /* tokens between windows; 0: chunks do not overlap */
    bool hf;          /* --hf: no BOS, a newline at the end counts */
    bool compat;      /* figures of llama.cpp */
    int task;         /* 1 + enum gguf_task_kind; 0: no tasks */
    uint64_t n_tasks; /* size of the random sample; 0: all tasks */
    const char *per_token; /* output file of --per-token, or NULL */
    const char *plot;      /* output file of --plot, or NULL */
    const char *html;      /* output file of --html, or NULL */
    const char *part;      /* output file of --save-part, or NULL */
    bool merge_parts;      /* operands are parts: nothing is evaluated */
    bool mpi;              /* this process is one rank of several */
};

/* Parse the command line and return the number of operands, which are argv[1]
 * and following. A usage error ends the program. */
int ppl_parse_options(struct ppl_options *o, int argc, char **argv);
/* On a rank of an MPI job other than rank 0, clear all outputs of o. */
void ppl_clear_rank_outputs(struct ppl_options *o);
void ppl_options_fini(struct ppl_options *o);
/* Set precision and backends of the base m. */
void ppl_set_base(struct ev_model *m, const struct ppl_options *o);

/* ---- path_check.c: inputs and outputs ---- */

/* End the program if an input is an address on a server. */
void ppl_check_local(const struct ppl_options *o);
/* End the program if an output is also an input. parts: more inputs. */
void ppl_check_paths(const struct ppl_options *o, char **parts, int n_parts);

/* Fill o->texts and o->text from the arguments of -f, patterns expanded. */
bool ppl_find_texts(struct ppl_options *o);

/* Result of an evaluation. */
struct ppl_run {
    struct ev_run e;
    const struct ppl_options *o;
    struct gguf_ppl *sums;     /* [e.n_chunks], sums of each chunk */
    size_t n_done;             /* number of evaluated chunks */
    uint64_t n_done_tokens;    /* number of evaluated tokens */
    struct gguf_ppl total;     /* sums over all chunks */
    size_t text_at;            /* text of the current chunk */
    uint64_t n_bytes, n_words; /* scored bytes and words, with a base */
    struct gguf_tasks *tasks;  /* NULL: the text has no tasks */
    size_t n_tasks_read;       /* number of tasks in the file */
    struct gguf_digest tasks_digest;
    size_t n_ranks;            /* ranks of the MPI job; 0: no job */
    size_t *rank_chunks;       /* [n_ranks], number of chunks of each rank */
    const char *text_json;     /* members of "text" from a part; or NULL */
    const char *settings_json; /* members of "settings" from a part; or NULL */
};

/* Set the members of r that follow from options. */
void ppl_set_run(struct ppl_run *r, const struct ppl_options *o);

/* ---- side_by_side.c: models beside a base ---- */

/* Models that are compared with a base, evaluated in step with it. Zeroed is
 * empty.
 *
 * Calls, in this order: ppl_side_open_saved() if the base is a file of logits,
 * ppl_side_open(), ppl_side_load_weights(), ppl_side_begin_sessions(),
 * ppl_side_run(); in any case ppl_side_close(). */
struct ppl_side {
    struct gguf_baseline *saved; /* logits of the base; NULL: it is a model */
    const struct ev_model *base; /* NULL: the base is saved */
    struct ev_model **model;     /* [n], the models that are compared */
    struct gguf_kld **kld;       /* [n], divergence of each model */
    size_t n;
    struct ev_model *list; /* [n_list], models that ppl_side_open() opened */
    size_t n_list;
    struct ppl_run *run;
    struct gguf_pool *pool; /* threads of all models */
    bool has_digest;
    struct gguf_digest digest; /* digest of the file of logits */
};

/* Open a base that is a file of logits. Sets the context length of o. */
bool ppl_side_open_saved(struct ppl_side *s, struct ppl_options *o);
/* Copy the tokens of the file of logits, to evaluate them instead of a text.
 * Fails if the model has another tokenizer. */
bool ppl_side_copy_tokens(const struct ppl_side *s,
                          const struct ppl_options *o,
                          struct gguf_tokens *tokens);

/* Open the models of o other than own. own is the base, or, if the base is a
 * file of logits, the first model that is compared. */
bool ppl_side_open(struct ppl_side *s, const struct ppl_options *o,
                   struct ev_model *own);
/* Read and check the weights of the opened models. pool is kept. */
bool ppl_side_load_weights(struct ppl_side *s, const struct ppl_run *r,
                           struct gguf_pool *pool);
/* Begin sessions on the opened models, with the parameters of own's. */
bool ppl_side_begin_sessions(struct ppl_side *s, const struct ppl_options *o,
                             const struct gguf_session_params *params,
                             struct gguf_pool *pool);
/* Compare the models on r's chunks, write all outputs, print the result. */
bool ppl_side_run(struct ppl_side *s, struct ppl_run *r,
                  const struct gguf_tokens *tokens);
void ppl_side_close(struct ppl_side *s);

/* ---- per_token.c: a line for each token ---- */

/* Scored tokens of one chunk, from a scan or from a part. */
struct ppl_rows {
    size_t chunk, text;      /* numbers from 0 */
    uint32_t first;          /* position before the first scored token */
    uint32_t n;              /* number of scored tokens */
    const gguf_token *token; /* tokens of the chunk; NULL: not known */
    const double *nll;       /* [n]; NULL: with a base, see ppl_side */
};
/* Convert rows of a scan. side: the models; NULL: one model without a base. */
struct ppl_rows ppl_convert_rows(const struct gguf_scan_rows *rows,
                                 const struct ppl_side *side);
/* Find the divergence that a file predicts in quantize.predicted_kld. Returns
 * false if the key is missing. */
bool ppl_find_prediction(const struct ev_model *m, double *kld);
/* Figures of the last n tokens of model i, which are those of the current
 * rows. */
const struct gguf_kld_token *ppl_side_last_tokens(const struct ppl_side *s,
                                                  size_t i, size_t n);

/* The file of --per-token. */
struct ppl_per_token;
/* Open the file. *out is NULL if o asks for none. side: the models; NULL: one
 * model without a base. Call ppl_per_token_close() even after a failure. */
bool ppl_per_token_open(struct ppl_per_token **out, const struct ppl_run *r,
                        const struct gguf_vocab *vocab,
                        const struct ppl_side *side);
/* A sink of a scan that writes lines. Put it after the sinks of divergences,
 * whose results it reads. */
const struct gguf_sink *ppl_per_token_sink(struct ppl_per_token *e);
/* Write a line for each of the rows. */
enum gguf_status ppl_per_token_add(struct ppl_per_token *e,
                                   const struct ppl_rows *rows,
                                   struct gguf_error *err);
/* The path of the file if writing to it failed; else NULL. e may be NULL. */
const char *ppl_per_token_failed_file(const struct ppl_per_token *e);
/* Free e, which may be NULL. good: the file appears under its name. Returns
 * false if good was false or the file cannot be completed. */
bool ppl_per_token_close(struct ppl_per_token *e, bool good);

/* ---- texts ---- */

/* Add a chunk's sums to those of its text. Chunks come in order. */
void ppl_add_chunk_to_text(struct ppl_run *r, size_t chunk,
                           const struct gguf_ppl *one);
/* text_print.c: print the table of texts and the macro figure. */
void ppl_print_text_figures(const struct ppl_run *r);
/* Add the members "text", or "texts", "skipped" and "macro". */
void ppl_json_texts(struct json *j, const struct ppl_run *r);
/* Print the table of texts and models. */
void ppl_print_side_texts(const struct ppl_side *s);
/* Add the members "text", or "texts" and "skipped", with figures of models. */
void ppl_json_side_texts(struct json *j, const struct ppl_side *s);

/* units.c: print perplexity per byte and per word. */
void ppl_print_units(const struct ppl_run *r);
/* Print the figures of Hugging Face's guide, with --hf. */
void ppl_print_hf_figures(const struct ppl_run *r);
/* Add the members of perplexity per byte and per word. */
void ppl_json_units(struct json *j, const struct gguf_ppl *p);
/* Add the tokens of chunks, and with --hf the figures of the guide. */
void ppl_json_windows(struct json *j, const struct ppl_run *r);

/* ---- pictures and pages (report.h) ---- */

/* The files of --plot and --html. */
struct ppl_report;
/* Open the files. *out is NULL if o asks for none. side: the models; NULL: one
 * model without a base. Call ppl_report_close() even after a failure. */
bool ppl_report_open(struct ppl_report **out, const struct ppl_run *run,
                     const struct ppl_side *side);
/* A sink of a scan that collects figures to draw. Put it after the sinks of
 * divergences, whose results it reads. */
const struct gguf_sink *ppl_report_sink(struct ppl_report *r);
/* Without a scan: begin to add chunks of n_ctx tokens. Only tokens after
 * position first are scored. */
void ppl_report_begin(struct ppl_report *r, uint32_t first, uint32_t n_ctx);
/* Without a scan: add rows. */
void ppl_report_add(struct ppl_report *r, const struct ppl_rows *rows);
/* layer_map.c: measure the error of each layer, for a page. r may be NULL.
 * Returns false, without a message, if a signal asked to stop. */
bool ppl_layer_map_measure(struct ppl_report *r,
                           const struct gguf_tokens *tokens);
/* Free r, which may be NULL. good: draw, and let the files appear under their
 * names. stats: statistics of the models of side, or NULL. Returns false if
 * good was false or a file cannot be completed. */
bool ppl_report_close(struct ppl_report *r, bool good,
                      const struct gguf_kld_stats *stats);

/* side_by_side.c: compute the statistics of all models, close the pages with
 * them, and print them. */
bool ppl_side_report(const struct ppl_side *s, struct ppl_report *pages);

/* ---- part.c: parts of an evaluation ---- */

/* The file of --save-part, or the scores of an MPI rank. */
struct ppl_part;
/* Begin a part. *out is NULL if o asks for none. side: the models; NULL: one
 * model without a base. Call ppl_part_close() even after a failure. */
bool ppl_part_open(struct ppl_part **out, struct ppl_run *r,
                   const struct ppl_side *side);
/* A sink of a scan that collects scores. Put it after the sinks of divergences,
 * whose results it reads. */
const struct gguf_sink *ppl_part_sink(struct ppl_part *p);
/* Free p, which may be NULL. good: write the file. Returns false if good was
 * false or the file cannot be written. */
bool ppl_part_close(struct ppl_part *p, bool good);

/* Evaluates n chunks from first on, with the sink of p among the sinks. */
typedef bool ppl_chunks_fn(void *user, struct ppl_part *p, size_t first,
                           size_t n);
/* Evaluate the chunks of r together with the other ranks of an MPI job.
 * evaluate is called with user for each share of chunks, and reports progress
 * to ppl_report_share_progress(). Rank 0 prints and writes the same as one
 * process. tokens: tokens of all texts, or NULL for tasks. */
bool ppl_part_share(struct ppl_run *r, struct ppl_side *side,
                    ppl_chunks_fn *evaluate, void *user,
                    const struct gguf_tokens *tokens);
/* Progress callback of a share. done: its tokens or tasks that are evaluated. A
 * result other than 0 asks to stop. */
int ppl_report_share_progress(struct ppl_run *r, uint64_t done);

/* merge.c: merge n files of parts and print the result. */
bool ppl_merge(struct ppl_options *o, char **paths, int n);

/* ---- side_by_side_print.c: text and JSON of a comparison ---- */

/* Print the settings and, for one model, the heading of its columns. */
void ppl_print_side_head(const struct ppl_side *s);
/* Print the heading of the columns of one model. */
void ppl_print_side_columns(void);
/* Print the line of a chunk, for one model. */
void ppl_print_side_chunk(const struct ppl_side *s, size_t chunk);
/* Print all figures. */
void ppl_print_side_end(const struct ppl_side *s,
                        const struct gguf_kld_stats *stats);
/* Open the object "base" and add its members except the figures. The caller
 * closes it. */
void ppl_json_base(struct json *j, const struct ppl_side *s);
/* Add an object with value and error. */
void ppl_json_figure(struct json *j, const char *key, struct gguf_figure f);
/* Print the JSON document to f. */
void ppl_print_side_json(const struct ppl_side *s,
                         const struct gguf_kld_stats *stats, FILE *f);

/* ---- print.c: text and JSON of a perplexity ---- */

/* Print the number of chunks of the ranks, if this is an MPI job. */
void ppl_print_ranks(const struct ppl_run *r);
/* Add the member "rank_chunks", if this is an MPI job. */
void ppl_json_ranks(struct json *j, const struct ppl_run *r);

/* Print the perplexity after each chunk, once a line is full. */
void ppl_print_chunk(struct ppl_run *r);
/* Print all figures. */
void ppl_print_end(const struct ppl_run *r);
/* Print the JSON document to f. */
void ppl_print_json(const struct ppl_run *r, FILE *f);

/* ---- task.c ---- */

/* Read the tasks of the text. Sets the number of answers and of tokens of
 * the largest task as e.n_seq and e.n_tokens. */
bool ppl_read_tasks(struct ppl_run *r, const struct gguf_vocab *vocab);
/* Evaluate the tasks and print the result. */
bool ppl_run_tasks(struct ppl_run *r, struct gguf_session *session,
                   struct gguf_pool *pool);

/* Add the member "text", from the run or from a part's notes. */
void ppl_json_text(struct json *j, const struct ppl_run *r);
/* Add the member "settings", from the run or from a part's notes. */
void ppl_json_settings(struct json *j, const struct ppl_run *r);

#endif
