/* SPDX-License-Identifier: MIT */
/* part.h - records of an evaluation: saved, merged and printed
 *
 * The record of a chunk (gguf/part.h) is some numbers of the chunk and some
 * numbers of each of its rows. A row is a scored token or an answer of a task.
 * A measure is a row of ppl_measures[]. It says which numbers a record has and
 * how the result is printed; --save-part, --merge-parts and --mpi then work for
 * it without more code.
 */
#ifndef TOOLS_PPL_PART_H
#define TOOLS_PPL_PART_H

#include "tools/ppl/ppl.h"

/* Numbers of a chunk, for perplexity and divergence. */
enum {
    PPL_BYTES, /* bytes of text that the chunk scores */
    PPL_WORDS, /* words of text that the chunk scores */
    PPL_FIRST, /* position before the first scored token */
    PPL_AT,    /* index of the first token among the tokens of all texts */
    PPL_HEADS
};
/* Numbers of a scored token, for divergence: for each model the members of
 * struct gguf_kld_token, in their order. For perplexity it is the likelihood
 * alone. */
enum { PPL_VALUES = 4 };
/* Numbers of a task: its number in the file. */
enum { PPL_TASK_HEADS = 1 };
/* Numbers of an answer. */
enum { PPL_TASK_SUM, PPL_TASK_TOKENS, PPL_TASK_RIGHT, PPL_TASK_VALUES };

/* Files that are also made from records. */
struct ppl_outputs {
    struct ppl_per_token *per_token;  /* NULL: none */
    struct ppl_report *pages;         /* NULL: none */
    const struct gguf_tokens *tokens; /* tokens of all texts, or NULL */
};

/* Open the files that r's options ask for. If it fails, none is open. */
bool ppl_outputs_open(struct ppl_outputs *x, const struct ppl_run *r,
                      const struct gguf_vocab *vocab,
                      const struct ppl_side *side);

/* Add up the records of r's chunks, write and close the outputs x, and print
 * the same text or JSON as one process that evaluates these chunks. p must have
 * all chunks of r. Returns false after it printed a message. */
typedef bool ppl_print_fn(struct ppl_run *r, struct ppl_side *side,
                          const struct gguf_part *p, struct ppl_outputs *x);
ppl_print_fn ppl_part_print_text, ppl_part_print_side, ppl_part_print_tasks;

struct ppl_measure {
    const char *name; /* value of the part's setting "measure" */
    const char *unit; /* unit of progress, such as "tokens" */
    int task;         /* 1 + enum gguf_task_kind; 0: no tasks */
    bool side;        /* rows have n_values numbers for each model */
    unsigned n_heads; /* numbers of a chunk */
    unsigned n_values;
    ppl_print_fn *print;
};
extern const struct ppl_measure ppl_measures[]; /* the last one has no name */

struct ppl_part {
    struct ppl_run *run;
    const struct ppl_side *side; /* NULL: one model without a base */
    const struct ppl_measure *measure;
    struct gguf_part *part; /* NULL: not begun */
    struct gguf_sink sink;
    double head[PPL_HEADS]; /* numbers of the current chunk */
    double *value;          /* [n], numbers of its n_rows rows */
    size_t n, room, n_rows;
    size_t n_values; /* numbers of a row */
};

/* part_check.c: check the kind and the range of each setting, note and number
 * of a part. path: its file, for messages. Returns false after it printed a
 * message. */
bool ppl_part_check(const char *path, const struct gguf_part *p);
/* The measure of a part. NULL: unknown; a message was printed. */
const struct ppl_measure *ppl_part_find_measure(const struct gguf_part *p);
/* Parse a decimal number at *p and move *p behind it. Returns false if *p is
 * not a digit or the number is above most. */
bool ppl_parse_number(const char **p, uint64_t most, uint64_t *out);

/* part.c: create p->part, with the measure as its first setting. */
enum gguf_status ppl_part_create(struct ppl_part *p, size_t n_chunks,
                                 struct gguf_error *err);

/* part_notes.c: create p->part for a text, with all settings and notes. */
enum gguf_status ppl_part_begin_text(struct ppl_part *p,
                                     const struct gguf_scan_info *info,
                                     struct gguf_error *err);
/* Create p->part for tasks, with all settings and notes. */
enum gguf_status ppl_part_begin_tasks(struct ppl_part *p,
                                      const struct gguf_session *session,
                                      struct gguf_error *err);

#endif
