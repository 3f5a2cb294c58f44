/* SPDX-License-Identifier: MIT */
/* check-golden.c - ids of published vocabularies agree with llama.cpp's
 *
 * Needs ../shared; the other tests of this folder do not.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/vocab.h"
#include "tests/tap.h"
#include "tests/vocab/ids.h"

enum { NOT_KNOWN = -2 };

/* ---- vectors: index TAB mode TAB ids TAB text of ids ---- */

struct text {
    char *data;
    size_t size;
};

static struct text *corpus;
static size_t n_corpus;

static char *next_line(FILE *f)
{
    static char *line;
    static size_t cap;
    size_t n = 0;
    for (int c; (c = getc(f)) != EOF;) {
        if (n + 1 >= cap) {
            cap = cap ? 2 * cap : 4096;
            line = realloc(line, cap);
            if (!line)
                abort();
        }
        if (c == '\n') {
            line[n] = 0;
            return line;
        }
        line[n++] = (char)c;
    }
    if (!n)
        return NULL;
    line[n] = 0;
    return line;
}

static struct text from_hex(const char *hex)
{
    struct text t = { malloc(strlen(hex) / 2 + 1), strlen(hex) / 2 };
    for (size_t i = 0; i < t.size; i++) {
        char two[3] = { hex[2 * i], hex[2 * i + 1], 0 };
        t.data[i] = (char)strtol(two, NULL, 16);
    }
    return t;
}

static void load_corpus(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *line = next_line(f); /* headings */
    while ((line = next_line(f))) {
        char *hex = strrchr(line, '\t') + 1;
        corpus = realloc(corpus, (n_corpus + 1) * sizeof *corpus);
        corpus[n_corpus++] = from_hex(hex);
    }
    fclose(f);
}

static int check_line(const struct gguf_vocab *v, char *line)
{
    char *col[4] = { line, NULL, NULL, NULL };
    for (int i = 1; i < 4; i++) {
        col[i] = strchr(col[i - 1], '\t');
        if (!col[i])
            return 0;
        *col[i]++ = 0;
    }
    if (strncmp(col[2], "ERR", 3) == 0)
        return 1; /* llama.cpp fails for a byte sequence */
    size_t k = strtoul(col[0], NULL, 10);
    if (k >= n_corpus)
        return 0;
    unsigned flags =
        strcmp(col[1], "plain") == 0 ? 0
        : strcmp(col[1], "special") == 0
            ? GGUF_TOKENIZE_ADD_SPECIAL
            : GGUF_TOKENIZE_ADD_SPECIAL | GGUF_TOKENIZE_PARSE_SPECIAL;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_error err;
    if (gguf_vocab_tokenize(v, corpus[k].data, corpus[k].size, flags, &t,
                            &err) != GGUF_OK) {
        printf("# text %zu: %s\n", k, err.message);
        return 0;
    }
    int good = same_ids(&t, col[2]);
    if (!good) {
        printf("# text %zu %s: want %s\n#   got ", k, col[1], col[2]);
        print_ids(&t);
    }
    if (good && !flags) {
        struct text want =
            strcmp(col[3], "=") == 0 ? corpus[k] : from_hex(col[3]);
        size_t n = gguf_vocab_detokenize(v, t.id, t.n, GGUF_DETOKENIZE_SPECIAL,
                                         NULL, 0);
        char *out = malloc(n + 1);
        gguf_vocab_detokenize(v, t.id, t.n, GGUF_DETOKENIZE_SPECIAL, out, n);
        /* llama.cpp removes blanks before punctuation, as some tokenizers'
         * authors do; the original text is right, too */
        good = (n == want.size && memcmp(out, want.data, n) == 0) ||
               (n == corpus[k].size && memcmp(out, corpus[k].data, n) == 0);
        if (!good)
            printf("# text %zu: back to %zu bytes, want %zu\n", k, n,
                   want.size);
        free(out);
        if (want.data != corpus[k].data)
            free(want.data);
    }
    gguf_tokens_fini(&t);
    return good;
}

/* Compare one vocabulary, with another pre-tokenizer (NULL: its own). */
static void check_golden(const char *name, const char *ids_path,
                         const char *file_path, const char *pre,
                         gguf_token newline)
{
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    struct gguf_file *file;
    struct gguf_vocab *v;
    struct gguf_error err;
    char *ids = shared_path(ids_path) ? strdup(shared_path(ids_path)) : NULL;
    FILE *f = ids ? fopen(ids, "rb") : NULL;
    const char *path = shared_path(file_path);
    free(ids);
    if (!f || !path) {
        skip("%s: no vectors here", name);
        if (f)
            fclose(f);
        return;
    }
    p.pre = pre;
    if (gguf_file_open(&file, path, NULL, &err) != GGUF_OK ||
        gguf_vocab_create(&v, file, &p, &err) != GGUF_OK) {
        ok(0, "%s: %s", name, err.message);
        fclose(f);
        return;
    }
    unsigned n_vocab, type, add_bos, add_eos, add_sep;
    int bos, eos;
    const char *head = next_line(f);
    int n = sscanf(head,
                   "#n_vocab %u type %u bos %d eos %d add_bos %u "
                   "add_eos %u add_sep %u",
                   &n_vocab, &type, &bos, &eos, &add_bos, &add_eos, &add_sep);
    ok(n == 7 && gguf_vocab_n_tokens(v) == n_vocab &&
           gguf_vocab_special_id(v, GGUF_SPECIAL_BOS) == bos &&
           gguf_vocab_special_id(v, GGUF_SPECIAL_EOS) == eos &&
           (newline == NOT_KNOWN ||
            gguf_vocab_special_id(v, GGUF_SPECIAL_NEWLINE) == newline) &&
           gguf_vocab_wants_bos(v) == (int)add_bos &&
           gguf_vocab_wants_eos(v) == (int)add_eos &&
           gguf_vocab_wants_sep(v) == (int)add_sep,
       "%s: size, special tokens, switches", name);
    int n_lines = 0, n_bad = 0;
    for (char *line; (line = next_line(f)); n_lines++)
        n_bad += !check_line(v, line);
    ok(n_lines >= 600 && !n_bad, "%s: %d lines of ids, %d differ", name,
       n_lines, n_bad);
    fclose(f);
    gguf_vocab_destroy(v);
    gguf_file_close(file);
}

static void check_named(const char *name, const char *file, gguf_token newline)
{
    char ids[128], path[128];
    snprintf(ids, sizeof ids, "golden/tokenizer/ids-%s.tsv", name);
    snprintf(path, sizeof path, "golden/tokenizer/vocabs/%s-%s.gguf", file,
             name);
    check_golden(name, ids, path, NULL, newline);
}

/* Every name of tokenizer.ggml.pre, on one vocabulary. */
static void check_pre(void)
{
    const char *path = shared_path("golden/tokenizer/pre/names.tsv");
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!f) {
        skip("no names here");
        return;
    }
    char pre[64], ids[64], rel[128], name[80];
    int n = 0;
    if (fscanf(f, "%63s %63s", pre, ids) != 2) /* headings */
        abort();
    for (; fscanf(f, "%63s %63s", pre, ids) == 2; n++) {
        snprintf(rel, sizeof rel, "golden/tokenizer/pre/%s", ids);
        snprintf(name, sizeof name, "pre %s", pre);
        check_golden(name, rel,
                     "golden/tokenizer/vocabs/ggml-vocab-gpt-2.gguf", pre,
                     NOT_KNOWN);
    }
    ok(n == 86, "%d names", n);
    fclose(f);
}

/* newline: llama_vocab_nl of llama.cpp's library (node-llama-cpp 3.22.1, a
 * model opened with vocabOnly, tokens.nl). That program does not show a token
 * of kind unknown: made-unigram's is from the definition in gguf/vocab.h. */
static const struct golden {
    const char *name;
    gguf_token newline;
} vocabs[] = {
    { "llama-spm", 13 },       { "baichuan", 403 },     { "phi-3", 13 },
    { "gpt-2", 198 },          { "gpt-neox", 187 },     { "mpt", 187 },
    { "refact", 203 },         { "starcoder", 222 },    { "falcon", 193 },
    { "deepseek-coder", 185 }, { "deepseek-llm", 185 }, { "bert-bge", 0 },
};
static const struct golden made[] = { { "made-unigram", 0 },
                                      { "made-rwkv", 11 },
                                      { "made-plamo2", 3304 } };

int main(void)
{
    const char *path = shared_path("golden/tokenizer/corpus.tsv");
    if (!path) {
        skip("no published vocabularies here");
        return done_testing();
    }
    load_corpus(path);
    for (size_t i = 0; i < GG_LEN(vocabs); i++)
        check_named(vocabs[i].name, "ggml-vocab", vocabs[i].newline);
    for (size_t i = 0; i < GG_LEN(made); i++)
        check_named(made[i].name, "vocab", made[i].newline);
    check_golden("trained-llama", "golden/tokenizer/ids-trained-llama.tsv",
                 "models/llama-f16.gguf", NULL, 13);
    check_golden("trained-qwen2", "golden/tokenizer/ids-trained-qwen2.tsv",
                 "models/qwen2-f16.gguf", NULL, 198);
    check_pre();
    for (size_t i = 0; i < n_corpus; i++)
        free(corpus[i].data);
    free(corpus);
    return done_testing();
}
