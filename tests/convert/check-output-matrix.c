/* SPDX-License-Identifier: MIT */
/* check-output-matrix.c - tied output matrices, and separate ones
 *
 * transformers ties by tie_word_embeddings, or by the class's default
 * (LlamaConfig false, GemmaConfig true). It keeps a matrix that differs from
 * the embedding (tie_weights, modeling_utils.py of 5.0).
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/llama.h"
#include "tests/convert/roundtrip.h"
#include "tests/convert/notes.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

#define LLAMA   TOP QKV NORMS MLP
#define GEMMA   LLAMA
#define GEMMA_3 LLAMA QK_NORM FEED_FORWARD
#define FEED_FORWARD                                                          \
    L "pre_feedforward_layernorm.weight 32\n" L                               \
      "post_feedforward_layernorm.weight 32\n"

static char top[100];
static struct folder folder;

/* Make a folder with these tensors. zeros: all elements are 0. */
static void make_folder(const char *class_name, const char *more,
                        const char *tensors, bool has_own, bool zeros)
{
    char config[1000];
    snprintf(config, sizeof config,
             "{\"architectures\":[\"%s\"]," SIZES ",\"head_dim\":8%s}",
             class_name, more);
    folder_begin(&folder, scratch_path(top, "hf"));
    folder_text(&folder, "config.json", config);
    folder_tensors(&folder, tensors, FOLDER_LAYERS, FOLDER_EXPERTS);
    if (has_own)
        folder_tensors(&folder, HEAD, FOLDER_LAYERS, FOLDER_EXPERTS);
    folder.sparse = zeros;
    folder_weights(&folder, "F32", 1);
    folder_bpe(&folder, false);
}

/* Check that the output matrix is made from tensor `from' (NULL: the file has
 * no output matrix) and that a note has the words `said' (NULL: no note). */
static void check_matrix(const char *what, const char *from, const char *said)
{
    static const char *const ignore[] = { "^lm_head" };
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    static struct notes notes;
    const char *got = NULL;
    memset(&notes, 0, sizeof notes);
    p.note = (struct gguf_convert_note_callback){ notes_keep, &notes };
    if (strstr(what, "ignored")) {
        p.ignore = ignore;
        p.n_ignore = 1;
        p.allow_incomplete = true;
    }
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, &p, &e) == GGUF_OK, "%s %s", what,
       e.message);
    for (size_t i = 0; c && i < gguf_convert_n_tensors(c); i++)
        if (!strcmp(gguf_convert_tensor(c, i)->name, "output.weight"))
            got = gguf_convert_tensor(c, i)->from;
    ok(from ? got && !strcmp(got, from) : !got, "%s: made of %s", what,
       got ? got : "nothing");
    ok(said ? strstr(notes.text, said) != NULL : !*notes.text, "%s: said: %s",
       what, notes.text);
    gguf_convert_close(c);
}

static void check_refused(const char *what, const char *why)
{
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    gguf_error_clear(&e);
    ok(gguf_convert_open(&c, folder.dir, NULL, &e) == GGUF_E_TENSOR &&
           strstr(e.message, why),
       "%s: refused: %s", what, e.message);
    gguf_convert_close(c);
}

#define TIED   ",\"tie_word_embeddings\":true"
#define UNTIED ",\"tie_word_embeddings\":false"

static void check_llama(void)
{
    static const char *const name = "LlamaForCausalLM";
    make_folder(name, UNTIED, LLAMA, true, false);
    check_matrix("untied", "lm_head.weight", NULL);
    make_folder(name, "", LLAMA, true, false);
    check_matrix("untied by default", "lm_head.weight", NULL);
    make_folder(name, TIED, LLAMA, false, false);
    check_matrix("tied", NULL, NULL);
    make_folder(name, UNTIED, LLAMA, false, false);
    check_refused("untied without a matrix", "tie_word_embeddings is false");
    check_matrix("ignored: goes on", NULL, "the embedding is taken");
    make_folder(name, "", LLAMA, false, false);
    check_matrix("nothing is said", NULL, "does not say tie_word_embeddings");
    make_folder(name, ",\"tie_word_embeddings\":\"false\"", LLAMA, false,
                false);
    check_matrix("a text is said", NULL, "is neither true nor false");
    make_folder(name, TIED, LLAMA, true, false);
    check_matrix("tied with another matrix", "lm_head.weight",
                 "differs from the embedding: it is kept");
    make_folder(name, TIED, LLAMA, true, true);
    check_matrix("tied with the same", "lm_head.weight", NULL);
    make_folder(name, UNTIED, LLAMA, false, false);
    folder_text(&folder, "modules.json",
                "[{\"path\":\"\",\"type\":\"x.Transformer\"},{\"path\":"
                "\"1_Pooling\",\"type\":\"x.Pooling\"}]");
    char *dir = strdup(scratch_path(folder.dir, "1_Pooling"));
    static struct folder step;
    folder_begin(&step, dir);
    folder_text(&step, "config.json", "{\"pooling_mode\":\"lasttoken\"}");
    free(dir);
    check_matrix("hidden states are pooled", NULL, NULL);
    scratch_clean(folder.dir);
}

static void check_gemma(void)
{
    struct gguf_error e;
    make_folder("GemmaForCausalLM", "", GEMMA, false, false);
    check_matrix("Gemma", NULL, NULL);
    make_folder("GemmaForCausalLM", "", GEMMA, true, true);
    check_matrix("Gemma with a copy", NULL, NULL);
    make_folder("GemmaForCausalLM", "", GEMMA, true, false);
    check_refused("Gemma with another matrix", "differs from the embedding");
    check_matrix("Gemma, ignored", NULL, NULL);
    make_folder("GemmaForCausalLM", UNTIED, GEMMA, false, false);
    check_refused("Gemma, untied", "tie_word_embeddings is false");
    make_folder("Gemma3ForCausalLM", ",\"sliding_window\":16", GEMMA_3, true,
                true);
    check_matrix("Gemma 3 with a copy", NULL, NULL);
    make_folder("Gemma3ForCausalLM", ",\"sliding_window\":16", GEMMA_3, true,
                false);
    check_matrix("Gemma 3 with another matrix", "lm_head.weight",
                 "true by default, but 'lm_head.weight' differs");
    char *out = strdup(scratch_path(top, "out.gguf"));
    gguf_error_clear(&e);
    ok(folder_convert(folder.dir, out, NULL, &e) == GGUF_OK &&
           folder_roundtrip(out, "hf", scratch_path(top, "back"), &e),
       "and back, and again %s", e.message);
    free(out);
}

int main(void)
{
    snprintf(top, sizeof top, "check-output-matrix.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    check_llama();
    check_gemma();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
