/* SPDX-License-Identifier: MIT */
/* ranks.h - a text's chunks, shared by the ranks of an MPI job
 *
 * All that knows MPI: ranks_mpi.c, or ranks_none.c in a build without it. Every
 * rank opens models and text. Each takes chunks by a counter on rank 0, so that
 * a slow one takes fewer, and sends their records to rank 0, whose part
 * (gguf/part.h) has all of them in the end. What a record means is no business
 * of this: whatever can be saved as a part can be shared. Standard output of
 * the other ranks goes nowhere; of errors the first is said, with its rank, and
 * ends all.
 */
#ifndef TOOLS_RANKS_H
#define TOOLS_RANKS_H

#include <gguf/part.h>

#include <stdbool.h>

/* If argv has --mpi: begin, together with the other ranks; first of all, so
 * that they do not all complain of it. It ends when the program does. */
void ranks_begin(int *argc, char ***argv);

/* The options were parsed. mpi: this is a rank; ends the program, for lack of
 * MPI, where it cannot be one. */
void ranks_require(bool mpi);

/* true: this is not rank 0 of several. How many there are. */
bool ranks_is_worker(void);
size_t ranks_count(void);

/* Whoever computes for long calls it now and then, from any thread: records
 * arrive, and others get their chunks. false: stop, a message was printed. */
bool ranks_poll(void);

struct ranks_work {
    size_t first, n; /* chunks, the same on all ranks */
    size_t together; /* as many, at most, are taken at a time */
    size_t *done; /* [ranks_count()], zeroed: how many each did; on rank 0 */
    /* Evaluate n chunks from first on into the part. false: a message was
     * printed. */
    bool (*evaluate)(void *user, size_t first, size_t n);
    /* The part, whose settings must be the same on all ranks; NULL before the
     * first chunk was begun. */
    struct gguf_part *(*part)(void *user);
    /* NULL, or what a rank has beside the records of its chunks: bytes (given,
     * to be freed; none: size 0), and rank 0 takes those of another. false: a
     * message was printed. */
    bool (*get_rest)(void *user, void **data, size_t *size);
    bool (*put_rest)(void *user, const void *data, size_t size);
    /* Called now and then by rank 0 while it only waits. */
    void (*waiting)(void *user);
    void *user;
};

/* Do the work together with the other ranks: rank 0 returns once its part has
 * all chunks, and it has every rest. false: a message was printed. */
bool ranks_share(const struct ranks_work *w);

#endif
