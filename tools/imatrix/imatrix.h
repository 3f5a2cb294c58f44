/* SPDX-License-Identifier: MIT */
/* imatrix.h - the parts of gguf-imatrix
 *
 * imatrix.c reads, shows and writes importance data; collect.c collects them by
 * evaluating a model; share.c does that together with other MPI ranks. A
 * function that returns bool returns false after it printed a message. */
#ifndef TOOLS_IMATRIX_IMATRIX_H
#define TOOLS_IMATRIX_IMATRIX_H

#include "tools/common/opt.h"
#include "tools/common/progress.h"
#include "tools/evaluate/model.h"

#include <gguf/model.h>

#include <stdbool.h>

struct im_options {
    struct ev_options ev;
    const char *out;   /* output file, or NULL */
    const char *model; /* --model, or NULL */
    const char *text;  /* --file; NULL: operands are read */
    const char *part;  /* output file of --save-part, or NULL */
    struct opt_list include, exclude;
    bool keep_paths;    /* record names of texts with their folders */
    bool show;          /* print statistics even if out is set */
    bool output;        /* collect data of the output matrix, too */
    bool parse_special; /* texts of control tokens are these tokens */
    bool no_ppl;        /* accepted, without an effect */
    bool resume;
    bool sensitivity;    /* measure sensitivities, too */
    bool merge_parts;    /* operands are parts */
    bool mpi;            /* this process is one rank of several */
    int form;            /* enum gguf_imatrix_form; -1: by the name of out */
    uint64_t save_every; /* chunks between checkpoints; 0: none */
    uint64_t from_chunk; /* becomes ev.first_chunk */
    uint64_t sensitivity_tokens; /* tokens to measure them on; 0: default */
    struct gguf_limits limits;
    struct gguf_file_params files; /* parameters of read files: limits */
};

/* Parse the command line and return the number of operands, which are argv[1]
 * and following. A usage error ends the program. */
int im_parse_options(struct im_options *o, int argc, char **argv);

/* Evaluate the model on the text. If *im is not NULL, nothing is collected, and
 * sensitivities are added to it. Else *im receives the data; it is NULL,
 * without an error, on a helper rank, and if a part was saved in which no chunk
 * has data. */
bool im_collect(struct gguf_imatrix **im, const struct im_options *o);
/* Add up n files of parts. */
bool im_merge_parts(struct gguf_imatrix **im, const struct im_options *o,
                    char **paths, int n);

/* Number of chunks that n_tokens tokens are cut into. */
size_t im_count_chunks(const struct im_options *o, size_t n_tokens);

/* share.c: chunks that the ranks of an MPI job share. The caller sets the
 * members up to user, and calls im_share(). */
struct im_share {
    const struct im_options *o;
    struct gguf_collect *c; /* sums of this rank; at the end, on rank 0, of
                             * all ranks */
    struct gguf_session *session;
    const struct gguf_tokens *tokens;
    struct progress *bar;
    /* Evaluate n chunks from first on into c. Returns false after this rank or
     * another one printed a message. */
    bool (*evaluate)(void *user, size_t first, size_t n);
    void *user;
    /* private */
    struct gguf_part *part; /* settings and evaluated chunks, without scores */
    size_t *done;           /* [ranks], number of chunks of each rank */
    size_t n_chunks;        /* chunks of all ranks */
};
bool im_share(struct im_share *s);
/* Progress callback of a share. done: its tokens that are evaluated. A result
 * other than 0 asks to stop. */
int im_report_share_progress(struct im_share *s, uint64_t done);

/* Remove the checkpoint, after the output was written. */
void im_remove_checkpoint(const struct im_options *o);

#endif
