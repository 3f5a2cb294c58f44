/* SPDX-License-Identifier: MIT */
/* spm.c - SentencePiece byte-pair encoding
 *
 * The text, with blanks as U+2581, starts as single characters. A pair may be
 * joined if the joined text is a token, whose score decides. A symbol that is
 * not a token in the end becomes bytes. (Kudo and Richardson 2018; ids checked
 * against llama.cpp.) In most vocabularies no token goes from one word into
 * the next; each word is then solved apart. */
#include "config.h"
#include "vocab/merge.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

struct spm {
    const struct gguf_vocab *v;
    const char *text;
};

static gguf_token find_piece(const struct spm *s, uint32_t off, size_t size)
{
    if (size > s->v->max_size)
        return GGUF_TOKEN_NONE;
    struct gguf_str text = { s->text + off, size };
    uint32_t id = gg_index_find(&s->v->index, text);
    return id == GG_INDEX_NONE ? GGUF_TOKEN_NONE : (gguf_token)id;
}

static bool rank_pair(const void *user, const struct gg_vocab_symbol *l,
                      const struct gg_vocab_symbol *r, double *score,
                      gguf_token *id)
{
    const struct spm *s = user;
    *id = find_piece(s, l->off, (size_t)l->size + r->size);
    if (*id == GGUF_TOKEN_NONE)
        return false;
    *score = (double)s->v->token[*id].score;
    return true;
}

static enum gguf_status put_symbol(const struct spm *s,
                                   const struct gg_vocab_symbol *y,
                                   struct gguf_tokens *out,
                                   struct gguf_error *err)
{
    gguf_token id =
        y->id == GGUF_TOKEN_NONE ? find_piece(s, y->off, y->size) : y->id;
    if (id != GGUF_TOKEN_NONE)
        return gg_vocab_tokens_push(out, id, err);
    for (uint32_t i = 0; i < y->size; i++) {
        uint8_t b = (uint8_t)s->text[y->off + i];
        id = s->v->byte[b];
        if (id == GGUF_TOKEN_NONE)
            id = s->v->special[GGUF_SPECIAL_UNK];
        if (id == GGUF_TOKEN_NONE)
            return gg_error_set(
                err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                "no token for byte 0x%02X, and no unknown token", b);
        GG_TRY(gg_vocab_tokens_push(out, id, err));
    }
    return GGUF_OK;
}

static enum gguf_status flush_merge(const struct spm *s, struct gg_merge *m,
                                    struct gguf_tokens *out,
                                    struct gguf_error *err)
{
    if (!m->n)
        return GGUF_OK;
    GG_TRY(gg_merge_run(m, err));
    for (uint32_t i = 0; i != GG_NO_SYM; i = m->sym[i].next)
        GG_TRY(put_symbol(s, &m->sym[i], out, err));
    m->n = 0;
    return GGUF_OK;
}

/* Bytes of a character by its first byte; a byte that cannot be first stands
 * alone. Later bytes are not checked, as in llama.cpp. */
static size_t char_size(uint8_t b)
{
    return b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

static bool is_meta(const char *p, size_t n)
{
    return n == GG_META_SPACE_SIZE && !memcmp(p, GG_META_SPACE, n);
}

static enum gguf_status encode_all(const struct spm *s, size_t size,
                                   struct gg_merge *m, struct gguf_tokens *out,
                                   struct gguf_error *err)
{
    bool was_meta = false;
    for (size_t off = 0; off < size;) {
        size_t k = char_size((uint8_t)s->text[off]);
        if (k > size - off)
            k = size - off;
        bool meta = is_meta(s->text + off, k);
        if (s->v->words && meta && !was_meta)
            GG_TRY(flush_merge(s, m, out, err));
        was_meta = meta;
        GG_TRY(
            gg_merge_add(m, (uint32_t)off, (uint32_t)k, GGUF_TOKEN_NONE, err));
        off += k;
    }
    return flush_merge(s, m, out, err);
}

enum gguf_status gg_spm_encode(const struct gguf_vocab *v, const char *text,
                               size_t size, bool prefix,
                               struct gguf_tokens *out, struct gguf_error *err)
{
    if (size > UINT32_MAX / GG_META_SPACE_SIZE - 1)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%zu bytes of text in one piece, limit is %u",
                            size, UINT32_MAX / GG_META_SPACE_SIZE - 1);
    size_t n = size + GG_META_SPACE_SIZE;
    for (size_t i = 0; i < size; i++)
        n += text[i] == ' ' ? GG_META_SPACE_SIZE - 1 : 0;
    char *buf = gg_mem_alloc(v->allocator, n);
    if (!buf)
        return gg_error_set_nomem(err, n);
    n = 0;
    if (prefix && v->add_space_prefix) {
        memcpy(buf, GG_META_SPACE, GG_META_SPACE_SIZE);
        n = GG_META_SPACE_SIZE;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ' ') {
            memcpy(buf + n, GG_META_SPACE, GG_META_SPACE_SIZE);
            n += GG_META_SPACE_SIZE;
        } else {
            buf[n++] = text[i];
        }
    }
    struct spm s = { .v = v, .text = buf };
    struct gg_merge m;
    gg_merge_init(&m, v->allocator, rank_pair, &s);
    enum gguf_status st = encode_all(&s, n, &m, out, err);
    gg_merge_fini(&m);
    gg_mem_free(v->allocator, buf);
    return st;
}

/* ---- load and back ---- */

static bool crosses_words(struct gguf_str t)
{
    for (size_t i = 1; i + GG_META_SPACE_SIZE <= t.size; i++)
        if (is_meta(t.data + i, GG_META_SPACE_SIZE) &&
            !(i >= GG_META_SPACE_SIZE &&
              is_meta(t.data + i - GG_META_SPACE_SIZE, GG_META_SPACE_SIZE)))
            return true;
    return false;
}

size_t gg_spm_byte_text(unsigned b, unsigned i, char out[8])
{
    if (i == 0) {
        snprintf(out, 8, "<0x%02X>", b & 0xff);
        return 6;
    }
    out[0] = (char)b; /* the byte itself */
    return i == 1;
}

enum gguf_status gg_spm_load(struct gguf_vocab *v,
                             const struct gguf_file *file,
                             struct gguf_error *err)
{
    (void)file;
    (void)err;
    gg_vocab_load_bytes(v, gg_spm_byte_text, false);
    v->words = true;
    for (size_t i = 0; i < v->n_tokens && v->words; i++)
        v->words = !crosses_words(v->token[i].text);
    return GGUF_OK;
}

void gg_spm_put(const struct gguf_vocab *v, gguf_token id,
                struct gg_vocab_sink *s)
{
    struct gguf_str t = v->token[id].text;
    for (size_t i = 0; i < t.size;) {
        bool meta = t.size - i >= GG_META_SPACE_SIZE &&
                    is_meta(t.data + i, GG_META_SPACE_SIZE);
        gg_vocab_sink_put(s, meta ? ' ' : t.data[i]);
        i += meta ? GG_META_SPACE_SIZE : 1;
    }
}

enum gguf_status gg_spm_check(const struct gg_vocab_check_context *s,
                              struct gguf_error *err)
{
    if (gguf_file_kv_find(s->c->file, "tokenizer.ggml.scores"))
        return GGUF_OK;
    return gg_file_report_finding(
        s->c, GG_CHECK_NO_SCORES, GG_STR("tokenizer.ggml.scores"),
        GGUF_NO_OFFSET, err,
        "key 'tokenizer.ggml.scores' is missing: which tokens "
        "a text becomes depends on them");
}
