/* SPDX-License-Identifier: MIT */
/* bpe.c - byte-level byte-pair encoding
 *
 * The text is cut into words (pretok.h), and a word into bytes. The key
 * tokenizer.ggml.merges lists the pairs that may be joined, best first. In
 * token texts each byte is written as a printable character: itself if it
 * prints, else a character from U+0100 on. (Sennrich et al., arXiv 1508.07909;
 * Radford et al. 2019; ids checked against llama.cpp.) Some vocabularies are
 * different: their tokens are plain UTF-8, a word starts as characters, and
 * blanks may be U+2581. */
#include "config.h"
#include "vocab/merge.h"
#include "vocab/pretok.h"
#include "vocab/pretok_row.h"
#include "vocab/utf8.h"

#include "base/mem.h"
#include "base/str.h"

#define MERGES  "tokenizer.ggml.merges"
#define PRE     "tokenizer.ggml.pre"
#define ADD_BOS "tokenizer.ggml.add_bos_token"
#define ADD_SEP "tokenizer.ggml.add_sep_token"
#define BOS_ID  "tokenizer.ggml.bos_token_id"

/* A pair that may be joined; id is GGUF_TOKEN_NONE in empty slots. */
struct rule {
    gguf_token left, right, id;
    uint32_t rank;
};

struct gg_bpe {
    struct gg_pretok *pretok;
    struct rule *slot; /* open addressing by (left, right) */
    size_t mask;
};

/* ---- bytes as characters ---- */

static bool is_printed(unsigned b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b != 173 && b <= 255);
}

/* Character for byte b: bytes that do not print follow each other from U+0100
 * on. */
static uint32_t char_of_byte(unsigned b)
{
    if (is_printed(b))
        return b;
    return 256 + (b <= 32 ? b : b <= 160 ? b - 127 + 33 : 67);
}

/* Byte for a character; -1: none. */
static int byte_of_char(uint32_t c)
{
    if (c < 256)
        return is_printed(c) ? (int)c : -1;
    c -= 256;
    return c <= 32 ? (int)c : c <= 66 ? (int)c - 33 + 127 : c == 67 ? 173 : -1;
}

static size_t byte_text(unsigned b, char out[4])
{
    return gg_str_utf8_encode(char_of_byte(b), out);
}

size_t gg_bpe_byte_text(unsigned b, unsigned i, char out[8])
{
    return i == 0 ? byte_text(b, out) : 0;
}

/* ---- rules ---- */

static size_t hash_pair(const struct gguf_vocab *v, gguf_token l, gguf_token r)
{
    /* seeded, so that no file can choose its collisions */
    uint64_t z = ((uint64_t)(uint32_t)l << 32 | (uint32_t)r) ^ v->index.seed;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(z ^ z >> 31);
}

/* Slot of a pair, or the empty slot where it would be. */
static struct rule *slot_of(const struct gguf_vocab *v, gguf_token l,
                            gguf_token r)
{
    size_t i = hash_pair(v, l, r) & v->bpe->mask;
    for (;; i = (i + 1) & v->bpe->mask) {
        struct rule *s = &v->bpe->slot[i];
        if (s->id == GGUF_TOKEN_NONE || (s->left == l && s->right == r))
            return s;
    }
}

static bool rank_pair(const void *user, const struct gg_vocab_symbol *l,
                      const struct gg_vocab_symbol *r, double *score,
                      gguf_token *id)
{
    const struct gguf_vocab *v = user;
    if (l->id == GGUF_TOKEN_NONE || r->id == GGUF_TOKEN_NONE || !v->bpe->slot)
        return false;
    const struct rule *s = slot_of(v, l->id, r->id);
    *id = s->id;
    *score = -(double)s->rank;
    return s->id != GGUF_TOKEN_NONE;
}

bool gg_bpe_parse_merge(struct gguf_str text, struct gguf_str *left,
                        struct gguf_str *right)
{
    const char *blank =
        text.size > 2 ? memchr(text.data + 1, ' ', text.size - 2) : NULL;
    if (!blank || text.data[0] == ' ')
        return false;
    *left = (struct gguf_str){ text.data, (size_t)(blank - text.data) };
    *right = (struct gguf_str){ blank + 1, text.size - left->size - 1 };
    return true;
}

struct gguf_str gg_bpe_join(struct gguf_str left, struct gguf_str right,
                            char *buf, size_t room)
{
    if (left.size > room || right.size > room - left.size)
        return GG_STR("");
    memcpy(buf, left.data, left.size);
    memcpy(buf + left.size, right.data, right.size);
    return (struct gguf_str){ buf, left.size + right.size };
}

/* Load entry i of the list; joined has room for the longest token. *known is
 * false unless all three texts are tokens. */
static enum gguf_status load_rule(struct gguf_vocab *v,
                                  const struct gguf_kv *kv, uint32_t i,
                                  struct gguf_str text, char *joined,
                                  bool *known, struct gguf_error *err)
{
    struct gg_str_esc e;
    struct gguf_str l, r;
    if (!gg_bpe_parse_merge(text, &l, &r))
        return gg_error_set(err, GGUF_E_VOCAB, kv->off,
                            MERGES
                            ": element %" PRIu32
                            " '%s' is not two texts with a blank between",
                            i, gg_str_esc(&e, text));
    const struct gguf_str both = gg_bpe_join(l, r, joined, v->max_size);
    struct rule rule = { gguf_vocab_find_token(v, l),
                         gguf_vocab_find_token(v, r),
                         gguf_vocab_find_token(v, both), i };
    *known = rule.left != GGUF_TOKEN_NONE && rule.right != GGUF_TOKEN_NONE &&
             rule.id != GGUF_TOKEN_NONE;
    if (!*known)
        return GGUF_OK;
    struct rule *s = slot_of(v, rule.left, rule.right);
    if (s->id == GGUF_TOKEN_NONE) /* the first of two equal pairs counts */
        *s = rule;
    return GGUF_OK;
}

static enum gguf_status load_rules(struct gguf_vocab *v,
                                   const struct gguf_file *file,
                                   struct gguf_error *err)
{
    const struct gguf_kv *kv;
    struct gguf_kv_iter it;
    struct gguf_str text;
    size_t n_slots = 16, n_unknown = 0;
    enum gguf_status st = GGUF_OK;
    GG_TRY(gguf_file_kv_get(file, MERGES, &kv, err));
    GG_TRY(gguf_kv_check_array(kv, GGUF_VAL_STR, err));
    while (n_slots / 2 < kv->n)
        n_slots *= 2;
    v->bpe->slot =
        gg_mem_alloc_zero(v->allocator, n_slots, sizeof(struct rule));
    if (!v->bpe->slot)
        return gg_error_set_nomem(err, n_slots * sizeof(struct rule));
    for (size_t i = 0; i < n_slots; i++)
        v->bpe->slot[i].id = GGUF_TOKEN_NONE;
    v->bpe->mask = n_slots - 1;
    char *joined = gg_mem_alloc(v->allocator, v->max_size);
    if (!joined)
        return gg_error_set_nomem(err, v->max_size);
    gguf_kv_iter_init(&it, kv);
    for (uint32_t i = 0; st == GGUF_OK && gguf_kv_iter_next_str(&it, &text);
         i++) {
        bool known = true;
        st = load_rule(v, kv, i, text, joined, &known, err);
        n_unknown += !known;
    }
    gg_mem_free(v->allocator, joined);
    if (st == GGUF_OK && n_unknown)
        gg_vocab_warn(v,
                      MERGES ": %zu join or make texts that are not tokens, "
                             "and are left out",
                      n_unknown);
    return st;
}

/* Name of the pre-tokenizer: that of the caller, the file or the algorithm. */
static enum gguf_status find_pre(const struct gguf_vocab *v,
                                 const struct gguf_file *file,
                                 struct gguf_str *pre, struct gguf_error *err)
{
    const struct gguf_kv *kv = gguf_file_kv_find(file, PRE);
    const char *said = v->pre ? v->pre : v->algo->pre;
    *pre = GG_STR("default");
    if (said)
        *pre = gg_str_z(said);
    else if (kv)
        return gguf_kv_get_str(kv, pre, err);
    else
        gg_vocab_warn(v, PRE " is missing: words are cut in a way that may "
                             "not be the model's");
    return GGUF_OK;
}

/* Set the switches of a pre-tokenizer. */
static void apply_row(struct gguf_vocab *v, const struct gguf_file *file,
                      const struct gg_pretok_row *row)
{
    if (row->add_bos && !gguf_file_kv_find(file, ADD_BOS))
        v->add_bos = true;
    if (row->force_bos && !v->add_bos) {
        v->add_bos = true;
        if (gguf_file_kv_find(file, ADD_BOS))
            gg_vocab_warn(v, ADD_BOS " says no, but such models need a BOS: "
                                     "it is put in front");
    }
    if (row->add_sep && !gguf_file_kv_find(file, ADD_SEP))
        v->add_sep = true;
    if (row->no_bos && !gguf_file_kv_find(file, BOS_ID))
        v->special[GGUF_SPECIAL_BOS] = GGUF_TOKEN_NONE;
}

enum gguf_status gg_bpe_load(struct gguf_vocab *v,
                             const struct gguf_file *file,
                             struct gguf_error *err)
{
    struct gguf_str pre;
    v->bpe = gg_mem_alloc_zero(v->allocator, 1, sizeof *v->bpe);
    if (!v->bpe)
        return gg_error_set_nomem(err, sizeof *v->bpe);
    GG_TRY(find_pre(v, file, &pre, err));
    GG_TRY(gg_pretok_create(&v->bpe->pretok, pre, v->allocator, err));
    const struct gg_pretok_row *row = gg_pretok_get_row(v->bpe->pretok);
    /* files of kimi-k2 may lack merges */
    if (gguf_file_kv_find(file, MERGES) || !gg_str_eqz(pre, "kimi-k2"))
        GG_TRY(load_rules(v, file, err));
    apply_row(v, file, row);
    gg_vocab_load_bytes(v, row->raw ? gg_spm_byte_text : gg_bpe_byte_text,
                        true);
    return GGUF_OK;
}

bool gg_bpe_keeps_case(const struct gguf_vocab *v)
{
    return gg_pretok_get_row(v->bpe->pretok)->keep_case;
}

void gg_bpe_unload(struct gguf_vocab *v)
{
    if (!v->bpe)
        return;
    gg_pretok_destroy(v->bpe->pretok);
    gg_mem_free(v->allocator, v->bpe->slot);
    gg_mem_free(v->allocator, v->bpe);
}

/* ---- text to tokens ---- */

/* Buffers for tokenizing a text, word after word. */
struct job {
    const struct gguf_vocab *v;
    const struct gg_pretok_row *row;
    const char *text;
    struct gg_merge m;
    char *letters; /* a word's bytes as characters; NULL until one is needed */
    size_t room;   /* bytes of letters */
    struct gguf_tokens *out;
};

/* Find the token that is a whole word; *id is GGUF_TOKEN_NONE without one.
 * Words longer than every token are not looked up. */
static enum gguf_status find_word(struct job *j, const char *word, size_t size,
                                  gguf_token *id, struct gguf_error *err)
{
    size_t n = 0;
    *id = GGUF_TOKEN_NONE;
    if (size > j->v->max_size)
        return GGUF_OK;
    if (j->row->raw) {
        *id = gguf_vocab_find_token(j->v, (struct gguf_str){ word, size });
        return GGUF_OK;
    }
    if (2 * size > j->room) { /* a byte is a character of 1 or 2 bytes */
        void *grown = gg_mem_grow(j->v->allocator, j->letters, &j->room, 1,
                                  2 * size, err);
        if (!grown)
            return GGUF_E_NOMEM;
        j->letters = grown;
    }
    for (size_t i = 0; i < size; i++)
        n += byte_text((uint8_t)word[i], j->letters + n);
    *id = gguf_vocab_find_token(j->v, (struct gguf_str){ j->letters, n });
    return GGUF_OK;
}

static bool is_newlines(const char *word, size_t size)
{
    size_t n = 0;
    while (n < size && word[n] == '\n')
        n++;
    return n == size;
}

/* Add the symbols with which a word starts: bytes, or characters. */
static enum gguf_status add_symbols(struct job *j, const char *word,
                                    size_t size, struct gguf_error *err)
{
    j->m.n = 0;
    for (size_t i = 0, k; i < size; i += k) {
        k = j->row->raw
                ? GG_MIN(gg_vocab_utf8_size((uint8_t)word[i]), size - i)
                : 1;
        gguf_token id =
            j->row->raw
                ? gguf_vocab_find_token(j->v, (struct gguf_str){ word + i, k })
                : j->v->byte[(uint8_t)word[i]];
        GG_TRY(gg_merge_add(&j->m, (uint32_t)i, (uint32_t)k, id, err));
    }
    return GGUF_OK;
}

/* Put the bytes of a symbol that is not a token; bytes without a token are
 * left out. */
static enum gguf_status put_bytes(const struct job *j, const char *p,
                                  size_t size, struct gguf_error *err)
{
    for (size_t i = 0; i < size; i++)
        if (j->v->byte[(uint8_t)p[i]] != GGUF_TOKEN_NONE)
            GG_TRY(
                gg_vocab_tokens_push(j->out, j->v->byte[(uint8_t)p[i]], err));
    return GGUF_OK;
}

static enum gguf_status on_word(void *user, size_t off, size_t size,
                                struct gguf_error *err)
{
    struct job *j = user;
    const char *word = j->text + off;
    if (j->row->ignore_merges ||
        (j->row->newlines && is_newlines(word, size))) {
        gguf_token id;
        GG_TRY(find_word(j, word, size, &id, err));
        if (id != GGUF_TOKEN_NONE)
            return gg_vocab_tokens_push(j->out, id, err);
    }
    GG_TRY(add_symbols(j, word, size, err));
    GG_TRY(gg_merge_run(&j->m, err));
    for (uint32_t i = 0; i != GG_NO_SYM; i = j->m.sym[i].next) {
        const struct gg_vocab_symbol *s = &j->m.sym[i];
        if (s->id != GGUF_TOKEN_NONE)
            GG_TRY(gg_vocab_tokens_push(j->out, s->id, err));
        else if (j->row->raw)
            GG_TRY(put_bytes(j, word + s->off, s->size, err));
    }
    return GGUF_OK;
}

/* Copy text with each blank as U+2581. The result is owned and has *n bytes.
 * NULL: no memory. */
static char *escape_blanks(const struct gguf_vocab *v, const char *text,
                           size_t size, size_t *n)
{
    char *out = gg_mem_alloc(v->allocator, GG_META_SPACE_SIZE * size);
    *n = 0;
    for (size_t i = 0; out && i < size; i++) {
        if (text[i] == ' ') {
            memcpy(out + *n, GG_META_SPACE, GG_META_SPACE_SIZE);
            *n += GG_META_SPACE_SIZE;
        } else {
            out[(*n)++] = text[i];
        }
    }
    return out;
}

enum gguf_status gg_bpe_encode(const struct gguf_vocab *v, const char *text,
                               size_t size, bool prefix,
                               struct gguf_tokens *out, struct gguf_error *err)
{
    struct job j = { .v = v,
                     .row = gg_pretok_get_row(v->bpe->pretok),
                     .out = out };
    size_t n;
    (void)prefix;
    if (size > UINT32_MAX / 4)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%zu bytes of text in one piece, limit is %u",
                            size, UINT32_MAX / 4);
    char *clean = gg_vocab_utf8_make_valid(v->allocator, text, size,
                                           GG_VOCAB_UTF8_MOST, &n);
    if (!clean)
        return gg_error_set_nomem(err, 3 * size);
    char *escaped = j.row->meta_space ? escape_blanks(v, clean, n, &n) : clean;
    if (!escaped) {
        gg_vocab_utf8_free(v->allocator, text, clean);
        return gg_error_set_nomem(err, GG_META_SPACE_SIZE * n);
    }
    j.text = escaped;
    gg_merge_init(&j.m, v->allocator, rank_pair, v);
    enum gguf_status st =
        gg_pretok_split(v->bpe->pretok, escaped, n, on_word, &j, err);
    gg_merge_fini(&j.m);
    gg_mem_free(v->allocator, j.letters);
    if (escaped != clean)
        gg_mem_free(v->allocator, escaped);
    gg_vocab_utf8_free(v->allocator, text, clean);
    return st;
}

/* ---- and back ---- */

void gg_bpe_put(const struct gguf_vocab *v, gguf_token id,
                struct gg_vocab_sink *s)
{
    const struct gg_pretok_row *row = gg_pretok_get_row(v->bpe->pretok);
    struct gguf_str t = v->token[id].text;
    if (row->meta_space) {
        gg_spm_put(v, id, s);
        return;
    }
    for (size_t i = 0; i < t.size;) {
        uint32_t cp;
        size_t k = gg_str_utf8_decode(t.data + i, t.size - i, &cp);
        int b = k && !row->raw ? byte_of_char(cp) : -1;
        if (b >= 0)
            gg_vocab_sink_put(s, (char)b);
        else /* not a byte: as it is */
            for (size_t c = 0; c < (k ? k : 1); c++)
                gg_vocab_sink_put(s, t.data[i + c]);
        i += k ? k : 1;
    }
}
