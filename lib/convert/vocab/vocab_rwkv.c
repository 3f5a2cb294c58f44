/* SPDX-License-Identifier: MIT */
/* vocab_rwkv.c - read rwkv_vocab_v20230424.txt: RWKV's "World" vocabulary
 *
 * A line is a token: its id, its text as a Python literal, of characters ('x')
 * or of bytes (b'x'), and its size in bytes. Ids begin at 1; 0 is the token
 * that begins and ends texts. In GGUF files the text of a token is the contents
 * of Python's literal for its bytes (lib/vocab/rwkv.c).
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Most bytes of a literal: the longest token has 128. */
enum { MOST_BYTES = 4096 };

struct literal {
    const struct gg_convert_line *line;
    const char *p, *end; /* rest of the line */
    bool is_bytes;
    char quote;
    char out[MOST_BYTES];
    size_t n;
};

static enum gguf_status refuse_literal(const struct literal *l,
                                       const char *what,
                                       struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_VOCAB,
                        l->line->off + (uint64_t)(l->p - l->line->text.data),
                        "line %zu: %s", l->line->no, what);
}

/* ---- the literal ---- */

static enum gguf_status put_char(struct literal *l, uint32_t c,
                                 struct gguf_error *err)
{
    if (MOST_BYTES - l->n < 4)
        return refuse_literal(l, "a token of more than 4 KiB", err);
    if (l->is_bytes) {
        l->out[l->n++] = (char)(uint8_t)c;
        return GGUF_OK;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return refuse_literal(l, "an escape that is not a character", err);
    l->n += gg_str_utf8_encode(c, l->out + l->n);
    return GGUF_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 16;
}

/* Read the digits after a backslash and the letter that implies their
 * number. */
static enum gguf_status put_hex(struct literal *l, unsigned n,
                                struct gguf_error *err)
{
    uint32_t c = 0;
    for (; n; n--, l->p++) {
        if (l->p == l->end || hex_digit(*l->p) > 15)
            return refuse_literal(l, "an escape that lacks digits", err);
        c = c << 4 | (uint32_t)hex_digit(*l->p);
    }
    return put_char(l, c, err);
}

static enum gguf_status put_octal(struct literal *l, struct gguf_error *err)
{
    uint32_t c = 0;
    for (unsigned n = 0; n < 3 && l->p < l->end && hex_digit(*l->p) < 8; n++)
        c = c << 3 | (uint32_t)hex_digit(*l->p++);
    return l->is_bytes && c > 255
               ? refuse_literal(l, "an escape that is not a byte", err)
               : put_char(l, c, err);
}

/* After a backslash. */
static enum gguf_status put_escape(struct literal *l, struct gguf_error *err)
{
    static const char letters[] = "\\'\"abfnrtv", means[] = "\\'\"\a\b\f\n\r"
                                                            "\t\v";
    if (l->p == l->end)
        return refuse_literal(l, "a backslash at the end", err);
    if (hex_digit(*l->p) < 8)
        return put_octal(l, err);
    const char c = *l->p;
    const char *known = c ? strchr(letters, c) : NULL;
    const unsigned n = c == 'x'      ? 2
                       : l->is_bytes ? 0
                       : c == 'u'    ? 4
                       : c == 'U'    ? 8
                                     : 0;
    if (!known && !n)
        return refuse_literal(l, "unknown escape sequence", err);
    l->p++;
    return known ? put_char(l, (uint8_t)means[known - letters], err)
                 : put_hex(l, n, err);
}

static enum gguf_status read_literal(struct literal *l, struct gguf_error *err)
{
    uint32_t c;
    l->is_bytes = l->p < l->end && *l->p == 'b';
    l->p += l->is_bytes;
    if (l->p == l->end || (*l->p != '\'' && *l->p != '"'))
        return refuse_literal(l, "the text does not begin with a quote", err);
    l->quote = *l->p++;
    l->n = 0;
    while (l->p < l->end && *l->p != l->quote) {
        const size_t n = gg_str_utf8_decode(l->p, (size_t)(l->end - l->p), &c);
        if (!n || (l->is_bytes && n > 1))
            return refuse_literal(
                l,
                n ? "bytes with a character that is not ASCII"
                  : "bytes that are not UTF-8",
                err);
        if (c == '\\') {
            l->p++;
            GG_TRY(put_escape(l, err));
        } else {
            GG_TRY(put_char(l, c, err));
            l->p += n;
        }
    }
    if (l->p == l->end)
        return refuse_literal(l, "the text does not end", err);
    l->p++;
    return GGUF_OK;
}

/* ---- the line ---- */

static enum gguf_status read_number(struct literal *l, uint64_t *out,
                                    struct gguf_error *err)
{
    struct gguf_str rest = { l->p, (size_t)(l->end - l->p) };
    if (!gg_str_uint(&rest, (uint64_t)GG_CONVERT_MOST_TOKENS, out))
        return refuse_literal(l, "a number is missing or too large", err);
    l->p = rest.data;
    return GGUF_OK;
}

static enum gguf_status read_blank(struct literal *l, struct gguf_error *err)
{
    if (l->p == l->end || *l->p != ' ')
        return refuse_literal(l, "a blank is missing", err);
    l->p++;
    return GGUF_OK;
}

/* n bytes as Python writes them, without the quotes: in single quotes unless
 * there are such and no double ones. In the arena. */
static enum gguf_status write_text(struct gg_convert_vocab *v, const char *p,
                                   size_t n, struct gguf_str *to,
                                   struct gguf_error *err)
{
    static const char hex[] = "0123456789abcdef";
    const bool both = memchr(p, '\'', n) && memchr(p, '"', n);
    char *out = gg_mem_arena_alloc(v->folder->arena, 4 * n + 1), *at = out;
    if (!out)
        return gg_error_set_nomem(err, 4 * n + 1);
    for (size_t i = 0; i < n; i++) {
        const uint8_t c = (uint8_t)p[i];
        const char letter = c == '\t'   ? 't'
                            : c == '\n' ? 'n'
                            : c == '\r' ? 'r'
                            : c == '\\' ? '\\'
                                        : 0;
        if (letter) {
            *at++ = '\\';
            *at++ = letter;
        } else if (c < ' ' || c > '~') {
            *at++ = '\\';
            *at++ = 'x';
            *at++ = hex[c >> 4];
            *at++ = hex[c & 15];
        } else {
            if (c == '\'' && both)
                *at++ = '\\';
            *at++ = (char)c;
        }
    }
    *to = (struct gguf_str){ out, (size_t)(at - out) };
    return GGUF_OK;
}

static enum gguf_status read_line(struct gg_convert_vocab *v,
                                  struct literal *l, struct gguf_error *err)
{
    uint64_t id, size;
    char what[100];
    const size_t i = v->n;
    GG_TRY(read_number(l, &id, err));
    if (id != i) {
        snprintf(what, sizeof what, "id %" PRIu64 ", after %zu comes %zu", id,
                 i - 1, i);
        l->p = l->line->text.data;
        return refuse_literal(l, what, err);
    }
    GG_TRY(read_blank(l, err));
    GG_TRY(read_literal(l, err));
    GG_TRY(read_blank(l, err));
    GG_TRY(read_number(l, &size, err));
    if (l->p != l->end)
        return refuse_literal(l, "there is more than a size", err);
    if (size != l->n || !size) {
        snprintf(what, sizeof what,
                 "a text of %zu bytes, its size says %" PRIu64, l->n, size);
        return refuse_literal(l, what, err);
    }
    GG_TRY(gg_convert_vocab_grow(v, (int64_t)i + 1, 0, err));
    v->type[i] = GG_CONVERT_NORMAL;
    return write_text(v, l->out, l->n, &v->token[i], err);
}

/* ---- keys ---- */

/* Token 0 begins and ends a text, an empty line ends a turn. The chat template
 * is one that programs know by its name. */
static enum gguf_status set_keys(struct gg_convert_vocab *v,
                                 struct gguf_error *err)
{
    enum { EMPTY_LINE = 261 };
    static const char chat[] = "tokenizer.chat_template";
    struct gguf_meta *m = v->meta;
    GG_TRY(gguf_meta_set_u32(m, "tokenizer.ggml.bos_token_id", 0, err));
    GG_TRY(gguf_meta_set_u32(m, "tokenizer.ggml.eos_token_id", 0, err));
    if (v->n > EMPTY_LINE && gg_str_eqz(v->token[EMPTY_LINE], "\\n\\n"))
        GG_TRY(gguf_meta_set_u32(m, "tokenizer.ggml.eot_token_id", EMPTY_LINE,
                                 err));
    return gguf_meta_find(m, chat)
               ? GGUF_OK
               : gguf_meta_set_strz(m, chat, "rwkv-world", err);
}

enum gguf_status gg_convert_vocab_read_rwkv(struct gg_convert_vocab *v,
                                            const struct gg_mapfile *m,
                                            struct gguf_error *err)
{
    struct gg_convert_line line = { .map = m };
    struct literal *l = gg_mem_arena_alloc(v->folder->arena, sizeof *l);
    if (!l)
        return gg_error_set_nomem(err, sizeof *l);
    GG_TRY(gg_convert_vocab_grow(v, 1, 0, err));
    v->token[0] = GG_STR("<s>");
    v->type[0] = GG_CONVERT_CONTROL;
    while (gg_convert_vocab_next_line(&line)) {
        l->line = &line;
        l->p = line.text.data;
        l->end = l->p + line.text.size;
        GG_TRY(read_line(v, l, err));
    }
    if (v->n == 1)
        return gg_error_set(err, GGUF_E_VOCAB, 0, "no tokens");
    v->model = "rwkv";
    v->unique = true;
    v->pad_from = v->n;
    v->last_keys = set_keys;
    return GGUF_OK;
}
