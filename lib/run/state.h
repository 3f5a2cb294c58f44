/* SPDX-License-Identifier: MIT */
/* state.h - what a session keeps, in bytes
 *
 * All numbers are little-endian; blocks are as in a little-endian file.
 *
 *      0  "GGUFSESS"
 *      8  u32 version: 1
 *     12  u32 flags (enum below)
 *     16  u64 bytes of all of it
 *     24  u64 digest of the model (gg_model_digest)
 *     32  u32 sequences: 1, or as many as the session had
 *     36  u32 books, u32 tensors
 *     44  for each book, in the order of their numbers:
 *           u32 number: 0 of all tokens, 1 of layers with windows, 2 encoded
 *           u32 streams: 1, or as many as sequences
 *           i32 for each sequence: up to which position windows lost tokens
 *           for each stream:
 *             u32 tokens
 *             for each: u32 cell, i32 position and, where there are several
 *             sequences and one stream, a set of them, u64 for each 64
 *         for each tensor, in the order of the session's:
 *           u32 kind of memory, u32 number, u32 type
 *           u32 which tokens have rows: the number of a book, or 3, one row
 *             for each sequence that has tokens
 *           u64 bytes of a row
 *           rows: of each stream of the book, in the order of its tokens
 *         u64 XXH3 of all bytes before
 */
#ifndef GG_RUN_STATE_H
#define GG_RUN_STATE_H

#include "run/session_int.h"

enum { GG_STATE_VERSION = 1, GG_STATE_HEAD = 44, GG_STATE_SUM = 8 };
extern const char gg_state_magic[9];

enum gg_state_flags {
    GG_STATE_ALL = 1,    /* of all sequences, not of one */
    GG_STATE_SHARED = 2, /* sequences share cells */
    GG_STATE_LONG = 4    /* positions turned by the factors of long contexts */
};

/* Numbers of books, and what a tensor follows that follows none. */
enum { GG_STATE_WINDOWS = 1, GG_STATE_ENCODED = 2, GG_STATE_BOOKS = 3 };
enum { GG_STATE_BY_SEQ = GG_STATE_BOOKS };

/* A session's book of a number, or NULL. */
struct gg_cells *gg_state_book(struct gguf_session *s, unsigned number);
/* The number of the one that tensor i of a memory follows. */
unsigned gg_state_book_number(const struct gguf_session *s,
                              const struct gg_memory *m, size_t i);

/* Parts of a state: streams of a book, or the cells of one sequence. */
uint32_t gg_state_n_parts(const struct gguf_session *s,
                          const struct gg_cells *book, uint32_t seq);
/* Is a cell of such a part taken? */
bool gg_state_is_taken(const struct gg_cells *book, uint32_t seq,
                       uint32_t part, uint32_t cell);
/* Its stream. */
static inline uint32_t gg_state_stream(const struct gg_cells *book,
                                       uint32_t seq, uint32_t part)
{
    return seq == GGUF_ALL_SEQUENCES ? part : gg_cells_stream_index(book, seq);
}

/* Words of a token's set of sequences; 0: it has none. */
static inline uint32_t gg_state_n_words(uint32_t seq, bool shared,
                                        uint32_t n_seq)
{
    return seq == GGUF_ALL_SEQUENCES && shared ? (n_seq + 63) / 64 : 0;
}

/* state_read.c: check all of a state, then put it in the place of what the
 * session has of a sequence, or of all. */
enum gguf_status gg_state_read(struct gguf_session *s, uint32_t seq,
                               const uint8_t *data, uint64_t size,
                               struct gguf_error *err);

#endif
