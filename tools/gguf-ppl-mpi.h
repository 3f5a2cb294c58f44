/* gguf-ppl-mpi.h - a text's chunks, shared by the ranks of an MPI job
 *
 * All that knows MPI: gguf-ppl-mpi.c, or gguf-ppl-no-mpi.c in a build without
 * it. Every rank opens models and text. Each takes chunks by a counter on
 * rank 0, so that a slow one takes fewer, and sends their scores to rank 0,
 * whose part has all of them in the end. Standard output of the other ranks
 * goes nowhere; of errors the first is said, with its rank, and ends all.
 */
#ifndef TOOLS_GGUF_PPL_MPI_H
#define TOOLS_GGUF_PPL_MPI_H

#include "tools/gguf-ppl.h"

/* If argv has --mpi: begin, together with the other ranks; first of all, so
 * that they do not all complain of it. It ends when the program does. */
void ppl_mpi_begin(int *argc, char ***argv);

/* What a rank does not need of the options. Ends the program, as a wrong usage
 * or for lack of MPI, where they cannot be done. */
void ppl_mpi_settle(struct ppl_options *o);

/* true: this is not rank 0 of several. */
bool ppl_mpi_is_helper(void);

/* Whoever computes for long calls it now and then, from any thread: scores
 * arrive, and others get their chunks. false: stop, a message was printed. */
bool ppl_mpi_poll(void);
/* The same within a scan, and a bar of what all ranks have done; done: tokens
 * of this scan. Not 0: stop. */
int ppl_mpi_progress(struct ppl_run *r, uint64_t done);

struct ppl_share {
    struct ppl_run *run;
    /* Evaluate n chunks from first on into the part. false: a message was
     * printed. */
    bool (*evaluate)(void *user, size_t first, size_t n);
    void *user;
    /* The part; NULL before the first chunk was begun. */
    struct gguf_part *(*part)(void *part_user);
    void *part_user;
};

/* Evaluate run's chunks, together with the other ranks: rank 0 returns once its
 * part has them all, and run says how many each did. false: a message was
 * printed. */
bool ppl_mpi_share(const struct ppl_share *s);

#endif
