/* SPDX-License-Identifier: MIT */
/* state_parse.c - read the head of a state, and its tokens */
#include "config.h"
#include "run/state_int.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

static enum gguf_status refuse_number(enum gguf_status st, uint64_t at,
                                      const char *what, uint64_t has,
                                      uint64_t must, struct gguf_error *err)
{
    return gg_error_set(err, st, at,
                        "state, byte %" PRIu64 ": %s is %" PRIu64
                        ", must be %" PRIu64,
                        at, what, has, must);
}

static enum gguf_status refuse_state(enum gguf_status st, uint64_t at,
                                     const char *what, struct gguf_error *err)
{
    return gg_error_set(err, st, at, "state, byte %" PRIu64 ": %s", at, what);
}

/* ---- the head ---- */

/* Check magic, version, size and checksum. */
static enum gguf_status check_bytes(const uint8_t *p, uint64_t size,
                                    struct gguf_error *err)
{
    if (size < 8 || memcmp(p, gg_state_magic, 8) != 0)
        return refuse_state(GGUF_E_FORMAT, 0, "not a state of a session", err);
    if (size < GG_STATE_HEAD + GG_STATE_SUM)
        return refuse_state(GGUF_E_TRUNCATED, size,
                            "the state ends in its head", err);
    if (gg_bytes_load32le(p + 8) != GG_STATE_VERSION)
        return refuse_number(GGUF_E_VERSION, 8, "the version",
                             gg_bytes_load32le(p + 8), GG_STATE_VERSION, err);
    const uint64_t must = gg_bytes_load64le(p + 16);
    if (must > size)
        return refuse_number(GGUF_E_TRUNCATED, size, "the size", size, must,
                             err);
    if (must != size)
        return refuse_number(GGUF_E_FORMAT, 16, "the size", size, must, err);
    return GGUF_OK;
}

/* Check that the state fits the model and the session. */
static enum gguf_status check_head(struct gg_state_reader *r, const uint8_t *p,
                                   struct gguf_error *err)
{
    const struct gguf_session *s = r->s;
    const uint32_t flags = gg_bytes_load32le(p + 12);
    r->all = r->seq == GGUF_ALL_SEQUENCES;
    r->shared = flags & GG_STATE_SHARED;
    r->n_seq = gg_bytes_load32le(p + 32);
    if (gg_bytes_load64le(p + 24) != gg_model_digest(s->model))
        return refuse_state(
            GGUF_E_MISMATCH, 24,
            "the state of another model, or of one with another RoPE", err);
    if (flags & ~(uint32_t)(GG_STATE_ALL | GG_STATE_SHARED | GG_STATE_LONG))
        return refuse_state(GGUF_E_VERSION, 12, "unknown flags", err);
    if (!(flags & GG_STATE_ALL) == r->all)
        return refuse_state(
            GGUF_E_MISMATCH, 12,
            r->all ? "the state of one sequence, expected one of all"
                   : "the state of all sequences, expected one of a sequence",
            err);
    if (r->all && r->shared != s->shared)
        return refuse_state(GGUF_E_MISMATCH, 12,
                            r->shared
                                ? "its sequences share cells (unified)"
                                : "its sequences do not share cells (unified)",
                            err);
    if (!(flags & GG_STATE_LONG) ==
        gg_model_is_long_context(s->model, s->n_ctx))
        return refuse_state(GGUF_E_MISMATCH, 12,
                            "RoPE factors of another length of context", err);
    if (r->all ? !r->n_seq || r->n_seq > s->n_seq : r->n_seq != 1)
        return refuse_number(GGUF_E_MISMATCH, 32, "the number of sequences",
                             r->n_seq, r->all ? s->n_seq : 1, err);
    return GGUF_OK;
}

static enum gguf_status check_sum(const uint8_t *p, uint64_t size,
                                  struct gguf_error *err)
{
    const uint64_t at = size - GG_STATE_SUM;
    return XXH3_64bits(p, (size_t)at) == gg_bytes_load64le(p + at)
               ? GGUF_OK
               : refuse_state(GGUF_E_MISMATCH, at,
                              "the checksum is not that of the bytes before",
                              err);
}

/* ---- tables ---- */

uint32_t gg_state_next_seq(const struct gg_state_reader *r, unsigned number,
                           const struct gg_state_token *t, uint32_t from)
{
    if (!t->set) {
        const uint32_t q = r->all && number < GG_STATE_TABLES ? t->part : 0;
        return q >= from ? q : UINT32_MAX;
    }
    for (uint32_t q = from; q < r->n_seq; q++)
        if (gg_bytes_load64le(t->set + (size_t)(q / 64) * 8) >> q % 64 & 1)
            return q;
    return UINT32_MAX;
}

static enum gguf_status parse_set(const struct gg_state_reader *r,
                                  struct gg_state_token *t,
                                  struct gguf_error *err)
{
    uint64_t any = 0;
    for (uint32_t w = 0; w < r->n_words; w++) {
        const uint64_t set = gg_bytes_load64le(t->set + (size_t)w * 8);
        const uint32_t n = r->n_seq - w * 64;
        any |= set;
        if (n < 64 && set >> n)
            return refuse_state(GGUF_E_FORMAT, t->at + 8 + (uint64_t)w * 8,
                                "a token of a sequence that does not exist",
                                err);
    }
    return any ? GGUF_OK
               : refuse_state(GGUF_E_FORMAT, t->at + 8,
                              "a token of no sequence", err);
}

static enum gguf_status parse_token(struct gg_state_reader *r,
                                    struct gg_state_token *t, uint32_t n_words,
                                    const struct gg_state_token *before,
                                    struct gguf_error *err)
{
    uint32_t pos;
    t->at = r->c.off;
    GG_TRY(gg_cursor_u32(&r->c, &t->cell, "a cell", err));
    GG_TRY(gg_cursor_u32(&r->c, &pos, "a position", err));
    if (t->cell > INT32_MAX || (before && t->cell <= before->cell))
        return refuse_state(GGUF_E_FORMAT, t->at, "cells do not go up", err);
    if (pos >= INT32_MAX - 1)
        return refuse_state(GGUF_E_FORMAT, t->at + 4,
                            "a position out of range", err);
    t->pos = (int32_t)pos;
    if (!n_words)
        return GGUF_OK;
    GG_TRY(
        gg_cursor_take(&r->c, (uint64_t)n_words * 8, &t->set, "a set", err));
    return parse_set(r, t, err);
}

/* Read the tokens of one part. */
static enum gguf_status parse_part(struct gg_state_reader *r, unsigned number,
                                   uint32_t part, uint32_t *room,
                                   struct gguf_error *err)
{
    const struct gguf_allocator *a = r->s->allocator;
    struct gg_state_parsed_table *side = &r->side[number];
    const uint32_t n_words = number == GG_STATE_ENCODED ? 0 : r->n_words;
    const uint64_t at = r->c.off;
    uint32_t n;
    GG_TRY(gg_cursor_u32(&r->c, &n, "a number of tokens", err));
    if (n > gg_cursor_left(&r->c) / (8 + (uint64_t)n_words * 8) ||
        n > INT32_MAX - side->n)
        return refuse_state(GGUF_E_TRUNCATED, at, "more tokens than bytes",
                            err);
    if (n > *room - side->n) {
        *room = side->n + n;
        struct gg_state_token *tok = gg_mem_alloc_zero(a, *room, sizeof *tok);
        if (!tok)
            return gg_error_set_nomem(err, *room * sizeof *tok);
        if (side->n)
            memcpy(tok, side->tok, side->n * sizeof *tok);
        gg_mem_free(a, side->tok);
        side->tok = tok;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct gg_state_token *t = &side->tok[side->n];
        t->part = part;
        GG_TRY(parse_token(r, t, n_words, i ? t - 1 : NULL, err));
        side->n++;
    }
    return GGUF_OK;
}

static enum gguf_status parse_table(struct gg_state_reader *r, unsigned *last,
                                    struct gguf_error *err)
{
    const uint64_t at = r->c.off;
    uint32_t number, lost, room = 0;
    GG_TRY(gg_cursor_u32(&r->c, &number, "a table of cells", err));
    if (number >= GG_STATE_TABLES || number < *last ||
        (number == GG_STATE_ENCODED && !gg_state_table(r->s, number)))
        return refuse_state(GGUF_E_FORMAT, at,
                            "a table of cells that does not exist", err);
    *last = number + 1;
    struct gg_state_parsed_table *side = &r->side[number];
    side->there = true;
    const uint32_t must =
        r->n_words && number != GG_STATE_ENCODED ? 1 : r->n_seq;
    GG_TRY(gg_cursor_u32(&r->c, &side->n_parts, "streams", err));
    if (side->n_parts != must)
        return refuse_number(GGUF_E_FORMAT, at + 4, "the number of streams",
                             side->n_parts, must, err);
    side->lost =
        gg_mem_alloc_zero(r->s->allocator, r->n_seq, sizeof *side->lost);
    if (!side->lost)
        return gg_error_set_nomem(err, r->n_seq * sizeof *side->lost);
    for (uint32_t q = 0; q < r->n_seq; q++) {
        GG_TRY(gg_cursor_u32(&r->c, &lost, "a position", err));
        if (lost != UINT32_MAX && lost >= INT32_MAX - 1)
            return refuse_state(GGUF_E_FORMAT, r->c.off - 4,
                                "a position out of range", err);
        side->lost[q] = lost == UINT32_MAX ? -1 : (int32_t)lost;
    }
    for (uint32_t p = 0; p < side->n_parts; p++)
        GG_TRY(parse_part(r, number, p, &room, err));
    return GGUF_OK;
}

/* Count tokens and positions of each sequence in the first table. */
static enum gguf_status count_seqs(struct gg_state_reader *r,
                                   struct gguf_error *err)
{
    const struct gg_state_parsed_table *side = &r->side[0];
    r->of = gg_mem_alloc_zero(r->s->allocator, r->n_seq, sizeof *r->of);
    if (!r->of)
        return gg_error_set_nomem(err, r->n_seq * sizeof *r->of);
    for (uint32_t q = 0; q < r->n_seq; q++)
        r->of[q].lost = r->side[1].there ? r->side[1].lost[q] : -1;
    for (uint32_t i = 0; i < side->n; i++) {
        const struct gg_state_token *t = &side->tok[i];
        uint32_t q = gg_state_next_seq(r, 0, t, 0);
        for (; q != UINT32_MAX; q = gg_state_next_seq(r, 0, t, q + 1)) {
            r->of[q].n_used++;
            r->of[q].next_pos = GG_MAX(r->of[q].next_pos, t->pos + 1);
        }
    }
    return GGUF_OK;
}

enum gguf_status gg_state_parse(struct gg_state_reader *r, const uint8_t *data,
                                uint64_t size, struct gguf_error *err)
{
    unsigned last = 0;
    GG_TRY(check_bytes(data, size, err));
    GG_TRY(check_head(r, data, err));
    GG_TRY(check_sum(data, size, err));
    r->n_words = gg_state_n_words(r->seq, r->shared, r->n_seq);
    r->n_tables = gg_bytes_load32le(data + 36);
    r->n_tensors = gg_bytes_load32le(data + 40);
    r->c = (struct gg_cursor){ .base = data,
                               .size = size - GG_STATE_SUM,
                               .off = GG_STATE_HEAD };
    if (!r->n_tables || r->n_tables > GG_STATE_TABLES)
        return refuse_number(GGUF_E_FORMAT, 36, "the number of cell tables",
                             r->n_tables, GG_STATE_TABLES, err);
    for (uint32_t b = 0; b < r->n_tables; b++)
        GG_TRY(parse_table(r, &last, err));
    if (!r->side[0].there || (gg_state_table(r->s, GG_STATE_ENCODED) &&
                              !r->side[GG_STATE_ENCODED].there))
        return refuse_state(GGUF_E_FORMAT, 36, "a table of cells is missing",
                            err);
    return count_seqs(r, err);
}
