/* SPDX-License-Identifier: MIT */
/* check-pooling.c - pooling of sentence-transformers folders and of
 * classifiers
 *
 * modules.json and the pooling step's config.json are those that
 * sentence-transformers writes (models/Pooling.py), id2label is transformers'
 * (configuration_utils.py).
 */
#include "config.h"
#include "gguf/convert.h"
#include "gguf/file.h"
#include "tests/convert/bert.h"
#include "tests/convert/folder.h"
#include "tests/convert/notes.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

static char top[200];
static struct folder folder;

static void make_folder(const char *class_name, const char *more,
                        const char *head)
{
    char config[1000];
    folder_begin(&folder, scratch_path(top, "hf"));
    snprintf(config, sizeof config,
             "{\"architectures\":[\"%s\"],\"hidden_size\":32,"
             "\"intermediate_size\":48,\"num_hidden_layers\":2,"
             "\"num_attention_heads\":4,\"vocab_size\":260,"
             "\"max_position_embeddings\":64,\"layer_norm_eps\":1e-12,"
             "\"type_vocab_size\":2%s}",
             class_name, more);
    folder_text(&folder, "config.json", config);
    folder_tensors(&folder, BERT_TENSORS, 2, 1);
    folder_tensors(&folder, head, 2, 1);
    folder_weights(&folder, "F32", 1);
    folder_wordpiece(&folder, true);
}

/* Write a list of modules with a pooling step in folder path. config: of this
 * step; NULL: none. */
static void add_pooling(const char *path, const char *config)
{
    static struct folder step;
    char text[400];
    snprintf(text, sizeof text,
             "[{\"idx\":0,\"name\":\"0\",\"path\":\"\",\"type\":"
             "\"sentence_transformers.models.Transformer\"},{\"idx\":1,"
             "\"name\":\"1\",\"path\":\"%s\",\"type\":"
             "\"sentence_transformers.models.Pooling\"}]",
             path);
    folder_text(&folder, "modules.json", text);
    if (!config)
        return;
    char *dir = strdup(folder.dir);
    folder_begin(&step, scratch_path(dir, path));
    folder_text(&step, "config.json", config);
    free(dir);
}

/* A key as text: lists with commas; "-": missing. */
static void value_of(const struct gguf_file *f, const char *key, char out[200])
{
    const struct gguf_kv *kv = f ? gguf_file_kv_find(f, key) : NULL;
    uint64_t x;
    size_t n = 0;
    struct gguf_kv_iter it;
    struct gguf_str s;
    snprintf(out, 200, "-");
    if (kv && gguf_kv_get_uint(kv, &x, NULL) == GGUF_OK)
        snprintf(out, 200, "%u", (unsigned)x);
    else if (kv && kv->type == GGUF_VAL_ARR) {
        gguf_kv_iter_init(&it, kv);
        while (n < 100 && gguf_kv_iter_next_str(&it, &s))
            n += (size_t)snprintf(out + n, 60, "%s%.*s", n ? "," : "",
                                  (int)s.size, s.data);
    }
}

static void check_key(const char *key, const char *want, const char *what)
{
    char got[200];
    struct gguf_error e;
    struct gguf_file *f = NULL;
    const char *out = scratch_path(top, "out.gguf");
    gguf_error_clear(&e);
    enum gguf_status st = folder_convert(folder.dir, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_open(&f, out, NULL, &e);
    value_of(f, key, got);
    ok(st == GGUF_OK && !strcmp(got, want), "%s: %s is %s: %s %s", what, key,
       want, got, e.message);
    gguf_file_close(f);
    ok(folder_roundtrip(out, "hf", scratch_path(top, "back"), &e),
       "%s: a folder of it becomes the same file %s", what, e.message);
    scratch_clean(top);
}

static void check_pooling(void)
{
    static const struct {
        const char *config, *want;
    } cases[] = {
        { "{\"word_embedding_dimension\":32,\"pooling_mode_cls_token\":false,"
          "\"pooling_mode_mean_tokens\":true}",
          "1" },
        { "{\"pooling_mode_cls_token\":true,"
          "\"pooling_mode_mean_tokens\":false}",
          "2" },
        { "{\"pooling_mode_mean_tokens\":false,"
          "\"pooling_mode_lasttoken\":true}",
          "3" },
        { "{\"pooling_mode\":\"lasttoken\"}", "3" },
        { "{\"pooling_mode\":\"mean\"}", "1" },
        { "{\"pooling_mode\":[\"lasttoken\"]}", "3" },
        { "{\"pooling_mode\":null,\"pooling_mode_cls_token\":true}", "2" },
        { "{\"pooling_mode\":\"cls\",\"pooling_mode_mean_tokens\":true}",
          "2" },
        { "{}", "1" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_folder("BertModel", "", "");
        add_pooling("1_Pooling", cases[i].config);
        check_key("bert.pooling_type", cases[i].want, cases[i].config);
    }
    make_folder("BertModel", "", "");
    check_key("bert.pooling_type", "-", "no modules.json");
    make_folder("BertModel", "", "");
    folder_text(&folder, "modules.json", "[{\"path\":\"\",\"type\":\"x\"}]");
    check_key("bert.pooling_type", "-", "no step that pools");
}

static void keep_note(void *user, enum gguf_convert_note_kind kind,
                      const char *line)
{
    (void)kind;
    snprintf(user, 300, "%s", line);
}

/* Steps with matrices of their own are noted; others are not. */
static void check_left_out(void)
{
    static const struct {
        const char *modules, *want;
    } cases[] = {
        { "[{\"path\":\"\",\"type\":\"sentence_transformers.models."
          "Transformer\"},{\"path\":\"1_Dense\",\"type\":\"sentence_"
          "transformers.models.Dense\"}]",
          "modules.json: step 1 is left out: sentence_transformers.models."
          "Dense: vectors are those before it" },
        { "[{\"path\":\"\",\"type\":\"a.Transformer\"},{\"path\":"
          "\"2_Normalize\",\"type\":\"a.Normalize\"},7,{}]",
          "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
        struct gguf_convert *c = NULL;
        struct gguf_error e;
        char line[300] = "";
        gguf_error_clear(&e);
        make_folder("BertModel", "", "");
        folder_text(&folder, "modules.json", cases[i].modules);
        p.note = (struct gguf_convert_note_callback){ keep_note, line };
        ok(gguf_convert_open(&c, folder.dir, &p, &e) == GGUF_OK &&
               !strcmp(line, cases[i].want),
           "noted of modules.json: '%s' %s", line, e.message);
        gguf_convert_close(c);
        scratch_clean(top);
    }
}

static void check_refused(void)
{
    static const struct {
        const char *path, *config, *why;
    } cases[] = {
        { "1_Pooling", NULL, "missing 1_Pooling/config.json" },
        { "1_Pooling", "{\"pooling_mode_max_tokens\":true}",
          "1_Pooling/config.json: unsupported pooling" },
        { "1_Pooling", "{", "1_Pooling/config.json: JSON" },
        { "..", NULL, "modules.json: '..' is not the name of a folder" },
        { "a/b", NULL, "'a/b' is not the name" },
        { "", NULL, "'' is not the name" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_error e;
        make_folder("BertModel", "", "");
        add_pooling(cases[i].path, cases[i].config);
        ok(folder_convert(folder.dir, scratch_path(top, "out.gguf"), NULL,
                          &e) != GGUF_OK &&
               strstr(e.message, cases[i].why),
           "refused: %s", e.message);
        scratch_clean(top);
    }
}

static void check_labels(void)
{
    static const char *const key = "bert.classifier.output_labels";
    static const char *const head =
        "classifier.weight 3 32\nclassifier.bias 3\n";
    make_folder("BertForSequenceClassification",
                ",\"id2label\":{\"0\":\"sad\",\"1\":\"so\",\"2\":\"glad\"}",
                head);
    check_key(key, "sad,so,glad", "three names");
    make_folder("BertForSequenceClassification",
                ",\"id2label\":{\"0\":\"LABEL_0\"}",
                "classifier.weight 1 32\nclassifier.bias 1\n");
    check_key(key, "LABEL_0", "a number that nobody has named");
    make_folder("BertForSequenceClassification",
                ",\"id2label\":{\"0\":\"LABEL_0\",\"1\":\"LABEL_1\"}",
                "classifier.weight 2 32\nclassifier.bias 2\n");
    check_key(key, "-", "two of transformers' own names");
    struct gguf_error e;
    make_folder("BertForSequenceClassification",
                ",\"id2label\":{\"0\":\"a\",\"2\":\"b\",\"3\":\"c\"}", head);
    ok(folder_convert(folder.dir, scratch_path(top, "out.gguf"), NULL, &e) ==
               GGUF_E_HPARAM &&
           strstr(e.message, "id2label has no text for 1"),
       "refused: %s", e.message);
    scratch_clean(top);
}

/* Check the tensor that is made from this one of the folder; "-": none. */
static void made_of(const char *from, const char *want, const char *said)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    static struct notes notes;
    struct gguf_error e;
    const char *got = "-";
    memset(&notes, 0, sizeof notes);
    p.note = (struct gguf_convert_note_callback){ notes_keep, &notes };
    gguf_error_clear(&e);
    const enum gguf_status st = gguf_convert_open(&c, folder.dir, &p, &e);
    for (size_t i = 0; c && i < gguf_convert_n_tensors(c); i++)
        if (!strcmp(gguf_convert_tensor(c, i)->from, from))
            got = gguf_convert_tensor(c, i)->name;
    ok(st == GGUF_OK && !strcmp(got, want), "%s becomes %s: %s %s", from, want,
       got, e.message);
    ok(said ? strstr(notes.text, said) != NULL : !*notes.text, "said: %s",
       notes.text);
    gguf_convert_close(c);
    scratch_clean(top);
}

/* BertForSequenceClassification computes classifier(tanh(pooler.dense(first
 * token))); so do readers with cls and cls.output. */
static void check_classifier(void)
{
    static const char pooler[] =
        BERT_DENSE("pooler.dense", 32, 32) "classifier.weight 3 32\n"
                                           "classifier.bias 3\n";
    static const char one[] =
        BERT_DENSE("pooler.dense", 32, 32) "classifier.weight 1 32\n"
                                           "classifier.bias 1\n";
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    make_folder("BertForSequenceClassification", "", pooler);
    made_of("pooler.dense.weight", "cls.weight", NULL);
    make_folder("BertForSequenceClassification", "", pooler);
    made_of("classifier.weight", "cls.output.weight", NULL);
    make_folder("BertModel", "", pooler);
    made_of("pooler.dense.weight", "cls.weight", NULL);
    make_folder("BertModel", "", BERT_DENSE("pooler.dense", 32, 32));
    made_of("pooler.dense.weight", "-", NULL);
    make_folder("BertForSequenceClassification", "",
                "classifier.weight 3 32\nclassifier.bias 3\n");
    made_of("classifier.weight", "cls.output.weight", "lacks pooler.dense");
    make_folder(
        "RobertaForSequenceClassification", ",\"pad_token_id\":1",
        "classifier.out_proj.weight 3 32\nclassifier.out_proj.bias 3\n");
    made_of("classifier.out_proj.weight", "cls.output.weight",
            "lacks classifier.dense");
    make_folder("BertForSequenceClassification",
                ",\"sentence_transformers\":{\"activation_fn\":"
                "\"torch.nn.modules.activation.Sigmoid\"}",
                pooler);
    made_of("pooler.dense.weight", "cls.weight",
            "sentence_transformers.activation_fn is "
            "'torch.nn.modules.activation.Sigmoid'");
    make_folder("BertForSequenceClassification",
                ",\"sbert_ce_default_activation_function\":"
                "\"torch.nn.modules.linear.Identity\"",
                pooler);
    made_of("pooler.dense.weight", "cls.weight", NULL);
    make_folder("BertForSequenceClassification", ",\"id2label\":{\"0\":\"a\"}",
                one);
    made_of("classifier.weight", "cls.output.weight",
            "names no function of the score: a CrossEncoder of "
            "sentence-transformers applies Sigmoid");
    make_folder("BertForSequenceClassification",
                ",\"id2label\":{\"0\":\"a\"},"
                "\"sbert_ce_default_activation_function\":"
                "\"torch.nn.modules.linear.Identity\"",
                one);
    made_of("classifier.weight", "cls.output.weight", NULL);
    make_folder("BertForSequenceClassification", "", "");
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, NULL, &e) == GGUF_E_TENSOR &&
           strstr(e.message, "has no tensor of one"),
       "refused: %s", e.message);
    gguf_convert_close(c);
    scratch_clean(top);
    make_folder("BertForSequenceClassification", "",
                BERT_DENSE("pooler.dense", 32, 32));
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, NULL, &e) == GGUF_E_TENSOR &&
           strstr(e.message, "has only the layer before it"),
       "refused: %s", e.message);
    gguf_convert_close(c);
    scratch_clean(top);
    make_folder("BertForSequenceClassification",
                ",\"id2label\":{\"0\":\"a\",\"1\":\"b\"}", pooler);
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, NULL, &e) == GGUF_E_HPARAM &&
           strstr(e.message, "id2label has 2 names, but the classifier gives "
                             "3 numbers"),
       "refused: %s", e.message);
    gguf_convert_close(c);
    scratch_clean(top);
}

int main(void)
{
    snprintf(top, sizeof top, "check-pooling.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    check_pooling();
    check_left_out();
    check_refused();
    check_labels();
    check_classifier();
    rmdir(top);
    return done_testing();
}
