/* SPDX-License-Identifier: MIT */
/* state_int.h - a state that is being read, for the files that read it */
#ifndef GG_RUN_STATE_INT_H
#define GG_RUN_STATE_INT_H

#include "base/cursor.h"
#include "run/state.h"

/* A token in a table of the state, and its cells in the session: to[0] in the
 * table with the same number; for the first table also to[1] in that of
 * windows. */
struct gg_state_token {
    uint32_t part, cell;
    int32_t pos;
    uint64_t at; /* byte of the state */
    const uint8_t *set;
    uint32_t to[2]; /* GG_STATE_DROPPED: windows have passed the token */
};
#define GG_STATE_DROPPED UINT32_MAX

/* A table of the state. */
struct gg_state_parsed_table {
    bool there;
    uint32_t n_parts, n;
    struct gg_state_token *tok; /* [n], part after part */
    int32_t *lost;              /* [n_seq], as in struct gg_run_seq */
};

struct gg_state_reader {
    struct gguf_session *s;
    uint32_t seq;
    bool all, shared;
    uint32_t n_seq;   /* sequences of the state */
    uint32_t n_words; /* words of the sets of sequences in its first tables */
    uint32_t n_tables, n_tensors;
    struct gg_cursor c;
    struct gg_state_parsed_table side[GG_STATE_TABLES];
    /* [n_seq], facts by the first table. Here lost is the position up to which
     * layers with windows will have dropped tokens. */
    struct gg_run_seq *of;
    /* Are tokens added after those of other sequences, in each table? */
    bool appends[GG_STATE_TABLES];
    /* tokens of other sequences that windows have passed are dropped first */
    bool drops;
};

/* Sequence of the session for sequence q of the state. */
static inline uint32_t gg_state_seq(const struct gg_state_reader *r,
                                    uint32_t q)
{
    return r->all ? q : r->seq;
}
/* First sequence of a token, from number from on, as the state numbers them;
 * UINT32_MAX: no further one. */
uint32_t gg_state_next_seq(const struct gg_state_reader *r, unsigned number,
                           const struct gg_state_token *t, uint32_t from);

/* state_parse.c: read the head and the tables. GGUF_E_FORMAT, GGUF_E_TRUNCATED,
 * GGUF_E_VERSION and GGUF_E_MISMATCH have the byte. GGUF_E_NOMEM. */
enum gguf_status gg_state_parse(struct gg_state_reader *r, const uint8_t *data,
                                uint64_t size, struct gguf_error *err);

/* state_place.c: find cells for all tokens. GGUF_E_FULL: too few.
 * GGUF_E_UNSUPPORTED: windows of the state have dropped tokens that the
 * session would keep. */
enum gguf_status gg_state_place_tokens(struct gg_state_reader *r,
                                       struct gguf_error *err);

/* Table of the state that has the rows of a tensor which follows table number
 * in the session. *which receives the index in to of their cells. */
static inline unsigned gg_state_source_table(const struct gg_state_reader *r,
                                             unsigned number, unsigned *which)
{
    /* a state without a table of windows has all tokens in the first table */
    *which = number == GG_STATE_WINDOWS && !r->side[1].there;
    return *which ? 0 : number;
}

#endif
