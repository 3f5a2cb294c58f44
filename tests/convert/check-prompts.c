/* SPDX-License-Identifier: MIT */
/* check-prompts.c - prompts, lengths and normalisation of
 * sentence-transformers folders
 *
 * The files are those that sentence-transformers writes: base/model.py
 * (prompts), base/modules/transformer.py (max_seq_length) and
 * sentence_transformer/modules/pooling.py.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/converted_file.h"
#include "tests/convert/folder_text.h"
#include "tests/convert/notes.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

#define TRANSFORMER "{\"path\":\"\",\"type\":\"s.m.Transformer\"}"
#define POOLING     ",{\"path\":\"1_Pooling\",\"type\":\"s.m.Pooling\"}"
#define NORMALIZE   ",{\"path\":\"2_Normalize\",\"type\":\"s.m.Normalize\"}"
#define PREFIX      "sentence_transformers."

static char top[200];
static char *root; /* path of the folder */
static struct folder folder;

/* A folder with these steps; pooling: config.json of 1_Pooling. */
static void make_folder(const char *steps, const char *pooling)
{
    static struct folder step;
    char text[600];
    folder_text_make(folder_text_find("BertModel"), root, false, &folder);
    folder_weights(&folder, "F32", 1);
    snprintf(text, sizeof text, "[%s]", steps);
    folder_text(&folder, "modules.json", text);
    folder_begin(&step, scratch_path(root, "1_Pooling"));
    folder_text(&step, "config.json", pooling);
}

/* A key as text: "true", a number, a text, or texts with '|' between; "-":
 * missing. */
static void value_of(const struct gguf_file *f, const char *key, char out[200])
{
    const struct gguf_kv *kv = f ? gguf_file_kv_find(f, key) : NULL;
    struct gguf_kv_iter it;
    struct gguf_str s;
    uint64_t x;
    bool yes;
    int n = 0;
    snprintf(out, 200, "-");
    if (!kv)
        return;
    if (gguf_kv_get_bool(kv, &yes, NULL) == GGUF_OK)
        snprintf(out, 200, "%s", yes ? "true" : "false");
    else if (gguf_kv_get_uint(kv, &x, NULL) == GGUF_OK)
        snprintf(out, 200, "%u", (unsigned)x);
    else if (gguf_kv_get_str(kv, &s, NULL) == GGUF_OK)
        snprintf(out, 200, "%.*s", (int)s.size, s.data);
    else
        for (gguf_kv_iter_init(&it, kv);
             n < 100 && gguf_kv_iter_next_str(&it, &s);)
            n += snprintf(out + n, 60, "%.*s|", (int)s.size, s.data);
}

/* Check keys of the converted folder, and the way back. keys: name, value, and
 * so on; NULL after the last. */
static void check_keys(const char *what, const char *const *keys)
{
    struct gguf_error e;
    const char *out = scratch_path(top, "out.gguf");
    struct gguf_file *f = converted_file_convert(root, out, what);
    for (; *keys; keys += 2) {
        char got[200];
        value_of(f, keys[0], got);
        ok(!strcmp(got, keys[1]), "%s: %s is %s: %s", what, keys[0], keys[1],
           got);
    }
    gguf_file_close(f);
    gguf_error_clear(&e);
    ok(folder_roundtrip(out, "hf", scratch_path(top, "back"), &e),
       "%s: a folder of it becomes the same file %s", what, e.message);
    scratch_clean(top);
}

#define MEAN "{\"pooling_mode_mean_tokens\":true}"

static void check_all(void)
{
    static const char *const all[] = {
        "bert.pooling_type",
        "1",
        PREFIX "normalize",
        "true",
        PREFIX "max_seq_length",
        "48",
        PREFIX "prompt_names",
        "query|document|",
        PREFIX "prompts",
        "query: ||",
        PREFIX "default_prompt_name",
        "query",
        NULL,
    };
    static const char *const some[] = {
        "bert.pooling_type",
        "1",
        PREFIX "normalize",
        "false",
        PREFIX "max_seq_length",
        "-",
        PREFIX "prompt_names",
        "-",
        PREFIX "default_prompt_name",
        "-",
        NULL,
    };
    static const char *const tokens[] = { "bert.pooling_type", "-",
                                          PREFIX "normalize", "true", NULL };
    make_folder(TRANSFORMER POOLING NORMALIZE, MEAN);
    folder_text(&folder, "config_sentence_transformers.json",
                "{\"prompts\":{\"query\":\"query: \",\"document\":null},"
                "\"default_prompt_name\":\"query\"}");
    folder_text(&folder, "sentence_bert_config.json",
                "{\"max_seq_length\":48,\"do_lower_case\":false}");
    check_keys("all of it", all);
    make_folder(TRANSFORMER POOLING, MEAN);
    folder_text(&folder, "config_sentence_transformers.json",
                "{\"prompts\":{},\"default_prompt_name\":null}");
    folder_text(&folder, "sentence_roberta_config.json",
                "{\"max_seq_length\":null}");
    check_keys("only pooling", some);
    make_folder(TRANSFORMER NORMALIZE, MEAN);
    check_keys("vectors of tokens", tokens);
}

/* How vectors are compared and cut; and PyLate's models of one vector per
 * token. */
static void check_vectors(void)
{
    static const char *const cut[] = {
        PREFIX "similarity_fn_name",
        "cosine",
        PREFIX "truncate_dim",
        "16",
        PREFIX "multi_vector",
        "-",
        PREFIX "normalize",
        "false",
        NULL,
    };
    static const char *const none[] = {
        PREFIX "similarity_fn_name", "-", PREFIX "truncate_dim", "-", NULL,
    };
    static const char *const each[] = {
        PREFIX "similarity_fn_name",
        "MaxSim",
        PREFIX "multi_vector",
        "true",
        PREFIX "normalize",
        "true",
        PREFIX "prompt_names",
        "query|document|",
        PREFIX "prompts",
        "[Q] |[D] |",
        "bert.pooling_type",
        "-",
        NULL,
    };
    static const char *const own[] = { PREFIX "prompt_names", "a|",
                                       PREFIX "prompts", "b|", NULL };
    static const char file[] = "config_sentence_transformers.json";
    make_folder(TRANSFORMER POOLING, MEAN);
    folder_text(&folder, file,
                "{\"similarity_fn_name\":\"cosine\",\"truncate_dim\":16}");
    check_keys("vectors", cut);
    make_folder(TRANSFORMER POOLING, MEAN);
    folder_text(&folder, file,
                "{\"similarity_fn_name\":null,\"truncate_dim\":null}");
    check_keys("null", none);
    make_folder(TRANSFORMER, MEAN);
    folder_text(&folder, file,
                "{\"model_type\":\"ColBERT\",\"prompts\":{},"
                "\"similarity_fn_name\":\"MaxSim\",\"query_prefix\":\"[Q] \","
                "\"document_prefix\":\"[D] \"}");
    check_keys("ColBERT", each);
    make_folder(TRANSFORMER, MEAN);
    folder_text(&folder, file,
                "{\"model_type\":\"ColBERT\",\"prompts\":{\"a\":\"b\"},"
                "\"query_prefix\":\"[Q] \"}");
    check_keys("ColBERT with prompts", own);
}

/* A file beside the model that is not in modules.json says nothing. */
static void check_alone(void)
{
    static const char *const keys[] = { PREFIX "normalize", "-",
                                        PREFIX "prompts", "-", NULL };
    make_folder(TRANSFORMER, MEAN);
    unlink(scratch_path(root, "modules.json"));
    folder_text(&folder, "config_sentence_transformers.json",
                "{\"prompts\":{\"query\":\"query: \"}}");
    check_keys("no modules.json", keys);
}

/* Check a part of the notes; NULL: no note is given. */
static void check_note(const char *what, const char *line)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    static struct notes notes;
    struct gguf_error e;
    memset(&notes, 0, sizeof notes);
    gguf_error_clear(&e);
    p.note = (struct gguf_convert_note_callback){ notes_keep, &notes };
    ok(gguf_convert_open(&c, root, &p, &e) == GGUF_OK &&
           (line ? strstr(notes.text, line) != NULL : !*notes.text),
       "%s: %s%s", what, notes.text, e.message);
    gguf_convert_close(c);
    scratch_clean(top);
}

#define SQRT "{\"pooling_mode\":\"mean_sqrt_len_tokens\"}"

static void check_notes(void)
{
    make_folder(TRANSFORMER POOLING NORMALIZE, SQRT);
    check_note("the mean times sqrt(n), then normalised", NULL);
    make_folder(TRANSFORMER POOLING, SQRT);
    check_note("the mean times sqrt(n)",
               "'mean_sqrt_len_tokens' becomes the mean");
    make_folder(TRANSFORMER POOLING NORMALIZE,
                "{\"pooling_mode\":\"cls\",\"include_prompt\":false}");
    check_note("prompts", "1_Pooling/config.json: include_prompt is false");
    make_folder(TRANSFORMER POOLING, MEAN);
    folder_text(&folder, "sentence_bert_config.json",
                "{\"do_lower_case\":true}");
    check_note("letters", "sentence_bert_config.json: do_lower_case is true");
    make_folder(TRANSFORMER, MEAN);
    folder_text(&folder, "config_sentence_transformers.json",
                "{\"model_type\":\"ColBERT\",\"do_query_expansion\":false,"
                "\"skiplist_words\":[]}");
    check_note("ColBERT without expansion", NULL);
    make_folder(TRANSFORMER, MEAN);
    folder_text(&folder, "config_sentence_transformers.json",
                "{\"model_type\":\"ColBERT\"}");
    check_note("ColBERT", "do not fill queries with masks (query_length 32)");
    make_folder(TRANSFORMER, MEAN);
    folder_text(&folder, "config_sentence_transformers.json",
                "{\"model_type\":\"ColBERT\",\"do_query_expansion\":false,"
                "\"skiplist_words\":[\"!\"]}");
    check_note("words", "to the 1 tokens of skiplist_words");
    make_folder(TRANSFORMER
                ",{\"path\":\"1_W\",\"type\":\"s.WeightedLayerPooling\"}",
                MEAN);
    check_note("pooling of layers",
               "step 1 is left out: s.WeightedLayerPooling");
}

static void check_refusal(const char *name, const char *text, const char *why)
{
    struct gguf_error e;
    make_folder(TRANSFORMER POOLING, MEAN);
    folder_text(&folder, name, text);
    gguf_error_clear(&e);
    ok(folder_convert(root, scratch_path(top, "out.gguf"), NULL, &e) !=
               GGUF_OK &&
           strstr(e.message, why),
       "refused: %s", e.message);
    scratch_clean(top);
}

static void check_refused(void)
{
    static const char pool[] = "1_Pooling/config.json";
    static const char sent[] = "config_sentence_transformers.json";
    static const char bert[] = "sentence_bert_config.json";
    check_refusal(pool, "{\"pooling_mode\":\"max\"}",
                  "unsupported pooling 'max'");
    check_refusal(pool, "{\"pooling_mode_weightedmean_tokens\":true}",
                  "unsupported pooling 'weightedmean'");
    check_refusal(pool, "{\"pooling_mode\":[\"cls\",\"mean\",\"max\"]}",
                  "pooling joins 3 vectors (cls, max)");
    check_refusal(pool,
                  "{\"pooling_mode_cls_token\":true,"
                  "\"pooling_mode_mean_tokens\":true}",
                  "pooling joins 2 vectors (cls, mean)");
    check_refusal(pool, "{\"pooling_mode\":\"attention\"}",
                  "unknown pooling_mode 'attention'");
    check_refusal(pool, "{\"pooling_mode\":1}", "unknown pooling_mode ''");
    check_refusal(sent, "{\"prompts\":[]}",
                  "prompts is not an object of texts");
    check_refusal(sent, "{\"prompts\":{\"a\":1}}", "a prompt is not a text");
    check_refusal(sent, "{\"default_prompt_name\":1}",
                  "default_prompt_name is not a text");
    check_refusal(sent,
                  "{\"prompts\":{\"a\":\"\"},\"default_prompt_name\":\"b\"}",
                  "no prompt has the name 'b'");
    check_refusal(sent, "{\"similarity_fn_name\":1}",
                  "similarity_fn_name is not a text");
    check_refusal(sent, "{\"truncate_dim\":0}",
                  "truncate_dim is not a number of dimensions");
    check_refusal(sent, "{\"model_type\":\"ColBERT\",\"query_prefix\":1}",
                  "query_prefix is not a text");
    check_refusal(sent, "{\"prompts\":{",
                  "config_sentence_transformers.json: JSON");
    check_refusal(bert, "{\"max_seq_length\":0}",
                  "max_seq_length is not a number of tokens");
    check_refusal(bert, "[", "sentence_bert_config.json: JSON");
    make_folder(TRANSFORMER POOLING, MEAN);
    unlink(scratch_path(root, pool));
    struct gguf_error e;
    ok(folder_convert(root, scratch_path(top, "out.gguf"), NULL, &e) ==
               GGUF_E_NOTFOUND &&
           strstr(e.message, "missing 1_Pooling/config.json"),
       "refused: %s", e.message);
    scratch_clean(top);
}

/* Lists in config.json, which the way back writes. */
static void check_lists(void)
{
    struct gguf_error e;
    char text[4000];
    make_folder(TRANSFORMER POOLING, MEAN);
    FILE *f = fopen(scratch_path(root, "config.json"), "r");
    const size_t n = f ? fread(text, 1, 3000, f) : 0;
    if (!n || fclose(f) || n >= 3000)
        exit(99);
    text[n] = 0;
    strcpy(strrchr(text, '}'), ",\"modules_prompts\":[\"a\",1]}");
    folder_text(&folder, "config.json", text);
    gguf_error_clear(&e);
    ok(folder_convert(root, scratch_path(top, "out.gguf"), NULL, &e) ==
               GGUF_E_HPARAM &&
           strstr(e.message, "item 1 for '" PREFIX "prompts' is not a text"),
       "refused: %s", e.message);
    scratch_clean(top);
}

int main(void)
{
    snprintf(top, sizeof top, "check-prompts.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    root = strdup(scratch_path(top, "hf"));
    check_all();
    check_vectors();
    check_alone();
    check_notes();
    check_refused();
    check_lists();
    free(root);
    rmdir(top);
    return done_testing();
}
