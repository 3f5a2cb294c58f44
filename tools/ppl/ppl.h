/* SPDX-License-Identifier: MIT */
/* ppl.h - the parts of gguf-ppl */
#ifndef TOOLS_PPL_PPL_H
#define TOOLS_PPL_PPL_H

#include "tools/common/json.h"
#include "tools/common/opt.h"
#include "tools/common/progress.h"
#include "tools/common/scaled.h"

#include <gguf/gguf.h>

#include <stdbool.h>
#include <stddef.h>

struct json;

struct ppl_options {
    struct opt_list models; /* as given; */
    const char *model;      /* the first of them */
    const char *base;       /* what they are compared with, or NULL */
    bool base_is_saved;     /* it is a file of logits */
    const char *save_base;  /* where logits are saved, or NULL */
    const char *plot;       /* a picture, or NULL */
    const char *html;       /* a page, or NULL */
    const char *each;       /* where each token gets a line, or NULL */
    int base_form;          /* enum gguf_baseline_form, of save_base */
    const char *part;       /* where scores of the chunks are saved, or NULL */
    bool merge_parts;       /* operands are these: nothing is evaluated */
    const char *kl_base;    /* of --kl-divergence-base; once parsed one of */
    bool kl;                /* the two above */
    struct opt_list text_args; /* as given; once parsed */
    char **files;              /* n_files texts, patterns looked up; */
    size_t n_files, room_files;
    const char *text;  /* the first of them, or NULL */
    const char *field; /* texts are this member of lines of JSON; or NULL */
    bool skip_short;
    const char *tokens;     /* a file of token ids instead of text, or NULL */
    const char *logits;     /* where what they give is saved, or NULL */
    const char *embeddings; /* likewise a vector for each line, or NULL */
    int pooling;            /* enum gguf_pooling */
    bool normalize;
    uint32_t n_ctx, n_batch, n_ubatch, n_threads;
    uint32_t n_threads_batch; /* 0: not given; once parsed n_threads is it */
    const char *chunks;       /* of --chunks, or NULL; once parsed */
    uint64_t first_chunk, n_chunks; /* these; 0: all */
    uint64_t max_text;              /* bytes */
    uint32_t cache_dtype; /* of --cache-type; once parsed the next two count */
    uint32_t key_dtype, value_dtype;
    bool unified, full_windows; /* of the session */
    bool json, quiet, no_check, no_digest;
    bool check_activations;
    bool profile;              /* print the time of each operation */
    bool mpi;                  /* this is one rank of several */
    bool layers;               /* compare inside */
    int bisect;                /* which weights cost most: 1 + enum
                                * gguf_bisect_by, or 0, */
    double time_budget;        /* within these seconds; 0: no limit */
    const char *base_backends; /* of the base; NULL: as the others */
    char *self;                /* its path, where that is the model; or NULL */
    int task;         /* 1 + enum gguf_task_kind: the text is tasks; or 0 */
    uint64_t n_tasks; /* 0: all */
    bool compat;      /* figures as llama.cpp has them */
    uint32_t stride;  /* from window to window, or 0: chunks side by side; once
                       * parsed that of hf, too */
    bool hf;          /* as the usual program in Python has it */
    const char *backends; /* names, separated by commas; NULL: the CPU */
    const char *compare;  /* two names, or NULL */
    double tolerance;     /* relative error that is a difference */
    int print_graph;      /* PPL_GRAPH_..., or 0 */
    bool print_assignments, print_plan;
    bool tokenize, detokenize, no_bos, parse_special;
    const char *pre;          /* instead of tokenizer.ggml.pre, or NULL */
    const char *cpus;         /* processors to run on, "0-3,8", or NULL */
    bool numa;                /* spread threads and memory over nodes */
    struct opt_list kv_texts; /* of --override-kv */
    struct opt_list lora_texts;
    struct scaled_list loras; /* once parsed, of these */
    struct opt_list control_texts;
    struct scaled_list controls;          /* likewise, control vectors */
    const char *control_range;            /* FIRST,LAST or NULL, */
    uint32_t control_first, control_last; /* and what they are; 0: all */
    bool force;                           /* whatever the guard says of them */
    bool prefetch, no_mmap, mlock;
    bool layer_major;
    uint64_t max_memory;   /* with layer_major: bytes beside the weights */
    struct ppl_positions { /* 0: as the file says; but yarn_ext < 0, and a
                               * window of UINT32_MAX */
        double base, scale, freq_scale;
        int scaling; /* enum gguf_rope_scaling */
        uint32_t yarn_ctx;
        double yarn_ext, yarn_attn, yarn_fast, yarn_slow;
        uint32_t window;
    } pos;
    struct opt_list places;        /* of --override-tensor */
    int precision, base_precision; /* enum gguf_precision */
    uint64_t repack;               /* as gguf_cpu_params has these */
    bool no_fuse;
};

enum { PPL_GRAPH_TEXT = 1, PPL_GRAPH_DOT };

enum { PPL_NOT_GIVEN = 1 << 24 }; /* in place of a type */

/* What the command line says, and how many operands, argv[1] and on; ends the
 * program where something is wrong. */
int ppl_parse_options(struct ppl_options *o, int argc, char **argv);
/* The second half of it: what several options together mean. */
void ppl_settle_options(struct ppl_options *o);
/* What a rank of an MPI job does not need of them. */
void ppl_settle_rank(struct ppl_options *o);
/* How many tokens at once, if that was not given, once the context is known. */
void ppl_choose_ubatch(struct ppl_options *o);
/* Is something printed instead of an evaluation? */
bool ppl_only_prints(const struct ppl_options *o);

/* The pool that o asks for, its threads and this one bound; first of all, since
 * it decides where memory lies. false: a message was printed. */
bool ppl_pool_open(struct gguf_pool **pool, const struct ppl_options *o);

/* load.c: the pairs of --override-kv for the model that is path; NULL
 * where none were given. To be destroyed by the caller. false: a message was
 * printed. */
bool ppl_overrides(const struct ppl_options *o, const char *path,
                   const struct gguf_split *set, struct gguf_meta **meta);

/* load.c: how positions turn, and windows. */
void ppl_set_positions(const struct ppl_positions *pos,
                       struct gguf_session_params *p);

/* lora.c: the adapters of a run, those of --lora first. */
struct ppl_loras {
    struct gguf_adapter **adapter;
    struct gguf_adapter_use *use;
    size_t n;
};

/* Open those that o asks for; close them after sessions in any case. false: a
 * message was printed. */
bool ppl_loras_open(struct ppl_loras *l, const struct ppl_options *o,
                    const struct gguf_model *model);
void ppl_loras_close(struct ppl_loras *l);

/* The backends of a run, in order of preference; the CPU is the last. */
enum { PPL_MAX_BACKENDS = 8 };
struct ppl_backends {
    struct gguf_registry *registry;
    struct gguf_backend *list[PPL_MAX_BACKENDS + 1];
    unsigned n;
    struct gguf_backend *pair[2]; /* that are compared, of the list */
};

/* Open those of names (NULL: the CPU), or that o compares, the CPU in a
 * precision. abort is asked between operations. false: a message was
 * printed. */
bool ppl_backends_open(struct ppl_backends *b, const struct ppl_options *o,
                       const char *names, unsigned precision,
                       struct gguf_pool *pool, gguf_abort_fn *abort);
void ppl_backends_close(struct ppl_backends *b);

/* profile.c: times of a session's operations, added up by operation
 * and by layer. Printing, as text or as a member of a JSON object, does nothing
 * for NULL. */
struct ppl_profile;
struct ppl_profile *ppl_profile_create(void);
void ppl_profile_destroy(struct ppl_profile *p);
gguf_profile_fn ppl_profile_add;
void ppl_profile_print(struct ppl_profile *p);
void ppl_profile_json(struct json *j, struct ppl_profile *p);

/* A model that is evaluated. Zeroed is empty. */
struct ppl_model {
    const char *path;  /* kept */
    const char *noted; /* NULL, or it is elsewhere: its members in JSON, */
    const char *noted_name; /* and general.name */
    struct gguf_split *set;
    struct gguf_meta *meta; /* of --override-kv, or NULL */
    struct gguf_model *model;
    struct gguf_model_info info;
    struct ppl_loras loras;    /* not of a base */
    const char *backend_names; /* NULL: the CPU */
    struct ppl_backends backends;
    struct gguf_session *session;
    struct ppl_profile
        *profile; /* times of the session's operations; or NULL */
    bool has_digest;
    struct gguf_digest digest; /* of the file's tensors */
    unsigned precision;        /* enum gguf_precision, of its CPU */
};

/* Print an error that says what an adapter is for; false: the file is none. */
bool ppl_tell_adapter(const struct gguf_split *set, const char *path);

/* Open the file; open backends of its own; begin a session on them, with o's
 * context and type of keys and the rest of params. false: a message was
 * printed. The precision of o's base is
 * the base's. */
bool ppl_model_open(struct ppl_model *m, const char *path,
                    const struct ppl_options *o);
bool ppl_model_backends(struct ppl_model *m, const struct ppl_options *o,
                        struct gguf_pool *pool);
bool ppl_model_start(struct ppl_model *m, const struct ppl_options *o,
                     const struct gguf_session_params *params);
void ppl_model_close(struct ppl_model *m);
/* load.c: read, hash, lock and look at all weights of the model, as o
 * says, with bars; a signal ends the program. false: a message was printed. */
bool ppl_weights(struct ppl_model *m, struct gguf_pool *pool,
                 const struct ppl_options *o);
/* load.c: weights to where the model's backends will compute with
 * them, and to where o says. false: a message was printed. */
bool ppl_place(struct ppl_model *m, const struct gguf_session_params *sp,
               const struct ppl_options *o);

/* What comparing two backends found. */
struct ppl_finding {
    size_t graph, node; /* numbers from 1 and 0 */
    char what[400];     /* operation, shapes, sources */
    struct gguf_difference d;
};
struct ppl_compare {
    const struct ppl_options *o;
    const struct ppl_backends *backends;
    struct gguf_error err; /* why the run was stopped, if its status is set */
    size_t n_graphs, n_equal;
    struct gguf_compare_counts n;
    struct ppl_finding first, largest; /* node's graph 0: none */
};

/* Token ids of a file: decimal, with white space between, each less than
 * n_vocab. What is there before is to be given back, free(), all the same.
 * false: a message was printed. */
struct ppl_ids {
    gguf_token *id;
    size_t n, room;
};
bool ppl_read_ids(const char *path, uint64_t limit, size_t n_vocab,
                  struct ppl_ids *ids);

/* Print the tokens of the text; the text of the tokens in it. false: a message
 * was printed. */
bool ppl_tokenize(const struct ppl_options *o);
bool ppl_detokenize(const struct ppl_options *o);

/* One of the texts. */
struct ppl_text {
    char *name;  /* of its file, and with --field the line */
    size_t size; /* bytes that were tokenized */
    size_t end;  /* the token after its last, of all */
    size_t n_tokens, first_chunk, n_chunks;
    bool has_digest;
    struct gguf_digest digest;
    struct gguf_ppl sums; /* of what was evaluated of it */
};

/* What was measured, in the order in which it becomes known. */
struct ppl_run {
    const struct ppl_options *o;
    const struct ppl_model *own; /* the model, or the base */
    struct gguf_model_info model;
    size_t text_size, n_tokens; /* bytes, tokens, of all texts */
    struct ppl_text *texts;     /* n_texts; none of a base's own tokens */
    size_t n_texts, room_texts;
    size_t *text_end;          /* [n_texts] of them */
    bool several;              /* there are several, or there might be */
    size_t n_skipped;          /* that were too short */
    size_t text_at;            /* of the chunk at hand */
    size_t first_chunk;        /* of those that will be evaluated, */
    size_t n_chunks;           /* and how many */
    size_t n_rows, width;      /* that are saved */
    enum gguf_pooling pooling; /* of embeddings */
    uint32_t n_seq;            /* of them together */
    bool add_bos;
    struct progress bar;
    struct gguf_ppl *sums;     /* of each chunk, n_chunks of them */
    size_t n_done;             /* chunks, */
    uint64_t n_done_tokens;    /* and all their tokens */
    uint64_t n_scored_chunk;   /* tokens scored in each, at most */
    uint64_t n_bytes, n_words; /* of what is scored, beside a base */
    struct gguf_ppl total;
    bool has_digest;
    struct gguf_digest digest;       /* of the text, with its last newline */
    struct gguf_tasks *tasks;        /* or NULL */
    size_t n_tasks_read;             /* that the file has, */
    struct gguf_digest tasks_digest; /* which are these */
    double seconds;
    struct gguf_session_timings timings;
    size_t *rank_chunks; /* of a job of n_ranks, how many each evaluated; */
    size_t n_ranks;      /* 0: it is none */
    const char *text_json, *settings_json; /* members that others noted; NULL:
                                            * as here */
};

/* A line for each adapter; the same as members of a JSON object. */
void ppl_print_loras(const struct ppl_options *o, const struct ppl_loras *l);
void ppl_json_loras(struct json *j, const struct ppl_options *o,
                    const struct ppl_loras *l);

/* ---- what a figure belongs to (identity.c) ---- */

/* Where a document is asked for: the digest of the model's tensors, before they
 * are read otherwise; of the text. false: a message was printed. */
bool ppl_digest_model(struct ppl_model *m, struct gguf_pool *pool,
                      const struct ppl_options *o);
bool ppl_digest_text(struct ppl_run *r, const char *text, size_t size);
/* "xxh64:0123456789abcdef"; d NULL: null. */
void ppl_json_digest(struct json *j, const char *key,
                     const struct gguf_digest *d);
void ppl_json_tokenizer(struct json *j, const struct ppl_options *o,
                        const struct ppl_model *m);
/* What options say of positions and keys in place of the file. */
void ppl_json_changes(struct json *j, const struct ppl_options *o);
/* What json_digest writes, d or "-" for NULL, and back; false: it is none. */
const char *ppl_digest_text_of(char out[96], const struct gguf_digest *d);
bool ppl_parse_digest(const char *text, struct gguf_digest *d);
/* general.name; borrowed of the model. */
struct gguf_str ppl_model_name(const struct ppl_model *m);
/* options.c: the word of enum gguf_rope_scaling. */
const char *ppl_scaling_name(int scaling);

/* ---- models side by side ---- */

/* Models that are compared with a base, in step with it. Zeroed is empty. */
struct ppl_side {
    struct gguf_baseline *saved;  /* the base's logits, or */
    const struct ppl_model *base; /* the base */
    struct ppl_model **model;     /* n of them */
    struct gguf_kld **kld;        /* of each */
    size_t n;
    struct ppl_model *list; /* n_list of these, opened here */
    size_t n_list;
    struct ppl_run *run;
    struct gguf_pool *pool; /* of all */
    bool has_digest;
    struct gguf_digest digest; /* of the base's file of logits */
};

/* As ppl_digest_model: of all bytes of the file. */
bool ppl_digest_saved(struct ppl_side *s, const struct ppl_options *o);

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
                   struct ppl_model *own);
bool ppl_side_load(struct ppl_side *s, const struct ppl_options *o,
                   struct gguf_pool *pool);
bool ppl_side_start(struct ppl_side *s, const struct ppl_options *o,
                    const struct gguf_session_params *params,
                    struct gguf_pool *pool);
bool ppl_side_run(struct ppl_side *s, struct ppl_run *r,
                  const struct gguf_tokens *tokens);
void ppl_side_close(struct ppl_side *s);

/* layers.c: compare the first with the base, activation by activation,
 * and print it. false: a message was printed. */
bool ppl_layers_run(const struct ppl_side *s, struct ppl_run *r,
                    const struct gguf_tokens *tokens);

/* bisect.c: each weight of the first taken from the base, and print
 * what that gives. false: a message was printed. */
bool ppl_bisect_run(const struct ppl_side *s, struct ppl_run *r,
                    const struct gguf_tokens *tokens);

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

/* ---- texts (text.c) ---- */

/* The names of texts that -f asks for. false: a message was printed. */
bool ppl_find_texts(struct ppl_options *o);
void ppl_free_files(struct ppl_options *o);
/* Is there something to do with several? */
bool ppl_takes_texts(const struct ppl_options *o);
/* Read all of them, look whether they are texts, append their tokens; none is
 * too short. false: a message was printed. */
bool ppl_read_texts(struct ppl_run *r, const struct gguf_vocab *v,
                    struct gguf_tokens *tokens);
void ppl_free_texts(struct ppl_run *r);
/* Tokens of the longest; 0: there is none. Chunks of all of them. */
size_t ppl_longest_text(const struct ppl_run *r);
size_t ppl_all_chunks(const struct ppl_run *r);
/* A chunk's sums to those of its text; chunks in order. */
void ppl_add_to_text(struct ppl_run *r, size_t chunk,
                     const struct gguf_ppl *one);
/* text_print.c: a heading; a table with the mean of texts; the members
 * of a document. */
void ppl_print_texts(const struct ppl_run *r);
void ppl_print_text_figures(const struct ppl_run *r);
void ppl_json_texts(struct json *j, const struct ppl_run *r);
struct ppl_side;
void ppl_print_side_texts(const struct ppl_side *s);
void ppl_json_side_texts(struct json *j, const struct ppl_side *s);

/* ---- how a text is cut ---- */

/* Params of a scan: how the options cut any text. */
struct gguf_scan_params ppl_scan_params(const struct ppl_options *o);
/* Params of a scan of n chunks of the run's texts, from chunk first on. */
struct gguf_scan_params ppl_run_params(const struct ppl_run *r, size_t first,
                                       size_t n);
const char *ppl_cut_name(const struct ppl_options *o);
/* Lines of text and members of a JSON object: how it is cut; figures that come
 * of sums in another way. */
void ppl_print_cut(const struct ppl_run *r);
void ppl_json_cut(struct json *j, const struct ppl_options *o);
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
/* heat.c: for a page, errors of layers; r may be NULL. false: a signal
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
void ppl_print_side_chunk(const struct ppl_side *s, size_t chunk);
void ppl_print_side_end(const struct ppl_side *s,
                        const struct gguf_kld_stats *stats);
void ppl_print_side_json(const struct ppl_side *s,
                         const struct gguf_kld_stats *stats, FILE *f);

/* How many chunks the ranks of a job evaluated, if it is one. */
void ppl_print_ranks(const struct ppl_run *r);
void ppl_json_ranks(struct json *j, const struct ppl_run *r);

/* Text output: heading, a value for each chunk, the end. */
void ppl_print_head(const struct ppl_run *r);
void ppl_print_chunk(struct ppl_run *r);
void ppl_print_end(const struct ppl_run *r);
/* The same as one JSON document, at the end. */
void ppl_print_json(const struct ppl_run *r, FILE *f);

/* task.c: the tasks of the text, and how many sequences of how many
 * tokens they take; then all of them. false: a message was printed. */
bool ppl_read_tasks(struct ppl_run *r, const struct gguf_vocab *vocab);
bool ppl_run_tasks(struct ppl_run *r, struct gguf_session *session,
                   struct gguf_pool *pool);

/* End the program if an input is an address. */
void ppl_check_local(const struct ppl_options *o);
/* End the program if an output is an input; the parts are inputs, too. */
void ppl_check_paths(const struct ppl_options *o, char **parts, int n_parts);
/* Is there a token, and do all fit into the context? Save a row for each, and
 * print what was saved. false: a message was printed. */
bool ppl_check_ids(const struct ppl_run *r, const struct ppl_ids *ids);
bool ppl_save_rows(struct ppl_run *r, struct gguf_session *session,
                   const struct ppl_ids *ids);
void ppl_print_rows(const struct ppl_run *r);
/* The same of a vector for each line of the text. */
bool ppl_save_embeddings(struct ppl_run *r, struct gguf_session *session,
                         const char *text);
/* Parts of them: how it is computed; members of a document. */
void ppl_print_model(const char *label, const struct ppl_options *o,
                     const struct ppl_model *m);
void ppl_print_text(const struct ppl_run *r);
void ppl_print_mode(const struct ppl_run *r);
void ppl_json_model(struct json *j, const char *key,
                    const struct ppl_options *o, const struct ppl_model *m);
void ppl_json_text(struct json *j, const struct ppl_run *r);
void ppl_json_settings(struct json *j, const struct ppl_run *r);
/* Of one model beside its base: the heading, and the beginning of a document
 * on standard output. */
void ppl_print_pair(const struct ppl_side *s, const struct ppl_run *r);
void ppl_json_pair(struct json *j, const struct ppl_side *s,
                   const struct ppl_run *r);

/* Print what is computed, as the options say: graphs, where they are computed,
 * where tensors lie. false: a message was printed. */
bool ppl_print_graphs(struct ppl_model *m, const struct ppl_options *o,
                      struct gguf_pool *pool);

/* on_graph of a session (gguf/session.h): compare the graph on two backends.
 * user: struct ppl_compare. */
gguf_session_graph_fn ppl_compare_graph;

/* What was found; as text or JSON. */
void ppl_print_compare(const struct ppl_compare *c);

#endif
