/* SPDX-License-Identifier: MIT */
/* part.h - records of what is measured: kept, merged, printed
 *
 * A chunk's record (gguf/part.h) is some numbers of it and some of each of its
 * rows. A measure is a row of ppl_measures[]: with it come --save-part,
 * --merge-parts and --mpi, which know no more of it.
 */
#ifndef TOOLS_PPL_PART_H
#define TOOLS_PPL_PART_H

#include "tools/ppl/ppl.h"

/* Of perplexity and divergence: numbers of a chunk, */
enum {
    PPL_BYTES, /* of the text that it scores, */
    PPL_WORDS,
    PPL_FIRST, /* the position before its first scored token, */
    PPL_AT,    /* and where its first token is among those of all texts */
    PPL_HEADS
};
/* and of a scored token: the likelihood, or for each model that is compared
 * these, in the order of struct gguf_kld_token. */
enum { PPL_VALUES = 4 };
/* Of tasks: the task's number in the file; and of an answer. */
enum { PPL_TASK_HEADS = 1 };
enum { PPL_TASK_SUM, PPL_TASK_TOKENS, PPL_TASK_RIGHT, PPL_TASK_VALUES };

/* Files that are made of records as well; each may be NULL. */
struct ppl_outputs {
    struct ppl_each *each;
    struct ppl_report *pages;
    const struct gguf_tokens *tokens; /* of all texts, or NULL */
};

/* Open those that r's options ask for. false: none is open, a message was
 * printed. */
bool ppl_outputs_open(struct ppl_outputs *x, const struct ppl_run *r,
                      const struct gguf_vocab *vocab,
                      const struct ppl_side *side);

/* Add up the chunks of r in a part, which has them all; write and close the
 * outputs; print what is printed where one process evaluates them. false: a
 * message was printed. */
typedef bool ppl_print_fn(struct ppl_run *r, struct ppl_side *side,
                          const struct gguf_part *p, struct ppl_outputs *x);
ppl_print_fn ppl_part_print_text, ppl_part_print_side, ppl_part_print_tasks;

struct ppl_measure {
    const char *name; /* a setting of parts: parts of others are refused */
    const char *unit; /* of progress */
    int task;         /* 1 + enum gguf_task_kind, or 0 */
    bool side;        /* values are those of each model beside a base */
    unsigned n_heads, n_values;
    ppl_print_fn *print;
};
extern const struct ppl_measure ppl_measures[]; /* ends with no name */

struct ppl_part {
    struct ppl_run *run;
    const struct ppl_side *side; /* with kld, or NULL */
    const struct ppl_measure *measure;
    struct gguf_part *part; /* NULL: nothing was begun */
    struct gguf_sink sink;
    double head[PPL_HEADS]; /* of the chunk at hand, */
    double *value;          /* and n numbers of n_rows rows */
    size_t n, room, n_rows;
    size_t n_values; /* of a row */
};

/* part_check.c: is all that the part of the file path says of its kind and
 * in its range? false: a message was printed. The measure of a part, NULL with
 * a message. A number at *p, which moves after it; false: none, or above most.
 */
bool ppl_part_check(const char *path, const struct gguf_part *p);
const struct ppl_measure *ppl_part_measure(const struct gguf_part *p);
bool ppl_take_number(const char **p, uint64_t most, uint64_t *out);

/* part.c: with the measure as its first setting. */
enum gguf_status ppl_part_create(struct ppl_part *p, size_t n_chunks,
                                 struct gguf_error *err);

/* part_notes.c: the part, with all settings and notes. */
enum gguf_status ppl_part_of_text(struct ppl_part *p,
                                  const struct gguf_scan_info *info,
                                  struct gguf_error *err);
enum gguf_status ppl_part_of_tasks(struct ppl_part *p,
                                   const struct gguf_session *session,
                                   struct gguf_error *err);

#endif
