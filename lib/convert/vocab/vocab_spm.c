/* SPDX-License-Identifier: MIT */
/* vocab_spm.c - read tokenizer.model: SentencePiece's model, a protocol buffer
 *
 * ModelProto (sentencepiece_model.proto): field 1, repeated, a piece (1: text,
 * 2: float score, 3: kind, the number of tokenizer.ggml.token_type); 2:
 * TrainerSpec (3: kind of model, 1 Unigram, 2 BPE; 24:
 * treat_whitespace_as_suffix); 3: NormalizerSpec (2: precompiled_charsmap, 3:
 * add_dummy_prefix, 4: remove_extra_whitespaces, 5: escape_whitespaces). Other
 * fields are skipped.
 *
 * A field is a number, field << 3 | wire type, in 7-bit groups, the lowest
 * first. Then, by wire type: another such number (0), 8 bytes (1), a length and
 * that number of bytes (2), 4 bytes (5).
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/cursor.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 };

struct field {
    uint64_t off; /* byte of the file */
    uint32_t no, wire;
    uint64_t number;     /* VARINT, FIXED_32 */
    struct gg_cursor in; /* BYTES: contents, as a range of the file */
};

static enum gguf_status read_varint(struct gg_cursor *c, uint64_t *out,
                                    struct gguf_error *err)
{
    const uint64_t off = c->off;
    const uint8_t *p = NULL;
    *out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        GG_TRY(gg_cursor_take(c, 1, &p, "a number", err));
        if (shift == 63 && *p > 1)
            break;
        *out |= (uint64_t)(*p & 0x7f) << shift;
        if (!(*p & 0x80))
            return GGUF_OK;
    }
    return gg_error_set(err, GGUF_E_FORMAT, off,
                        "a number of more than 64 bits");
}

static enum gguf_status next_field(struct gg_cursor *c, struct field *f,
                                   struct gguf_error *err)
{
    uint64_t key, n;
    const uint8_t *p = NULL;
    f->off = c->off;
    GG_TRY(read_varint(c, &key, err));
    if (!(key >> 3) || key >> 3 > (1u << 29) - 1)
        return gg_error_set(err, GGUF_E_FORMAT, f->off,
                            "field number %" PRIu64, key >> 3);
    f->no = (uint32_t)(key >> 3);
    f->wire = key & 7;
    f->number = 0;
    f->in = (struct gg_cursor){ .base = NULL };
    switch (f->wire) {
    case VARINT: return read_varint(c, &f->number, err);
    case FIXED_64: return gg_cursor_take(c, 8, &p, "a field", err);
    case FIXED_32:
        GG_TRY(gg_cursor_take(c, 4, &p, "a field", err));
        f->number = gg_bytes_load32le(p);
        return GGUF_OK;
    case BYTES:
        GG_TRY(read_varint(c, &n, err));
        f->in = (struct gg_cursor){ .base = c->base, .off = c->off };
        GG_TRY(gg_cursor_take(c, n, &p, "a field", err));
        f->in.size = c->off;
        return GGUF_OK;
    default:
        return gg_error_set(err, GGUF_E_FORMAT, f->off,
                            "field with wire type %" PRIu32, f->wire);
    }
}

static enum gguf_status refuse_field(const struct field *f, const char *what,
                                     struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_FORMAT, f->off, "%s", what);
}

static enum gguf_status read_piece(struct gg_convert_vocab *v,
                                   const struct field *piece,
                                   struct gguf_error *err)
{
    struct gg_cursor c = piece->in;
    struct gguf_str text = { NULL, 0 };
    float score = 0;
    uint64_t type = GG_CONVERT_NORMAL;
    if (piece->wire != BYTES)
        return refuse_field(piece, "a piece that is not a message", err);
    while (gg_cursor_left(&c)) {
        struct field f;
        GG_TRY(next_field(&c, &f, err));
        if (f.no == 1 && f.wire == BYTES)
            text = (struct gguf_str){ (const char *)f.in.base + f.in.off,
                                      (size_t)gg_cursor_left(&f.in) };
        else if (f.no == 2 && f.wire == FIXED_32)
            score = gg_bytes_f32_from_bits((uint32_t)f.number);
        else if (f.no == 3 && f.wire == VARINT)
            type = f.number;
        else if (f.no <= 3)
            return refuse_field(&f, "a piece's field of another wire type",
                                err);
    }
    if (!text.data)
        return refuse_field(piece, "a piece without a text", err);
    if (!gg_str_utf8_valid(text.data, text.size))
        return refuse_field(piece, "a piece whose text is not UTF-8", err);
    if (!isfinite(score))
        return refuse_field(piece, "a piece whose score is not finite", err);
    if (type < GG_CONVERT_NORMAL || type > GG_CONVERT_BYTE)
        return refuse_field(piece, "a piece of an unknown kind", err);
    const size_t i = v->n;
    GG_TRY(gg_convert_vocab_grow(v, (int64_t)i + 1, 0, err));
    v->token[i].data =
        gg_mem_arena_strndup(v->folder->arena, text.data, text.size);
    v->token[i].size = text.size;
    if (!v->token[i].data)
        return gg_error_set_nomem(err, text.size);
    v->score[i] = score;
    v->type[i] = (int32_t)type;
    return GGUF_OK;
}

/* Members of the two specifications that are read, with the format's
 * defaults. */
struct spec {
    uint64_t kind, suffix, prefix, merge, escape;
    struct gg_cursor charsmap; /* base is NULL: none */
};
#define SPEC_INIT                                                             \
    {                                                                         \
        .kind = 1, .prefix = 1, .merge = 1, .escape = 1                       \
    }

static enum gguf_status read_spec(const struct field *f, struct spec *s,
                                  struct gguf_error *err)
{
    const struct {
        uint32_t in, no;
        uint64_t *to;
    } numbers[] = { { 2, 3, &s->kind },
                    { 2, 24, &s->suffix },
                    { 3, 3, &s->prefix },
                    { 3, 4, &s->merge },
                    { 3, 5, &s->escape } };
    struct gg_cursor c = f->in;
    if (f->wire != BYTES)
        return refuse_field(f, "a specification that is not a message", err);
    while (gg_cursor_left(&c)) {
        struct field in;
        GG_TRY(next_field(&c, &in, err));
        for (size_t i = 0; i < GG_LEN(numbers); i++)
            if (f->no == numbers[i].in && in.no == numbers[i].no &&
                in.wire == VARINT)
                *numbers[i].to = in.number;
        if (f->no == 3 && in.no == 2 && in.wire == BYTES)
            s->charsmap = in.in;
    }
    return GGUF_OK;
}

static enum gguf_status set_unigram(struct gg_convert_vocab *v,
                                    const struct spec *s,
                                    struct gguf_error *err)
{
    const size_t n =
        s->charsmap.base ? (size_t)gg_cursor_left(&s->charsmap) : 0;
    if (n) {
        v->charsmap.data = gg_mem_arena_strndup(
            v->folder->arena, (const char *)s->charsmap.base + s->charsmap.off,
            n);
        v->charsmap.size = n;
        if (!v->charsmap.data)
            return gg_error_set_nomem(err, n);
    }
    v->merge_spaces = s->merge != 0;
    return gg_convert_vocab_finish_unigram(v, s->charsmap.off, err);
}

enum gguf_status gg_convert_vocab_read_spm(struct gg_convert_vocab *v,
                                           const struct gg_mapfile *m,
                                           struct gguf_error *err)
{
    struct gg_cursor c = { .base = m->data, .size = m->size };
    struct spec s = SPEC_INIT;
    while (gg_cursor_left(&c)) {
        struct field f;
        GG_TRY(next_field(&c, &f, err));
        if (f.no == 1)
            GG_TRY(read_piece(v, &f, err));
        else if (f.no == 2 || f.no == 3)
            GG_TRY(read_spec(&f, &s, err));
    }
    if (!v->n)
        return gg_error_set(err, GGUF_E_VOCAB, 0, "no pieces");
    if (s.suffix || !s.escape)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "a model with %s, which GGUF cannot express",
                            s.suffix ? "treat_whitespace_as_suffix"
                                     : "escape_whitespaces 0");
    v->space_prefix = s.prefix != 0;
    if (s.kind == 1)
        return set_unigram(v, &s, err);
    if (s.kind != 2)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "a model of kind %" PRIu64
                            ", expected Unigram (1) or BPE (2)",
                            s.kind);
    if (s.charsmap.base && gg_cursor_left(&s.charsmap))
        gg_folder_warn(v->folder,
                       "the normalizer's table, which GGUF cannot "
                       "express for a BPE, is ignored: texts that it "
                       "changes get other tokens");
    if (s.merge)
        gg_folder_warn(v->folder,
                       "the normalizer's remove_extra_whitespaces, "
                       "which GGUF cannot express for a BPE, is "
                       "ignored: texts with several blanks in a row "
                       "get other tokens");
    v->model = "llama";
    if (!v->pre)
        v->pre = "default";
    v->has_scores = true;
    return GGUF_OK;
}
