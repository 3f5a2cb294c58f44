/* SPDX-License-Identifier: MIT */
/* check-dense.c - dense layers after pooling, each in a subfolder of a
 * sentence-transformers folder
 *
 * config.json and the tensor's name are those that sentence-transformers
 * writes (models/Dense.py). Names in the file, and the classes that have dense
 * layers by default, follow llama.cpp's converter.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/converted_file.h"
#include "tests/convert/folder_text.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

#define IDENTITY "torch.nn.modules.linear.Identity"
#define WIDTHS   "\"in_features\":32,\"out_features\":24,"

static char top[200];
static char *root; /* path of the folder */
static struct folder folder;
static bool with_bias; /* matrices with 24 rows have a bias */

/* A folder of the class with n matrices of these widths after mean pooling. */
static void make_folder(const char *class_name, int n, const int *widths,
                        const char *act)
{
    static struct folder step;
    char text[1000], name[40];
    size_t at = 0;
    folder_text_make(folder_text_find(class_name), root, false, &folder);
    folder_weights(&folder, "F32", 1);
    at += (size_t)snprintf(text, sizeof text,
                           "[{\"path\":\"\",\"type\":\"a.Transformer\"},"
                           "{\"path\":\"1_Pooling\",\"type\":\"a.Pooling\"}");
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               ",{\"path\":\"%d_Dense\",\"type\":\"a.Dense\"}",
                               i + 2);
    snprintf(text + at, sizeof text - at,
             ",{\"path\":\"9_Normalize\",\"type\":\"a.Normalize\"}]");
    folder_text(&folder, "modules.json", text);
    folder_begin(&step, scratch_path(root, "1_Pooling"));
    folder_text(&step, "config.json", "{\"pooling_mode_mean_tokens\":true}");
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%d_Dense", i + 2);
        folder_begin(&step, scratch_path(root, name));
        snprintf(text, sizeof text,
                 "{\"in_features\":%d,\"out_features\":%d,\"bias\":false,"
                 "\"activation_function\":\"%s\"}",
                 widths[i], widths[i + 1], act);
        folder_text(&step, "config.json", text);
        snprintf(text, sizeof text, "linear.weight %d %d\n%s", widths[i + 1],
                 widths[i], with_bias ? "linear.bias 24\n" : "");
        folder_tensors(&step, text, 1, 1);
        folder_weights(&step, "F32", 1);
    }
}

/* Does the file have the rows x cols numbers of the folder's linear.weight? */
static bool has_matrix(const struct gguf_file *f, const char *name, int cols,
                       int rows)
{
    const float *x = converted_file_matrix(f, name, cols, rows);
    for (int i = 0; x && i < rows * cols; i++)
        if (x[i] != folder_value("linear.weight", (uint64_t)i))
            return false;
    return x;
}

/* Convert the folder to a file, and the file back. Returns the file. */
static struct gguf_file *convert_both_ways(const char *what)
{
    struct gguf_error e;
    const char *out = scratch_path(top, "out.gguf");
    struct gguf_file *f = converted_file_convert(folder.dir, out, what);
    gguf_error_clear(&e);
    ok(folder_roundtrip(
           out, "hf", scratch_path(top, folder_dense ? "back-2" : "back"), &e),
       "%s: a folder of it becomes the same file %s", what, e.message);
    return f;
}

static void check_gemma(void)
{
    static const int widths[] = { 32, 48, 32 };
    make_folder("Gemma3TextModel", 2, widths, IDENTITY);
    struct gguf_file *f = convert_both_ways("not asked for");
    ok(f && !gguf_file_tensor_find(f, "dense_2.weight") &&
           !gguf_file_kv_find(f, "gemma-embedding.dense_2_feat_in") &&
           converted_file_uint(f, "gemma-embedding.pooling_type", 1),
       "and without matrices, but pooled");
    gguf_file_close(f);
    folder_dense = true;
    f = convert_both_ways("asked for");
    ok(f && has_matrix(f, "dense_2.weight", 32, 48) &&
           has_matrix(f, "dense_3.weight", 48, 32),
       "both matrices are there");
    ok(f && converted_file_uint(f, "gemma-embedding.dense_2_feat_in", 32) &&
           converted_file_uint(f, "gemma-embedding.dense_2_feat_out", 48) &&
           converted_file_uint(f, "gemma-embedding.dense_3_feat_in", 48) &&
           converted_file_uint(f, "gemma-embedding.dense_3_feat_out", 32) &&
           converted_file_uint(f, "gemma-embedding.pooling_type", 1),
       "and their widths");
    gguf_file_close(f);
    folder_dense = false;
    scratch_clean(top);
}

static void check_lfm2(void)
{
    static const int widths[] = { 32, 24 };
    make_folder("Lfm2BidirectionalModel", 1, widths, IDENTITY);
    struct gguf_file *f = convert_both_ways("LFM2");
    ok(f && has_matrix(f, "dense_2.weight", 32, 24) &&
           converted_file_uint(f, "lfm2.embedding_length_out", 24),
       "has its matrix without being asked");
    gguf_file_close(f);
    scratch_clean(top);
    with_bias = true;
    make_folder("Lfm2BidirectionalModel", 1, widths, IDENTITY);
    with_bias = false;
    f = convert_both_ways("LFM2 with a bias");
    const float *b = converted_file_matrix(f, "dense_2.bias", 24, 1);
    bool same = b && has_matrix(f, "dense_2.weight", 32, 24);
    for (uint64_t i = 0; same && i < 24; i++)
        same = b[i] == folder_value("linear.bias", i);
    ok(same, "the matrix and its bias are there");
    gguf_file_close(f);
    scratch_clean(top);
}

static void keep_note(void *user, enum gguf_convert_note_kind kind,
                      const char *line)
{
    (void)kind;
    snprintf(user, 300, "%s", line);
}

static void check_notes(void)
{
    static const struct {
        const char *class_name;
        bool can;
    } cases[] = { { "Gemma3TextModel", true }, { "Dots1ForCausalLM", false } };
    static const int widths[] = { 32, 32 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
        struct gguf_convert *c = NULL;
        struct gguf_error e;
        char line[300] = "";
        gguf_error_clear(&e);
        make_folder(cases[i].class_name, 1, widths, IDENTITY);
        p.note = (struct gguf_convert_note_callback){ keep_note, line };
        ok(gguf_convert_open(&c, folder.dir, &p, &e) == GGUF_OK &&
               strstr(line, "step 2 is left out: a.Dense") &&
               cases[i].can == !!strstr(line, "--sentence-transformers-dense"),
           "%s: noted: %s %s", cases[i].class_name, line, e.message);
        gguf_convert_close(c);
        scratch_clean(top);
    }
}

static void check_refused(void)
{
    static const int widths[] = { 32, 24 };
    static const struct {
        const char *config, *why;
    } cases[] = {
        { "{" WIDTHS "\"activation_function\":\"torch.nn.modules.activation."
          "Tanh\"}",
          "2_Dense/config.json: unsupported function 'torch.nn"
          ".modules.activation.Tanh'" },
        { "{" WIDTHS "\"bias\":false}",
          "2_Dense/config.json: unsupported function 'Tanh, the default'" },
        { "{" WIDTHS "\"activation_function\":null,\"use_residual\":true}",
          "2_Dense/config.json: use_residual is true" },
        { "{\"in_features\":32}",
          "2_Dense/config.json: missing width 'out_features'" },
        { "{\"in_features\":0,\"out_features\":24}",
          "2_Dense/config.json: missing width 'in_features'" },
        { "{\"in_features\":32,\"out_features\":25,"
          "\"activation_function\":\"" IDENTITY "\"}",
          "dense_2.weight" },
        { "[", "2_Dense/config.json: JSON" },
    };
    static const char class_name[] = "Lfm2Model";
    struct gguf_error e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_folder(class_name, 1, widths, IDENTITY);
        folder_text(&folder, "2_Dense/config.json", cases[i].config);
        ok(folder_convert(folder.dir, scratch_path(top, "out.gguf"), NULL,
                          &e) != GGUF_OK &&
               strstr(e.message, cases[i].why),
           "refused: %s", e.message);
        scratch_clean(top);
    }
    make_folder(class_name, 1, widths, IDENTITY);
    unlink(scratch_path(root, "2_Dense/model.safetensors"));
    ok(folder_convert(folder.dir, scratch_path(top, "out.gguf"), NULL, &e) ==
               GGUF_E_NOTFOUND &&
           strstr(e.message, "missing 2_Dense/model.safetensors"),
       "refused: %s", e.message);
    make_folder(class_name, 1, widths, IDENTITY);
    folder_text(&folder, "2_Dense/model.safetensors", "12345678");
    ok(folder_convert(folder.dir, scratch_path(top, "out.gguf"), NULL, &e) !=
               GGUF_OK &&
           strstr(e.message, "2_Dense/model.safetensors: a header of"),
       "refused: %s", e.message);
    scratch_clean(top);
}

int main(void)
{
    snprintf(top, sizeof top, "check-dense.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    root = strdup(scratch_path(top, "hf"));
    check_gemma();
    check_lfm2();
    check_notes();
    check_refused();
    free(root);
    rmdir(top);
    return done_testing();
}
