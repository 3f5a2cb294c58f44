/* SPDX-License-Identifier: MIT */
/* check-vocab.c - tokenizers of folders become vocabularies, and malformed
 * ones are refused */
#include "config.h"
#include "tests/convert/reader.h"
#include "tests/convert/folder.h"
#include "tests/ignore_status.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <unistd.h>

static char top[200];

/* ---- tokenizer.model ---- */

#define PIECE                                                                 \
    "\x0a\x0a\x0a\x01"                                                        \
    "a\x15\0\0\x80\xbf\x18\x01" /* "a", score -1, normal */

static void check_spm(void)
{
    /* a piece; one with defaults only; TrainerSpec of BPE after another field;
     * NormalizerSpec without a blank in front; an unknown field */
    static const char good[] = PIECE "\x0a\x05\x0a\x03\xe2\x96\x81"
                                     "\x12\x05\x0a\x01x\x18\x02"
                                     "\x1a\x02\x18\x00"
                                     "\x22\x03xyz\x29"
                                     "12345678";
    struct gg_convert_vocab v;
    struct reader_folder c;
    struct gguf_error e;
    enum gguf_status st = reader_run(gg_convert_vocab_read_spm, good,
                                     sizeof good - 1, &v, &c, &e);
    ok(st == GGUF_OK && v.n == 2 && v.token[0].size == 1 &&
           v.token[0].data[0] == 'a' && v.score[0] == -1 && v.type[0] == 1 &&
           v.token[1].size == 3 && v.score[1] == 0 && v.type[1] == 1 &&
           !strcmp(v.model, "llama") && v.space_prefix == 0,
       "a tokenizer.model of two pieces %s", e.message);
    reader_forget(&v, &c);
    int refused = 0;
    for (size_t n = 0; n + 1 < sizeof good; n++) { /* truncated */
        st = reader_run(gg_convert_vocab_read_spm, good, n, &v, &c, &e);
        refused += st != GGUF_OK && e.message[0];
        reader_forget(&v, &c);
    }
    /* complete before each of the last three fields, and before TrainerSpec,
     * where it is a Unigram model */
    ok(refused == (int)sizeof good - 1 - 5,
       "%d of %zu beginnings of it are refused", refused, sizeof good - 1);
}

#define BPE "\x12\x02\x18\x02"

static void check_spm_refused(void)
{
    static const struct {
        const char *bytes, *word;
        size_t size;
        enum gguf_status status;
        uint64_t off;
    } rows[] = {
#define ROW(BYTES, WORD, STATUS, OFF)                                         \
    { BYTES, WORD, sizeof BYTES - 1, STATUS, OFF }
        ROW("", "no pieces", GGUF_E_VOCAB, 0),
        ROW(BPE, "no pieces", GGUF_E_VOCAB, 0),
        ROW(PIECE "\x12\x02\x18\x03", "kind 3", GGUF_E_UNSUPPORTED,
            GGUF_NO_OFFSET),
        ROW(PIECE "\x12\x05\x18\x02\xc0\x01\x01", "whitespace_as_suffix",
            GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET),
        ROW(BPE "\x1a\x02\x28\x00" PIECE, "escape_whitespaces 0",
            GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET),
        ROW("\x0a\x7f", "needs 127 bytes", GGUF_E_TRUNCATED, 2),
        ROW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "needs",
            GGUF_E_TRUNCATED, 11),
        ROW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "64 bits",
            GGUF_E_FORMAT, 1),
        ROW("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "64 bits",
            GGUF_E_FORMAT, 0),
        ROW("\x02\x00", "number 0", GGUF_E_FORMAT, 0),
        ROW("\x0b", "wire type 3", GGUF_E_FORMAT, 0),
        ROW("\x0f", "wire type 7", GGUF_E_FORMAT, 0),
        ROW("\x08\x01", "a piece that is not a message", GGUF_E_FORMAT, 0),
        ROW("\x10\x01", "specification", GGUF_E_FORMAT, 0),
        ROW("\x0a\x02\x18\x01", "without a text", GGUF_E_FORMAT, 0),
        ROW("\x0a\x04\x0a\x02\xff\xff", "not UTF-8", GGUF_E_FORMAT, 0),
        ROW("\x0a\x05\x0a\x01"
            "a\x18\x07",
            "unknown kind", GGUF_E_FORMAT, 0),
        ROW("\x0a\x05\x0a\x01"
            "a\x18\x00",
            "unknown kind", GGUF_E_FORMAT, 0),
        ROW("\x0a\x08\x0a\x01"
            "a\x15\0\0\xc0\x7f",
            "not finite", GGUF_E_FORMAT, 0),
        ROW("\x0a\x05\x0a\x01"
            "a\x10\x07",
            "another wire type", GGUF_E_FORMAT, 5),
        ROW("\x0a\x04\x0a\x05"
            "ab",
            "needs 5 bytes", GGUF_E_TRUNCATED, 4),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_convert_vocab v;
        struct reader_folder c;
        struct gguf_error e;
        enum gguf_status st =
            reader_run(gg_convert_vocab_read_spm, rows[i].bytes, rows[i].size,
                       &v, &c, &e);
        ok(st == rows[i].status && strstr(e.message, rows[i].word) &&
               e.offset == rows[i].off,
           "refused at %lld: %s", (long long)e.offset, e.message);
        reader_forget(&v, &c);
    }
}

/* ---- tokenizer.json ---- */

static struct folder f;

static enum gguf_status open_folder(const char *tokenizer, const char *config,
                                    struct gguf_convert **c,
                                    struct gguf_error *e)
{
    folder_text(&f, "tokenizer.json", tokenizer);
    folder_text(&f, "tokenizer_config.json", config);
    gguf_error_clear(e);
    return gguf_convert_open(c, f.dir, NULL, e);
}

#define PRE                                                                   \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"

static void check_json_refused(void)
{
    static const struct {
        const char *text, *word;
        enum gguf_status status;
    } rows[] = {
        { "{}", "no object \"model\"", GGUF_E_VOCAB },
        { "{\"model\":{\"type\":\"WordLevel\"}}", "'WordLevel'",
          GGUF_E_UNSUPPORTED },
        { "{\"model\":{\"type\":\"BPE\"}}", "vocab", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":\"0\"},\"merges\":[]}}", "id",
          GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", "id",
          GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":99999999},\"merges\":[]}}", "id",
          GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}",
          "two pieces", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]}}",
          "'a' is there twice", GGUF_E_DUPLICATE },
        { "{\"model\":{\"vocab\":{\"a\":0,\"\\u0061\":1},\"merges\":[]}}",
          "'a' is there twice", GGUF_E_DUPLICATE },
        { "{\"model\":{\"vocab\":{\"a\":0},\"vocab\":{\"b\":0}}}", "duplicate",
          GGUF_E_DUPLICATE },
        { "{\"model\":{\"vocab\":{\"\xff\":0},\"merges\":[]}}",
          "column 21: bytes that are not UTF-8", GGUF_E_FORMAT },
        { "{\"model\":{\"vocab\":{\"\\u0000\":0,\"\\u0000\":1}}}",
          "is there twice", GGUF_E_DUPLICATE },
        { "{\"model\":{\"vocab\":{\"a\":99999999999999999999}}}",
          "does not fit 64 bits", GGUF_E_FORMAT },
        { "{\"model\":{\"vocab\":{\"a\":0]}}", "column", GGUF_E_FORMAT },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a b\"\"c d\"]}}",
          "',' or ']' expected", GGUF_E_FORMAT },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"b\",\"c\"]]}}",
          "not of two", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[[[[[[[]]]]]]]]}}",
          "not of two", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0}}}", "merges", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"ab\"]}}",
          "not of two", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a \"]}}",
          "not of two", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}",
          "not of two", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"\"]]}}",
          "not of two", GGUF_E_VOCAB },
        { "{" PRE "\"added_tokens\":[{\"content\":\"x\"}],\"model\":{"
          "\"vocab\":{\"a\":0},\"merges\":[]}}",
          "no id", GGUF_E_VOCAB },
        { "{" PRE "\"added_tokens\":[{\"id\":1}],\"model\":{\"vocab\":{\"a\":"
          "0},\"merges\":[]}}",
          "content", GGUF_E_VOCAB },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}",
          "not recognised: none", GGUF_E_UNSUPPORTED },
        { "{\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\":{\"vocab\":{"
          "\"a\":0},\"merges\":[]}}",
          "not recognised: Whitespace", GGUF_E_UNSUPPORTED },
        { "{\"model\":{\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0}}}",
          "has end_of_word_suffix '</w>'", GGUF_E_UNSUPPORTED },
        { "{\"model\":{\"continuing_subword_prefix\":\"##\"}}",
          "has continuing_subword_prefix '##'", GGUF_E_UNSUPPORTED },
        { "{\"model\":{\"end_of_word_suffix\":\"\"}}", "vocab", GGUF_E_VOCAB },
        { "[", "JSON", GGUF_E_FORMAT },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_convert *c = NULL;
        struct gguf_error e;
        enum gguf_status st = open_folder(rows[i].text, "{}", &c, &e);
        ok(st == rows[i].status && !c && strstr(e.message, rows[i].word) &&
               strstr(e.message, "tokenizer.json: ") == e.message,
           "refused: %s", e.message);
        gguf_convert_close(c);
    }
}

/* Element of a key of texts; a number is written as a text. */
static struct gguf_str element_of(const struct gguf_convert *c,
                                  const char *key, uint64_t i)
{
    struct gguf_str s = { "", 0 };
    struct gguf_kv e;
    const struct gguf_kv *kv = gguf_meta_find(gguf_convert_meta(c), key);
    if (kv && gguf_kv_get_elem(kv, i, &e, NULL) == GGUF_OK)
        ignore_status(gguf_kv_get_str(&e, &s, NULL));
    return s;
}

static bool is_text(struct gguf_str s, const char *z)
{
    return s.size == strlen(z) && !memcmp(s.data, z, s.size);
}

/* SentencePiece BPE in tokenizer.json: merges become scores. */
static void check_scores(void)
{
    static const char text[] =
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},"
        "{\"id\":7,\"content\":\"\xe2\x96\x81user\",\"special\":false},"
        "{\"id\":8,\"content\":\"<|x|>\",\"special\":false}],"
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
        "\"Prepend\",\"prepend\":\"\xe2\x96\x81\"}]},\"model\":{\"type\":"
        "\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"vocab\":{"
        "\"<unk>\":0,\"<0x41>\":1,\"a\":2,\"b\":3,\"c\":4,\"ab\":5,\"abc\":6}"
        ",\"merges\":[\"a b\",\"ab c\",\"a bc\"]}}";
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    float score[9] = { 0 };
    int32_t type[9] = { 0 };
    bool b = false;
    enum gguf_status st = open_folder(
        text, "{\"unk_token\":\"<unk>\",\"add_bos_token\":true}", &c, &e);
    ok(st == GGUF_OK, "SentencePiece's BPE in tokenizer.json %s", e.message);
    if (st != GGUF_OK)
        return;
    const struct gguf_meta *m = gguf_convert_meta(c);
    const struct gguf_kv *scores = gguf_meta_find(m, "tokenizer.ggml.scores");
    const struct gguf_kv *types =
        gguf_meta_find(m, "tokenizer.ggml.token_type");
    bool good = gguf_kv_get_elems_f32(scores, 0, 9, score, NULL) == GGUF_OK &&
                gguf_kv_get_elems_i32(types, 0, 9, type, NULL) == GGUF_OK;
    ok(good && score[5] == -1 && score[6] == -2 && score[2] < -2,
       "the place of the first merge that makes a piece is its score");
    ok(good && type[0] == 2 && type[1] == 6 && type[2] == 1 && type[7] == 4 &&
           type[8] == 3 && type[9 - 1] == 3 &&
           is_text(element_of(c, "tokenizer.ggml.tokens", 7), " user"),
       "unknown, byte, normal, user's and control tokens");
    ok(scores->n == FOLDER_VOCAB &&
           is_text(element_of(c, "tokenizer.ggml.tokens", 100), "[PAD100]"),
       "a token for each row of the model");
    ok(gguf_kv_get_bool(gguf_meta_find(m, "tokenizer.ggml.add_space_prefix"),
                        &b, NULL) == GGUF_OK &&
           b && gguf_meta_find(m, "tokenizer.ggml.unknown_token_id") &&
           gguf_meta_find(m, "tokenizer.ggml.add_bos_token") &&
           !gguf_meta_find(m, "tokenizer.ggml.merges"),
       "a blank in front, ids, no merges");
    gguf_convert_close(c);
}

/* Merges as pairs equal merges as texts; blanks inside are escaped. */
static void check_merges(void)
{
    static const char text[] =
        "{" PRE "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},"
        "\"merges\":[[\"a\",\"b\"],[\" a\",\"b\"]]}}";
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    ok(open_folder(text,
                   "{\"chat_template\":[{\"name\":\"x\",\"template\":"
                   "\"1\"},{\"name\":\"default\",\"template\":\"2\"}]}",
                   &c, &e) == GGUF_OK &&
           is_text(element_of(c, "tokenizer.ggml.merges", 0), "a b") &&
           is_text(element_of(c, "tokenizer.ggml.merges", 1), "\xc4\xa0"
                                                              "a b"),
       "merges as pairs %s", e.message);
    struct gguf_str s = { "", 0 };
    if (c)
        ignore_status(gguf_kv_get_str(
            gguf_meta_find(gguf_convert_meta(c), "tokenizer.chat_template"),
            &s, NULL));
    ok(is_text(s, "2"), "of several templates the default");
    gguf_convert_close(c);
}

/* NUL alone is a piece, and other pieces may begin with NUL. */
static void check_nul(void)
{
    static const char text[] =
        "{" PRE "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,"
        "\"\\u0000\":1,\"\\u0000b\":2},\"merges\":[]}}";
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    ok(open_folder(text, "{}", &c, &e) == GGUF_OK, "a piece of NUL %s",
       e.message);
    if (c) {
        const struct gguf_str one = element_of(c, "tokenizer.ggml.tokens", 1),
                              two = element_of(c, "tokenizer.ggml.tokens", 2);
        ok(one.size == 1 && !one.data[0] && two.size == 2 &&
               !memcmp(two.data, "\0b", 2),
           "keeps its text");
    }
    gguf_convert_close(c);
}

/* A merge counts even if its piece is very long: each has a score by its rank.
 */
static void check_long(void)
{
    enum { N = 1500 };
    static char text[4 * N + 1000];
    char a[N / 2 + 1];
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    float score[2] = { 0 };
    memset(a, 'a', N / 2);
    a[N / 2] = 0;
    snprintf(text, sizeof text,
             "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":"
             "{\"%s\":0,\"%s%s\":1},\"merges\":[\"x y\",\"%s %s\"]}}",
             a, a, a, a, a);
    ok(open_folder(text, "{}", &c, &e) == GGUF_OK &&
           gguf_kv_get_elems_f32(
               gguf_meta_find(gguf_convert_meta(c), "tokenizer.ggml.scores"),
               0, 2, score, NULL) == GGUF_OK &&
           score[0] == -3 && score[1] == -2,
       "a piece of %d bytes: the second merge makes it %s", N, e.message);
    gguf_convert_close(c);
}

/* Gemma 4 keeps its merges and has no scores. Tokens that chats are parsed by
 * are visible, and texts begin with BOS, whatever the folder says. */
static void check_ranked(void)
{
    static const char text[] =
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<bos>\",\"special\":true},"
        "{\"id\":7,\"content\":\"<|channel>\",\"special\":true},"
        "{\"id\":8,\"content\":\"<|turn>\",\"special\":true}],"
        "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":"
        "\" \"},\"content\":\"\xe2\x96\x81\"},\"model\":{\"type\":"
        "\"BPE\",\"byte_fallback\":true,\"vocab\":{"
        "\"<bos>\":0,\"<0x41>\":1,\"a\":2,\"b\":3,\"c\":4,\"ab\":5,\"abc\":6}"
        ",\"merges\":[[\"a\",\"b\"],[\"ab\",\"c\"]]}}";
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    struct gguf_str model = { "", 0 };
    float score[9] = { 0 };
    int32_t type[9] = { 0 };
    bool blank = true, bos = false;
    enum gguf_status st =
        open_folder(text, "{\"add_bos_token\":false}", &c, &e);
    ok(st == GGUF_OK, "Gemma 4's tokenizer %s", e.message);
    if (st != GGUF_OK)
        return;
    const struct gguf_meta *m = gguf_convert_meta(c);
    ignore_status(gguf_kv_get_str(gguf_meta_find(m, "tokenizer.ggml.model"),
                                  &model, NULL));
    bool good =
        gguf_kv_get_elems_f32(gguf_meta_find(m, "tokenizer.ggml.scores"), 0, 9,
                              score, NULL) == GGUF_OK &&
        gguf_kv_get_elems_i32(gguf_meta_find(m, "tokenizer.ggml.token_type"),
                              0, 9, type, NULL) == GGUF_OK;
    for (int i = 0; i < 9; i++)
        good = good && score[i] == -1000;
    ok(good && is_text(model, "gemma4") &&
           !gguf_meta_find(m, "tokenizer.ggml.pre"),
       "its model, and scores that say nothing");
    ok(type[0] == 3 && type[1] == 6 && type[2] == 1 && type[7] == 4 &&
           type[8] == 3,
       "control, byte, normal, shown and control tokens");
    ok(is_text(element_of(c, "tokenizer.ggml.merges", 0), "a b") &&
           is_text(element_of(c, "tokenizer.ggml.merges", 1), "ab c"),
       "merges by rank");
    ok(!gguf_kv_get_bool(gguf_meta_find(m, "tokenizer.ggml.add_space_prefix"),
                         &blank, NULL) &&
           !gguf_kv_get_bool(gguf_meta_find(m, "tokenizer.ggml.add_bos_token"),
                             &bos, NULL) &&
           !blank && bos,
       "no blank in front, but BOS");
    gguf_convert_close(c);
}

static int64_t number_of(const struct gguf_convert *c, const char *name)
{
    char key[64];
    uint64_t id;
    bool yes;
    snprintf(key, sizeof key, "tokenizer.ggml.%s", name);
    const struct gguf_kv *kv = gguf_meta_find(gguf_convert_meta(c), key);
    if (!kv)
        return -1;
    if (gguf_kv_get_bool(kv, &yes, NULL) == GGUF_OK)
        return yes;
    return gguf_kv_get_uint(kv, &id, NULL) == GGUF_OK ? (int64_t)id : -2;
}

static void use_class(const char *name, int n_vocab)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"architectures\":[\"%s\"],\"vocab_size\":%d,\"hidden_size\":8,"
             "\"num_attention_heads\":1}",
             name, n_vocab);
    folder_text(&f, "config.json", text);
}

static const char im_end[] =
    "{" PRE "\"added_tokens\":[{\"id\":2,\"content\":\"<|im_end|>\","
    "\"special\":true}],\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},"
    "\"merges\":[]}}";

/* Ids of a model's parts: those of the whole, or of "text_config". */
static void check_ids(void)
{
    static const struct {
        const char *ids;
        int64_t bos, eos;
    } cases[] = {
        { "\"eos_token_id\":1,\"text_config\":{\"eos_token_id\":2,"
          "\"bos_token_id\":[0,1]",
          0, 1 },
        { "\"eos_token_id\":null,\"text_config\":{\"eos_token_id\":2", -1, 2 },
        { "\"llm_config\":{\"bos_token_id\":1", -1, -1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_convert *c = NULL;
        struct gguf_error e;
        char config[300];
        snprintf(config, sizeof config,
                 "{\"architectures\":[\"LlamaForCausalLM\"],%s,"
                 "\"vocab_size\":260,\"hidden_size\":8,"
                 "\"num_attention_heads\":1}}",
                 cases[i].ids);
        folder_text(&f, "config.json", config);
        ok(open_folder(im_end, "{}", &c, &e) == GGUF_OK &&
               number_of(c, "bos_token_id") == cases[i].bos &&
               number_of(c, "eos_token_id") == cases[i].eos,
           "%s: %s", cases[i].ids, e.message);
        gguf_convert_close(c);
    }
}

/* Tokens whose roles the architectures' rows know. */
static void check_roles(void)
{
    static const char text[] =
        "{" PRE "\"added_tokens\":[{\"id\":2,\"content\":\"<|endoftext|>\","
        "\"special\":true},{\"id\":3,\"content\":\"[gMASK]\",\"special\":true},"
        "{\"id\":4,\"content\":\"<|user|>\",\"special\":true},{\"id\":5,"
        "\"content\":\"<|observation|>\",\"special\":true}],\"model\":{\"type\":"
        "\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}";
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    use_class("Glm4MoeForCausalLM", 260);
    ok(open_folder(text, "{}", &c, &e) == GGUF_OK &&
           number_of(c, "bos_token_id") == 3 &&
           number_of(c, "eot_token_id") == 4 &&
           number_of(c, "unknown_token_id") == 2 &&
           number_of(c, "eom_token_id") == 5 &&
           number_of(c, "eos_token_id") < 0,
       "GLM's tokens %s", e.message);
    gguf_convert_close(c);
    c = NULL;
    ok(open_folder(text, "{\"bos_token\":\"<|user|>\"}", &c, &e) == GGUF_OK &&
           number_of(c, "bos_token_id") == 4 &&
           number_of(c, "eot_token_id") == 4,
       "the folder's settings count %s", e.message);
    gguf_convert_close(c);
    for (int n = 32015; n <= 32016; n++) {
        c = NULL;
        use_class("LlamaForCausalLM", n);
        ok(open_folder(text, "{\"add_bos_token\":true}", &c, &e) == GGUF_OK &&
               number_of(c, "prefix_token_id") == (n == 32016 ? 32007 : -1) &&
               number_of(c, "fsep_token_id") < 0 &&
               number_of(c, "add_bos_token") == 1,
           "a Llama of %d tokens %s", n, e.message);
        gguf_convert_close(c);
    }
    c = NULL;
    use_class("Qwen3ASRForConditionalGeneration", 260);
    ok(open_folder(im_end, "{}", &c, &e) == GGUF_OK &&
           number_of(c, "bos_token_id") == 2 &&
           number_of(c, "eos_token_id") == 2,
       "what ends a turn begins and ends Qwen 3 ASR's texts %s", e.message);
    gguf_convert_close(c);
    c = NULL;
    use_class("GraniteForCausalLM", 49152);
    ok(open_folder(text, "{\"add_bos_token\":true}", &c, &e) == GGUF_OK &&
           number_of(c, "add_bos_token") == 0 &&
           number_of(c, "eot_token_id") < 0,
       "a Granite of 49152 tokens has no BOS in front %s", e.message);
    gguf_convert_close(c);
}

/* The name llama-bpe implies BOS. A tokenizer that adds no BOS must say so in
 * the file. */
static void check_implied_bos(void)
{
#define LLAMA(POST)                                                           \
    "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":" \
    "\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"        \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?"                \
    "[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"             \
    "\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},{" \
    "\"type\":\"ByteLevel\",\"use_regex\":false}]}," POST                     \
    "\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{\"a\":0,"  \
    "\"b\":1},\"merges\":[]}}"
    static const struct {
        const char *text, *config;
        int bos;
    } rows[] = {
        { LLAMA(""), "{\"bos_token\":\"b\"}", 0 },
        { LLAMA("\"post_processor\":{\"type\":\"ByteLevel\"},"),
          "{\"bos_token\":\"b\"}", 0 },
        { LLAMA("\"post_processor\":{\"type\":\"TemplateProcessing\","
                "\"single\":[{\"SpecialToken\":{\"id\":\"b\"}},{\"Sequence\":"
                "{\"id\":\"A\"}}]},"),
          "{\"bos_token\":\"b\"}", 1 },
        { LLAMA("\"post_processor\":{\"type\":\"BertProcessing\"},"),
          "{\"bos_token\":\"b\"}", 1 },
        { LLAMA(""), "{\"add_bos_token\":true}", 1 },
        { LLAMA(""), "{\"tokenizer_class\":\"LlamaTokenizerFast\"}", -1 },
    };
    struct gguf_error e;
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        struct gguf_convert *c = NULL;
        use_class("LlamaForCausalLM", 260);
        ok(open_folder(rows[i].text, rows[i].config, &c, &e) == GGUF_OK &&
               number_of(c, "add_bos_token") == rows[i].bos,
           "llama-bpe with %s: add_bos_token %d %s", rows[i].config,
           rows[i].bos, e.message);
        gguf_convert_close(c);
    }
}

int main(void)
{
    snprintf(top, sizeof top, "check-vocab-convert.%d.tmp", (int)getpid());
    check_spm();
    check_spm_refused();
    folder_begin(&f, top);
    folder_text(&f, "config.json",
                "{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":260,"
                "\"hidden_size\":8,\"num_attention_heads\":1}");
    folder_tensors(&f, "model.embed_tokens.weight 260 8\n", 1, 1);
    folder_weights(&f, "F32", 1);
    check_json_refused();
    check_scores();
    check_merges();
    check_nul();
    check_long();
    use_class("Gemma4ForCausalLM", 260);
    check_ranked();
    check_roles();
    check_implied_bos();
    check_ids();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
