/* SPDX-License-Identifier: MIT */
/* ppl.h - the parts of gguf-ppl
 *
 * struct ppl_run is what an evaluation measured: scans fill it, and so do parts
 * that are merged; print.c, side_by_side_print.c, task.c and report.h write it
 * as text, JSON and pages. struct ppl_side is beside it where models are
 * compared with a base.
 */
#ifndef TOOLS_PPL_PPL_H
#define TOOLS_PPL_PPL_H

#include "tools/common/json.h"
#include "tools/common/opt.h"
#include "tools/common/progress.h"
#include "tools/evaluate/files.h"
#include "tools/evaluate/run.h"

#include <gguf/gguf.h>

#include <stdbool.h>
#include <stddef.h>

struct ppl_options {
    struct ev_options ev;
    struct opt_list models;    /* arguments of --model */
    const char *model;         /* the first of them */
    const char *base;          /* model or logits to compare with, or NULL */
    bool base_is_saved;        /* base is a file of logits */
    int base_precision;        /* enum gguf_precision */
    const char *base_backends; /* NULL: same as the others */
    const char *kl_base;       /* --kl-divergence-base, or NULL: */
    bool kl;                   /* becomes base if set, else save_base */
    const char *save_base;     /* output for logits, or NULL */
    int base_form;             /* enum gguf_baseline_form, of save_base */
    struct ev_files texts;     /* files of --file */
    const char *text;          /* the first of them, or NULL */
    const char *field;         /* --field, or NULL */
    bool skip_short;
    uint32_t stride; /* between windows; 0: chunks side by side */
    bool hf;         /* --hf: no BOS, a newline at the end counts */
    bool compat;     /* figures as llama.cpp has them */
    int task;        /* 1 + enum gguf_task_kind, or 0 */
    uint64_t n_tasks;
    const char *each; /* output of a line for each token, or NULL */
    const char *plot; /* output for a picture, or NULL */
    const char *html; /* output for a page, or NULL */
    const char *part; /* output for scores of the chunks, or NULL */
    bool merge_parts; /* operands are parts: nothing is evaluated */
    bool mpi;         /* this is one rank of several */
};

/* Parse the command line, and return the number of operands, argv[1] and on.
 * Ends the program where something is wrong. */
int ppl_parse_options(struct ppl_options *o, int argc, char **argv);
/* Clear the outputs, on a rank of an MPI job that is not rank 0. */
void ppl_settle_rank(struct ppl_options *o);
void ppl_options_fini(struct ppl_options *o);
/* Set precision and backends of the base. */
void ppl_set_base(struct ev_model *m, const struct ppl_options *o);

/* End the program if an input is an address. */
void ppl_check_local(const struct ppl_options *o);
/* End the program if an output is an input; the parts are inputs, too. */
void ppl_check_paths(const struct ppl_options *o, char **parts, int n_parts);

/* files.c: expand the names of texts that -f asks for. false: a message was
 * printed. */
bool ppl_find_texts(struct ppl_options *o);

/* Result of an evaluation. */
struct ppl_run {
    struct ev_run e;
    const struct ppl_options *o;
    struct gguf_ppl *sums;     /* [e.n_chunks] */
    size_t n_done;             /* chunks */
    uint64_t n_done_tokens;    /* all tokens of these chunks */
    struct gguf_ppl total;     /* sums of all chunks */
    size_t text_at;            /* text of the current chunk */
    uint64_t n_bytes, n_words; /* scored beside a base */
    struct gguf_tasks *tasks;  /* NULL: the text has no tasks */
    size_t n_tasks_read;       /* tasks in the file */
    struct gguf_digest tasks_digest;
    size_t n_ranks;      /* ranks of an MPI job; 0: it is none */
    size_t *rank_chunks; /* [n_ranks] chunks that each evaluated */
    const char *text_json, *settings_json; /* noted by a part, or NULL */
};

/* Set the members that follow from options. */
void ppl_set_run(struct ppl_run *r, const struct ppl_options *o);

/* ---- models side by side ---- */

/* Models that are compared with a base, in step with it. Zeroed is empty. */
struct ppl_side {
    struct gguf_baseline *saved; /* the base's logits, or */
    const struct ev_model *base; /* the base */
    struct ev_model **model;     /* n of them */
    struct gguf_kld **kld;       /* divergence of each model */
    size_t n;
    struct ev_model *list; /* n_list of these, opened here */
    size_t n_list;
    struct ppl_run *run;
    struct gguf_pool *pool; /* of all */
    bool has_digest;
    struct gguf_digest digest; /* of the base's file of logits */
};

/* Open a base that is a file of logits, whose context o gets. The tokens of its
 * text, in place of a text. false: a message was printed. */
bool ppl_side_saved(struct ppl_side *s, struct ppl_options *o);
bool ppl_side_tokens(const struct ppl_side *s, const struct ppl_options *o,
                     struct gguf_tokens *tokens);

/* Open the models that o has beside own, which is the base, or the first of
 * them where logits of the base are saved; have their weights looked at;
 * sessions on them, as on own; compare
 * them, and print what was found. false: a message was printed. */
bool ppl_side_open(struct ppl_side *s, const struct ppl_options *o,
                   struct ev_model *own);
bool ppl_side_load(struct ppl_side *s, const struct ppl_run *r,
                   struct gguf_pool *pool);
bool ppl_side_start(struct ppl_side *s, const struct ppl_options *o,
                    const struct gguf_session_params *params,
                    struct gguf_pool *pool);
bool ppl_side_run(struct ppl_side *s, struct ppl_run *r,
                  const struct gguf_tokens *tokens);
void ppl_side_close(struct ppl_side *s);

/* ---- a line for each token ---- */

/* Scored tokens of a chunk, all or some, by a scan or of a part. */
struct ppl_rows {
    size_t chunk, text;      /* from 0 */
    uint32_t first, n;       /* the position before the first, and how many */
    const gguf_token *token; /* of the chunk, or NULL; in lines it counts */
    const double *nll;       /* [n]; NULL: beside a base */
};
/* Of a model alone (side NULL), or of some, whose sinks have them. */
struct ppl_rows ppl_rows_of(const struct gguf_scan_rows *rows,
                            const struct ppl_side *side);
/* The last n of model i: those of the rows at hand. */
const struct gguf_kld_token *ppl_side_tokens_of(const struct ppl_side *s,
                                                size_t i, size_t n);

struct ppl_each;
/* Begin the file that o asks for, of a model alone (side NULL) or of those that
 * are compared; *out NULL: none. Its sink, after those of divergences. Close in
 * any case: good, the file appears. false: good was, or a message was
 * printed. */
bool ppl_each_open(struct ppl_each **out, const struct ppl_run *r,
                   const struct gguf_vocab *vocab,
                   const struct ppl_side *side);
const struct gguf_sink *ppl_each_sink(struct ppl_each *e);
enum gguf_status ppl_each_add(struct ppl_each *e, const struct ppl_rows *rows,
                              struct gguf_error *err);
/* The file, if writing it failed; else, and without one, NULL. */
const char *ppl_each_failed(const struct ppl_each *e);
bool ppl_each_close(struct ppl_each *e, bool good);

/* ---- texts ---- */

/* Add a chunk's sums to those of its text; chunks in order. */
void ppl_add_to_text(struct ppl_run *r, size_t chunk,
                     const struct gguf_ppl *one);
/* text_print.c: a table with the mean of texts; members of a document. */
void ppl_print_text_figures(const struct ppl_run *r);
void ppl_json_texts(struct json *j, const struct ppl_run *r);
void ppl_print_side_texts(const struct ppl_side *s);
void ppl_json_side_texts(struct json *j, const struct ppl_side *s);

/* units.c: figures by bytes and words, and those of other programs. */
void ppl_print_units(const struct ppl_run *r);
void ppl_print_page(const struct ppl_run *r);
void ppl_json_units(struct json *j, const struct gguf_ppl *p);
void ppl_json_windows(struct json *j, const struct ppl_run *r);

/* ---- pictures and pages (report.h) ---- */

struct ppl_report;
/* Begin the files that o asks for; *out NULL: none. Its sink, after those of
 * divergences. Close in any case: good, the files appear; stats are those of
 * the models of side. false: good was, or a message was printed. */
bool ppl_report_open(struct ppl_report **out, const struct ppl_run *run,
                     const struct ppl_side *side);
const struct gguf_sink *ppl_report_sink(struct ppl_report *r);
/* Without a scan: rows of chunks of n_ctx tokens, of which those after first
 * may be scored. */
void ppl_report_begin(struct ppl_report *r, uint32_t first, uint32_t n_ctx);
void ppl_report_add(struct ppl_report *r, const struct ppl_rows *rows);
/* layer_map.c: for a page, errors of layers; r may be NULL. false: a signal
 * asked to stop. */
bool ppl_heat_run(struct ppl_report *r, const struct gguf_tokens *tokens);
bool ppl_report_close(struct ppl_report *r, bool good,
                      const struct gguf_kld_stats *stats);

/* side_by_side.c: the statistics of all models, to pages, which are closed,
 * and printed. false: a message was printed. */
bool ppl_side_report(const struct ppl_side *s, struct ppl_report *pages);

/* ---- parts ---- */

struct ppl_part;
/* The scores that o asks to save, of a model alone (side NULL) or of those that
 * are compared; *out NULL: none. Its sink, after those of divergences. Close in
 * any case: good, the file appears. false: good was, or a message was
 * printed. */
bool ppl_part_open(struct ppl_part **out, struct ppl_run *r,
                   const struct ppl_side *side);
const struct gguf_sink *ppl_part_sink(struct ppl_part *p);
bool ppl_part_close(struct ppl_part *p, bool good);

/* Evaluate r's chunks together with the other ranks of an MPI job: evaluate
 * does n of them from first on, with the part's sink among its own; rank 0
 * prints and writes what one process would. Its scans report to
 * ppl_share_progress. tokens: of all texts, or NULL. false: a message was
 * printed. */
typedef bool ppl_chunks_fn(void *user, struct ppl_part *p, size_t first,
                           size_t n);
bool ppl_part_share(struct ppl_run *r, struct ppl_side *side,
                    ppl_chunks_fn *evaluate, void *user,
                    const struct gguf_tokens *tokens);
int ppl_share_progress(struct ppl_run *r, uint64_t done);

/* merge.c: merge n files of parts, and print that. false: a message
 * was printed. */
bool ppl_merge(struct ppl_options *o, char **paths, int n);

/* Text output: heading, and its last line; after a chunk; the end. The same as
 * JSON, and the base in it, without its perplexity and its end. */
void ppl_print_side_head(const struct ppl_side *s);
void ppl_print_side_columns(void);
void ppl_json_base(struct json *j, const struct ppl_side *s);
void ppl_json_figure(struct json *j, const char *key, struct gguf_figure f);
void ppl_print_side_chunk(const struct ppl_side *s, size_t chunk);
void ppl_print_side_end(const struct ppl_side *s,
                        const struct gguf_kld_stats *stats);
void ppl_print_side_json(const struct ppl_side *s,
                         const struct gguf_kld_stats *stats, FILE *f);

/* How many chunks the ranks of a job evaluated, if it is one. */
void ppl_print_ranks(const struct ppl_run *r);
void ppl_json_ranks(struct json *j, const struct ppl_run *r);

/* Text output: a value for each chunk, the end. */
void ppl_print_chunk(struct ppl_run *r);
void ppl_print_end(const struct ppl_run *r);
/* The same as one JSON document, at the end. */
void ppl_print_json(const struct ppl_run *r, FILE *f);

/* task.c: the tasks of the text, and how many sequences of how many
 * tokens they take; then all of them. false: a message was printed. */
bool ppl_read_tasks(struct ppl_run *r, const struct gguf_vocab *vocab);
bool ppl_run_tasks(struct ppl_run *r, struct gguf_session *session,
                   struct gguf_pool *pool);

/* Members "text" and "settings" of a document, from the run or from a part's
 * notes. */
void ppl_json_text(struct json *j, const struct ppl_run *r);
void ppl_json_settings(struct json *j, const struct ppl_run *r);

#endif
