/* SPDX-License-Identifier: MIT */
/* state_int.h - reading a state: what its files share */
#ifndef GG_RUN_STATE_INT_H
#define GG_RUN_STATE_INT_H

#include "base/cursor.h"
#include "run/state.h"

/* A token of a book, and its cells in the session's: in the book of the same
 * number and, of the first book, in that of windows. */
struct gg_state_token {
    uint32_t part, cell;
    int32_t pos;
    uint64_t at; /* byte of the state */
    const uint8_t *set;
    uint32_t to[2]; /* GG_STATE_DROPPED: windows have passed it */
};
#define GG_STATE_DROPPED UINT32_MAX

/* A book of the state. */
struct gg_state_parsed_book {
    bool there;
    uint32_t n_parts, n;
    struct gg_state_token *tok; /* [n], part after part */
    int32_t *lost;              /* [n_seq] */
};

struct gg_state_reader {
    struct gguf_session *s;
    uint32_t seq;
    bool all, shared;
    uint32_t n_seq;   /* of the state */
    uint32_t n_words; /* of sets in its first books */
    uint32_t n_books, n_tensors;
    struct gg_cursor c;
    struct gg_state_parsed_book side[GG_STATE_BOOKS];
    struct gg_run_seq *of; /* [n_seq] by the first book; lost: what layers with
                            * windows will have lost */
    /* Are tokens added after those of others, in the session's books? */
    bool appends[GG_STATE_BOOKS];
    bool drops; /* tokens of others that windows have passed, before that */
};

/* Sequence q of the state in the session. */
static inline uint32_t gg_state_seq(const struct gg_state_reader *r,
                                    uint32_t q)
{
    return r->all ? q : r->seq;
}
/* The first sequence of a token, of the state's; those after q that it is of,
 * or UINT32_MAX. */
uint32_t gg_state_next_seq(const struct gg_state_reader *r, unsigned number,
                           const struct gg_state_token *t, uint32_t from);

/* state_parse.c: the head and the books. GGUF_E_FORMAT, GGUF_E_TRUNCATED,
 * GGUF_E_VERSION, GGUF_E_MISMATCH, all with the byte; GGUF_E_NOMEM. */
enum gguf_status gg_state_parse(struct gg_state_reader *r, const uint8_t *data,
                                uint64_t size, struct gguf_error *err);

/* state_place.c: cells for all tokens. GGUF_E_FULL; GGUF_E_UNSUPPORTED where
 * windows have lost what the session would keep. */
enum gguf_status gg_state_place_tokens(struct gg_state_reader *r,
                                       struct gguf_error *err);

/* Which of the state's books a tensor's rows are of, and which of a token's
 * two cells they go to. */
static inline unsigned gg_state_source_book(const struct gg_state_reader *r,
                                            unsigned number, unsigned *which)
{
    /* a state without a book of windows has all tokens in the first one */
    *which = number == GG_STATE_WINDOWS && !r->side[1].there;
    return *which ? 0 : number;
}

#endif
