/* SPDX-License-Identifier: MIT */
/* charsmap.c - SentencePiece's table for rewriting a text */
#include "config.h"
#include "vocab/charsmap.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/error.h"

#include <string.h>

#define KEY "tokenizer.ggml.precompiled_charsmap"

static uint32_t unit_at(const struct gg_vocab_charsmap *m, uint32_t i)
{
    return gg_bytes_load32le(m->unit + 4 * (size_t)i);
}

static uint32_t unit_label(uint32_t u)
{
    return u & (UINT32_C(1) << 31 | 0xff);
}

static uint32_t unit_offset(uint32_t u)
{
    return (u >> 10) << ((u & UINT32_C(1) << 9) >> 6);
}

static bool has_text(uint32_t u)
{
    return u >> 8 & 1;
}

/* Fault of unit i; NULL: none. */
static const char *unit_fault(const struct gg_vocab_charsmap *m, uint32_t i)
{
    uint32_t u = unit_at(m, i);
    if (u >> 31) /* the offset of a text */
        return NULL;
    if ((i ^ unit_offset(u)) >= m->n)
        return "leads out of the trie";
    if (!has_text(u))
        return NULL;
    uint32_t at = unit_at(m, i ^ unit_offset(u)) & ~(UINT32_C(1) << 31);
    if (at >= m->text_size)
        return "has its text after the end";
    size_t most =
        GG_MIN(m->text_size - at, (size_t)GG_VOCAB_CHARSMAP_MOST + 1);
    return memchr(m->text + at, 0, most) ? NULL : "has a text without end";
}

enum gguf_status gg_vocab_charsmap_init(struct gg_vocab_charsmap *m,
                                        const void *data, uint64_t n,
                                        uint64_t off, struct gguf_error *err)
{
    const uint8_t *p = data;
    *m = (struct gg_vocab_charsmap){ .unit = NULL };
    if (!n)
        return GGUF_OK;
    uint64_t trie = n >= 4 ? gg_bytes_load32le(p) : 0;
    if (n < 4 || trie > n - 4 || trie % 4 || !trie)
        return gg_error_set(err, GGUF_E_VOCAB, off,
                            "key '" KEY "' has %" PRIu64
                            " bytes; its trie has %" PRIu64
                            ", must be a multiple of 4 that fits",
                            n, trie);
    m->unit = p + 4;
    m->n = (uint32_t)(trie / 4);
    m->text = (const char *)p + 4 + trie;
    m->text_size = (size_t)(n - 4 - trie);
    for (uint32_t i = 0; i < m->n; i++) {
        const char *why = unit_fault(m, i);
        if (why)
            return gg_error_set(err, GGUF_E_VOCAB, off,
                                "key '" KEY "': unit %" PRIu32 " of %" PRIu32
                                " %s",
                                i, m->n, why);
    }
    return GGUF_OK;
}

enum gguf_status gg_vocab_charsmap_load(struct gg_vocab_charsmap *m,
                                        const struct gguf_file *file,
                                        struct gguf_error *err)
{
    const struct gguf_kv *kv = gguf_file_kv_find(file, KEY);
    *m = (struct gg_vocab_charsmap){ .unit = NULL };
    if (!kv)
        return GGUF_OK;
    if (kv->type != GGUF_VAL_ARR || kv->elem_type != GGUF_VAL_I8)
        GG_TRY(gguf_kv_check_array(kv, GGUF_VAL_U8, err));
    return gg_vocab_charsmap_init(m, kv->data, kv->n, kv->off, err);
}

size_t gg_vocab_charsmap_find(const struct gg_vocab_charsmap *m, const char *p,
                              size_t size, struct gguf_str *text)
{
    size_t longest = 0, most = GG_MIN(size, (size_t)GG_VOCAB_CHARSMAP_MOST);
    if (!m->unit)
        return 0;
    uint32_t at = unit_offset(unit_at(m, 0));
    for (size_t i = 0; i < most && p[i]; i++) {
        uint32_t byte = (uint8_t)p[i];
        at ^= byte;
        if (at >= m->n || unit_label(unit_at(m, at)) != byte)
            break;
        uint32_t u = unit_at(m, at);
        /* stays within the trie: gg_vocab_charsmap_load() has checked */
        at ^= unit_offset(u);
        if (!has_text(u))
            continue;
        text->data = m->text + (unit_at(m, at) & ~(UINT32_C(1) << 31));
        longest = i + 1;
    }
    if (longest)
        text->size = strlen(text->data);
    return longest;
}
