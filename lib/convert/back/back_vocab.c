/* SPDX-License-Identifier: MIT */
/* back_vocab.c - write the tokenizer of a file as a folder has it
 *
 * "gpt2" becomes tokenizer.json; a table at the end lists the writers of other
 * kinds. Control and user tokens are added tokens of tokenizer.json and also
 * members of its vocab, since the Rust library renumbers added tokens that its
 * model lacks. Fillers at the end are left out: reading the folder adds them
 * again.
 */
#include "config.h"
#include "convert/back/back_vocab.h"

#include "base/compiler.h"
#include "base/str.h"
#include "vocab/pretok_row.h"
#include "vocab/vocab_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gguf_kv *find_key(const struct gg_back *b, const char *key)
{
    return gguf_file_kv_find(b->meta, key);
}

static bool text_of(const struct gg_back *b, const char *key,
                    struct gguf_str *out)
{
    const struct gguf_kv *kv = find_key(b, key);
    return kv && gguf_kv_get_str(kv, out, NULL) == GGUF_OK;
}

enum gguf_status gg_back_vocab_fail(const char *what, struct gguf_error *err)
{
    return gg_json_make_failed()
               ? gg_error_set_nomem(err, 64)
               : gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET, "%s", what);
}

/* The key's value, a list of that type with n elements, or of any if n is 0. */
static bool find_list(const struct gg_back *b, const char *key, uint32_t type,
                      size_t n, const struct gguf_kv **out)
{
    *out = find_key(b, key);
    return *out && gguf_kv_check_array(*out, type, NULL) == GGUF_OK &&
           (!n || (*out)->n == n);
}

int gg_back_vocab_get_flag(const struct gg_back *b, const char *key,
                           int otherwise)
{
    bool yes;
    const struct gguf_kv *kv = find_key(b, key);
    return kv && gguf_kv_get_bool(kv, &yes, NULL) == GGUF_OK ? yes : otherwise;
}

static enum gguf_status read_texts(struct gg_back_tokens *t,
                                   struct gguf_error *err)
{
    struct gguf_kv_iter it;
    t->text = gg_mem_arena_alloc(&t->b->arena, (t->n + 1) * sizeof *t->text);
    if (!t->text)
        return gg_error_set_nomem(err, t->n * sizeof *t->text);
    gguf_kv_iter_init(&it, t->list);
    for (size_t i = 0; i < t->n; i++)
        if (!gguf_kv_iter_next_str(&it, &t->text[i]))
            return gg_back_vocab_fail("tokenizer.ggml.tokens ends early", err);
    for (t->n_used = t->n; t->n_used; t->n_used--)
        if (t->types[t->n_used - 1] != GG_CONVERT_UNUSED ||
            !gg_str_starts(t->text[t->n_used - 1], "[PAD"))
            break;
    return GGUF_OK;
}

/* An array of one number a token; *out is NULL without the key. */
static enum gguf_status number_array(const struct gg_back_tokens *t,
                                     const char *key, uint32_t type,
                                     const struct gguf_kv **out,
                                     struct gguf_error *err)
{
    switch (gg_vocab_array_find(t->b->meta, key, type, t->n, out)) {
    case GG_VOCAB_ARRAY_TYPE: return gguf_kv_check_array(*out, type, err);
    case GG_VOCAB_ARRAY_LENGTH:
        return gg_error_set(err, GGUF_E_VOCAB, (*out)->off,
                            "%s has %" PRIu64
                            " elements, there are %zu tokens",
                            key, (*out)->n, t->n);
    default: return GGUF_OK;
    }
}

static enum gguf_status read_tokens(struct gg_back_tokens *t,
                                    struct gguf_error *err)
{
    struct gg_back *b = t->b;
    const struct gguf_kv *type, *score;
    if (!find_list(b, "tokenizer.ggml.tokens", GGUF_VAL_STR, 0, &t->list) ||
        t->list->n > (uint64_t)GG_CONVERT_MOST_TOKENS)
        return gg_back_vocab_fail(
            "tokenizer.ggml.tokens: expected an array of "
            "strings",
            err);
    t->n = (size_t)t->list->n;
    t->types = gg_mem_arena_alloc(&b->arena, (t->n + 1) * sizeof *t->types);
    t->scores = gg_mem_arena_alloc(&b->arena, (t->n + 1) * sizeof *t->scores);
    if (!t->types || !t->scores)
        return gg_error_set_nomem(err, t->n * sizeof *t->types);
    for (size_t i = 0; i < t->n; i++) {
        t->types[i] = GG_CONVERT_NORMAL;
        t->scores[i] = 0;
    }
    GG_TRY(number_array(t, "tokenizer.ggml.token_type", GGUF_VAL_I32, &type,
                        err));
    GG_TRY(
        number_array(t, "tokenizer.ggml.scores", GGUF_VAL_F32, &score, err));
    if (type)
        GG_TRY(gguf_kv_get_elems_i32(type, 0, t->n, t->types, err));
    if (score)
        GG_TRY(gg_vocab_array_scores(score, 0, t->n, t->scores, err));
    return read_texts(t, err);
}

enum gguf_status gg_back_vocab_set_text(struct gg_back_text *out,
                                        const char *name, json_t *root,
                                        struct gguf_error *err)
{
    out->name = name;
    out->text = gg_json_make_text(root, JSON_INDENT(1));
    if (!out->text)
        return gg_back_vocab_fail("a text of the vocabulary is not UTF-8",
                                  err);
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
    else if (!strncmp(word, "Punctuation", 11))
        s = json_pack("{s:s, s:s}", "type", "Punctuation", "behavior",
                      word[11] == '+' ? "Contiguous" : "Isolated");
    else if (!strncmp(word, "Digits", 6))
        s = json_pack("{s:s, s:b}", "type", "Digits", "individual_digits",
                      word[6] != '+');
    else
        s = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel",
                      "add_prefix_space", 0, "trim_offsets", 1, "use_regex",
                      strncmp(word, "ByteLevel", 9) == 0);
    json_array_append_new(steps, s);
}

/* End of the step at p: a ')' before another step or the end. */
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

/* Steps that vocab_pre.c describes by this text; NULL: unknown ones. */
static json_t *steps_of(const char *p)
{
    static const char *const words[] = { "Punctuation+", "Punctuation",
                                         "Digits+",      "Digits",
                                         "ByteLevel",    "Bytes" };
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

/* Steps of a row without a published description: each stage cuts the words
 * that the stages before it left. NULL: the row has other stages. */
static json_t *steps_of_row(const struct gg_pretok_row *row)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < GG_PRETOK_MAX_STAGES && !row->raw; i++) {
        const struct gg_pretok_stage *stage = &row->stage[i];
        if (stage->cut) {
            json_decref(steps);
            return NULL;
        }
        if (stage->expr)
            add_step(steps, NULL, stage->expr, strlen(stage->expr));
    }
    if (!json_array_size(steps)) {
        json_decref(steps);
        return NULL;
    }
    add_step(steps, "Bytes", NULL, 0);
    return steps;
}

/* Was it made to fill the rows of the model? */
static bool is_filler(struct gguf_str s, int32_t type, size_t i)
{
    char name[32];
    snprintf(name, sizeof name, "[PAD%zu]", i);
    return type == GG_CONVERT_UNUSED && gg_str_eqz(s, name);
}

json_t *gg_back_vocab_make_added(const struct gg_back_tokens *t)
{
    json_t *added = json_array();
    for (size_t i = 0; i < t->n; i++) {
        const bool special = t->types[i] == GG_CONVERT_CONTROL;
        if (special || t->types[i] == GG_CONVERT_USER)
            json_array_append_new(
                added,
                json_pack("{s:I, s:s%, s:b, s:b, s:b, s:b, s:b}", "id",
                          (json_int_t)i, "content", t->text[i].data,
                          t->text[i].size, "single_word", 0, "lstrip", 0,
                          "rstrip", 0, "normalized", 0, "special", special));
    }
    return added;
}

/* Member name of n bytes, which may include NUL (Jansson 2.14 and later). */
#if JANSSON_VERSION_HEX >= 0x020e00
static bool has_member(const json_t *o, const char *name, size_t n)
{
    return json_object_getn(o, name, n) != NULL;
}

static int add_member(json_t *o, const char *name, size_t n, json_t *v)
{
    return json_object_setn_new(o, name, n, v);
}
#else
static bool has_member(const json_t *o, const char *name, size_t n)
{
    return memchr(name, 0, n) || json_object_get(o, name);
}

static int add_member(json_t *o, const char *name, size_t n, json_t *v)
{
    (void)n;
    return json_object_set_new(o, name, v);
}
#endif

enum gguf_status gg_back_vocab_put_token(const struct gg_back_tokens *t,
                                         json_t *vocab, const char *before,
                                         struct gguf_str s, size_t id,
                                         struct gguf_error *err)
{
    const size_t n_before = strlen(before), n = n_before + s.size;
    if (n >= 1 << 16)
        return gg_back_vocab_fail("a token has more than 65535 bytes", err);
    char *name = gg_mem_arena_alloc(&t->b->arena, n + 1);
    if (!name)
        return gg_error_set_nomem(err, n + 1);
    memcpy(name, before, n_before);
    memcpy(name + n_before, s.data, s.size);
    name[n] = 0;
    if (has_member(vocab, name, n) ||
        add_member(vocab, name, n, json_integer((json_int_t)id)))
        return gg_back_vocab_fail(
            "two tokens have one text, or one is not UTF-8", err);
    return GGUF_OK;
}

static enum gguf_status put_vocab(const struct gg_back_tokens *t,
                                  json_t *vocab, struct gguf_error *err)
{
    for (size_t i = 0; i < t->n; i++)
        if (!is_filler(t->text[i], t->types[i], i))
            GG_TRY(gg_back_vocab_put_token(t, vocab, "", t->text[i], i, err));
    return GGUF_OK;
}

static void put_merges(const struct gg_back_tokens *t, json_t *merges)
{
    struct gguf_kv_iter it;
    struct gguf_str s;
    const struct gguf_kv *kv;
    if (!find_list(t->b, "tokenizer.ggml.merges", GGUF_VAL_STR, 0, &kv))
        return;
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next_str(&it, &s))
        json_array_append_new(merges, json_stringn(s.data, s.size));
}

/* Normalizer of the tokenizer's class, which files do not say: NFC in
 * transformers' Qwen2Tokenizer, GPTNeoXTokenizer and CohereTokenizer
 * (src/transformers/models, tokenization_*.py). */
static json_t *normalizer_of(const struct gg_back_tokens *t,
                             struct gguf_str pre)
{
    static const char *const pres[] = { "qwen2", "qwen35", "command-r" };
    static const char *const archs[] = { "gptneox", "mpt",       "olmo",
                                         "olmoe",   "command-r", "cohere2" };
    struct gguf_str arch = GG_STR("");
    bool nfc = false;
    (void)text_of(t->b, "general.architecture", &arch);
    for (size_t i = 0; i < GG_LEN(pres); i++)
        nfc |= gg_str_eqz(pre, pres[i]);
    for (size_t i = 0; i < GG_LEN(archs); i++)
        nfc |= gg_str_eqz(arch, archs[i]);
    return nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
}

static enum gguf_status put_bpe(const struct gg_back_tokens *t, json_t *config,
                                struct gg_back_text *out,
                                struct gguf_error *err)
{
    struct gguf_str pre = GG_STR("default");
    struct gg_str_esc e;
    bool whole = false;
    (void)text_of(t->b, "tokenizer.ggml.pre", &pre);
    const int cleans = gg_convert_vocab_pre_clean_up(pre);
    if (cleans >= 0)
        json_object_set_new(config, "clean_up_tokenization_spaces",
                            json_boolean(cleans));
    const struct gg_pretok_row *row = gg_pretok_row_find(pre);
    const char *text = gg_convert_vocab_pre_text(pre, &whole);
    if (!text && row)
        whole = row->ignore_merges;
    json_t *steps = text ? steps_of(text) : row ? steps_of_row(row) : NULL;
    if (!steps && gg_json_make_failed())
        return gg_error_set_nomem(err, 4096);
    if (!steps)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "the pre-tokenizer '%s' cannot be written",
                            gg_str_esc(&e, pre));
    json_t *vocab = json_object(), *added = gg_back_vocab_make_added(t),
           *merges = json_array();
    const enum gguf_status st = put_vocab(t, vocab, err);
    put_merges(t, merges);
    json_t *root = json_pack(
        "{s:s, s:n, s:n, s:o, s:o, s:{s:s, s:o}, s:o, s:{s:s, s:b, s:b, s:b}, "
        "s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}}",
        "version", "1.0", "truncation", "padding", "added_tokens", added,
        "normalizer", normalizer_of(t, pre), "pre_tokenizer", "type",
        "Sequence", "pretokenizers", steps, "post_processor",
        gg_back_vocab_make_post(t), "decoder", "type", "ByteLevel",
        "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "model",
        "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
        "ignore_merges", whole, "vocab", vocab, "merges", merges);
    if (st != GGUF_OK) {
        json_decref(root);
        return st;
    }
    return gg_back_vocab_set_text(out, "tokenizer.json", root, err);
}

/* Pieces with one for each byte, and merges by rank: blanks are a character of
 * their own, and texts are not cut. */
static enum gguf_status put_ranked(const struct gg_back_tokens *t,
                                   json_t *config, struct gg_back_text *out,
                                   struct gguf_error *err)
{
    static const char blank[] = "\xe2\x96\x81";
    json_t *vocab = json_object(), *added = gg_back_vocab_make_added(t),
           *merges = json_array();
    (void)config;
    const enum gguf_status st = put_vocab(t, vocab, err);
    put_merges(t, merges);
    json_t *root = json_pack(
        "{s:s, s:n, s:n, s:o, s:{s:s, s:{s:s}, s:s}, s:n, s:o, s:{s:s, s:[{s:s, "
        "s:{s:s}, s:s}, {s:s}, {s:s}]}, s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, "
        "s:b, s:o, s:o}}",
        "version", "1.0", "truncation", "padding", "added_tokens", added,
        "normalizer", "type", "Replace", "pattern", "String", " ", "content",
        blank, "pre_tokenizer", "post_processor", gg_back_vocab_make_post(t),
        "decoder", "type", "Sequence", "decoders", "type", "Replace",
        "pattern", "String", blank, "content", " ", "type", "ByteFallback",
        "type", "Fuse", "model", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 1,
        "byte_fallback", 1, "ignore_merges", 0, "vocab", vocab, "merges",
        merges);
    if (st != GGUF_OK) {
        json_decref(root);
        return st;
    }
    return gg_back_vocab_set_text(out, "tokenizer.json", root, err);
}

/* ---- tokenizer_config.json ---- */

int64_t gg_back_vocab_find_role(const struct gg_back_tokens *t,
                                const char *key)
{
    const struct gguf_kv *kv = find_key(t->b, key);
    uint64_t id;
    return kv && gguf_kv_get_uint(kv, &id, NULL) == GGUF_OK && id < t->n
               ? (int64_t)id
               : -1;
}

/* Does only a number of config.json name the token of role i? Reading a folder
 * sets roles named by texts first, and each group in the order of roles. So a
 * role that comes after a later role in the file, and all roles after it, come
 * from numbers. Roles before the tokens come from the architecture. So do roles
 * after other keys (add_...), which no text names either. */
static bool is_number_role(const struct gg_back *b, size_t i)
{
    static const char *const numbered = "bos eos pad mask";
    size_t last = 0;
    bool begun = false, any = false, late = false, ended = false;
    for (size_t n = 0; n < gguf_file_n_kv(b->meta); n++) {
        begun = begun || gg_str_eqz(gguf_file_kv(b->meta, n)->key,
                                    "tokenizer.ggml.tokens");
        ended = ended || (any && gg_str_starts(gguf_file_kv(b->meta, n)->key,
                                               "tokenizer.ggml.add_"));
        for (size_t k = 0; begun && k < GG_CONVERT_ROLES; k++) {
            if (!gg_str_eqz(gguf_file_kv(b->meta, n)->key,
                            gg_convert_roles[k].key))
                continue;
            any = true;
            late = late || k < last;
            last = k;
            if (k == i)
                return ended ||
                       (late && strstr(numbered, gg_convert_roles[k].name));
        }
    }
    return false;
}

static enum gguf_status put_config(const struct gg_back_tokens *t,
                                   json_t *root, struct gg_back_text *out,
                                   struct gguf_error *err)
{
    char name[64];
    for (size_t i = 0; i < GG_CONVERT_ROLES; i++) {
        const struct gg_convert_role *role = &gg_convert_roles[i];
        const int64_t id = gg_back_vocab_find_role(t, role->key);
        snprintf(name, sizeof name, "%s_token", role->name);
        if (id >= 0 && !json_object_get(root, name) &&
            !is_number_role(t->b, i))
            json_object_set_new(
                root, name, json_stringn(t->text[id].data, t->text[id].size));
        const int yes =
            role->add ? gg_back_vocab_get_flag(t->b, role->add, -1) : -1;
        snprintf(name, sizeof name, "add_%s_token", role->name);
        if (yes >= 0)
            json_object_set_new(root, name, json_boolean(yes));
    }
    gg_back_put_templates(t->b, root);
    return gg_back_vocab_set_text(out, "tokenizer_config.json", root, err);
}

/* ---- which ---- */

static enum gguf_status put_llama(const struct gg_back_tokens *t,
                                  json_t *config, struct gg_back_text *out,
                                  struct gguf_error *err)
{
    (void)config;
    return gg_back_put_spm(t, "tokenizer.model", false, out, err);
}

static const struct {
    const char *model, *class;
    gg_back_vocab_fn *put;
    bool marks; /* blanks of pieces are U+2581 */
} kinds[] = {
    { "gpt2", "PreTrainedTokenizerFast", put_bpe, false },
    { "gemma4", "PreTrainedTokenizerFast", put_ranked, true },
    { "llama", "LlamaTokenizer", put_llama, true },
    { "bert", "BertTokenizer", gg_back_put_wordpiece, false },
    { "t5", "T5Tokenizer", gg_back_put_unigram, true },
    { "rwkv", "RwkvTokenizer", gg_back_put_rwkv, false },
    { "plamo2", "Plamo2Tokenizer", gg_back_put_plamo, false },
};

/* User tokens have U+2581 for blanks as pieces do; in the GGUF file they have
 * blanks (vocab_added.c). They are also listed in added_tokens_decoder, by
 * which reading the folder recognises them. */
static enum gguf_status mark_blanks(struct gg_back_tokens *t, json_t *config,
                                    struct gguf_error *err)
{
    json_t *all = NULL;
    char id[24];
    for (size_t i = 0; i < t->n; i++) {
        struct gguf_str *s = &t->text[i];
        if (t->types[i] != GG_CONVERT_USER || !memchr(s->data, ' ', s->size))
            continue;
        char *text =
            gg_mem_arena_alloc(&t->b->arena, GG_META_SPACE_SIZE * s->size + 1);
        size_t n = 0;
        if (!text)
            return gg_error_set_nomem(err, GG_META_SPACE_SIZE * s->size + 1);
        for (size_t k = 0; k < s->size; k++)
            if (s->data[k] == ' ') {
                memcpy(text + n, GG_META_SPACE, GG_META_SPACE_SIZE);
                n += GG_META_SPACE_SIZE;
            } else {
                text[n++] = s->data[k];
            }
        *s = (struct gguf_str){ text, n };
        if (!all)
            all = json_object();
        snprintf(id, sizeof id, "%zu", i);
        json_object_set_new(all, id,
                            json_pack("{s:s%, s:b}", "content", s->data,
                                      s->size, "special", 0));
    }
    if (all)
        json_object_set_new(config, "added_tokens_decoder", all);
    return GGUF_OK;
}

enum gguf_status gg_back_make_vocab(struct gg_back *b,
                                    struct gg_back_text text[GG_BACK_CARD],
                                    struct gguf_error *err)
{
    struct gg_back_tokens t = { .b = b };
    struct gguf_str model;
    struct gg_str_esc e;
    size_t i = 0;
    gg_json_make_begin();
    if (!text_of(b, "tokenizer.ggml.model", &model) ||
        gg_str_eqz(model, "none") || gg_str_eqz(model, "no_vocab"))
        return GGUF_OK;
    while (i < GG_LEN(kinds) && !gg_str_eqz(model, kinds[i].model))
        i++;
    if (i == GG_LEN(kinds))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "a vocabulary of kind '%s' cannot be written",
                            gg_str_esc(&e, model));
    GG_TRY(read_tokens(&t, err));
    json_t *config = json_pack("{s:s}", "tokenizer_class", kinds[i].class);
    enum gguf_status st =
        kinds[i].marks ? mark_blanks(&t, config, err) : GGUF_OK;
    if (st == GGUF_OK)
        st = kinds[i].put(&t, config, &text[0], err);
    if (st == GGUF_OK)
        return put_config(&t, config, &text[1], err);
    json_decref(config);
    return st;
}
