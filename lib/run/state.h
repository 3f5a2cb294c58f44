/* SPDX-License-Identifier: MIT */
/* state.h - the bytes of a saved state
 *
 * Numbers are little-endian; blocks of quantized types are those of
 * little-endian files.
 *
 *      0  "GGUFSESS"
 *      8  u32 version: 1
 *     12  u32 flags (enum gg_state_flags)
 *     16  u64 bytes of the whole state
 *     24  u64 digest of the model (gg_model_digest)
 *     32  u32 sequences: 1, or those of the session
 *     36  u32 tables, u32 tensors
 *     44  for each table, in the order of numbers:
 *           u32 number: 0 all tokens, 1 layers with windows, 2 encoded
 *           u32 streams: 1, or as in the session
 *           i32 for each sequence: lost (struct gg_run_seq)
 *           for each stream:
 *             u32 tokens
 *             for each: u32 cell, i32 position; a set of sequences if
 *             several share the stream, one u64 for each 64
 *         for each tensor, in the order of the session:
 *           u32 kind of memory, u32 number, u32 type
 *           u32 number of the table that it follows; 3: one row for each
 *             sequence that has tokens
 *           u64 bytes of a row
 *           rows: of each stream of the table, in the order of its tokens
 *         u64 XXH3 of all bytes before */
#ifndef GG_RUN_STATE_H
#define GG_RUN_STATE_H

#include "run/session_int.h"

enum { GG_STATE_VERSION = 1, GG_STATE_HEAD = 44, GG_STATE_SUM = 8 };
extern const char gg_state_magic[9];

enum gg_state_flags {
    GG_STATE_ALL = 1,    /* all sequences; else one */
    GG_STATE_SHARED = 2, /* sequences share cells */
    GG_STATE_LONG = 4    /* RoPE uses the factors for long contexts */
};

/* Numbers of tables. A tensor without a table has GG_STATE_BY_SEQ. */
enum { GG_STATE_WINDOWS = 1, GG_STATE_ENCODED = 2, GG_STATE_TABLES = 3 };
enum { GG_STATE_BY_SEQ = GG_STATE_TABLES };

/* Table of the session with a number; NULL: none. */
struct gg_cells *gg_state_table(struct gguf_session *s, unsigned number);
/* Number of the table that tensor i of a memory follows. */
unsigned gg_state_table_number(const struct gguf_session *s,
                               const struct gg_memory *m, size_t i);

/* Number of parts of a table in a state: its streams, or the cells of one
 * sequence. */
uint32_t gg_state_n_parts(const struct gguf_session *s,
                          const struct gg_cells *table, uint32_t seq);
/* Does a cell of a part have a token? */
bool gg_state_is_taken(const struct gg_cells *table, uint32_t seq,
                       uint32_t part, uint32_t cell);
/* Stream of a part. */
static inline uint32_t gg_state_stream(const struct gg_cells *table,
                                       uint32_t seq, uint32_t part)
{
    return seq == GGUF_ALL_SEQUENCES ? part
                                     : gg_cells_stream_index(table, seq);
}

/* Words of a token's set of sequences; 0: no set. */
static inline uint32_t gg_state_n_words(uint32_t seq, bool shared,
                                        uint32_t n_seq)
{
    return seq == GGUF_ALL_SEQUENCES && shared ? (n_seq + 63) / 64 : 0;
}

/* state_read.c: check a whole state, then replace a sequence of the session,
 * or all of them, by it. */
enum gguf_status gg_state_read(struct gguf_session *s, uint32_t seq,
                               const uint8_t *data, uint64_t size,
                               struct gguf_error *err);

#endif
