/* SPDX-License-Identifier: MIT */
/* run.h - an evaluation of texts: its texts, chunks and settings
 *
 * A tool sets the first members of struct ev_run, and then calls
 *
 *     ev_check_vocab(), ev_read_texts(), ev_plan_chunks(), ev_plan_session(),
 *     ev_begin_work(), ev_end_work(), ev_free_texts()
 *
 * The functions at the end print the model, the text and the settings of the
 * run, as lines of text and as members of a JSON document. A function that
 * returns bool returns false after it printed a message, unless its comment
 * says otherwise.
 */
#ifndef TOOLS_EVALUATE_RUN_H
#define TOOLS_EVALUATE_RUN_H

#include "tools/evaluate/model.h"
#include "tools/common/json.h"
#include "tools/common/progress.h"

/* One of the texts. */
struct ev_text {
    char *name;  /* FILE, or FILE:LINE with --field */
    size_t size; /* bytes that were tokenized */
    size_t end;  /* index after its last token, among tokens of all texts */
    size_t n_tokens, first_chunk, n_chunks;
    bool has_digest;
    struct gguf_digest digest;
    struct gguf_ppl sums; /* sums of its evaluated chunks */
};

struct ev_run {
    /* members that the tool sets */
    const struct ev_options *o;
    const struct ev_model *own;   /* the model; the base, if has_base */
    bool has_base;                /* own is the base of other models */
    bool wants_digest;            /* compute digests of models and texts */
    const char *text;             /* path of the first text, or NULL */
    const char *tokens_file;      /* file of logits that has the tokens, if
                                   * text is NULL */
    const char *mode;             /* "mode" in JSON; NULL: ev_cut_name() */
    struct gguf_scan_params scan; /* how texts are cut into chunks */
    bool hf;           /* tokenize texts to the last byte, without BOS */
    const char *field; /* each line is a JSON object, and this member a text;
                        * NULL: files are texts */
    bool skip_short;   /* skip short texts, if there are several */
    bool lone_chunk;   /* a single text may have only one chunk */
    /* the texts */
    size_t text_size, n_tokens; /* bytes and tokens of all texts */
    struct ev_text *texts;      /* [n_texts] */
    size_t n_texts;             /* 0: the tokens come from tokens_file */
    size_t room_texts;
    size_t *text_end; /* [n_texts], member end of each text */
    bool several;     /* several texts, or lines of JSON */
    size_t n_skipped; /* texts that were too short */
    bool has_digest;
    struct gguf_digest digest; /* digest of the text that was read last */
    /* the chunks */
    size_t first_chunk, n_chunks; /* evaluated chunks */
    uint64_t n_scored_chunk;      /* scored tokens of a chunk, at most */
    uint32_t n_seq;               /* chunks that are evaluated together */
    bool add_bos;                 /* BOS is put in front of texts and chunks */
    /* the work */
    struct progress bar;
    double begin;   /* time of progress_clock() */
    double seconds; /* duration of the work */
    struct gguf_session_timings timings;
};

/* ---- chunks.c ---- */

/* Name of r->scan.cut in documents. */
const char *ev_cut_name(const struct ev_run *r);
/* Parameters of a scan of the run's chunks, without pool and callbacks. */
struct gguf_scan_params ev_scan_params(const struct ev_run *r);
/* Set first_chunk, n_chunks and n_scored_chunk.
 *
 * n_all    Number of all chunks.
 * first    The first chunk to evaluate, from 0.
 * n        Number of chunks to evaluate; 0: all from first on. */
bool ev_plan_chunks(struct ev_run *r, size_t n_all, uint64_t first,
                    uint64_t n);
/* Choose n_seq, and return the parameters of a session with n_seq sequences. */
struct gguf_session_params ev_plan_session(struct ev_run *r);

/* ---- texts.c ---- */

/* Read all files, check that they are texts of sufficient length, and append
 * their tokens. */
bool ev_read_texts(struct ev_run *r, char *const *files, size_t n_files,
                   struct gguf_tokens *tokens);
void ev_free_texts(struct ev_run *r);
/* Tokens of the longest text; 0 if n_texts is 0. */
size_t ev_find_longest_text(const struct ev_run *r);
/* Chunks of all texts. */
size_t ev_count_chunks(const struct ev_run *r);
/* Set add_bos. Fails if the vocabulary cannot tokenize; call it before the tool
 * reads from standard input. */
bool ev_check_vocab(struct ev_run *r);

/* chunks.c: begin the work: show the progress bar and start the clock. */
void ev_begin_work(struct ev_run *r, const char *label, const char *unit);
/* Remove the progress bar and set r->seconds. */
void ev_end_work(struct ev_run *r);

/* ---- provenance.c: digests and names ---- */

/* Set r->digest to that of a text, if r->wants_digest. */
bool ev_digest_text(struct ev_run *r, const char *text, size_t size);
/* Add a digest such as "xxh64:0123456789abcdef"; null if d is NULL. */
void ev_json_digest(struct json *j, const char *key,
                    const struct gguf_digest *d);
/* Format a digest; "-" if d is NULL. */
const char *ev_format_digest(char out[96], const struct gguf_digest *d);
/* Parse a formatted digest. Returns false, without a message, if text is
 * none. */
bool ev_parse_digest(const char *text, struct gguf_digest *d);
/* general.name of the model, or an empty string. The model owns it. */
struct gguf_str ev_model_name(const struct ev_model *m);
/* Add the member "tokenizer". */
void ev_json_tokenizer(struct json *j, const struct ev_options *o,
                       const struct ev_model *m);
/* Add the members of options that override the file. */
void ev_json_overrides(struct json *j, const struct ev_options *o);

/* ---- print.c: lines of text, members of a document ---- */

/* Print a line that begins with label about the model, and its adapters. */
void ev_print_model(const char *label, const struct ev_options *o,
                    const struct ev_model *m);
/* Print the text or texts, and the chunks. */
void ev_print_text(const struct ev_run *r);
/* Print precision, threads, cache and backends. */
void ev_print_mode(const struct ev_run *r);
/* Print model, text and mode of a run with one model. */
void ev_print_head(const struct ev_run *r);
/* Open the object key and add the members of a model. The caller may add more,
 * and closes it. */
void ev_json_model(struct json *j, const char *key, const struct ev_options *o,
                   const struct ev_model *m);
/* Add the member "text", with a member unit, such as "tokens", that is n. */
void ev_json_text(struct json *j, const struct ev_run *r, const char *unit,
                  uint64_t n);
/* Add the member "settings". */
void ev_json_settings(struct json *j, const struct ev_run *r);
/* Add the member "timings". */
void ev_json_timings(struct json *j, const struct gguf_session_timings *t);

/* Escape s for a line of text; a long text is cut. Returns out. */
const char *ev_escape(char out[256], const char *s);

#endif
