/* SPDX-License-Identifier: MIT */
/* back_spm.c - SentencePiece's model, as vocab_spm.c reads it */
#include "config.h"
#include "convert/back_vocab.h"

#include "base/bytes.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

struct proto {
    uint8_t *p;
    size_t n, room;
    bool failed;
};

static void bytes(struct proto *o, const void *data, size_t n)
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

static void varint(struct proto *o, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        bytes(o, &(uint8_t){ (uint8_t)(v | 0x80) }, 1);
    bytes(o, &(uint8_t){ (uint8_t)v }, 1);
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
    varint(o, 1 << 3 | 2);
    varint(o, 1 + varint_size(s.size) + s.size + 5 +
                  (type != GG_CONVERT_NORMAL ? 2 : 0));
    varint(o, 1 << 3 | 2);
    varint(o, s.size);
    bytes(o, s.data, s.size);
    varint(o, 2 << 3 | 5);
    gg_bytes_store32le(b, gg_bytes_f32_bits(score));
    bytes(o, b, 4);
    if (type != GG_CONVERT_NORMAL) {
        varint(o, 3 << 3);
        varint(o, (uint64_t)type);
    }
}

static void number(struct proto *o, unsigned no, uint64_t value)
{
    varint(o, no << 3);
    varint(o, value);
}

static void field(struct proto *o, unsigned no, const void *data, size_t n)
{
    varint(o, no << 3 | 2);
    varint(o, n);
    bytes(o, data, n);
}

/* What a specification has, as field no of the model. */
static void put_spec(struct proto *o, unsigned no, struct proto *in)
{
    field(o, no, in->p, in->n);
    o->failed |= in->failed;
    free(in->p);
}

static void put_specs(struct proto *o, const struct gg_back_tokens *t,
                      bool unigram)
{
    static const char name[] = "identity";
    const struct gguf_kv *map =
        gguf_file_kv_find(t->b->meta, "tokenizer.ggml.precompiled_charsmap");
    struct proto trainer = { .p = NULL }, normalizer = { .p = NULL };
    number(&trainer, 3, unigram ? 1 : 2);  /* model_type */
    number(&trainer, 35, unigram ? 0 : 1); /* byte_fallback */
    field(&normalizer, 1, name, sizeof name - 1);
    if (unigram && map && map->type == GGUF_VAL_ARR && map->n &&
        (map->elem_type == GGUF_VAL_U8 || map->elem_type == GGUF_VAL_I8))
        field(&normalizer, 2, map->data, (size_t)map->n);
    number(&normalizer, 3, /* add_dummy_prefix */
           (uint64_t)gg_back_vocab_flag(
               t->b, "tokenizer.ggml.add_space_prefix", !unigram));
    number(&normalizer, 4, /* remove_extra_whitespaces */
           unigram ? (uint64_t)gg_back_vocab_flag(
                         t->b, "tokenizer.ggml.remove_extra_whitespaces", 0)
                   : 0);
    number(&normalizer, 5, 1); /* escape_whitespaces */
    put_spec(o, 2, &trainer);
    put_spec(o, 3, &normalizer);
}

enum gguf_status gg_back_put_spm(const struct gg_back_tokens *t,
                                 const char *name, bool unigram,
                                 struct gg_back_text *out,
                                 struct gguf_error *err)
{
    struct proto o = { .p = NULL };
    for (size_t i = 0; i < t->n; i++) {
        const struct gguf_str s = t->text[i];
        if (t->types[i] < GG_CONVERT_NORMAL || t->types[i] > GG_CONVERT_BYTE ||
            !gg_str_utf8_valid(s.data, s.size)) {
            free(o.p);
            return gg_back_vocab_fail("a token has no kind, or is not UTF-8",
                                      err);
        }
        put_piece(&o, s, t->scores[i], t->types[i]);
    }
    put_specs(&o, t, unigram);
    if (o.failed) {
        free(o.p);
        return gg_error_set_nomem(err, o.room);
    }
    *out = (struct gg_back_text){ name, (char *)o.p, o.n };
    return GGUF_OK;
}
