/* SPDX-License-Identifier: MIT */
/* back_spm.c - SentencePiece's model, as vocab_spm.c reads it */
#include "config.h"
#include "convert/back/back_vocab.h"

#include "base/bytes.h"
#include "base/str.h"
#include "vocab/vocab_int.h"

#include <stdlib.h>
#include <string.h>

struct proto {
    uint8_t *p;
    size_t n, room;
    bool failed;
};

static void put_bytes(struct proto *o, const void *data, size_t n)
{
    if (o->room - o->n < n) {
        const size_t room = 2 * o->room + n + 4096;
        uint8_t *p = realloc(o->p, room);
        o->failed |= !p;
        if (!p)
            return;
        o->p = p;
        o->room = room;
    }
    memcpy(o->p + o->n, data, n);
    o->n += n;
}

static void put_varint(struct proto *o, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        put_bytes(o, &(uint8_t){ (uint8_t)(v | 0x80) }, 1);
    put_bytes(o, &(uint8_t){ (uint8_t)v }, 1);
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

/* 1: text, 2: score, 3: kind, in field 1 of the model. */
static void put_piece(struct proto *o, struct gguf_str s, float score,
                      int32_t type)
{
    uint8_t b[4];
    put_varint(o, 1 << 3 | 2);
    put_varint(o, 1 + varint_size(s.size) + s.size + 5 +
                      (type != GG_CONVERT_NORMAL ? 2 : 0));
    put_varint(o, 1 << 3 | 2);
    put_varint(o, s.size);
    put_bytes(o, s.data, s.size);
    put_varint(o, 2 << 3 | 5);
    gg_bytes_store32le(b, gg_bytes_f32_bits(score));
    put_bytes(o, b, 4);
    if (type != GG_CONVERT_NORMAL) {
        put_varint(o, 3 << 3);
        put_varint(o, (uint64_t)type);
    }
}

static void put_number(struct proto *o, unsigned no, uint64_t value)
{
    put_varint(o, no << 3);
    put_varint(o, value);
}

static void put_field(struct proto *o, unsigned no, const void *data, size_t n)
{
    put_varint(o, no << 3 | 2);
    put_varint(o, n);
    put_bytes(o, data, n);
}

/* Write the members of a specification as field no of the model. */
static void put_spec(struct proto *o, unsigned no, struct proto *in)
{
    put_field(o, no, in->p, in->n);
    o->failed |= in->failed;
    free(in->p);
}

/* bytes: each byte has a piece. */
static void put_specs(struct proto *o, const struct gg_back_tokens *t,
                      bool unigram, bool bytes)
{
    static const char name[] = "identity";
    const struct gguf_kv *map =
        gguf_file_kv_find(t->b->meta, "tokenizer.ggml.precompiled_charsmap");
    struct proto trainer = { .p = NULL }, normalizer = { .p = NULL };
    put_number(&trainer, 3, unigram ? 1 : 2); /* model_type */
    put_number(&trainer, 35, bytes);          /* byte_fallback */
    put_field(&normalizer, 1, name, sizeof name - 1);
    if (unigram && map && map->type == GGUF_VAL_ARR && map->n &&
        (map->elem_type == GGUF_VAL_U8 || map->elem_type == GGUF_VAL_I8))
        put_field(&normalizer, 2, map->data, (size_t)map->n);
    put_number(&normalizer, 3, /* add_dummy_prefix */
               (uint64_t)gg_back_vocab_get_flag(
                   t->b, "tokenizer.ggml.add_space_prefix", !unigram));
    put_number(&normalizer, 4, /* remove_extra_whitespaces */
               unigram
                   ? (uint64_t)gg_back_vocab_get_flag(
                         t->b, "tokenizer.ggml.remove_extra_whitespaces", 0)
                   : 0);
    put_number(&normalizer, 5, 1); /* escape_whitespaces */
    put_spec(o, 2, &trainer);
    put_spec(o, 3, &normalizer);
}

/* Bytes that pieces of kind BYTE stand for. A missing one may be replaced by
 * the character itself: transformers' GemmaConverter writes "\t" for <0x09>.
 */
struct bytes {
    bool has[256];
    size_t n;
};

static void find_bytes(struct bytes *b, const struct gg_back_tokens *t)
{
    *b = (struct bytes){ .n = 0 };
    for (size_t i = 0; i < t->n; i++) {
        const int byte = t->types[i] == GG_CONVERT_BYTE
                             ? gg_vocab_byte_text(t->text[i])
                             : -1;
        if (byte >= 0 && !b->has[byte]) {
            b->has[byte] = true;
            b->n++;
        }
    }
}

/* Byte that token i replaces; -1: none. */
static int replaced_byte(const struct bytes *b, const struct gg_back_tokens *t,
                         size_t i)
{
    const struct gguf_str s = t->text[i];
    return b->n && s.size == 1 && !b->has[(uint8_t)*s.data] ? (uint8_t)*s.data
                                                            : -1;
}

/* Write pieces for all tokens. *bytes: each byte has a piece. */
static enum gguf_status put_pieces(struct proto *o,
                                   const struct gg_back_tokens *t, bool *bytes,
                                   struct gguf_error *err)
{
    struct bytes b;
    size_t n = 0;
    find_bytes(&b, t);
    for (size_t i = 0; i < t->n; i++) {
        struct gguf_str s = t->text[i];
        int32_t type = t->types[i];
        const int byte = replaced_byte(&b, t, i);
        char text[8];
        if (type < GG_CONVERT_NORMAL || type > GG_CONVERT_BYTE ||
            !gg_str_utf8_valid(s.data, s.size))
            return gg_back_vocab_fail("a token has no kind, or is not UTF-8",
                                      err);
        if (byte >= 0) {
            s = (struct gguf_str){ text,
                                   gg_spm_byte_text((unsigned)byte, 0, text) };
            type = GG_CONVERT_BYTE;
            n++;
        }
        put_piece(o, s, t->scores[i], type);
    }
    *bytes = b.n + n == 256;
    return !b.n || *bytes
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                              "%zu byte tokens, SentencePiece expects 256 or "
                              "none",
                              b.n + n);
}

enum gguf_status gg_back_put_spm(const struct gg_back_tokens *t,
                                 const char *name, bool unigram,
                                 struct gg_back_text *out,
                                 struct gguf_error *err)
{
    struct proto o = { .p = NULL };
    bool bytes;
    const enum gguf_status st = put_pieces(&o, t, &bytes, err);
    if (st != GGUF_OK) {
        free(o.p);
        return st;
    }
    put_specs(&o, t, unigram, bytes);
    if (o.failed) {
        free(o.p);
        return gg_error_set_nomem(err, o.room);
    }
    *out = (struct gg_back_text){ name, (char *)o.p, o.n };
    return GGUF_OK;
}
