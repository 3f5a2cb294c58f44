/* SPDX-License-Identifier: MIT */
/* run.h - an evaluation of texts: its texts, chunks and settings
 *
 * A tool sets the first members of struct ev_run, reads the texts and plans the
 * chunks. The functions at the end print model, text and settings of the run,
 * as lines and as members of a JSON document. A function that returns false has
 * printed a message.
 */
#ifndef TOOLS_EVALUATE_RUN_H
#define TOOLS_EVALUATE_RUN_H

#include "tools/evaluate/model.h"
#include "tools/common/json.h"
#include "tools/common/progress.h"

/* One of the texts. */
struct ev_text {
    char *name;  /* FILE; with --field FILE:LINE */
    size_t size; /* bytes that were tokenized */
    size_t end;  /* the token after its last, of all */
    size_t n_tokens, first_chunk, n_chunks;
    bool has_digest;
    struct gguf_digest digest;
    struct gguf_ppl sums; /* sums of its evaluated chunks */
};

struct ev_run {
    /* members that the tool sets */
    const struct ev_options *o;
    const struct ev_model *own; /* the model, or the base */
    bool has_base;              /* own is the base of another model */
    bool wants_digest;          /* documents have checksums of files */
    const char *text;           /* path of the first text; or NULL: */
    const char *text_of;        /* file that has its text's tokens */
    const char *mode; /* "mode" of the settings; NULL: ev_cut_name() */
    struct gguf_scan_params scan; /* how texts are cut; GGUF_..._INIT */
    bool hf;                      /* texts are tokenized whole, without BOS */
    const char *field; /* texts are this member of lines of JSON; or NULL */
    bool skip_short;
    bool lone_chunk; /* one chunk of a text is enough */
    /* the texts */
    size_t text_size, n_tokens; /* bytes and tokens of all texts */
    struct ev_text *texts;      /* [n_texts]; none of a base's own tokens */
    size_t n_texts, room_texts;
    size_t *text_end; /* [n_texts] */
    bool several;     /* there are several texts, or might be */
    size_t n_skipped; /* texts that were too short */
    bool has_digest;
    struct gguf_digest digest; /* digest of the last text that was read */
    /* the chunks */
    size_t first_chunk, n_chunks; /* those that are evaluated */
    uint64_t n_scored_chunk;      /* tokens scored in each, at most */
    uint32_t n_seq;               /* chunks that are evaluated together */
    bool add_bos;
    /* the work */
    struct progress bar;
    double begin, seconds; /* when the work began; how long it took */
    struct gguf_session_timings timings;
};

/* ---- cut.c ---- */

/* The name of the way that texts are cut, in documents. */
const char *ev_cut_name(const struct ev_run *r);
/* Parameters of a scan of the run's chunks, but for pool and callbacks. */
struct gguf_scan_params ev_scan_params(const struct ev_run *r);
/* Set first_chunk, n_chunks and n_scored_chunk: of n_all chunks n are evaluated
 * from first on; n 0: all of them. */
bool ev_plan_chunks(struct ev_run *r, size_t n_all, uint64_t first,
                    uint64_t n);
/* Choose n_seq, and return the parameters of a session for it. */
struct gguf_session_params ev_plan_session(struct ev_run *r);

/* ---- texts.c ---- */

/* Read all files, check that they are texts, append their tokens; none is too
 * short. */
bool ev_read_texts(struct ev_run *r, char *const *files, size_t n_files,
                   struct gguf_tokens *tokens);
void ev_free_texts(struct ev_run *r);
/* Tokens of the longest text, or 0; chunks of all texts. */
size_t ev_longest_text(const struct ev_run *r);
size_t ev_all_chunks(const struct ev_run *r);
/* Set add_bos; fail if the vocabulary cannot tokenize. Call it before a text is
 * waited for. */
bool ev_check_vocab(struct ev_run *r);

/* cut.c: begin and end the work, which has a progress bar and is timed. */
void ev_begin_work(struct ev_run *r, const char *label, const char *unit);
void ev_end_work(struct ev_run *r);

/* ---- identity.c: digests and names ---- */

/* The digest of a text, if the run wants digests. */
bool ev_digest_text(struct ev_run *r, const char *text, size_t size);
/* "xxh64:0123456789abcdef"; d NULL: null. */
void ev_json_digest(struct json *j, const char *key,
                    const struct gguf_digest *d);
/* The digest as text, "-" for NULL. Parse such a text; false: it is wrong. */
const char *ev_digest_text_of(char out[96], const struct gguf_digest *d);
bool ev_parse_digest(const char *text, struct gguf_digest *d);
/* general.name; borrowed of the model. */
struct gguf_str ev_model_name(const struct ev_model *m);
void ev_json_tokenizer(struct json *j, const struct ev_options *o,
                       const struct ev_model *m);
/* Positions and keys that options give in place of the file. */
void ev_json_changes(struct json *j, const struct ev_options *o);

/* ---- print.c: lines of text, members of a document ---- */

void ev_print_model(const char *label, const struct ev_options *o,
                    const struct ev_model *m);
void ev_print_text(const struct ev_run *r);
/* How it is computed, and by what. */
void ev_print_mode(const struct ev_run *r);
/* All three, of one model. */
void ev_print_head(const struct ev_run *r);
/* Opens the object: the caller adds members and closes it. */
void ev_json_model(struct json *j, const char *key, const struct ev_options *o,
                   const struct ev_model *m);
/* unit: "tokens", or what else there are n of. */
void ev_json_text(struct json *j, const struct ev_run *r, const char *unit,
                  uint64_t n);
void ev_json_settings(struct json *j, const struct ev_run *r);
void ev_json_timings(struct json *j, const struct gguf_session_timings *t);

/* Escaped, for a line of text. */
const char *ev_escape(char out[256], const char *s);

#endif
