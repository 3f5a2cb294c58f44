/* SPDX-License-Identifier: MIT */
/* check-wordpiece.c - folders of BERT: their tokenizers become vocabularies
 *
 * Ids are compared with a plain count: words cut by hand, and in each the
 * longest token of the vocabulary, one after another.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/converted_vocab.h"

#include <ctype.h>
#include <unistd.h>

static char top[200];
static struct folder f;

static void begin_folder(const char *name)
{
    folder_begin(&f, scratch_path(top, name));
    folder_text(&f, "config.json",
                "{\"architectures\":[\"BertModel\"],\"vocab_size\":260,"
                "\"hidden_size\":8,\"num_attention_heads\":1,"
                "\"num_hidden_layers\":0,\"type_vocab_size\":2,"
                "\"pad_token_id\":0}");
    folder_tensors(&f, "embeddings.word_embeddings.weight 260 8\n", 1, 1);
    folder_weights(&f, "F32", 1);
}

/* ---- an own count ---- */

static int find_token(const char *text, size_t n)
{
    char buf[32];
    for (int i = 0; i < FOLDER_VOCAB; i++) {
        const char *t = folder_wordpiece_token(i, buf);
        if (strlen(t) == n && !memcmp(t, text, n))
            return i;
    }
    return -1;
}

/* Append the ids of a word; 1, the unknown token, if it cannot be cut. */
static void put_word(char *ids, const char *word, size_t n)
{
    char piece[200];
    const size_t before = strlen(ids);
    for (size_t i = 0; i < n;) {
        int id = -1;
        size_t k = n - i;
        for (; k && id < 0; k--) {
            sprintf(piece, "%s%.*s", i ? "##" : "", (int)k, word + i);
            id = find_token(piece, strlen(piece));
            if (id >= 0)
                break;
        }
        if (id < 0) {
            ids[before] = 0;
            sprintf(ids + before, ",1");
            return;
        }
        sprintf(ids + strlen(ids), ",%d", id);
        i += k;
    }
}

/* Ids of a text in ASCII. */
static void count_ids(char *ids, const char *text)
{
    char word[200];
    size_t n = 0;
    strcpy(ids, "2");
    for (const char *p = text;; p++) {
        const bool ends = !*p || *p == ' ' || ispunct((unsigned char)*p);
        if (ends && n)
            put_word(ids, word, n);
        if (ends)
            n = 0;
        else
            word[n++] = (char)tolower((unsigned char)*p);
        if (!*p)
            break;
        if (ispunct((unsigned char)*p))
            put_word(ids, p, 1);
    }
    strcat(ids, ",3");
}

static void check_texts(const struct converted_vocab *m)
{
    static const char *const texts[] = {
        "",
        "Hello world",
        "The unaffable naive word, un-able: (x2)!",
        "  hello   hello  ",
        "##able [MASK] cafes",
        "a~b {c} `d` 0123456789",
        "helloworld 99bottles",
    };
    char ids[1000];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        count_ids(ids, texts[i]);
        ok(converted_vocab_gives(m, texts[i], ids), "'%s' is %s", texts[i],
           ids);
    }
    /* e with an accent is e; each Chinese character is a word; an unknown word
     * is one unknown token */
    sprintf(ids, "2,%d,%d,%d,1,3", find_token("cafe", 4),
            find_token("\xe4\xb8\xad", 3), find_token("\xe6\x96\x87", 3));
    ok(converted_vocab_gives(
           m, "Caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 \xd0\xb6", ids),
       "accents, Chinese, Cyrillic");
}

static bool text_is(const struct converted_vocab *m, gguf_token id,
                    const char *text)
{
    const struct gguf_str s = gguf_vocab_token_text(m->vocab, id);
    return s.size == strlen(text) && !memcmp(s.data, text, s.size);
}

static void check_made(const struct converted_vocab *m, const char *what)
{
    ok(text_is(m, 2, "[CLS]") &&
           text_is(m, 5,
                   "\xe2\x96\x81"
                   "a") &&
           text_is(m, 41, "a") &&
           text_is(m, find_token("un", 2), "\xe2\x96\x81un") &&
           text_is(m, find_token("##able", 6), "able"),
       "%s: beginnings of words are marked, other pieces are not", what);
    ok(gguf_vocab_token_kind(m->vocab, 1) == GGUF_TOKEN_CONTROL &&
           gguf_vocab_token_kind(m->vocab, 4) == GGUF_TOKEN_CONTROL &&
           gguf_vocab_token_kind(m->vocab, 5) == GGUF_TOKEN_NORMAL,
       "%s: special tokens are control tokens", what);
#define IS(KEY, VALUE)                                                        \
    (converted_vocab_key(m, "tokenizer.ggml." KEY) == (VALUE))
    ok(IS("bos_token_id", 2) && IS("cls_token_id", 2) &&
           IS("eos_token_id", 3) && IS("seperator_token_id", 3) &&
           IS("unknown_token_id", 1) && IS("padding_token_id", 0) &&
           IS("mask_token_id", 4) && IS("token_type_count", 2) &&
           IS("normalizer.lowercase", 1) && IS("normalizer.strip_accents", -1),
       "%s: ids and keys", what);
}

/* Both forms of one vocabulary. */
static void check_both(void)
{
    struct converted_vocab made, *m = &made;
    struct gguf_error e;
    for (int json = 0; json < 2; json++) {
        const char *what = json ? "tokenizer.json" : "vocab.txt";
        begin_folder(json ? "json" : "txt");
        folder_wordpiece(&f, json);
        ok(converted_vocab_open(m, f.dir, scratch_path(top, "o.gguf"), &e) ==
               GGUF_OK,
           "%s becomes a vocabulary %s", what, e.message);
        if (m->vocab) {
            check_made(m, what);
            check_texts(m);
            ok(IS("add_bos_token", json ? 1 : -1) &&
                   IS("add_eos_token", json ? 1 : -1) &&
                   IS("add_sep_token", json ? 0 : -1),
               "%s: tokens round texts", what);
        }
        converted_vocab_close(m);
        converted_vocab_roundtrip(&f, scratch_path(top, "o.gguf"), top, what);
    }
    /* Windows line ends, and no line end at the end of the file */
    static char text[4000];
    char buf[32];
    size_t n = 0;
    for (int i = 0; i < FOLDER_VOCAB; i++)
        n += (size_t)sprintf(text + n, "%s%s", i ? "\r\n" : "",
                             folder_wordpiece_token(i, buf));
    folder_text(&f, "vocab.txt", text);
    remove(scratch_path(f.dir, "tokenizer.json"));
    ok(converted_vocab_open(m, f.dir, scratch_path(top, "o.gguf"), &e) ==
               GGUF_OK &&
           text_is(m, 5,
                   "\xe2\x96\x81"
                   "a") &&
           text_is(m, 41, "a"),
       "lines that end in CR and LF %s", e.message);
    converted_vocab_close(m);
}

/* The folder says whether upper case and accents are kept. */
static void check_cased(void)
{
    static const struct {
        const char *config;
        int lower, strip;
        const char *text, *ids;
    } rows[] = {
        { "{\"do_lower_case\":false}", 0, -1, "Hello caf\xc3\xa9", NULL },
        { "{\"strip_accents\":false}", 1, 0, "Hello caf\xc3\xa9", NULL },
        { "{\"do_lower_case\":false,\"strip_accents\":true}", 0, 1,
          "Hello caf\xc3\xa9", NULL },
    };
    char ids[3][64];
    const int upper = find_token("Hello", 5), lower = find_token("hello", 5),
              bare = find_token("cafe", 4),
              accent = find_token("caf\xc3\xa9", 5);
    sprintf(ids[0], "2,%d,%d,3", upper, accent);
    sprintf(ids[1], "2,%d,%d,3", lower, accent);
    sprintf(ids[2], "2,%d,%d,3", upper, bare);
    begin_folder("cased");
    folder_wordpiece(&f, false);
    for (size_t i = 0; i < 3; i++) {
        struct converted_vocab made, *m = &made;
        struct gguf_error e;
        folder_text(&f, "tokenizer_config.json", rows[i].config);
        ok(converted_vocab_open(m, f.dir, scratch_path(top, "o.gguf"), &e) ==
                   GGUF_OK &&
               IS("normalizer.lowercase", rows[i].lower) &&
               IS("normalizer.strip_accents", rows[i].strip) &&
               IS("unknown_token_id", 1) && IS("mask_token_id", 4) &&
               converted_vocab_gives(m, rows[i].text, ids[i]),
           "%s: %s %s", rows[i].config, ids[i], e.message);
        converted_vocab_close(m);
        converted_vocab_roundtrip(&f, scratch_path(top, "o.gguf"), top,
                                  rows[i].config);
    }
}

/* ---- refused ---- */

static void check_txt_refused(void)
{
    static const struct {
        const char *text, *config, *word;
        uint64_t off;
        enum gguf_status status;
    } rows[] = {
        { "", "{}", "no tokens", 0, GGUF_E_VOCAB },
        { "a\n\nb\n", "{}", "line 2 is empty", 2, GGUF_E_VOCAB },
        { "a\nb\n\xff\n", "{}", "line 3 is not UTF-8", 4, GGUF_E_VOCAB },
        { "a\nb\na\n", "{}", "tokens 0 and 2 are both", GGUF_NO_OFFSET,
          GGUF_E_VOCAB },
        { "a\n##[UNK]\n[UNK]\n", "{}", "tokens 1 and 2 are both '[UNK]'",
          GGUF_NO_OFFSET, GGUF_E_VOCAB },
        { "a\n", "{\"tokenizer_class\":\"MPNetTokenizer\"}",
          "class 'MPNetTokenizer'", GGUF_NO_OFFSET, GGUF_E_UNSUPPORTED },
        { "a\n", "{\"tokenize_chinese_chars\":false}", "Chinese",
          GGUF_NO_OFFSET, GGUF_E_UNSUPPORTED },
        { "a\n", "{\"do_basic_tokenize\":false}", "blanks only",
          GGUF_NO_OFFSET, GGUF_E_UNSUPPORTED },
    };
    begin_folder("txt-refused");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder_text(&f, "vocab.txt", rows[i].text);
        folder_text(&f, "tokenizer_config.json", rows[i].config);
        check_folder_refused(&f, "vocab.txt: ", rows[i].word, rows[i].off,
                             rows[i].status);
    }
}

#define BERT_PRE "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}"
#define NORM(WHAT)                                                            \
    "\"normalizer\":{\"type\":\"BertNormalizer\"" WHAT "}," BERT_PRE
#define VOCAB "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}"

static void check_json_refused(void)
{
    static const struct {
        const char *text, *word;
        uint64_t off;
        enum gguf_status status;
    } rows[] = {
        { "{\"model\":{\"type\":\"WordPiece\"}}", "no object \"vocab\"",
          GGUF_NO_OFFSET, GGUF_E_VOCAB },
        { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":-1}}}",
          "id is out of range", 42, GGUF_E_VOCAB },
        { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":1,\"b\":1}}}",
          "two pieces", 48, GGUF_E_VOCAB },
        { "{" VOCAB "}", "without a normalizer", GGUF_NO_OFFSET,
          GGUF_E_UNSUPPORTED },
        { "{\"normalizer\":{\"type\":\"NFKC\"}," VOCAB "}", "type 'NFKC'", 14,
          GGUF_E_UNSUPPORTED },
        { "{\"normalizer\":{\"type\":\"Lowercase\"}," BERT_PRE "," VOCAB "}",
          "not BERT's", 14, GGUF_E_UNSUPPORTED },
        { "{" NORM(",\"clean_text\":false") "," VOCAB "}", "clean_text", 14,
          GGUF_E_UNSUPPORTED },
        { "{" NORM(",\"handle_chinese_chars\":false") "," VOCAB "}", "Chinese",
          14, GGUF_E_UNSUPPORTED },
        { "{\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"normalizer\":{"
          "\"type\":\"BertNormalizer\"}," VOCAB "}",
          "type 'Whitespace'", 17, GGUF_E_UNSUPPORTED },
        { "{" NORM("") ",\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}"
                       ",\"continuing_subword_prefix\":\"@@\"}}",
          "begin with ##", 156, GGUF_E_UNSUPPORTED },
        { "{" NORM("") ",\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,"
                       "\"##\xe2\x96\x81"
                       "a\":1}}}",
          "tokens 0 and 1 are both", GGUF_NO_OFFSET, GGUF_E_VOCAB },
    };
    begin_folder("json-refused");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder_text(&f, "tokenizer.json", rows[i].text);
        check_folder_refused(&f, "tokenizer.json: ", rows[i].word, rows[i].off,
                             rows[i].status);
    }
}

/* ---- beside the tree: bge's vocabulary, as a folder would have it ---- */

static void write_token(FILE *o, const struct gguf_vocab *v, size_t i)
{
    const struct gguf_str s = gguf_vocab_token_text(v, (gguf_token)i);
    const bool whole =
        s.size > 1 && s.data[0] == '[' && s.data[s.size - 1] == ']';
    const bool marked = s.size > 3 && !memcmp(s.data, "\xe2\x96\x81", 3);
    fprintf(o, "%s%.*s\n", whole || marked ? "" : "##",
            (int)(marked ? s.size - 3 : s.size), marked ? s.data + 3 : s.data);
}

static void check_golden(void)
{
    struct gguf_file *file;
    struct gguf_vocab *v = golden_vocab("ggml-vocab-bert-bge.gguf", &file);
    struct gguf_error e;
    struct converted_vocab m;
    if (!v)
        return;
    folder_begin(&f, scratch_path(top, "bge"));
    folder_text(&f, "config.json",
                "{\"architectures\":[\"BertModel\"],\"vocab_size\":30522,"
                "\"hidden_size\":1,\"num_attention_heads\":1}");
    folder_tensors(&f, "embeddings.word_embeddings.weight 30522 1\n", 1, 1);
    folder_weights(&f, "F32", 1);
    FILE *o = folder_create(&f, "vocab.txt");
    for (size_t i = 0; i < gguf_vocab_n_tokens(v); i++)
        write_token(o, v, i);
    fclose(o);
    ok(converted_vocab_open(&m, f.dir, scratch_path(top, "o.gguf"), &e) ==
           GGUF_OK,
       "bge's vocab.txt %s", e.message);
    check_golden_ids(&m, v);
    converted_vocab_close(&m);
    gguf_vocab_destroy(v);
    gguf_file_close(file);
}

int main(void)
{
    snprintf(top, sizeof top, "check-wordpiece.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    check_both();
    check_cased();
    check_txt_refused();
    check_json_refused();
    check_golden();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
