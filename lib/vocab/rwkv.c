/* SPDX-License-Identifier: MIT */
/* rwkv.c - longest-match tokens of RWKV's "World" vocabularies
 *
 * A text becomes the longest token with which it begins, then the longest with
 * which the rest begins, and so on. Token texts are any bytes, written as in a
 * Python string: \t \n \r \xHH, and a backslash before any other character.
 * (Peng et al., arXiv 2404.05892, section 4.2; ids checked against llama.cpp.)
 */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Byte at t.data[*i]; *i moves to the next. A byte that begins no escape
 * stands for itself. */
char gg_vocab_rwkv_byte(struct gguf_str t, size_t *i)
{
    char c = t.data[(*i)++];
    if (c != '\\' || *i == t.size)
        return c;
    c = t.data[(*i)++];
    if (c == 'x' && t.size - *i >= 2 && hex_digit(t.data[*i]) >= 0 &&
        hex_digit(t.data[*i + 1]) >= 0) {
        c = (char)(hex_digit(t.data[*i]) * 16 + hex_digit(t.data[*i + 1]));
        *i += 2;
        return c;
    }
    return c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
}

enum gguf_status gg_vocab_rwkv_load(struct gguf_vocab *v,
                                    const struct gguf_file *file,
                                    struct gguf_error *err)
{
    size_t size = 0, n = 0;
    (void)file;
    for (size_t i = 0; i < v->n_tokens; i++)
        size += v->token[i].text.size;
    struct gg_vocab_trie_text *t =
        gg_mem_alloc_zero(v->allocator, v->n_tokens, sizeof *t);
    char *bytes = gg_mem_alloc(v->allocator, size);
    enum gguf_status st;
    if (t && bytes) {
        for (size_t i = 0; i < v->n_tokens; i++) {
            t[i].id = (gguf_token)i;
            t[i].text.data = bytes + n;
            for (size_t k = 0; k < v->token[i].text.size;)
                bytes[n++] = gg_vocab_rwkv_byte(v->token[i].text, &k);
            t[i].text.size = (size_t)(bytes + n - t[i].text.data);
        }
        st = gg_vocab_trie_init(&v->trie, v->allocator, t, v->n_tokens, err);
    } else {
        st = gg_error_set_nomem(err, v->n_tokens * sizeof *t);
    }
    gg_mem_free(v->allocator, t);
    gg_mem_free(v->allocator, bytes);
    unsigned n_missing = 0;
    for (unsigned b = 0; st == GGUF_OK && b < 256; b++) {
        uint32_t node = gg_vocab_trie_next(&v->trie, 0, (uint8_t)b);
        n_missing += !node || v->trie.id[node] == GGUF_TOKEN_NONE;
    }
    if (n_missing)
        gg_vocab_warn(v, "%u of 256 bytes have no token: %s", n_missing,
                      v->special[GGUF_SPECIAL_UNK] == GGUF_TOKEN_NONE
                          ? "texts with them cannot be tokenized"
                          : "they become the unknown token");
    return st;
}

enum gguf_status gg_vocab_rwkv_encode(const struct gguf_vocab *v,
                                      const char *text, size_t size,
                                      bool prefix, struct gguf_tokens *out,
                                      struct gguf_error *err)
{
    (void)prefix;
    for (size_t i = 0; i < size;) {
        gguf_token id = v->special[GGUF_SPECIAL_UNK];
        size_t n = gg_vocab_trie_longest(&v->trie, text + i, size - i, &id);
        if (id == GGUF_TOKEN_NONE)
            return gg_error_set(
                err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                "no token for byte 0x%02X, and no unknown token",
                (unsigned)(uint8_t)text[i]);
        GG_TRY(gg_vocab_tokens_push(out, id, err));
        i += n ? n : 1;
    }
    return GGUF_OK;
}

void gg_vocab_rwkv_put(const struct gguf_vocab *v, gguf_token id,
                       struct gg_vocab_sink *s)
{
    struct gguf_str t = v->token[id].text;
    for (size_t i = 0; i < t.size;)
        gg_vocab_sink_put(s, gg_vocab_rwkv_byte(t, &i));
}
