/* SPDX-License-Identifier: MIT */
/* imatrix.h - the parts of gguf-imatrix */
#ifndef TOOLS_IMATRIX_IMATRIX_H
#define TOOLS_IMATRIX_IMATRIX_H

#include "tools/common/opt.h"
#include "tools/common/progress.h"
#include "tools/evaluate/model.h"

#include <gguf/gguf.h>

#include <stdbool.h>

struct im_options {
    struct ev_options ev;
    const char *out, *model, *text, *part;
    struct opt_list include, exclude;
    bool keep_paths, show;
    bool output, parse_special, no_ppl, resume, merge_parts;
    bool mpi;            /* this is one rank of several */
    int form;            /* enum gguf_imatrix_form; -1: by the name */
    uint64_t save_every; /* chunks; 0: only at the end */
    uint64_t from_chunk; /* becomes ev.first_chunk */
    struct gguf_limits limits;
    struct gguf_file_params files; /* file parameters with these limits */
};

/* What the command line says, and how many operands; ends the program where
 * something is wrong. */
int im_parse_options(struct im_options *o, int argc, char **argv);

/* Evaluate the model on the text, or add up parts; NULL: a part in which no
 * chunk has data. false: a message was printed. */
bool im_collect(struct gguf_imatrix **im, const struct im_options *o);
bool im_merge_parts(struct gguf_imatrix **im, const struct im_options *o,
                    char **paths, int n);

/* Number of chunks that n_tokens tokens are cut into. */
size_t im_n_chunks(const struct im_options *o, size_t n_tokens);

/* share.c: chunks shared by the ranks of an MPI job. */
struct im_share {
    const struct im_options *o;
    struct gguf_collect *c; /* of this rank, then on rank 0 of all */
    struct gguf_session *session;
    const struct gguf_tokens *tokens;
    struct progress *bar;
    /* Evaluate n chunks from first on into c. false: a message was printed, by
     * this rank or another. */
    bool (*evaluate)(void *user, size_t first, size_t n);
    void *user;
    /* its own */
    struct gguf_part *of;
    size_t *done, n_chunks;
};
/* false: a message was printed. */
bool im_share(struct im_share *s);
/* What on_progress of a run reports then: tokens of this share. */
int im_share_progress(struct im_share *s, uint64_t done);

/* The output is written: a checkpoint is not needed any more. */
void im_end_collect(const struct im_options *o);

#endif
