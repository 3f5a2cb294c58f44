/* SPDX-License-Identifier: MIT */
/* check-reranker.c - folders of Qwen3-Reranker become classifiers from the
 * head's rows of "yes" and "no"; other folders do not
 *
 * The prompt and the answer tokens are in the model card of
 * Qwen3-Reranker-0.6B; keys are those of llama.cpp's converter.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/llama.h"
#include "tests/convert/converted_file.h"
#include "tests/convert/notes.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

enum { YES = 256, NO = 257 };

static char top[200];
static struct folder folder;

/* Write tokenizer.json with these names for the last two byte tokens. */
static void name_tokens(const char *yes, const char *no)
{
    static char text[20000];
    char pair[64];
    FILE *f = fopen(scratch_path(folder.dir, "tokenizer.json"), "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    char *at = strstr(text, "\"ab\":256");
    if (!at || fclose(f))
        exit(99);
    text[n] = 0;
    snprintf(pair, sizeof pair, "\"%s\":%d,\"%s\":%d},\"merges\":[\"n o\"]}}",
             yes, YES, no, NO);
    strcpy(at, pair);
    folder_text(&folder, "tokenizer.json", text);
}

static void make_folder(const char *name, bool tied, const char *card)
{
    char *dir = strdup(scratch_path(top, name));
    folder_begin(&folder, dir);
    free(dir);
    folder_text(&folder, "config.json",
                tied ? "{\"architectures\":[\"Qwen3ForCausalLM\"]," SIZES
                       ",\"head_dim\":8,\"tie_word_embeddings\":true}"
                     : "{\"architectures\":[\"Qwen3ForCausalLM\"]," SIZES
                       ",\"head_dim\":8}");
    folder_tensors(&folder, TOP QKV QK_NORM NORMS MLP, FOLDER_LAYERS,
                   FOLDER_EXPERTS);
    if (!tied)
        folder_tensors(&folder, HEAD, FOLDER_LAYERS, FOLDER_EXPERTS);
    folder_weights(&folder, "F32", 1);
    folder_bpe(&folder, false);
    if (card)
        folder_text(&folder, "README.md", card);
}

static struct gguf_file *convert_folder(void)
{
    return converted_file_convert(folder.dir, scratch_path(top, "out.gguf"),
                                  folder.dir);
}

/* Are the file's rows those of the answers in the folder's tensor, in order? */
static bool has_answers(const struct gguf_file *f, const char *from)
{
    const float *x = converted_file_matrix(f, "cls.output.weight", 32, 2);
    for (uint64_t i = 0; x && i < 32; i++)
        if (x[i] != folder_value(from, YES * 32 + i) ||
            x[32 + i] != folder_value(from, NO * 32 + i))
            return false;
    return x;
}

static bool has_labels(const struct gguf_file *f)
{
    static const char *const want[] = { "yes", "no" };
    const struct gguf_kv *kv =
        f ? gguf_file_kv_find(f, "qwen3.classifier.output_labels") : NULL;
    struct gguf_kv_iter it;
    struct gguf_str s;
    size_t n = 0;
    if (!kv)
        return false;
    for (gguf_kv_iter_init(&it, kv); gguf_kv_iter_next_str(&it, &s); n++)
        if (n == 2 || s.size != strlen(want[n]) ||
            memcmp(s.data, want[n], s.size) != 0)
            return false;
    return n == 2;
}

static void check_one(const char *name, bool tied, const char *card)
{
    const char *from = tied ? "model.embed_tokens.weight" : "lm_head.weight";
    make_folder(name, tied, card);
    name_tokens("yes", "no");
    struct gguf_file *f = convert_folder();
    ok(has_answers(f, from), "two rows of %s", from);
    ok(f && !gguf_file_tensor_find(f, "output.weight") &&
           converted_file_matrix(f, "token_embd.weight", 32, 260),
       "a head of its own is not there, embeddings are");
    ok(converted_file_uint(f, "qwen3.pooling_type", 4) && has_labels(f),
       "its pooling and its labels");
    ok(converted_file_text(f, "tokenizer.chat_template", "{{x}}") &&
           converted_file_text(
               f, "tokenizer.chat_template.rerank",
               "<|im_start|>system\nJudge whether the Document "),
       "and how it is asked, beside the tokenizer's own template");
    gguf_file_close(f);
    struct gguf_error e;
    gguf_error_clear(&e);
    ok(!folder_roundtrip(scratch_path(top, "out.gguf"), name,
                         scratch_path(top, "back"), &e) &&
           strstr(e.message, "no folder of it gives"),
       "the way back is refused: %s", e.message);
    scratch_clean(top);
}

static void check_others(void)
{
    struct gguf_error e;
    make_folder("hf", true, "# Qwen3\nnot Qwen3-Reranker\n");
    struct gguf_file *f = convert_folder();
    ok(f && !gguf_file_tensor_find(f, "cls.output.weight") &&
           !gguf_file_kv_find(f, "qwen3.pooling_type") &&
           !gguf_file_kv_find(f, "tokenizer.chat_template.rerank"),
       "another model is as it was");
    gguf_file_close(f);
    scratch_clean(top);
    make_folder("Qwen3-Reranker-0", true, NULL);
    name_tokens("yes", "nope");
    ok(folder_convert(folder.dir, scratch_path(top, "out.gguf"), NULL, &e) ==
               GGUF_E_VOCAB &&
           strstr(e.message, "has no token \"no\""),
       "refused: %s", e.message);
    scratch_clean(top);
}

/* ---- what tells ---- */

static void add_text(const char *dir, const char *name, const char *text)
{
    static struct folder more;
    char *path = strdup(scratch_path(folder.dir, dir));
    folder_begin(&more, path);
    folder_text(&more, name, text);
    free(path);
}

/* Check the kind of model, its reason, and a part of a note; NULL: no note. */
static void is_told_as(const char *what, int asked, const char *kind,
                       const char *reason, const char *said)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    static struct notes notes;
    struct gguf_error e;
    memset(&notes, 0, sizeof notes);
    p.note = (struct gguf_convert_note_callback){ notes_keep, &notes };
    p.reranker = asked;
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, &p, &e) == GGUF_OK, "%s: %s", what,
       e.message);
    const struct gguf_convert_summary *s = c ? gguf_convert_summary(c) : NULL;
    ok(s && !strcmp(s->kind, kind) && strstr(s->reason, reason),
       "%s: taken for a %s by %s", what, s ? s->kind : "?",
       s ? s->reason : "?");
    ok(said ? strstr(notes.text, said) != NULL : !*notes.text, "%s: said: %s",
       what, notes.text);
    gguf_convert_close(c);
    scratch_clean(top);
}

static void check_told(void)
{
    static const char *const lm = "language model", *const rr = "reranker";
    make_folder("hf", true, "# Qwen3-Reranker-0\n");
    name_tokens("yes", "no");
    is_told_as("a heading", 0, lm, "its class", "--reranker=yes");
    make_folder("hf", true, "# Qwen3-Reranker-0\n");
    name_tokens("yes", "no");
    is_told_as("asked for", 1, rr, "--reranker", NULL);
    make_folder("Qwen3-Reranker-0", true, NULL);
    is_told_as("not asked for", 2, lm, "its class", NULL);
    make_folder("Qwen3-Reranker-chat", true,
                "---\npipeline_tag: text-generation\n---\n# Qwen3-Reranker\n");
    is_told_as("another tag", 0, lm, "its class", "nothing else says");
    make_folder("hf", true, "---\nbase_model: Qwen/Qwen3-Reranker-8B\n---\n");
    name_tokens("yes", "no");
    is_told_as("what it is made of", 0, rr, "base_model of README.md", NULL);
    make_folder("hf", true, NULL);
    folder_text(&folder, "modules.json",
                "[{\"type\":\"x.Transformer\",\"path\":\"\"},{\"type\":\"x."
                "LogitScore\",\"path\":\"1_LogitScore\"}]");
    add_text("1_LogitScore", "config.json",
             "{\"true_token_id\":7,\"false_token_id\":9}");
    is_told_as("modules.json", 0, rr, "modules.json", NULL);
    make_folder("hf", true, NULL);
    name_tokens("yes", "no");
    folder_text(&folder, "config_sentence_transformers.json",
                "{\"model_type\":\"CrossEncoder\"}");
    is_told_as("a cross-encoder", 0, rr, "config_sentence_transformers", NULL);
    make_folder("hf", true, NULL);
    name_tokens("yes", "no");
    folder_text(&folder, "chat_template.jinja",
                "Note that the answer can only be \"yes\" or \"no\".");
    is_told_as("a template", 0, rr, "its chat template",
               "differs from that in tokenizer_config.json");
    /* a folder of the download cache, without a card */
    char *repo = strdup(scratch_path(top, "models--Qwen--Qwen3-Reranker-0"));
    folder_begin(&folder, repo);
    free(repo);
    folder_begin(
        &folder,
        scratch_path(top, "models--Qwen--Qwen3-Reranker-0/snapshots"));
    make_folder("models--Qwen--Qwen3-Reranker-0/snapshots/0123abc", true,
                NULL);
    name_tokens("yes", "no");
    is_told_as("a cache", 0, rr, "'Qwen/Qwen3-Reranker-0'", NULL);
}

#define ASKS "answer can only be \\\"yes\\\" or \\\"no\\\""

/* The template in every place, not only in its own file. */
static void check_templates(void)
{
    make_folder("hf", true, NULL);
    name_tokens("yes", "no");
    folder_text(&folder, "tokenizer_config.json",
                "{\"chat_template\":[{\"name\":\"default\",\"template\":"
                "\"d\"},{\"name\":\"r\",\"template\":\"" ASKS "\"}]}");
    is_told_as("a list of templates", 0, "reranker", "its chat template",
               NULL);
    make_folder("hf", true, NULL);
    name_tokens("yes", "no");
    unlink(scratch_path(folder.dir, "tokenizer_config.json"));
    folder_text(&folder, "chat_template.json",
                "{\"chat_template\":\"" ASKS "\"}");
    is_told_as("chat_template.json", 0, "reranker", "its chat template", NULL);
}

static void is_refused(const char *config, const char *why)
{
    char text[1000];
    struct gguf_error e;
    snprintf(text, sizeof text,
             "{\"architectures\":[\"Qwen3ForCausalLM\"]," SIZES
             ",\"head_dim\":8,%s}",
             config);
    make_folder("hf", true, NULL);
    name_tokens("yes", "no");
    folder_text(&folder, "config.json", text);
    gguf_error_clear(&e);
    ok(folder_convert(folder.dir, scratch_path(top, "out.gguf"), NULL, &e) !=
               GGUF_OK &&
           strstr(e.message, why),
       "refused: %s", e.message);
    scratch_clean(top);
}

static void check_refused(void)
{
    is_refused("\"is_original_qwen3_reranker\":true,"
               "\"tie_word_embeddings\":false",
               "tie_word_embeddings is false");
    is_refused("\"classifier_from_token\":[\"0\",\"1\"],"
               "\"tie_word_embeddings\":true",
               "classifier_from_token, expected");
}

/* Rows of the tokens that modules.json numbers, in the vision class. */
static void check_vision(void)
{
    static const char tensors[] =
        "model.language_model.embed_tokens.weight 260 32\n"
        "model.language_model.norm.weight 32\n"
        "model.visual.patch_embed.proj.bias 32\n";
    char part[2000], *at = part;
    make_folder("hf", true, NULL);
    folder_text(&folder, "config.json",
                "{\"architectures\":[\"Qwen3VLForConditionalGeneration\"],"
                "\"vision_config\":{\"deepstack_visual_indexes\":[]},"
                "\"tie_word_embeddings\":true,\"text_config\":{" SIZES
                ",\"head_dim\":8,\"rope_scaling\":{\"rope_type\":\"default\","
                "\"mrope_section\":[2,1,1]}}}");
    folder.n_tensors = 0;
    folder_tensors(&folder, tensors, FOLDER_LAYERS, FOLDER_EXPERTS);
    for (const char *p = QKV QK_NORM NORMS MLP; *p; p++) {
        if (!strncmp(p, "model.", 6)) {
            at += sprintf(at, "model.language_model.");
            p += 6;
        }
        *at++ = *p;
    }
    *at = 0;
    folder_tensors(&folder, part, FOLDER_LAYERS, FOLDER_EXPERTS);
    folder_weights(&folder, "F32", 1);
    folder_text(&folder, "modules.json",
                "[{\"type\":\"x.CausalScoreHead\",\"path\":\"1_Score\"}]");
    add_text("1_Score", "config.json",
             "{\"true_token_id\":256,\"false_token_id\":257}");
    struct gguf_file *f = convert_folder();
    ok(has_answers(f, "model.language_model.embed_tokens.weight"),
       "the vision class: two rows of the embedding");
    ok(converted_file_text(f, "general.architecture", "qwen3vl") &&
           converted_file_uint(f, "qwen3vl.pooling_type", 4) &&
           converted_file_text(f, "tokenizer.chat_template.rerank",
                               "<|im_start|>"),
       "and what else a reranker has");
    gguf_file_close(f);
    scratch_clean(top);
}

/* A single row gets a row of zeros: readers compute softmax(x, 0), which is
 * the sigmoid of x. */
static void check_score(void)
{
    make_folder("hf", true, NULL);
    folder_text(
        &folder, "config.json",
        "{\"architectures\":[\"Qwen3ForSequenceClassification\"]," SIZES
        ",\"head_dim\":8,\"id2label\":{\"0\":\"LABEL_0\"}}");
    folder_tensors(&folder, "score.weight 1 32\n", FOLDER_LAYERS,
                   FOLDER_EXPERTS);
    folder_weights(&folder, "F32", 1);
    struct gguf_file *f = convert_folder();
    const float *x = converted_file_matrix(f, "cls.output.weight", 32, 2);
    bool good = x;
    for (uint64_t i = 0; good && i < 32; i++)
        good = x[i] == folder_value("score.weight", i) && x[32 + i] == 0;
    ok(good && has_labels(f) &&
           converted_file_uint(f, "qwen3.pooling_type", 4),
       "Qwen3ForSequenceClassification: its row, and one of zeros");
    gguf_file_close(f);
    is_told_as("a classifier", 0, "classifier", "its class", NULL);
}

int main(void)
{
    snprintf(top, sizeof top, "check-reranker.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    check_one("Qwen3-Reranker-0", true, NULL);
    check_one("qwen3-reranker-0", false, NULL);
    check_one("hf", true, "---\npipeline_tag: text-ranking\n---\n");
    check_told();
    check_templates();
    check_refused();
    check_vision();
    check_score();
    check_others();
    rmdir(top);
    return done_testing();
}
