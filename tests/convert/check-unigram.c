/* SPDX-License-Identifier: MIT */
/* check-unigram.c - folders of T5 and XLM-RoBERTa: their tokenizers become
 * vocabularies
 *
 * Ids are compared with a plain search: the pieces of a word with the largest
 * sum of scores, by trying every piece at each place.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/converted_vocab.h"
#include "tests/slurp.h"

#include <ctype.h>
#include <unistd.h>

#define MARK "\xe2\x96\x81"
#define IS(KEY, VALUE)                                                        \
    (converted_vocab_key(m, "tokenizer.ggml." KEY) == (VALUE))

static char top[200];
static struct folder f;

static void begin_folder(const char *name, const char *class_name, int n_vocab)
{
    char config[400], tensors[100];
    folder_begin(&f, scratch_path(top, name));
    sprintf(config,
            "{\"architectures\":[\"%s\"],\"vocab_size\":%d,\"d_model\":1,"
            "\"num_layers\":0,\"hidden_size\":1,\"num_attention_heads\":1,"
            "\"pad_token_id\":1}",
            class_name, n_vocab);
    folder_text(&f, "config.json", config);
    sprintf(tensors, "%s.weight %d 1\n",
            *class_name == 'T' ? "shared" : "embeddings.word_embeddings",
            n_vocab);
    folder_tensors(&f, tensors, 1, 1);
    folder_weights(&f, "F32", 1);
}

/* ---- an own count ---- */

enum { UNK = 2 };

/* Append the best ids of s, which begins a word. Unknown characters (ASCII)
 * have a score of ten below the lowest. */
static void put_word(char *ids, const char *s, bool *unknown)
{
    double best[200] = { 0 };
    int from[200], id[200], way[200], n_way = 0;
    const int n = (int)strlen(s);
    char buf[32];
    float score, low = 0;
    for (int k = 3; k < FOLDER_VOCAB; k++) {
        folder_unigram_piece(k, buf, &score);
        low = score < low ? score : low;
    }
    for (int to = 1; to <= n; to++) {
        best[to] = -1e9;
        for (int k = UNK; k < FOLDER_VOCAB; k++) {
            const char *p = folder_unigram_piece(k, buf, &score);
            const int size = k == UNK ? 1 : (int)strlen(p);
            const double sum =
                size > to ? -1e9
                          : best[to - size] + (k == UNK ? low - 10 : score);
            if (sum > best[to] &&
                (k == UNK ? !(s[to - 1] & 0x80)
                          : !memcmp(s + to - size, p, (size_t)size))) {
                best[to] = sum;
                from[to] = to - size;
                id[to] = k;
            }
        }
    }
    for (int at = n; at; at = from[at])
        way[n_way++] = id[at];
    while (n_way--) {
        if (way[n_way] != UNK || !*unknown)
            sprintf(ids + strlen(ids), "%d,", way[n_way]);
        *unknown = way[n_way] == UNK;
    }
}

static void count_ids(char *ids, const char *text)
{
    char word[200] = MARK;
    size_t n = 3;
    bool unknown = false;
    *ids = 0;
    for (const char *p = text;; p++) {
        if (*p && *p != ' ') {
            word[n++] = (char)tolower((unsigned char)*p);
            continue;
        }
        word[n] = 0;
        if (n > 3)
            put_word(ids, word, &unknown);
        n = 3;
        if (!*p)
            break;
    }
    strcat(ids, "1"); /* </s> */
}

static void check_texts(const struct converted_vocab *m)
{
    static const char *const texts[] = {
        "",
        "hello world",
        "The unable HELLO 99 hellos",
        "  the   world  ",
        "worldhello x12x x1 unx7x",
        "what? yes!! ?? a-b",
    };
    char ids[1000];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        count_ids(ids, texts[i]);
        ok(converted_vocab_gives(m, texts[i], ids), "'%s' is %s", texts[i],
           ids);
    }
}

static void check_both(void)
{
    struct converted_vocab made[2];
    struct gguf_error e;
    for (int form = 0; form < 2; form++) {
        struct converted_vocab *m = &made[form];
        begin_folder(form ? "spiece" : "json", "T5EncoderModel", FOLDER_VOCAB);
        folder_unigram(&f, form ? FOLDER_UGM_SPIECE : FOLDER_UGM_JSON);
        ok(converted_vocab_open(m, f.dir,
                                scratch_path(top, form ? "1.gguf" : "0.gguf"),
                                &e) == GGUF_OK,
           "%s becomes a vocabulary %s", form ? "spiece.model" : "JSON",
           e.message);
        if (!m->vocab)
            continue;
        check_texts(m);
        ok(IS("eos_token_id", 1) && IS("unknown_token_id", 2) &&
               IS("padding_token_id", 0) && IS("bos_token_id", -1) &&
               IS("add_space_prefix", 1) &&
               IS("remove_extra_whitespaces", 1) &&
               IS("add_eos_token", form ? -1 : 1) && IS("add_bos_token", -1),
           "ids and keys");
        const struct gguf_kv *kv =
            gguf_file_kv_find(m->file, "tokenizer.ggml.precompiled_charsmap");
        uint8_t map[FOLDER_CHARSMAP];
        folder_charsmap(map);
        ok(kv && kv->n == sizeof map && kv->elem_type == GGUF_VAL_U8 &&
               !memcmp(kv->data, map, sizeof map),
           "the table is there, byte for byte");
        converted_vocab_roundtrip(
            &f, scratch_path(top, form ? "1.gguf" : "0.gguf"), top, "T5");
    }
    ok(made[0].vocab && made[1].vocab &&
           vocab_equal(made[0].vocab, made[1].vocab),
       "both forms are one vocabulary");
    converted_vocab_close(&made[0]);
    converted_vocab_close(&made[1]);
}

/* ---- XLM-RoBERTa ---- */

static void write_xlmr(const char *name)
{
    uint8_t b[8];
    FILE *o = folder_create(&f, name);
    folder_proto_piece(o, "<unk>", 0, 2);
    folder_proto_piece(o, "<s>", 0, 3);
    folder_proto_piece(o, "</s>", 0, 3);
    folder_proto_piece(o, ",", -3, 1);
    folder_proto_piece(o, MARK "a", -4, 1);
    folder_proto_piece(o, MARK, -5, 1);
    folder_proto(o, 2, b, folder_number(b, 3, 1));
    fclose(o);
}

static bool text_is(const struct converted_vocab *m, gguf_token id,
                    const char *text)
{
    const struct gguf_str s = gguf_vocab_token_text(m->vocab, id);
    return s.size == strlen(text) && !memcmp(s.data, text, s.size);
}

static void check_xlmr(void)
{
    struct converted_vocab made, *m = &made;
    struct gguf_error e;
    begin_folder("xlmr", "XLMRobertaModel", 9);
    write_xlmr("sentencepiece.bpe.model");
    ok(converted_vocab_open(m, f.dir, scratch_path(top, "o.gguf"), &e) ==
           GGUF_OK,
       "sentencepiece.bpe.model %s", e.message);
    if (!m->vocab)
        return;
    ok(text_is(m, 0, "<s>") && text_is(m, 1, "<pad>") &&
           text_is(m, 2, "</s>") && text_is(m, 3, "<unk>") &&
           text_is(m, 4, ",") && text_is(m, 5, MARK "a") &&
           text_is(m, 7, "<mask>") && text_is(m, 8, "[PAD8]") &&
           gguf_vocab_token_kind(m->vocab, 3) == GGUF_TOKEN_UNKNOWN &&
           gguf_vocab_token_kind(m->vocab, 7) == GGUF_TOKEN_CONTROL &&
           gguf_vocab_token_score(m->vocab, 5) == -4,
       "fairseq's ids, and the mask");
    ok(IS("bos_token_id", 0) && IS("cls_token_id", 0) &&
           IS("eos_token_id", 2) && IS("seperator_token_id", 2) &&
           IS("unknown_token_id", 3) && IS("padding_token_id", 1) &&
           IS("mask_token_id", 7) && IS("add_bos_token", 1) &&
           IS("add_eos_token", 1) && IS("token_type_count", 1),
       "their roles");
    ok(converted_vocab_gives(m, "a,, a", "0,5,4,4,5,2"),
       "a text between <s> and </s>");
    converted_vocab_close(m);
    converted_vocab_roundtrip(&f, scratch_path(top, "o.gguf"), top,
                              "XLM-RoBERTa");
}

/* ---- refused ---- */

#define MODEL(REST) "\"model\":{\"type\":\"Unigram\"," REST "}}"
#define A_MODEL     MODEL("\"vocab\":[[\"a\",0]]")
#define TABLE(TEXT)                                                           \
    "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":"     \
    "\"" TEXT "\"}," A_MODEL

static void check_json_refused(void)
{
    static const struct {
        const char *text, *word;
        uint64_t off;
        enum gguf_status status;
    } rows[] = {
        { "{" MODEL("\"vocab\":[]"), "no list \"vocab\"", 35, GGUF_E_VOCAB },
        { "{" MODEL("\"vocab\":{\"a\":0}"), "no list", 35, GGUF_E_VOCAB },
        { "{" MODEL("\"vocab\":[\"a\"]"), "not a text and a score", 36,
          GGUF_E_VOCAB },
        { "{" MODEL("\"vocab\":[[\"a\",0],[\"b\"]]"), "not a text and a score",
          44, GGUF_E_VOCAB },
        { "{" MODEL("\"vocab\":[[\"a\",\"0\"]]"), "finite", 36, GGUF_E_VOCAB },
        { "{" MODEL("\"vocab\":[[\"a\",1e300]]"), "finite", 36, GGUF_E_VOCAB },
        { "{" MODEL("\"unk_id\":1,\"vocab\":[[\"a\",0]]"), "one of 1 pieces",
          36, GGUF_E_VOCAB },
        { "{" MODEL("\"unk_id\":-1,\"vocab\":[[\"a\",0]]"), "one of 1 pieces",
          36, GGUF_E_VOCAB },
        { "{" MODEL("\"vocab\":[[\"a\",0],[\"b\",0],[\"a\",0]]"),
          "tokens 0 and 2 are both 'a'", GGUF_NO_OFFSET, GGUF_E_VOCAB },
        { "{\"normalizer\":{\"type\":\"NFKC\"}," A_MODEL, "type 'NFKC'", 14,
          GGUF_E_UNSUPPORTED },
        { "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
          "\"Replace\",\"pattern\":{\"String\":\"``\"},\"content\":\"x\"}]}"
          "," A_MODEL,
          "type 'Replace'", 48, GGUF_E_UNSUPPORTED },
        { "{\"pre_tokenizer\":{\"type\":\"Punctuation\"}," A_MODEL,
          "type 'Punctuation'", 17, GGUF_E_UNSUPPORTED },
        { "{\"normalizer\":{\"type\":\"Precompiled\"}," A_MODEL, "no table",
          14, GGUF_E_VOCAB },
        { TABLE("AAA"), "3 digits of base64", 59, GGUF_E_VOCAB },
        { TABLE("AA=A"), "digit 2 of the precompiled table is byte 0x3D", 59,
          GGUF_E_VOCAB },
        { TABLE("AA-A"), "digit 2", 59, GGUF_E_VOCAB },
        { TABLE("AAA="), "has 2 bytes", 14, GGUF_E_VOCAB },
        /* a trie of 8 bytes; 4 of them exist */
        { TABLE("CAAAAAAAAAA="), "its trie has 8", 14, GGUF_E_VOCAB },
        /* one unit with a text that does not end */
        { TABLE("BAAAAAABAABh"), "unit 0 of 1", 14, GGUF_E_VOCAB },
    };
    begin_folder("json-refused", "T5EncoderModel", 260);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder_text(&f, "tokenizer.json", rows[i].text);
        check_folder_refused(&f, "tokenizer.json: ", rows[i].word, rows[i].off,
                             rows[i].status);
    }
}

/* Write a model of one piece with these specifications. */
static void write_model(const char *name, const uint8_t *trainer, size_t n,
                        const void *normalizer, size_t n_normalizer)
{
    FILE *o = folder_create(&f, name);
    folder_proto_piece(o, "a", 0, 1);
    folder_proto(o, 2, trainer, n);
    folder_proto(o, 3, normalizer, n_normalizer);
    fclose(o);
}

static void check_model_refused(void)
{
    uint8_t b[20], none[1];
    begin_folder("model-refused", "T5EncoderModel", 260);
    write_model("spiece.model", b, folder_number(b, 3, 3), none, 0);
    check_folder_refused(&f, "spiece.model: ", "kind 3", GGUF_NO_OFFSET,
                         GGUF_E_UNSUPPORTED);
    write_model("spiece.model", b, folder_number(b, 24, 1), none, 0);
    check_folder_refused(&f, "spiece.model: ", "treat_whitespace_as_suffix",
                         GGUF_NO_OFFSET, GGUF_E_UNSUPPORTED);
    write_model("spiece.model", none, 0, b, folder_number(b, 5, 0));
    check_folder_refused(&f, "spiece.model: ", "escape_whitespaces",
                         GGUF_NO_OFFSET, GGUF_E_UNSUPPORTED);
    /* a piece of 12 bytes with two heads of two */
    write_model("spiece.model", none, 0, "\x12\x04\x08\0\0\0", 6);
    check_folder_refused(&f, "spiece.model: ", "its trie has 8", 18,
                         GGUF_E_VOCAB);
    begin_folder("xlmr-refused", "XLMRobertaModel", 9);
    write_model("sentencepiece.bpe.model", none, 0, none, 0);
    check_folder_refused(&f, "sentencepiece.bpe.model: ", "first pieces", 0,
                         GGUF_E_VOCAB);
    begin_folder("camembert", "CamembertModel", 9);
    write_xlmr("sentencepiece.bpe.model");
    check_folder_refused(&f, "sentencepiece.bpe.model: ", "'CamembertModel'",
                         GGUF_NO_OFFSET, GGUF_E_UNSUPPORTED);
}

/* ---- beside the tree ---- */

static void check_golden(void)
{
    struct converted_vocab made, *m = &made;
    struct gguf_file *file;
    struct gguf_vocab *v = golden_vocab("vocab-made-unigram.gguf", &file);
    struct gguf_error e;
    size_t size;
    if (!v)
        return;
    void *model = slurp(
        shared_path("golden/tokenizer/vocabs/made-unigram.model"), &size);
    begin_folder("made", "T5EncoderModel", 2300);
    ok(model && spill(scratch_path(f.dir, "spiece.model"), model, size) &&
           converted_vocab_open(m, f.dir, scratch_path(top, "o.gguf"), &e) ==
               GGUF_OK,
       "a model that SentencePiece has trained %s", e.message);
    ok(m->vocab && vocab_equal(m->vocab, v), "its tokens and scores");
    check_golden_ids(m, v);
    free(model);
    converted_vocab_close(m);
    gguf_vocab_destroy(v);
    gguf_file_close(file);
}

int main(void)
{
    snprintf(top, sizeof top, "check-unigram.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    check_both();
    check_xlmr();
    check_json_refused();
    check_model_refused();
    check_golden();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
