/* SPDX-License-Identifier: MIT */
/* load_tables.c - tables that algorithms load from a file */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"

#include <string.h>

#define PREFIX "tokenizer.ggml."

int gg_vocab_byte_text(struct gguf_str t)
{
    int value = 0;
    if (t.size != 6 || memcmp(t.data, "<0x", 3) != 0 || t.data[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        char c = t.data[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return -1;
        value = value * 16 + d;
    }
    return value;
}

enum gguf_status gg_vocab_load_bool(const struct gguf_vocab *v,
                                    const char *key, bool dflt, bool *out,
                                    struct gguf_error *err)
{
    const struct gguf_kv *kv = gguf_file_kv_find(v->file, key);
    bool value = dflt;
    if (kv)
        GG_TRY(gguf_kv_get_bool(kv, &value, err));
    *out = value;
    return GGUF_OK;
}

enum gguf_status gg_vocab_load_normalizer(struct gguf_vocab *v,
                                          struct gguf_error *err)
{
    GG_TRY(gg_vocab_load_bool(v, PREFIX "normalizer.lowercase", v->lowercase,
                              &v->lowercase, err));
    return gg_vocab_load_bool(v, PREFIX "normalizer.strip_accents",
                              v->lowercase, &v->strip_accents, err);
}

enum gguf_status gg_vocab_load_merge_spaces(struct gguf_vocab *v,
                                            struct gguf_error *err)
{
    return gg_vocab_load_bool(v, PREFIX "remove_extra_whitespaces", false,
                              &v->merge_spaces, err);
}

enum gguf_status gg_vocab_load_trie(struct gguf_vocab *v, unsigned kinds,
                                    struct gguf_error *err)
{
    size_t n = 0;
    struct gg_vocab_trie_text *t =
        gg_mem_alloc_zero(v->allocator, v->n_tokens, sizeof *t);
    if (!t)
        return gg_error_set_nomem(err, v->n_tokens * sizeof *t);
    for (size_t i = 0; i < v->n_tokens; i++)
        if (kinds >> v->token[i].kind & 1)
            t[n++] =
                (struct gg_vocab_trie_text){ v->token[i].text, (gguf_token)i };
    enum gguf_status st =
        gg_vocab_trie_init(&v->trie, v->allocator, t, n, err);
    gg_mem_free(v->allocator, t);
    return st;
}

void gg_vocab_load_bytes(struct gguf_vocab *v, gg_vocab_byte_fn *byte_text,
                         bool dropped)
{
    size_t n_missing = 0;
    for (unsigned b = 0; b < 256; b++) {
        gguf_token id = GGUF_TOKEN_NONE;
        char text[8];
        size_t size;
        for (unsigned i = 0;
             id == GGUF_TOKEN_NONE && (size = byte_text(b, i, text)); i++)
            id = gguf_vocab_find_token(v, (struct gguf_str){ text, size });
        v->byte[b] = id;
        n_missing += id == GGUF_TOKEN_NONE;
    }
    if (n_missing && dropped)
        gg_vocab_warn(
            v, "%zu of 256 bytes have no token and are dropped from texts",
            n_missing);
    else if (n_missing)
        gg_vocab_warn(v, "%zu of 256 bytes have no token: %s", n_missing,
                      v->special[GGUF_SPECIAL_UNK] == GGUF_TOKEN_NONE
                          ? "texts with them cannot be tokenized"
                          : "they become the unknown token");
}
