/* back_vocab.c - the tokenizer of a file as a folder has it
 *
 * "gpt2" becomes tokenizer.json, "llama" tokenizer.model (SentencePiece's BPE,
 * as vocab_spm.c reads it). Control tokens and those of users are added tokens
 * of tokenizer.json; what was only filled up to the rows of the model is left
 * out: reading the folder fills it again.
 */
#include "config.h"
#include "convert/back.h"
#include "convert/vocab.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tokens {
    struct gg_back *b;
    const struct gguf_kv *text, *type, *score, *merges;
    size_t n;
    int32_t *types; /* of all */
    float *scores;
};

static const struct gguf_kv *find(const struct gg_back *b, const char *key)
{
    return gguf_file_kv_find(b->meta, key);
}

static bool text_of(const struct gg_back *b, const char *key,
                    struct gguf_str *out)
{
    const struct gguf_kv *kv = find(b, key);
    return kv && gguf_kv_get_str(kv, out, NULL) == GGUF_OK;
}

static enum gguf_status fail(const char *what, struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET, "%s", what);
}

/* The key's value, a list of that type with n elements, or of any if n is 0. */
static bool list(const struct gg_back *b, const char *key, uint32_t type,
                 size_t n, const struct gguf_kv **out)
{
    *out = find(b, key);
    return *out && gguf_kv_check_array(*out, type, NULL) == GGUF_OK &&
           (!n || (*out)->n == n);
}

static enum gguf_status read_tokens(struct tokens *t, struct gguf_error *err)
{
    struct gg_back *b = t->b;
    if (!list(b, "tokenizer.ggml.tokens", GGUF_VAL_STR, 0, &t->text) ||
        t->text->n > (uint64_t)GG_CONVERT_MOST_TOKENS)
        return fail("tokenizer.ggml.tokens is no list of texts", err);
    t->n = (size_t)t->text->n;
    t->types = gg_mem_arena_alloc(&b->arena, (t->n + 1) * sizeof *t->types);
    t->scores = gg_mem_arena_alloc(&b->arena, (t->n + 1) * sizeof *t->scores);
    if (!t->types || !t->scores)
        return gg_error_set_nomem(err, t->n * sizeof *t->types);
    for (size_t i = 0; i < t->n; i++) {
        t->types[i] = GG_CONVERT_NORMAL;
        t->scores[i] = 0;
    }
    if (list(b, "tokenizer.ggml.token_type", GGUF_VAL_I32, t->n, &t->type))
        GG_TRY(gguf_kv_elems_i32(t->type, 0, t->n, t->types, err));
    if (list(b, "tokenizer.ggml.scores", GGUF_VAL_F32, t->n, &t->score))
        GG_TRY(gguf_kv_elems_f32(t->score, 0, t->n, t->scores, err));
    return GGUF_OK;
}

static enum gguf_status give(struct gg_back_text *out, const char *name,
                             json_t *root, struct gguf_error *err)
{
    out->name = name;
    out->text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (!out->text)
        return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                            "%s: a text of the vocabulary is not UTF-8, or "
                            "there is no memory for it",
                            name);
    out->size = strlen(out->text);
    return GGUF_OK;
}

/* ---- tokenizer.json ---- */

static void add_step(json_t *steps, const char *word, const char *regex,
                     size_t n)
{
    json_t *s = NULL;
    if (regex)
        s = json_pack("{s:s, s:{s:o}, s:s, s:b}", "type", "Split", "pattern",
                      "Regex", json_stringn(regex, n), "behavior", "Isolated",
                      "invert", 0);
    else if (!strncmp(word, "Digits", 6))
        s = json_pack("{s:s, s:b}", "type", "Digits", "individual_digits",
                      word[6] != '+');
    else
        s = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel",
                      "add_prefix_space", 0, "trim_offsets", 1, "use_regex",
                      strncmp(word, "ByteLevel", 9) == 0);
    json_array_append_new(steps, s);
}

/* Where the step at p ends: a ')' before another step or the end. */
static size_t split_size(const char *p)
{
    static const char *const next[] = { " Split(", " Bytes", " ByteLevel",
                                        " Digits" };
    for (size_t n = 0; p[n]; n++) {
        if (p[n] != ')')
            continue;
        if (!p[n + 1])
            return n;
        for (size_t i = 0; i < GG_LEN(next); i++)
            if (!strncmp(p + n + 1, next[i], strlen(next[i])))
                return n;
    }
    return strlen(p);
}

/* The steps that vocab_pre.c describes by this text; NULL: it has others. */
static json_t *steps_of(const char *p)
{
    static const char *const words[] = { "Digits+", "Digits", "ByteLevel",
                                         "Bytes" };
    json_t *steps = json_array();
    while (*p) {
        size_t n = 0;
        if (!strncmp(p, "Split(", 6)) {
            n = split_size(p + 6);
            add_step(steps, NULL, p + 6, n);
            n += 7;
        }
        for (size_t i = 0; i < GG_LEN(words) && !n; i++)
            if (!strncmp(p, words[i], strlen(words[i])) &&
                (p[strlen(words[i])] == ' ' || !p[strlen(words[i])])) {
                add_step(steps, words[i], NULL, 0);
                n = strlen(words[i]);
            }
        if (!n) {
            json_decref(steps);
            return NULL;
        }
        p += n + (p[n] == ' ');
    }
    return steps;
}

/* Was it made to fill the rows of the model? */
static bool is_filler(struct gguf_str s, int32_t type, size_t i)
{
    char name[32];
    snprintf(name, sizeof name, "[PAD%zu]", i);
    return type == GG_CONVERT_UNUSED && gg_str_eqz(s, name);
}

static enum gguf_status put_vocab(const struct tokens *t, json_t *vocab,
                                  json_t *added, struct gguf_error *err)
{
    struct gguf_kv_iter it;
    struct gguf_str s;
    char *name = gg_mem_arena_alloc(&t->b->arena, 1 << 16);
    if (!name)
        return gg_error_set_nomem(err, 1 << 16);
    gguf_kv_iter_init(&it, t->text);
    for (size_t i = 0; i < t->n && gguf_kv_next_str(&it, &s); i++) {
        const bool special = t->types[i] == GG_CONVERT_CONTROL;
        if (s.size >= 1 << 16 || memchr(s.data, 0, s.size))
            return fail("a token has NUL in it, or more than 65535 bytes",
                        err);
        if (is_filler(s, t->types[i], i))
            continue;
        memcpy(name, s.data, s.size);
        name[s.size] = 0;
        if (special || t->types[i] == GG_CONVERT_USER)
            json_array_append_new(
                added, json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id",
                                 (json_int_t)i, "content", name, "single_word",
                                 0, "lstrip", 0, "rstrip", 0, "normalized", 0,
                                 "special", special));
        else if (json_object_get(vocab, name) ||
                 json_object_set_new(vocab, name, json_integer((json_int_t)i)))
            return fail("two tokens have one text, or one is not UTF-8", err);
    }
    return GGUF_OK;
}

static void put_merges(const struct tokens *t, json_t *merges)
{
    struct gguf_kv_iter it;
    struct gguf_str s;
    const struct gguf_kv *kv;
    if (!list(t->b, "tokenizer.ggml.merges", GGUF_VAL_STR, 0, &kv))
        return;
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_next_str(&it, &s))
        json_array_append_new(merges, json_stringn(s.data, s.size));
}

static enum gguf_status put_bpe(const struct tokens *t,
                                struct gg_back_text *out,
                                struct gguf_error *err)
{
    struct gguf_str pre = GG_STR("default");
    struct gg_str_esc e;
    bool whole = false;
    (void)text_of(t->b, "tokenizer.ggml.pre", &pre);
    const char *text = gg_convert_vocab_pre_text(pre, &whole);
    json_t *steps = text ? steps_of(text) : NULL;
    if (!steps)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "the pre-tokenizer '%s' is not written",
                            gg_str_esc(&e, pre));
    json_t *vocab = json_object(), *added = json_array(),
           *merges = json_array();
    const enum gguf_status st = put_vocab(t, vocab, added, err);
    put_merges(t, merges);
    json_t *root = json_pack(
        "{s:s, s:n, s:n, s:o, s:n, s:{s:s, s:o}, s:n, s:{s:s, s:b, s:b, s:b}, "
        "s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}}",
        "version", "1.0", "truncation", "padding", "added_tokens", added,
        "normalizer", "pre_tokenizer", "type", "Sequence", "pretokenizers",
        steps, "post_processor", "decoder", "type", "ByteLevel",
        "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "model",
        "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
        "ignore_merges", whole, "vocab", vocab, "merges", merges);
    if (st != GGUF_OK) {
        json_decref(root);
        return st;
    }
    return give(out, "tokenizer.json", root, err);
}

/* ---- tokenizer.model ---- */

struct proto {
    uint8_t *p;
    size_t n, room;
    bool failed;
};

static void bytes(struct proto *o, const void *data, size_t n)
{
    if (o->room - o->n < n) {
        const size_t room = 2 * o->room + n + 4096;
        uint8_t *p = realloc(o->p, room);
        o->failed |= !p;
        if (!p)
            return;
        o->p = p;
        o->room = room;
    }
    memcpy(o->p + o->n, data, n);
    o->n += n;
}

static void varint(struct proto *o, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        bytes(o, &(uint8_t){ (uint8_t)(v | 0x80) }, 1);
    bytes(o, &(uint8_t){ (uint8_t)v }, 1);
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

/* 1: text, 2: score, 3: kind, in field 1 of the model. */
static void put_piece(struct proto *o, struct gguf_str s, float score,
                      int32_t type)
{
    uint8_t b[4];
    varint(o, 1 << 3 | 2);
    varint(o, 1 + varint_size(s.size) + s.size + 5 +
                  (type != GG_CONVERT_NORMAL ? 2 : 0));
    varint(o, 1 << 3 | 2);
    varint(o, s.size);
    bytes(o, s.data, s.size);
    varint(o, 2 << 3 | 5);
    gg_bytes_store32le(b, gg_bytes_f32_bits(score));
    bytes(o, b, 4);
    if (type != GG_CONVERT_NORMAL) {
        varint(o, 3 << 3);
        varint(o, (uint64_t)type);
    }
}

static int flag(const struct gg_back *b, const char *key, int otherwise)
{
    int yes;
    const struct gguf_kv *kv = find(b, key);
    return kv && gguf_kv_get_bool(kv, &yes, NULL) == GGUF_OK ? yes : otherwise;
}

static enum gguf_status put_spm(const struct tokens *t,
                                struct gg_back_text *out,
                                struct gguf_error *err)
{
    struct proto o = { .p = NULL };
    struct gguf_kv_iter it;
    struct gguf_str s;
    /* TrainerSpec: model_type BPE, byte_fallback, ids of unk, bos, eos;
     * NormalizerSpec: name, add_dummy_prefix, what else llama's has */
    uint8_t trainer[] = { 2 << 3 | 2, 5, 3 << 3, 2, (35 << 3 & 0x7f) | 0x80,
                          35 >> 4,    1 };
    uint8_t normalizer[] = { 3 << 3 | 2, 16,  1 << 3 | 2, 8,   'i',    'd',
                             'e',        'n', 't',        'i', 't',    'y',
                             3 << 3,     1,   4 << 3,     0,   5 << 3, 1 };
    gguf_kv_iter_init(&it, t->text);
    for (size_t i = 0; i < t->n && gguf_kv_next_str(&it, &s); i++) {
        if (t->types[i] < GG_CONVERT_NORMAL || t->types[i] > GG_CONVERT_BYTE ||
            !gg_str_utf8_valid(s.data, s.size)) {
            free(o.p);
            return fail("a token has no kind, or is not UTF-8", err);
        }
        put_piece(&o, s, t->scores[i], t->types[i]);
    }
    normalizer[13] = (uint8_t)flag(t->b, "tokenizer.ggml.add_space_prefix", 1);
    normalizer[1] = sizeof normalizer - 2;
    trainer[1] = sizeof trainer - 2;
    bytes(&o, trainer, sizeof trainer);
    bytes(&o, normalizer, sizeof normalizer);
    if (o.failed) {
        free(o.p);
        return gg_error_set_nomem(err, o.room);
    }
    *out = (struct gg_back_text){ "tokenizer.model", (char *)o.p, o.n };
    return GGUF_OK;
}

/* ---- tokenizer_config.json ---- */

static void put_role(const struct tokens *t, json_t *root, const char *role,
                     const char *key)
{
    const struct gguf_kv *kv = find(t->b, key);
    struct gguf_kv e;
    struct gguf_str s;
    uint64_t id;
    char name[64];
    snprintf(name, sizeof name, "%s_token", role);
    if (kv && gguf_kv_get_uint(kv, &id, NULL) == GGUF_OK && id < t->n &&
        gguf_kv_elem(t->text, id, &e, NULL) == GGUF_OK &&
        gguf_kv_get_str(&e, &s, NULL) == GGUF_OK)
        json_object_set_new(root, name, json_stringn(s.data, s.size));
}

static enum gguf_status put_config(const struct tokens *t, const char *class,
                                   struct gg_back_text *out,
                                   struct gguf_error *err)
{
    char name[64];
    struct gguf_str s;
    json_t *root = json_pack("{s:s}", "tokenizer_class", class);
    for (size_t i = 0; i < GG_CONVERT_ROLES; i++) {
        const struct gg_convert_role *role = &gg_convert_roles[i];
        put_role(t, root, role->name, role->key);
        const int yes = role->add ? flag(t->b, role->add, -1) : -1;
        snprintf(name, sizeof name, "add_%s_token", role->name);
        if (yes >= 0)
            json_object_set_new(root, name, json_boolean(yes));
    }
    if (text_of(t->b, "tokenizer.chat_template", &s))
        json_object_set_new(root, "chat_template",
                            json_stringn(s.data, s.size));
    return give(out, "tokenizer_config.json", root, err);
}

/* ---- which ---- */

static const struct {
    const char *model, *class;
    enum gguf_status (*put)(const struct tokens *t, struct gg_back_text *out,
                            struct gguf_error *err);
} kinds[] = {
    { "gpt2", "PreTrainedTokenizerFast", put_bpe },
    { "llama", "LlamaTokenizer", put_spm },
};

enum gguf_status gg_back_vocab(struct gg_back *b,
                               struct gg_back_text text[GG_BACK_TEXTS],
                               struct gguf_error *err)
{
    struct tokens t = { .b = b };
    struct gguf_str model;
    struct gg_str_esc e;
    if (!text_of(b, "tokenizer.ggml.model", &model) ||
        gg_str_eqz(model, "none") || gg_str_eqz(model, "no_vocab"))
        return GGUF_OK;
    for (size_t i = 0; i < GG_LEN(kinds); i++)
        if (gg_str_eqz(model, kinds[i].model)) {
            GG_TRY(read_tokens(&t, err));
            GG_TRY(kinds[i].put(&t, &text[0], err));
            return put_config(&t, kinds[i].class, &text[1], err);
        }
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "a vocabulary of kind '%s' is not written",
                        gg_str_esc(&e, model));
}
