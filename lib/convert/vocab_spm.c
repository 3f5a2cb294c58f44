/* vocab_spm.c - tokenizer.model: SentencePiece's model, a protocol buffer
 *
 * ModelProto (sentencepiece_model.proto): field 1, repeated, a piece (1: text,
 * 2: float score, 3: kind, which is tokenizer.ggml.token_type's number); 2:
 * TrainerSpec (3: kind of model, 1 unigram, 2 BPE); 3: NormalizerSpec (3:
 * add_dummy_prefix). Fields that nothing here asks for are passed over.
 *
 * A field is a number, field << 3 | wire type, in 7-bit groups, the lowest
 * first; then by the wire type another such number (0), 8 bytes (1), a length
 * and as many bytes (2), 4 bytes (5).
 */
#include "config.h"
#include "convert/vocab.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 };

struct field {
    uint64_t off; /* byte of the file */
    uint32_t no, wire;
    uint64_t number;     /* VARINT, FIXED_32 */
    struct gg_cursor in; /* BYTES: what is within, at bytes of the file */
};

static enum gguf_status varint(struct gg_cursor *c, uint64_t *out,
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

static enum gguf_status next(struct gg_cursor *c, struct field *f,
                             struct gguf_error *err)
{
    uint64_t key, n;
    const uint8_t *p = NULL;
    f->off = c->off;
    GG_TRY(varint(c, &key, err));
    if (!(key >> 3) || key >> 3 > (1u << 29) - 1)
        return gg_error_set(err, GGUF_E_FORMAT, f->off,
                            "a field of number %" PRIu64, key >> 3);
    f->no = (uint32_t)(key >> 3);
    f->wire = key & 7;
    f->number = 0;
    f->in = (struct gg_cursor){ .base = NULL };
    switch (f->wire) {
    case VARINT: return varint(c, &f->number, err);
    case FIXED_64: return gg_cursor_take(c, 8, &p, "a field", err);
    case FIXED_32:
        GG_TRY(gg_cursor_take(c, 4, &p, "a field", err));
        f->number = gg_bytes_load32le(p);
        return GGUF_OK;
    case BYTES:
        GG_TRY(varint(c, &n, err));
        f->in = (struct gg_cursor){ .base = c->base, .off = c->off };
        GG_TRY(gg_cursor_take(c, n, &p, "a field", err));
        f->in.size = c->off;
        return GGUF_OK;
    default:
        return gg_error_set(err, GGUF_E_FORMAT, f->off,
                            "a field of wire type %" PRIu32, f->wire);
    }
}

static enum gguf_status wrong(const struct field *f, const char *what,
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
        return wrong(piece, "a piece that is not a message", err);
    while (gg_cursor_left(&c)) {
        struct field f;
        GG_TRY(next(&c, &f, err));
        if (f.no == 1 && f.wire == BYTES)
            text = (struct gguf_str){ (const char *)f.in.base + f.in.off,
                                      (size_t)gg_cursor_left(&f.in) };
        else if (f.no == 2 && f.wire == FIXED_32)
            score = gg_bytes_f32_from_bits((uint32_t)f.number);
        else if (f.no == 3 && f.wire == VARINT)
            type = f.number;
        else if (f.no <= 3)
            return wrong(&f, "a piece's field of another wire type", err);
    }
    if (!text.data)
        return wrong(piece, "a piece without a text", err);
    if (!gg_str_utf8_valid(text.data, text.size))
        return wrong(piece, "a piece whose text is not UTF-8", err);
    if (!isfinite(score))
        return wrong(piece, "a piece whose score is not finite", err);
    if (type < GG_CONVERT_NORMAL || type > GG_CONVERT_BYTE)
        return wrong(piece, "a piece of an unknown kind", err);
    const size_t i = v->n;
    GG_TRY(gg_convert_vocab_grow(v, (int64_t)i + 1, 0, err));
    v->token[i].data =
        gg_mem_arena_strndup(&v->c->arena, text.data, text.size);
    v->token[i].size = text.size;
    if (!v->token[i].data)
        return gg_error_set_nomem(err, text.size);
    v->score[i] = score;
    v->type[i] = (int32_t)type;
    return GGUF_OK;
}

/* Field no, a number, of what is within f; it stays as it is without one. */
static enum gguf_status read_number(const struct field *f, uint32_t no,
                                    uint64_t *out, struct gguf_error *err)
{
    struct gg_cursor c = f->in;
    if (f->wire != BYTES)
        return wrong(f, "a specification that is not a message", err);
    while (gg_cursor_left(&c)) {
        struct field in;
        GG_TRY(next(&c, &in, err));
        if (in.no == no && in.wire == VARINT)
            *out = in.number;
    }
    return GGUF_OK;
}

enum gguf_status gg_convert_vocab_spm(struct gg_convert_vocab *v,
                                      const struct gg_mapfile *m,
                                      struct gguf_error *err)
{
    struct gg_cursor c = { .base = m->data, .size = m->size };
    uint64_t kind = 1, prefix = 1; /* the format's defaults */
    while (gg_cursor_left(&c)) {
        struct field f;
        GG_TRY(next(&c, &f, err));
        if (f.no == 1)
            GG_TRY(read_piece(v, &f, err));
        else if (f.no == 2)
            GG_TRY(read_number(&f, 3, &kind, err));
        else if (f.no == 3)
            GG_TRY(read_number(&f, 3, &prefix, err));
    }
    if (!v->n)
        return gg_error_set(err, GGUF_E_VOCAB, 0, "there are no pieces");
    if (kind != 2)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "a model of kind %" PRIu64 ": only BPE (2) is converted", kind);
    v->model = "llama";
    if (!v->pre)
        v->pre = "default";
    v->has_scores = true;
    v->space_prefix = prefix != 0;
    return GGUF_OK;
}
