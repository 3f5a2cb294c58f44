/* SPDX-License-Identifier: MIT */
/* check-archs.c - a small folder of each architecture becomes a sound model
 *
 * folder_text.h describes the folders. Verification of the result finds no
 * error in keys, names and shapes. The model opens and computes. Tensors and
 * keys have the values that the text gives. Converted back to a folder, it
 * becomes the same file.
 *
 *   check-archs DIR     leave the folders in DIR, for other programs
 */
#include "config.h"
#include "convert/classes.h"
#include "gguf/convert.h"
#include "gguf/cpu.h"
#include "gguf/session.h"
#include "gguf/stats.h"
#include "gguf/verify.h"
#include "tests/ignore_status.h"
#include "tests/model/findings.h"
#include "tests/convert/folder_text.h"
#include "tests/convert/key_order.h"
#include "tests/convert/numbers.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

static char top[200];
static bool keep;

/* ---- the result ---- */

/* Does tensor l->key of f have the expected numbers, in every layer? */
static bool check_numbers_of(const struct folder *from,
                             const struct gguf_file *f, struct gguf_rows *rows,
                             const struct folder_line *l)
{
    static float x[1500000];
    char name[160];
    const bool layers = strchr(l->key, '%') != NULL;
    for (int il = 0; il < (layers ? FOLDER_LAYERS : 1); il++) {
        numbers_name(name, l->key, il, 0);
        const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
        if (!t || t->n_elements > sizeof x / sizeof *x ||
            gguf_rows_decode(rows, f, t->index, 0, t->n_elements, x, NULL) ||
            !numbers_equal(l->value, from, il, x, t->n_elements))
            return false;
    }
    return true;
}

static void make_folder(struct folder *f, const struct folder_text *t,
                        const char *dtype, int n_files)
{
    char name[48];
    snprintf(name, sizeof name, "%.31s-%.14s", t->class_name, t->arch);
    folder_text_make(t, scratch_path(top, name), n_files > 1, f);
    folder_weights(f, dtype, n_files);
}

/* ---- keys ---- */

static void put_number(char *out, const struct gguf_kv *kv)
{
    uint64_t u;
    double x;
    bool yes;
    struct gguf_str text;
    if (gguf_kv_get_bool(kv, &yes, NULL) == GGUF_OK)
        sprintf(out, "%s", yes ? "true" : "false");
    else if (gguf_kv_get_uint(kv, &u, NULL) == GGUF_OK)
        sprintf(out, "%llu", (unsigned long long)u);
    else if (gguf_kv_get_float(kv, &x, NULL) == GGUF_OK)
        sprintf(out, "%.7g", x);
    else if (gguf_kv_get_str(kv, &text, NULL) == GGUF_OK)
        sprintf(out, "%.*s", (int)text.size, text.data);
    else
        sprintf(out, "?");
}

/* Write a key's value in the form of folder_text.h. */
static void put_value(char out[400], const struct gguf_kv *kv)
{
    struct gguf_kv_iter it;
    struct gguf_kv e;
    if (!kv || kv->type != GGUF_VAL_ARR) {
        *out = 0;
        if (kv)
            put_number(out, kv);
        return;
    }
    gguf_kv_iter_init(&it, kv);
    for (size_t n = 0; gguf_kv_iter_next(&it, &e) && n < 300;
         n += strlen(out + n))
        put_number(out + n + (n ? (size_t)sprintf(out + n, ",") : 0), &e);
}

/* The expected text of a key. "@NAME" stands for the numbers of that tensor,
 * of each layer if it has "%". */
static const char *expected_value(const char *text, char out[400])
{
    char name[160];
    size_t n = 0;
    if (*text != '@')
        return text;
    for (int il = 0; il < (strchr(text, '%') ? FOLDER_LAYERS : 1); il++) {
        numbers_name(name, text + 1, il, 0);
        n += (size_t)sprintf(out + n, "%s%.7g", n ? "," : "",
                             (double)folder_value(name, 0));
    }
    return out;
}

static void check_keys(const struct folder_text *t, const struct gguf_file *f)
{
    char key[200], value[400], buf[400];
    for (size_t i = 0; i < t->n_keys; i++) {
        const char *want = expected_value(t->key[i].value, buf);
        if (*t->key[i].key == '/')
            snprintf(key, sizeof key, "%s", t->key[i].key + 1);
        else
            snprintf(key, sizeof key, "%s.%s", t->arch, t->key[i].key);
        put_value(value, f ? gguf_file_kv_find(f, key) : NULL);
        ok(!strcmp(value, want), "%s: %s is %s: %s", t->class_name, key, want,
           value);
    }
}

/* ---- computing ---- */

static enum gguf_status compute_tokens(const struct gguf_file *f,
                                       struct gguf_error *err)
{
    static const gguf_token ids[] = { 65, 66, 67, 68, 69 };
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch batch = GGUF_BATCH_INIT;
    struct gguf_model *m = NULL;
    struct gguf_session *s = NULL;
    enum gguf_status st = gguf_model_create(&m, f, NULL, err);
    if (st == GGUF_OK)
        st = gguf_cpu_backend_create(&p.backend, NULL, err);
    p.n_ctx = 16;
    if (st == GGUF_OK)
        st = gguf_session_create(&s, m, &p, err);
    batch.token = ids;
    batch.n = sizeof ids / sizeof *ids;
    if (st == GGUF_OK && gguf_model_info(m)->encodes_first) {
        st = gguf_session_encode(s, &batch, err);
        batch.token = &gguf_model_info(m)->decoder_start;
        batch.n = 1;
    }
    if (st == GGUF_OK)
        st = gguf_session_decode(s, &batch, err);
    gguf_session_destroy(s);
    gguf_backend_destroy(p.backend);
    gguf_model_destroy(m);
    return st;
}

static bool is_arch(const struct gguf_file *f, const char *arch)
{
    struct gguf_str name = { "", 0 };
    ignore_status(gguf_kv_get_str(gguf_file_kv_find(f, "general.architecture"),
                                  &name, NULL));
    return name.size == strlen(arch) && !memcmp(name.data, arch, name.size);
}

static void check_order(const struct folder_text *t,
                        const struct gguf_file *file)
{
    for (size_t i = 0; i < t->n_orders; i++)
        ok(file && keys_follow(file, t->order[i]), "%s: %s", t->class_name,
           t->order[i]);
}

/* A folder of a known class is refused if files of its architecture cannot
 * describe it. */
static void check_refused(const struct folder_text *t)
{
    static struct folder_text changed;
    static struct folder f;
    struct gguf_error e;
    for (size_t i = 0; i < t->n_refuse; i++) {
        struct gguf_convert *c = NULL;
        changed = *t;
        const bool set = folder_text_set(&changed, t->refuse[i]);
        gguf_error_clear(&e);
        make_folder(&f, &changed, "F32", 1);
        ok(set && gguf_convert_open(&c, f.dir, NULL, &e) == GGUF_E_ARCH &&
               strstr(e.message, t->class_name),
           "%s with %s is refused: %s", t->class_name, t->refuse[i],
           e.message);
        gguf_convert_close(c);
        scratch_clean(top);
    }
}

static void check_arch(const struct folder_text *t, struct gguf_rows *rows)
{
    static struct folder f;
    struct gguf_error e;
    struct gguf_file *file = NULL;
    struct findings seen = { .n = 0 };
    const char *out = scratch_path(top, "out.gguf");
    gguf_error_clear(&e);
    make_folder(&f, t, "F32", 1);
    enum gguf_status st = folder_convert(f.dir, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_open(&file, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_verify(
            file, NULL, (struct gguf_finding_callback){ findings_note, &seen },
            &e);
    ok(st == GGUF_OK && !seen.n_error && is_arch(file, t->arch),
       "%s becomes a sound %s: %s%s", t->class_name, t->arch, e.message,
       seen.last);
    if (st == GGUF_OK)
        st = compute_tokens(file, &e);
    ok(st == GGUF_OK, "%s computes: %s", t->class_name, e.message);
    ok(folder_roundtrip(out, strrchr(f.dir, '/') + 1,
                        scratch_path(top, "back"), &e),
       "%s: a folder of it becomes the same file %s", t->class_name,
       e.message);
    for (size_t i = 0; i < t->n_numbers; i++)
        ok(file && check_numbers_of(&f, file, rows, &t->number[i]),
           "%s: numbers of %s", t->class_name, t->number[i].key);
    check_keys(t, file);
    check_order(t, file);
    gguf_file_close(file);
    if (!keep)
        scratch_clean(top);
}

/* ---- one text more closely ---- */

/* Several files with BF16: files of each type have the same numbers. */
static void check_files(struct gguf_rows *rows)
{
    static struct folder f;
    const struct folder_text *t = folder_text_find("MixtralForCausalLM");
    struct gguf_error e;
    struct gguf_file *file = NULL;
    const char *out = scratch_path(top, "out.gguf");
    gguf_error_clear(&e);
    make_folder(&f, t, "BF16", 3);
    bool good = folder_convert(f.dir, out, NULL, &e) == GGUF_OK &&
                gguf_file_open(&file, out, NULL, &e) == GGUF_OK;
    for (size_t i = 0; good && i < t->n_numbers; i++)
        good = check_numbers_of(&f, file, rows, &t->number[i]);
    ok(good && t->n_numbers, "three files of BF16, experts in all of them: %s",
       e.message);
    good = file != NULL;
    for (size_t i = 0; good && i < gguf_file_n_tensors(file); i++) {
        const struct gguf_tensor_info *x = gguf_file_tensor(file, i);
        const bool vector = x->n_dims < 2 || strstr(x->name.data, "gate_inp.");
        good = x->dtype == (vector ? GGUF_DTYPE_F32 : GGUF_DTYPE_BF16);
    }
    ok(good, "matrices are BF16, vectors and routers F32");
    gguf_file_close(file);
    scratch_clean(top);
}

/* Check that a folder is refused if `from' in its tensors is replaced by `to'.
 */
static void refuse_tensor(const char *class_name, const char *from,
                          const char *to, const char *why)
{
    static struct folder f;
    static struct folder_text changed;
    const struct folder_text *t = folder_text_find(class_name);
    const char *at = strstr(t->tensors, from);
    struct gguf_error e;
    changed = *t;
    snprintf(changed.tensors, sizeof changed.tensors, "%.*s%s%s",
             (int)(at - t->tensors), t->tensors, to, at + strlen(from));
    gguf_error_clear(&e);
    make_folder(&f, &changed, "F32", 1);
    ok(folder_convert(f.dir, scratch_path(top, "out.gguf"), NULL, &e) ==
               GGUF_E_TENSOR &&
           strstr(e.message, why),
       "a tensor %s", e.message);
    scratch_clean(top);
}

/* Tensors whose numbers become keys: one number in each layer. */
static void check_numbers(void)
{
    static const struct {
        const char *from, *to, *why;
    } rows[] = {
        { "beta 1", "beta 2", "2 numbers, expected one" },
        { "model.layers.%.mlp.act_fn.beta", "model.layers.1.mlp.act_fn.beta",
          "after a layer without one" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse_tensor("ApertusForCausalLM", rows[i].from, rows[i].to,
                      rows[i].why);
}

/* The halves of heads are exchanged for whole heads only. Their number is
 * limited, since each takes memory. */
static void check_halves(void)
{
    static const struct {
        const char *to, *why;
    } cases[] = {
        { "self_attn.q_proj.bias 33\n",
          "has rows that are not a multiple of the heads" },
        /* 4097 heads */
        { "self_attn.q_proj.bias 32776\n", "has too many heads" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_tensor("Glm4vForConditionalGeneration",
                      "self_attn.q_proj.bias 32\n", cases[i].to, cases[i].why);
}

/* Read the start of a file. */
static void read_text(const char *dir, const char *name, char *out, size_t n)
{
    FILE *f = fopen(scratch_path(dir, name), "rb");
    const size_t got = f ? fread(out, 1, n - 1, f) : 0;
    out[got] = 0;
    if (f)
        fclose(f);
}

/* The conversion adds rows of zeros that the folder lacks. The way back leaves
 * them out if transformers takes fewer. */
static void check_filled(void)
{
    static struct folder f;
    static char text[100000];
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    const char *out = scratch_path(top, "out.gguf");
    const char *back = scratch_path(top, "back");
    struct gguf_error e;
    gguf_error_clear(&e);
    make_folder(&f, folder_text_find("Gemma3nForCausalLM"), "BF16", 1);
    p.no_sync = 1;
    ok(folder_convert(f.dir, out, NULL, &e) == GGUF_OK &&
           gguf_folder_write(out, back, &p, &e) == GGUF_OK,
       "BF16 with rows of zeros: %s", e.message);
    read_text(back, "model.safetensors", text, sizeof text);
    ok(strstr(text + 8, "\"model.embed_tokens.weight\":{\"dtype\":\"BF16\","
                        "\"shape\":[260,32]") &&
           strstr(text + 8, "\"model.embed_tokens_per_layer.weight\":{"
                            "\"dtype\":\"BF16\",\"shape\":[256,5632]"),
       "its folder has the number of rows that transformers takes");
    read_text(back, "config.json", text, sizeof text);
    ok(strstr(text, "\"vocab_size_per_layer_input\": 256") &&
           strstr(text, "\"vocab_size\": 260"),
       "and config.json has this number");
    scratch_clean(back);
    scratch_clean(top);
}

/* ---- all texts ---- */

enum { MOST_ROWS = 400 };

struct all {
    struct gguf_rows *rows;
    bool met[MOST_ROWS]; /* rows of the converter's table that were used */
};

static void check_text(const struct folder_text *t, void *user)
{
    const struct gguf_str name = { t->class_name, strlen(t->class_name) };
    struct all *all = user;
    check_arch(t, all->rows);
    if (!keep)
        check_refused(t);
    for (size_t i = 0; i < MOST_ROWS && gg_convert_arch_row(i); i++)
        all->met[i] =
            all->met[i] ||
            (!strcmp(gg_convert_arch_row(i)->arch, t->arch) &&
             gg_convert_arch_has_class(gg_convert_arch_row(i), name));
}

/* Classes without a way back have a test of their own. */
static bool is_elsewhere(size_t i)
{
    return gg_convert_arch_has_class(
        gg_convert_arch_row(i), /* check-talker.c */
        (struct gguf_str){ "Qwen3TTSForConditionalGeneration", 32 });
}

int main(int argc, char **argv)
{
    static struct all all;
    static struct folder f;
    keep = argc > 1;
    if (keep)
        snprintf(top, sizeof top, "%.150s", argv[1]);
    else
        snprintf(top, sizeof top, "check-archs-convert.%d.tmp", (int)getpid());
    if (system(NULL) == 0 ||
        gguf_rows_create(&all.rows, NULL, NULL) != GGUF_OK)
        return 99;
    folder_begin(&f, top);
    ok(folder_text_each(false, check_text, &all), "all texts can be read");
    if (!keep) {
        for (size_t i = 0; gg_convert_arch_row(i); i++)
            ok(i < MOST_ROWS && (all.met[i] || is_elsewhere(i)),
               "%s is tested", gg_convert_arch_row(i)->classes);
        check_files(all.rows);
        check_numbers();
        check_halves();
        check_filled();
        scratch_clean(top);
        rmdir(top);
    }
    gguf_rows_destroy(all.rows);
    return done_testing();
}
