/* SPDX-License-Identifier: MIT */
/* check-rwkv.c - folders of RWKV: rwkv_vocab_v20230424.txt becomes a
 * vocabulary
 *
 * Ids are compared with a plain count: the longest token each time.
 */
#include "config.h"
#include "tests/convert/reader.h"
#include "tests/convert/converted_vocab.h"

#include <unistd.h>

static char top[200];
static struct folder f;

/* ---- lines ---- */

/* Literals as Python 3's repr() writes bytes. */
static void check_literals(void)
{
    static const struct {
        const char *line, *text;
    } rows[] = {
        { "1 'a' 1", "a" },
        { "1 'a' 1\r\n", "a" },
        { "1 ' ' 1\n", " " },
        { "1 ' x \\' 9' 6\n", " x ' 9" },
        { "1 '\\x00' 1", "\\x00" },
        { "1 '\\x7f' 1", "\\x7f" },
        { "1 b'\\x80\\xFf' 2", "\\x80\\xff" },
        { "1 '\\xe9' 2", "\\xc3\\xa9" },
        { "1 '\xc3\xa9' 2", "\\xc3\\xa9" },
        { "1 '\\u4e2d' 3", "\\xe4\\xb8\\xad" },
        { "1 '\\U0001F600' 4", "\\xf0\\x9f\\x98\\x80" },
        { "1 '\\t\\n\\r\\\\' 4", "\\t\\n\\r\\\\" },
        { "1 '\\a\\b\\f\\v' 4", "\\x07\\x08\\x0c\\x0b" },
        { "1 '\\0\\12\\101' 3", "\\x00\\nA" },
        { "1 b'\\377' 1", "\\xff" },
        { "1 \"it's\" 4", "it's" },
        { "1 'say \"x\"' 7", "say \"x\"" },
        { "1 '\\'\"' 2", "\\'\"" },
        { "1 b\"it's\" 4", "it's" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_convert_vocab v;
        struct reader_folder c;
        struct gguf_error e;
        const enum gguf_status st =
            reader_run(gg_convert_vocab_read_rwkv, rows[i].line,
                       strlen(rows[i].line), &v, &c, &e);
        const char *want = rows[i].text;
        ok(st == GGUF_OK && v.n == 2 && v.token[1].size == strlen(want) &&
               !memcmp(v.token[1].data, want, strlen(want)),
           "%.*s becomes %s %s", (int)strcspn(rows[i].line, "\r\n"),
           rows[i].line, want, e.message);
        reader_forget(&v, &c);
    }
}

static void check_refused(void)
{
    static const struct reader_refusal rows[] = {
        { "", "no tokens", 0 },
        { "\n", "line 1: a number", 0 },
        { "x 'a' 1", "line 1: a number", 0 },
        { "-1 'a' 1", "line 1: a number", 0 },
        { "99999999999999999999 'a' 1", "line 1: a number", 0 },
        { "0 'a' 1", "id 0, after 0 comes 1", 0 },
        { "2 'a' 1", "id 2, after 0 comes 1", 0 },
        { "1 'a' 1\n1 'b' 1\n", "line 2: id 1, after 1 comes 2", 8 },
        { "1 'a' 1\n3 'b' 1\n", "line 2: id 3, after 1 comes 2", 8 },
        { "1 'a' 1\n2 'b' 1\n\n", "line 3: a number", 16 },
        { "1\t'a' 1", "a blank is missing", 1 },
        { "1 'a'1", "a blank is missing", 5 },
        { "1 'a'", "a blank is missing", 5 },
        { "1 'a' ", "a number", 6 },
        { "1 'a' 1 ", "more than a size", 7 },
        { "1 'a' 2", "a text of 1 bytes, its size says 2", 7 },
        { "1 '' 0", "a text of 0 bytes", 6 },
        { "1 'a' -1", "a number", 6 },
        { "1 a 1", "does not begin with a quote", 2 },
        { "1 ", "does not begin with a quote", 2 },
        { "1 b", "does not begin with a quote", 3 },
        { "1 r'a' 1", "does not begin with a quote", 2 },
        { "1 'a", "the text does not end", 4 },
        { "1 'a\" 1", "the text does not end", 7 },
        { "1 'a\\' 1", "the text does not end", 8 },
        { "1 'a\\", "a backslash at the end", 5 },
        { "1 '\\q' 1", "unknown escape sequence", 4 },
        { "1 '\\N{DASH}' 1", "unknown escape sequence", 4 },
        { "1 b'\\u4e2d' 3", "unknown escape sequence", 5 },
        { "1 '\\x4' 1", "lacks digits", 6 },
        { "1 '\\u4e2' 1", "lacks digits", 8 },
        { "1 '\\x", "lacks digits", 5 },
        { "1 '\\ud800' 3", "not a character", 9 },
        { "1 '\\U00110000' 4", "not a character", 13 },
        { "1 b'\\777' 1", "not a byte", 8 },
        { "1 '\xff' 1", "not UTF-8", 3 },
        { "1 b'\xc3\xa9' 2", "not ASCII", 4 },
    };
    reader_refuses(gg_convert_vocab_read_rwkv, rows,
                   sizeof rows / sizeof *rows, GGUF_E_VOCAB);
    /* the longest allowed text, and one byte more */
    static char line[5000];
    for (int more = 0; more < 2; more++) {
        struct gg_convert_vocab v;
        struct reader_folder c;
        struct gguf_error e;
        const int n = 4093 + more;
        memset(line, 'a', sizeof line);
        memcpy(line, "1 '", 3);
        sprintf(line + 3 + n, "' %d", n);
        const enum gguf_status st = reader_run(gg_convert_vocab_read_rwkv,
                                               line, strlen(line), &v, &c, &e);
        ok(more ? st == GGUF_E_VOCAB && strstr(e.message, "4 KiB")
                : st == GGUF_OK,
           "a text of %d bytes %s", n, e.message);
        reader_forget(&v, &c);
    }
}

/* ---- a folder ---- */

static void count_ids(char *ids, const char *text)
{
    size_t n;
    *ids = 0;
    while (*text) {
        int best = 0;
        size_t most = 0;
        char buf[8];
        for (int i = 1; i < FOLDER_VOCAB; i++) {
            const char *t = folder_rwkv_token(i, buf, &n);
            if (n > most && !strncmp(text, t, n)) {
                best = i;
                most = n;
            }
        }
        sprintf(ids + strlen(ids), "%s%d", *ids ? "," : "", best);
        text += most;
    }
}

static void begin_folder(int n_vocab)
{
    char config[300], tensors[100];
    folder_begin(&f, scratch_path(top, "hf"));
    sprintf(config,
            "{\"architectures\":[\"RWKV7ForCausalLM\"],\"vocab_size\":%d,"
            "\"hidden_size\":1,\"num_hidden_layers\":0,\"norm_eps\":1e-5,"
            "\"head_dim\":1,\"bos_token_id\":1,\"eos_token_id\":2}",
            n_vocab);
    folder_text(&f, "config.json", config);
    sprintf(tensors, "model.embeddings.weight %d 1\n", n_vocab);
    folder_tensors(&f, tensors, 1, 1);
    folder_weights(&f, "F32", 1);
}

static void check_folder(void)
{
    static const char *const texts[] = {
        "",
        "abcab ab\n\nx",
        "it's \"\\ caf\xc3\xa9's \xc3\xa9",
        "\x01\x7f\xff\xfe tab\t",
    };
    struct converted_vocab made, *m = &made;
    struct gguf_error e;
    struct gguf_str s;
    char ids[1000];
    begin_folder(FOLDER_VOCAB + 4);
    folder_rwkv(&f);
    ok(converted_vocab_open(m, f.dir, scratch_path(top, "o.gguf"), &e) ==
           GGUF_OK,
       "rwkv_vocab_v20230424.txt %s", e.message);
    if (!m->vocab)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        count_ids(ids, texts[i]);
        ok(converted_vocab_gives(m, texts[i], ids), "text %zu is %s", i, ids);
    }
    s = gguf_vocab_token_text(m->vocab, FOLDER_VOCAB + 1);
    ok(gguf_vocab_n_tokens(m->vocab) == FOLDER_VOCAB + 4 && s.size == 6 &&
           !memcmp(s.data, "[PAD1]", 6) &&
           gguf_vocab_token_kind(m->vocab, FOLDER_VOCAB) ==
               GGUF_TOKEN_UNUSED &&
           gguf_vocab_token_kind(m->vocab, 0) == GGUF_TOKEN_CONTROL,
       "a token for each row of the model, numbered after the last");
    ok(converted_vocab_key(m, "tokenizer.ggml.bos_token_id") == 0 &&
           converted_vocab_key(m, "tokenizer.ggml.eos_token_id") == 0 &&
           converted_vocab_key(m, "tokenizer.ggml.eot_token_id") == -1 &&
           !gguf_file_kv_find(m->file, "tokenizer.ggml.pre"),
       "token 0 begins and ends texts; words are not cut before");
    ok(gguf_kv_get_str(gguf_file_kv_find(m->file, "tokenizer.chat_template"),
                       &s, NULL) == GGUF_OK &&
           s.size == 10 && !memcmp(s.data, "rwkv-world", 10),
       "its form of turns");
    converted_vocab_close(m);
    converted_vocab_roundtrip(&f, scratch_path(top, "o.gguf"), top, "RWKV");
    /* one text, written in two ways, is one token */
    FILE *o = folder_create(&f, "rwkv_vocab_v20230424.txt");
    fputs("1 '\xc3\xa9' 2\n2 b'\\xc3\\xa9' 2\n", o);
    fclose(o);
    ok(converted_vocab_open(m, f.dir, scratch_path(top, "p.gguf"), &e) ==
               GGUF_E_VOCAB &&
           strstr(e.message, "rwkv_vocab_v20230424.txt: tokens 1 and 2 are "
                             "both '\\\\xc3\\\\xa9'"),
       "refused: %s", e.message);
    converted_vocab_close(m);
}

/* ---- beside the tree: a vocabulary written as lines again ---- */

static void check_golden(void)
{
    struct converted_vocab made, *m = &made;
    struct gguf_file *file;
    struct gguf_vocab *v = golden_vocab("vocab-made-rwkv.gguf", &file);
    struct gguf_error e;
    char piece[1000];
    if (!v)
        return;
    const int n_tokens = (int)gguf_vocab_n_tokens(v);
    begin_folder(n_tokens);
    FILE *o = folder_create(&f, "rwkv_vocab_v20230424.txt");
    for (int i = 1; i < n_tokens; i++) {
        const size_t n = gguf_vocab_piece(v, i, 0, piece, sizeof piece);
        fprintf(o, "%d b'", i);
        for (size_t k = 0; k < n; k++)
            fprintf(o, "\\x%02x", (unsigned)(unsigned char)piece[k]);
        fprintf(o, "' %zu\n", n);
    }
    fclose(o);
    ok(converted_vocab_open(m, f.dir, scratch_path(top, "o.gguf"), &e) ==
           GGUF_OK,
       "a vocabulary as lines of bytes %s", e.message);
    bool good = m->vocab != NULL;
    for (int i = 1; i < n_tokens && good; i++) {
        char other[1000];
        const size_t n = gguf_vocab_piece(v, i, 0, piece, sizeof piece);
        good = gguf_vocab_piece(m->vocab, i, 0, other, sizeof other) == n &&
               !memcmp(piece, other, n);
    }
    ok(good, "the bytes of its tokens");
    check_golden_ids(m, v);
    converted_vocab_close(m);
    gguf_vocab_destroy(v);
    gguf_file_close(file);
}

int main(void)
{
    snprintf(top, sizeof top, "check-rwkv.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    check_literals();
    check_refused();
    check_folder();
    check_golden();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
