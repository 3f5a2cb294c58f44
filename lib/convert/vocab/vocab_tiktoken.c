/* SPDX-License-Identifier: MIT */
/* vocab_tiktoken.c - read qwen.tiktoken, the tokenizer of Qwen's first series,
 * and tiktoken.model, that of Kimi
 *
 * Each line is the bytes of a token in base64, a blank, and its rank, which is
 * its id. Two parts of a word are merged if the result is a token, lowest rank
 * first. So the merge that makes a token is the split of its bytes when only
 * lower ranks are applied. The tokens after these are those of
 * tokenization_qwen.py of Qwen/Qwen-7B, or of tokenization_kimi.py of
 * moonshotai/Kimi-K2-Instruct: 256 control tokens. tokenizer_config.json gives
 * some of them a text.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/base64.h"
#include "base/compiler.h"
#include "base/index.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 256 }; /* bytes of a token */
enum { N_EXTRA = 205, N_RESERVED = 256 };

static enum gguf_status refuse_line(const struct gg_convert_line *l,
                                    const char *what, struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_VOCAB, l->off, "line %zu: %s", l->no,
                        what);
}

/* ---- lines ---- */

static bool decode_base64(const char *p, size_t n, uint8_t out[MOST],
                          size_t *size)
{
    return n && n % 4 == 0 && n / 4 * 3 <= MOST &&
           gg_base64_decode(p, n, out, size) == n;
}

/* Bytes as letters, as in GPT-2: printable characters of Latin-1 are
 * themselves, others are numbered from U+0100 on. */
static size_t byte_letter(uint8_t byte, char *out)
{
    unsigned c = 0x100;
    if ((byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad))
        c = byte;
    else if (byte == 0xad)
        c += 67;
    else
        c += byte <= 0x20 ? byte : (unsigned)byte - 0x7f + 0x21;
    if (c < 0x80) {
        *out = (char)c;
        return 1;
    }
    out[0] = (char)(0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return 2;
}

/* The letters of n bytes, and of n more after a blank if there are some. */
static enum gguf_status byte_letters(struct gg_convert_vocab *v, const char *p,
                                     size_t n, size_t cut, struct gguf_str *to,
                                     struct gguf_error *err)
{
    char buf[2 * MOST + 1];
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && i == cut)
            buf[size++] = ' ';
        size += byte_letter((uint8_t)p[i], buf + size);
    }
    to->data = gg_mem_arena_strndup(v->folder->arena, buf, size);
    to->size = size;
    return to->data ? GGUF_OK : gg_error_set_nomem(err, size);
}

static enum gguf_status read_line(struct gg_convert_vocab *v,
                                  const struct gg_convert_line *l,
                                  struct gguf_error *err)
{
    uint8_t bytes[MOST];
    size_t size;
    uint64_t rank;
    const size_t id = v->n;
    const char *blank = memchr(l->text.data, ' ', l->text.size);
    const size_t n = blank ? (size_t)(blank - l->text.data) : 0;
    struct gguf_str rest = { l->text.data + n + 1, l->text.size - n - 1 };
    if (!blank || !decode_base64(l->text.data, n, bytes, &size))
        return refuse_line(l,
                           "expected at most 256 bytes in base64 and a "
                           "blank",
                           err);
    if (!gg_str_uint(&rest, (uint64_t)GG_CONVERT_MOST_TOKENS, &rank) ||
        rest.size || rank != id)
        return refuse_line(l, "the rank is not the next one", err);
    GG_TRY(gg_convert_vocab_grow(v, (int64_t)id + 1, 0, err));
    v->type[id] = GG_CONVERT_NORMAL;
    v->token[id].size = size; /* raw bytes until all are read */
    v->token[id].data =
        gg_mem_arena_strndup(v->folder->arena, (const char *)bytes, size);
    return v->token[id].data ? GGUF_OK : gg_error_set_nomem(err, size);
}

/* ---- merges ---- */

static struct gguf_str bytes_of(const void *user, uint32_t id)
{
    return ((const struct gg_convert_vocab *)user)->token[id];
}

/* Position at which the bytes of token id are split when two parts are left; 0:
 * more are left, or the token is one byte. */
static size_t cut_of(const struct gg_convert_vocab *v,
                     const struct gg_index *ix, uint32_t id)
{
    const struct gguf_str s = v->token[id];
    uint16_t end[MOST]; /* end of each part */
    size_t n = s.size;
    for (size_t i = 0; i < n; i++)
        end[i] = (uint16_t)(i + 1);
    while (n > 2) {
        uint32_t best = id;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const size_t begin = i ? end[i - 1] : 0;
            const uint32_t x = gg_index_find(
                ix, (struct gguf_str){ s.data + begin, end[i + 1] - begin });
            if (x < best) {
                best = x;
                at = i;
            }
        }
        if (best == id)
            return 0;
        memmove(end + at, end + at + 1, (--n - at) * sizeof *end);
    }
    return n == 2 ? end[0] : 0;
}

static enum gguf_status make_merges(struct gg_convert_vocab *v,
                                    struct gguf_error *err)
{
    struct gg_index ix = { .allocator = v->folder->p->allocator };
    uint32_t other = GG_INDEX_NONE;
    enum gguf_status st = gg_index_init(&ix, v->folder->p->allocator,
                                        (uint32_t)v->n, bytes_of, v, err);
    v->merge =
        gg_mem_alloc_zero(v->folder->p->allocator, v->n, sizeof *v->merge);
    if (st == GGUF_OK && !v->merge)
        st = gg_error_set_nomem(err, v->n * sizeof *v->merge);
    for (uint32_t i = 0; i < v->n && st == GGUF_OK; i++) {
        st = gg_index_add(&ix, i, &other, err);
        if (st == GGUF_OK && other != GG_INDEX_NONE)
            st = gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                              "tokens %" PRIu32 " and %" PRIu32
                              " have the same bytes",
                              other, i);
    }
    for (uint32_t i = 0; i < v->n && st == GGUF_OK; i++) {
        const size_t cut = cut_of(v, &ix, i);
        if (cut)
            st = byte_letters(v, v->token[i].data, v->token[i].size, cut,
                              &v->merge[v->n_merges++], err);
    }
    gg_index_fini(&ix);
    for (size_t i = 0; i < v->n && st == GGUF_OK; i++)
        st = byte_letters(v, v->token[i].data, v->token[i].size, 0,
                          &v->token[i], err);
    return st;
}

/* ---- tokens that are not of bytes ---- */

static enum gguf_status add_control(struct gg_convert_vocab *v,
                                    const char *text, struct gguf_error *err)
{
    const size_t id = v->n;
    GG_TRY(gg_convert_vocab_grow(v, (int64_t)id + 1, 0, err));
    v->token[id].size = strlen(text);
    v->token[id].data =
        gg_mem_arena_strndup(v->folder->arena, text, strlen(text));
    v->type[id] = GG_CONVERT_CONTROL;
    return v->token[id].data ? GGUF_OK : gg_error_set_nomem(err, strlen(text));
}

static enum gguf_status add_special(struct gg_convert_vocab *v,
                                    struct gguf_error *err)
{
    static const char *const first[] = { "<|endoftext|>", "<|im_start|>",
                                         "<|im_end|>" };
    char text[32];
    for (size_t i = 0; i < GG_LEN(first); i++)
        GG_TRY(add_control(v, first[i], err));
    for (size_t i = 0; i < N_EXTRA; i++) {
        snprintf(text, sizeof text, "<|extra_%zu|>", i);
        GG_TRY(add_control(v, text, err));
    }
    return GGUF_OK;
}

/* The reserved tokens are control tokens whatever tokenizer_config.json says.
 */
static enum gguf_status set_control(struct gg_convert_vocab *v,
                                    struct gguf_error *err)
{
    (void)err;
    for (size_t i = 0; i < v->n; i++)
        if (v->type[i] == GG_CONVERT_USER)
            v->type[i] = GG_CONVERT_CONTROL;
    return GGUF_OK;
}

static enum gguf_status add_reserved(struct gg_convert_vocab *v,
                                     struct gguf_error *err)
{
    char text[40];
    for (size_t i = 0; i < N_RESERVED; i++) {
        snprintf(text, sizeof text, "<|reserved_token_%zu|>", v->n);
        GG_TRY(add_control(v, text, err));
    }
    return GGUF_OK;
}

/* ---- files ---- */

static enum gguf_status read_ranks(struct gg_convert_vocab *v,
                                   const struct gg_mapfile *m,
                                   struct gguf_error *err)
{
    struct gg_convert_line line = { .map = m };
    while (gg_convert_vocab_next_line(&line))
        GG_TRY(read_line(v, &line, err));
    if (!v->n)
        return gg_error_set(err, GGUF_E_VOCAB, 0, "no tokens");
    v->model = "gpt2";
    return make_merges(v, err);
}

enum gguf_status gg_convert_vocab_read_tiktoken(struct gg_convert_vocab *v,
                                                const struct gg_mapfile *m,
                                                struct gguf_error *err)
{
    static const char *const roles[GG_CONVERT_ROLES] = {
        "<|endoftext|>", "<|endoftext|>", "<|endoftext|>"
    }; /* BOS, EOS, unknown */
    GG_TRY(read_ranks(v, m, err));
    v->pre = v->pre ? v->pre : "qwen2";
    v->role_text = roles;
    return add_special(v, err);
}

enum gguf_status gg_convert_vocab_read_kimi(struct gg_convert_vocab *v,
                                            const struct gg_mapfile *m,
                                            struct gguf_error *err)
{
    GG_TRY(read_ranks(v, m, err));
    v->pre = v->pre ? v->pre : "kimi-k2";
    v->finish = set_control;
    return add_reserved(v, err);
}
