/* gguf-ppl.h - the parts of gguf-ppl */
#ifndef TOOLS_GGUF_PPL_H
#define TOOLS_GGUF_PPL_H

#include "tools/common/progress.h"

#include <gguf/gguf.h>

#include <stdbool.h>
#include <stddef.h>

struct ppl_options {
    const char *model, *text;
    uint32_t n_ctx, n_batch, n_ubatch, n_threads;
    uint64_t n_chunks; /* 0: all */
    uint32_t cache_dtype;
    bool json, quiet, check;
};

/* The whole of a text file: plain or gzip, "-" for standard input. *data is
 * owned, free(), and NULL after a failure. false: a message was printed. */
bool ppl_read_text(const char *path, char **data, size_t *size);

/* What was measured, in the order in which it becomes known. */
struct ppl_run {
    const struct ppl_options *o;
    struct gguf_model_info model;
    size_t text_size, n_tokens; /* bytes, tokens */
    size_t n_chunks;            /* that will be evaluated */
    uint32_t n_seq;             /* of them together */
    bool add_bos;
    struct progress bar;
    double *nll;   /* sums per chunk, n_chunks of them */
    size_t n_done; /* chunks */
    uint64_t n_scored_chunk; /* tokens scored in each */
    struct gguf_ppl total;
    double seconds;
};

/* Text output: heading, a value for each chunk, the end. */
void ppl_print_head(const struct ppl_run *r);
void ppl_print_chunk(struct ppl_run *r);
void ppl_print_end(const struct ppl_run *r);
/* The same as one JSON document, at the end. */
void ppl_print_json(const struct ppl_run *r);

#endif
