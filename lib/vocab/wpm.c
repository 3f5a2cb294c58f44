/* SPDX-License-Identifier: MIT */
/* wpm.c - WordPiece, as in BERT
 *
 * A text is normalised (blanks, control characters, accents, case), and cut
 * into words at blanks, at punctuation, and around Chinese characters. A word
 * becomes the longest token with which it begins, then the longest with which
 * the rest begins, and so on; or the unknown token if no token matches. In
 * token texts a word begins with U+2581. (Devlin et al., arXiv 1810.04805;
 * Song et al., arXiv 2012.15524, section 2; ids checked against llama.cpp,
 * which keeps only the first character of a decomposition and takes spacing
 * marks for accents too.) */
#include "config.h"
#include "vocab/clean_spaces.h"
#include "vocab/unicode.h"
#include "vocab/utf8.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"

/* Role of a character in normalising. */
enum class { PART, BLANK, DROPPED, ALONE };

struct job {
    const struct gguf_vocab *v;
    char *word; /* U+2581 and the characters so far */
    size_t n, cap;
    struct gguf_tokens *out;
};

/* ---- words to tokens ---- */

static enum gguf_status flush_word(struct job *j, struct gguf_error *err)
{
    size_t before = j->out->n, k = 0, n = j->n;
    if (n == GG_META_SPACE_SIZE)
        return GGUF_OK;
    j->n = GG_META_SPACE_SIZE;
    for (size_t i = 0; i < n; i += k) {
        gguf_token id = GGUF_TOKEN_NONE;
        k = gg_vocab_trie_longest(&j->v->trie, j->word + i, n - i, &id);
        if (!k)
            break;
        GG_TRY(gg_vocab_tokens_push(j->out, id, err));
    }
    if (k)
        return GGUF_OK;
    j->out->n = before; /* no token matches */
    if (j->v->special[GGUF_SPECIAL_UNK] == GGUF_TOKEN_NONE)
        return gg_error_set(
            err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
            "no tokens for a word of %zu bytes, and no unknown "
            "token",
            n - GG_META_SPACE_SIZE);
    return gg_vocab_tokens_push(j->out, j->v->special[GGUF_SPECIAL_UNK], err);
}

static enum gguf_status append_char(struct job *j, uint32_t cp,
                                    struct gguf_error *err)
{
    if (j->cap - j->n < 4) {
        void *grown =
            gg_mem_grow(j->v->allocator, j->word, &j->cap, 1, 256, err);
        if (!grown)
            return GGUF_E_NOMEM;
        j->word = grown;
    }
    j->n += gg_vocab_utf8_encode(cp, j->word + j->n);
    return GGUF_OK;
}

/* ---- text to words ---- */

/* Blocks of ideographs that stand alone (BERT's _is_chinese_char; the fifth
 * begins where the published Rust tokenizer has it). */
static bool is_chinese(uint32_t cp)
{
    return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) ||
           (cp >= 0x20000 && cp <= 0x2a6df) ||
           (cp >= 0x2a700 && cp <= 0x2b73f) ||
           (cp >= 0x2b740 && cp <= 0x2b81f) ||
           (cp >= 0x2b920 && cp <= 0x2ceaf) ||
           (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x2f800 && cp <= 0x2fa1f);
}

/* Categories of characters that are removed; with accents stripped, marks too.
 */
#define CONTROLS                                                              \
    (GG_UNICODE_BIT(CC) | GG_UNICODE_BIT(CF) | GG_UNICODE_BIT(CO) |           \
     GG_UNICODE_BIT(CS))

static bool is_punctuation(uint32_t cp)
{
    bool ascii = (cp >= 33 && cp <= 47) || (cp >= 58 && cp <= 64) ||
                 (cp >= 91 && cp <= 96) || (cp >= 123 && cp <= 126);
    return ascii || gg_unicode_is(cp, GG_UNICODE_P);
}

static enum class classify_char(const struct gguf_vocab *v, uint32_t cp) {
    if (gg_unicode_is_space(cp)) return BLANK;
    if (cp == 0xfffd || gg_unicode_is(cp, CONTROLS) ||
        (v->strip_accents && gg_unicode_is(cp, GG_UNICODE_M))) return DROPPED;
    return is_punctuation(cp) || is_chinese(cp) ? ALONE : PART;
}

static enum gguf_status add_char(struct job *j, uint32_t cp,
                                 struct gguf_error *err)
{
    if (j->v->strip_accents && cp >= 0x80)
        cp = gg_unicode_to_base(cp);
    enum class what = classify_char(j->v, cp);
    if (what == DROPPED)
        return GGUF_OK;
    if (what != PART)
        GG_TRY(flush_word(j, err));
    if (what == BLANK)
        return GGUF_OK;
    if (j->v->lowercase)
        cp = gg_unicode_to_lower(cp);
    GG_TRY(append_char(j, cp, err));
    return what == ALONE ? flush_word(j, err) : GGUF_OK;
}

enum gguf_status gg_vocab_wpm_encode(const struct gguf_vocab *v,
                                     const char *text, size_t size,
                                     bool prefix, struct gguf_tokens *out,
                                     struct gguf_error *err)
{
    struct job j = { .v = v, .out = out, .cap = 256 };
    (void)prefix;
    j.word = gg_mem_alloc(v->allocator, j.cap);
    if (!j.word)
        return gg_error_set_nomem(err, j.cap);
    memcpy(j.word, GG_META_SPACE, GG_META_SPACE_SIZE);
    j.n = GG_META_SPACE_SIZE;
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; st == GGUF_OK && i < size;) {
        uint32_t cp;
        i += gg_vocab_utf8_decode(text + i, size - i, GG_VOCAB_UTF8_MOST, &cp);
        st = add_char(&j, cp, err);
    }
    if (st == GGUF_OK)
        st = flush_word(&j, err);
    gg_mem_free(v->allocator, j.word);
    return st;
}

/* ---- load ---- */

enum gguf_status gg_vocab_wpm_load(struct gguf_vocab *v,
                                   const struct gguf_file *file,
                                   struct gguf_error *err)
{
    (void)file;
    GG_TRY(gg_vocab_load_normalizer(v, err));
    if (v->special[GGUF_SPECIAL_UNK] == GGUF_TOKEN_NONE)
        gg_vocab_warn(v, "there is no unknown token: texts with words that "
                         "have no tokens cannot be tokenized");
    return gg_vocab_load_trie(v, ~0u, err);
}
