/* SPDX-License-Identifier: MIT */
/* ranks.h - sharing the chunks of a text between the ranks of an MPI job
 *
 * All code that knows MPI is in ranks_mpi.c; ranks_none.c takes its place in a
 * build without MPI.
 *
 * Every rank opens the models and the text. A counter on rank 0 hands out
 * chunks, so that a slow rank gets fewer. Each rank sends the records of its
 * chunks to rank 0, whose part (gguf/part.h) has all of them in the end. The
 * meaning of a record does not matter here: any evaluation that can be saved
 * as a part can be shared.
 *
 * Standard output of the other ranks is discarded. Of all errors only the
 * first is printed, with its rank; it ends the job.
 */
#ifndef TOOLS_RANKS_H
#define TOOLS_RANKS_H

#include <gguf/part.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* If argv has --mpi, start MPI together with the other ranks. Must come before
 * everything else, so that not every rank complains about MPI. MPI ends when
 * the program does. */
void ranks_begin(int *argc, char ***argv);

/* Must be called after the options were parsed. mpi: the option was given; the
 * program ends with a message if it was built without MPI. */
void ranks_require(bool mpi);

/* Is this a rank other than rank 0? */
bool ranks_is_worker(void);
/* Number of ranks. */
size_t ranks_count(void);
/* Number of this rank, from 0. */
size_t ranks_own(void);

/* Exchange the parts of an array. Each rank has filled the bytes off[r] to
 * off[r + 1] of data, where r is its number, and receives those of the others.
 * All ranks must call it with the same offsets, from the main thread, and not
 * during ranks_share(). off has ranks_count() + 1 elements. */
void ranks_exchange(void *data, const uint64_t *off);

/* Receive records and hand out chunks. Any thread must call it now and then
 * during a long computation. Returns false after a message: stop. */
bool ranks_poll(void);

struct ranks_work {
    size_t first, n; /* range of chunks, the same on all ranks */
    size_t together; /* most chunks that are handed out at a time */
    /* number of chunks that each rank did, set on rank 0; an array of
     * ranks_count() zeros */
    size_t *done;
    /* Evaluate n chunks from first on into the part. Returns false after a
     * message. */
    bool (*evaluate)(void *user, size_t first, size_t n);
    /* Return the part, whose settings must be the same on all ranks. NULL
     * before the first chunk has begun. */
    struct gguf_part *(*part)(void *user);
    /* Exchange results that are not records of chunks; both may be NULL.
     * get_extra returns those of this rank in memory that the caller frees
     * (size 0: none). put_extra adds those of another rank, on rank 0. Both
     * return false after a message. */
    bool (*get_extra)(void *user, void **data, size_t *size);
    bool (*put_extra)(void *user, const void *data, size_t size);
    /* Called now and then on rank 0 while it only waits. May be NULL. */
    void (*waiting)(void *user);
    void *user;
};

/* Do the work together with the other ranks. On rank 0 it returns when the
 * part has all chunks and put_extra was called for every other rank. Returns
 * false after a message. */
bool ranks_share(const struct ranks_work *w);

#endif
