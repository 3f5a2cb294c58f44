/* SPDX-License-Identifier: MIT */
/* check-back-vocab.c - tokenizers of GGUF files become tokenizers of folders
 *
 * Rules of the Rust library for tokenizer.json (tokenizers 0.22,
 * added_vocabulary.rs): an added token has the id of its text in the model's
 * vocab, or the next free number. Rules of SentencePiece (0.2,
 * model_interface.cc): 256 byte pieces with byte_fallback, otherwise none.
 * tests/tools/tokenizers.t checks that both give the ids of the original.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "convert/back/back.h"
#include "gguf/writer.h"
#include "tests/convert/reader.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\xe2\x96\x81"
#define TOK  "tokenizer.ggml."

/* ---- files of tokens alone ---- */

struct token {
    const char *text;
    int32_t type;
};

struct written {
    struct gguf_meta *meta;
    struct gguf_file *file;
    void *bytes;
    struct gg_back back;
    struct gg_back_text text[GG_BACK_CARD];
    struct gg_json json, config;
    bool plain; /* leave the texts unread */
    struct gguf_error err;
};

static void must_be_ok(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

static void begin_file(struct written *w, const char *model, const char *pre,
                       const struct token *t, size_t n)
{
    struct gguf_str text[300];
    int32_t type[300];
    float score[300];
    *w = (struct written){ .meta = NULL };
    must_be_ok(gguf_meta_create(&w->meta, NULL, NULL));
    for (size_t i = 0; i < n; i++) {
        text[i] = gg_str_z(t[i].text);
        type[i] = t[i].type;
        score[i] = -(float)i;
    }
    must_be_ok(gguf_meta_set_strz(w->meta, TOK "model", model, NULL));
    if (pre)
        must_be_ok(gguf_meta_set_strz(w->meta, TOK "pre", pre, NULL));
    must_be_ok(gguf_meta_set_str_array(w->meta, TOK "tokens", text, n, NULL));
    must_be_ok(gguf_meta_set_array(w->meta, TOK "token_type", GGUF_VAL_I32,
                                   type, n, NULL));
    must_be_ok(gguf_meta_set_array(w->meta, TOK "scores", GGUF_VAL_F32, score,
                                   n, NULL));
}

static enum gguf_status write_it(struct written *w)
{
    struct gguf_writer *writer;
    const void *head;
    size_t size;
    must_be_ok(gguf_writer_create(&writer, w->meta, NULL, NULL));
    must_be_ok(gguf_writer_header(writer, &head, &size, NULL));
    w->bytes = malloc(size);
    memcpy(w->bytes, head, size);
    gguf_writer_destroy(writer);
    must_be_ok(gguf_file_open_memory(&w->file, w->bytes, size, NULL, NULL));
    w->back.meta = w->file;
    gg_mem_arena_init(&w->back.arena, NULL);
    gguf_error_clear(&w->err);
    const enum gguf_status st = gg_back_make_vocab(&w->back, w->text, &w->err);
    if (st != GGUF_OK || w->plain)
        return st;
    if (!strcmp(w->text[0].name, "tokenizer.json"))
        must_be_ok(gg_json_read(&w->json, w->text[0].text, w->text[0].size, 0,
                                0, NULL));
    must_be_ok(gg_json_read(&w->config, w->text[1].text, w->text[1].size, 0, 0,
                            NULL));
    return st;
}

static void end_file(struct written *w)
{
    gg_json_fini(&w->json);
    gg_json_fini(&w->config);
    for (size_t i = 0; i < GG_BACK_CARD; i++)
        free(w->text[i].text);
    gg_mem_arena_fini(&w->back.arena);
    gguf_file_close(w->file);
    free(w->bytes);
    gguf_meta_destroy(w->meta);
}

static const json_t *json_at(const json_t *v, const char *name)
{
    return json_object_get(v, name);
}

static bool is_text(const json_t *v, const char *s)
{
    return json_is_string(v) && !strcmp(json_string_value(v), s);
}

/* Does each added token have the id of its text in the model's vocab, once? */
static bool ids_hold(const struct written *w)
{
    const json_t *vocab = json_at(json_at(w->json.root, "model"), "vocab");
    json_t *added = json_object_get(w->json.root, "added_tokens"), *e;
    size_t i;
    json_array_foreach(added, i, e)
    {
        const json_t *id =
            json_at(vocab, json_string_value(json_at(e, "content")));
        if (!json_is_integer(id) ||
            json_integer_value(id) != json_integer_value(json_at(e, "id")) ||
            json_is_true(json_at(e, "normalized")))
            return false;
    }
    return json_is_object(vocab);
}

/* Is this step of a template the token, or text A? */
static bool is_step(const json_t *e, const char *token)
{
    return token ? is_text(json_at(json_at(e, "SpecialToken"), "id"), token)
                 : is_text(json_at(json_at(e, "Sequence"), "id"), "A");
}

/* ---- byte-level BPE ---- */

static const struct token gpt2[] = {
    { "<|endoftext|>", 3 }, { "a", 1 },        { "b", 1 },
    { "\xc4\xa0", 1 },      { "ab", 1 },       { "[PAD5]", 5 },
    { "<two words>", 4 },   { "<|begin|>", 3 } /* after a gap */
};

static void check_gpt2(void)
{
    static const struct {
        const char *pre, *arch;
        bool nfc, begins, ends;
    } rows[] = {
        { "qwen2", "qwen2", true, false, false },
        { "gpt-2", "gptneox", true, true, false },
        { "gpt-2", "gpt2", false, false, true },
        { "starcoder", "command-r", true, true, true },
        { "llama-bpe", "llama", false, true, false },
        { "deepseek-v3", "deepseek2", false, true, true },
        { "spark2_5", "spark2_5", false, true, false },
    };
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        static const struct gguf_str merge = { "a b", 3 };
        struct written w;
        begin_file(&w, "gpt2", rows[i].pre, gpt2, GG_LEN(gpt2));
        must_be_ok(gguf_meta_set_strz(w.meta, "general.architecture",
                                      rows[i].arch, NULL));
        must_be_ok(
            gguf_meta_set_str_array(w.meta, TOK "merges", &merge, 1, NULL));
        must_be_ok(gguf_meta_set_u32(w.meta, TOK "bos_token_id", 7, NULL));
        must_be_ok(gguf_meta_set_u32(w.meta, TOK "eos_token_id", 0, NULL));
        must_be_ok(gguf_meta_set_bool(w.meta, TOK "add_bos_token",
                                      rows[i].begins, NULL));
        if (rows[i].ends)
            must_be_ok(
                gguf_meta_set_bool(w.meta, TOK "add_eos_token", 1, NULL));
        const enum gguf_status st = write_it(&w);
        const json_t *vocab = json_at(json_at(w.json.root, "model"), "vocab");
        ok(st == GGUF_OK && ids_hold(&w) && json_object_size(vocab) == 7 &&
               json_array_size(json_at(w.json.root, "added_tokens")) == 3 &&
               !json_at(vocab, "[PAD5]"),
           "%s: ids of added tokens are those of vocab %s", rows[i].pre,
           w.err.message);
        const json_t *norm = json_at(w.json.root, "normalizer");
        ok(rows[i].nfc ? is_text(json_at(norm, "type"), "NFC")
                       : json_is_null(norm),
           "%s of %s: %s", rows[i].pre, rows[i].arch,
           rows[i].nfc ? "NFC" : "no normalizer");
        const json_t *post = json_at(w.json.root, "post_processor");
        const json_t *single = json_at(post, "single");
        const json_t *tokens = json_at(post, "special_tokens");
        const size_t a = rows[i].begins;
        bool good = is_text(json_at(post, "type"), "TemplateProcessing") &&
                    json_array_size(single) == a + 1 + rows[i].ends &&
                    is_step(json_array_get(single, a), NULL) &&
                    json_object_size(tokens) == a + rows[i].ends;
        if (rows[i].begins)
            good = good && is_step(json_array_get(single, 0), "<|begin|>") &&
                   json_integer_value(json_array_get(
                       json_at(json_at(tokens, "<|begin|>"), "ids"), 0)) == 7;
        if (rows[i].ends)
            good =
                good &&
                is_step(json_array_get(single, a + 1), "<|endoftext|>") &&
                json_integer_value(json_array_get(
                    json_at(json_at(tokens, "<|endoftext|>"), "ids"), 0)) == 0;
        ok(rows[i].begins || rows[i].ends ? good : json_is_null(post),
           "%s: tokens round a text%s%s", rows[i].pre,
           rows[i].begins ? ", BOS" : "", rows[i].ends ? ", EOS" : "");
        end_file(&w);
    }
}

/* A pre-tokenizer that vocab_pre.c does not describe is written as the
 * expressions of its row. */
static void check_pre(void)
{
    static const struct {
        const char *pre;
        size_t n;          /* number of steps; 0: refused */
        const char *first; /* expression of the first step */
    } rows[] = {
        { "deepseek-coder", 6, "[\\r\\n]" },
        { "deepseek-llm", 7, "[\\r\\n]" },
        { "viking", 3, NULL },
        { "default", 5, NULL },
        { "jais-2", 0, NULL },
        { "gemma4", 0, NULL },
        { "unheard-of", 0, NULL },
    };
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        struct written w;
        begin_file(&w, "gpt2", rows[i].pre, gpt2, GG_LEN(gpt2));
        const enum gguf_status st = write_it(&w);
        const json_t *steps =
            json_at(json_at(w.json.root, "pre_tokenizer"), "pretokenizers");
        const json_t *last = json_array_get(steps, rows[i].n - 1);
        const json_t *expr =
            json_at(json_at(json_array_get(steps, 0), "pattern"), "Regex");
        if (rows[i].n)
            ok(st == GGUF_OK && json_array_size(steps) == rows[i].n &&
                   is_text(json_at(last, "type"), "ByteLevel") &&
                   json_is_false(json_at(last, "use_regex")) &&
                   (!rows[i].first || is_text(expr, rows[i].first)),
               "%s: %zu steps %s", rows[i].pre, json_array_size(steps),
               w.err.message);
        else
            ok(st == GGUF_E_UNSUPPORTED && strstr(w.err.message, rows[i].pre),
               "%s", w.err.message);
        end_file(&w);
    }
}

/* A token with a NUL, which Jansson cannot store. */
static void check_nul(void)
{
    static const struct gguf_str text[] = { { "a", 1 },
                                            { "\0", 1 },
                                            { "\0b", 2 } };
    static const int32_t type[] = { 1, 1, 1 };
    struct written w;
    begin_file(&w, "gpt2", "gpt-2", gpt2, GG_LEN(text));
    must_be_ok(gguf_meta_set_str_array(w.meta, TOK "tokens", text,
                                       GG_LEN(text), NULL));
    must_be_ok(gguf_meta_set_array(w.meta, TOK "token_type", GGUF_VAL_I32,
                                   type, GG_LEN(text), NULL));
    w.plain = true;
    const enum gguf_status st = write_it(&w);
    if (JANSSON_VERSION_HEX < 0x020e00)
        ok(st == GGUF_E_VOCAB, "a token of NUL: %s", w.err.message);
    else
        ok(st == GGUF_OK && strstr(w.text[0].text, "\"\\u0000\": 1,") &&
               strstr(w.text[0].text, "\"\\u0000b\": 2"),
           "a token of NUL is a member of vocab %s", w.err.message);
    end_file(&w);
}

/* ---- pieces with U+2581 ---- */

/* Make tokens for 256 bytes, except those left out, after the tokens t. */
static size_t with_bytes(struct token *out, const struct token *t, size_t n,
                         int left_out)
{
    static char names[256][8];
    memcpy(out, t, n * sizeof *t);
    for (int b = 0; b < 256; b++) {
        snprintf(names[b], sizeof names[b], "<0x%02X>", (unsigned)b);
        if (b != left_out)
            out[n++] = (struct token){ names[b], 6 };
    }
    return n;
}

static const struct token pieces[] = {
    { "<unk>", 2 }, { "<s>", 3 },   { "</s>", 3 }, { MARK "a", 1 },
    { "    ", 4 },  { "<x y>", 4 }, { "\t", 1 },   { "a", 1 },
};

static void check_ranked(void)
{
    struct token t[300];
    static const struct gguf_str merge = { MARK " a", 5 };
    struct written w;
    begin_file(&w, "gemma4", NULL, t,
               with_bytes(t, pieces, GG_LEN(pieces), -1));
    must_be_ok(gguf_meta_set_str_array(w.meta, TOK "merges", &merge, 1, NULL));
    must_be_ok(gguf_meta_set_u32(w.meta, TOK "bos_token_id", 1, NULL));
    must_be_ok(gguf_meta_set_bool(w.meta, TOK "add_bos_token", 1, NULL));
    const enum gguf_status st = write_it(&w);
    const json_t *vocab = json_at(json_at(w.json.root, "model"), "vocab");
    const json_t *single =
        json_at(json_at(w.json.root, "post_processor"), "single");
    ok(st == GGUF_OK && ids_hold(&w) &&
           json_integer_value(json_at(vocab, MARK MARK MARK MARK)) == 4 &&
           json_integer_value(json_at(vocab, "<x" MARK "y>")) == 5,
       "gemma4: tokens of users with their blanks as pieces have them %s",
       w.err.message);
    ok(is_text(json_at(json_at(w.json.root, "normalizer"), "content"), MARK) &&
           is_step(json_array_get(single, 0), "<s>"),
       "gemma4: blanks become U+2581, BOS in front");
    end_file(&w);
}

/* Value of field 35 of TrainerSpec, byte_fallback; -1: missing. */
static int byte_fallback(const struct gg_back_text *t)
{
    for (size_t i = 0; i + 2 < t->size; i++)
        if (!memcmp(t->text + i, "\x98\x02", 2))
            return t->text[i + 2];
    return -1;
}

static void check_spm(const char *model)
{
    static const struct {
        int left_out;
        bool bytes;
        size_t n; /* number of byte pieces; 0 with bytes: refused */
    } rows[] = { { -1, true, 256 },
                 { 9, true, 256 }, /* "\t" stands for byte 9 */
                 { 65, true, 0 },
                 { -1, false, 0 } };
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        struct token t[300];
        struct written w;
        size_t n = GG_LEN(pieces), n_bytes = 0;
        memcpy(t, pieces, sizeof pieces);
        if (rows[i].bytes)
            n = with_bytes(t, pieces, n, rows[i].left_out);
        begin_file(&w, model, "default", t, n);
        const enum gguf_status st = write_it(&w);
        if (rows[i].bytes && !rows[i].n) {
            ok(st == GGUF_E_VOCAB && strstr(w.err.message, "255 byte tokens"),
               "%s: %s", model, w.err.message);
            end_file(&w);
            continue;
        }
        struct gg_convert_vocab v;
        struct reader_folder c;
        struct gguf_error e;
        const bool read = st == GGUF_OK &&
                          reader_run(gg_convert_vocab_read_spm, w.text[0].text,
                                     w.text[0].size, &v, &c, &e) == GGUF_OK;
        for (size_t k = 0; read && k < v.n; k++)
            n_bytes += v.type[k] == GG_CONVERT_BYTE;
        ok(read && v.n == n && n_bytes == rows[i].n &&
               byte_fallback(&w.text[0]) == (rows[i].n > 0),
           "%s: %zu pieces of bytes, byte_fallback %d %s", model, n_bytes,
           byte_fallback(&w.text[0]), w.err.message);
        ok(read && v.type[4] == GG_CONVERT_USER &&
               gg_str_eqz(v.token[4], MARK MARK MARK MARK) &&
               gg_str_eqz(v.token[5], "<x" MARK "y>") &&
               is_text(json_at(json_at(json_at(w.config.root,
                                               "added_tokens_decoder"),
                                       "5"),
                               "content"),
                       "<x" MARK "y>"),
           "%s: tokens of users with their blanks as pieces have them", model);
        if (read)
            reader_forget(&v, &c);
        end_file(&w);
    }
}

int main(void)
{
    check_gpt2();
    check_pre();
    check_nul();
    check_ranked();
    check_spm("llama");
    check_spm("t5");
    return done_testing();
}
