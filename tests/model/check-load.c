/* SPDX-License-Identifier: MIT */
/* check-load.c - malformed models are refused with the right message */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/failalloc.h"
#include "tests/hostile/hostile.h"
#include "tests/tap.h"

#include <inttypes.h>

/* ---- hostile files: column "model" of their table ---- */

static int n_warned;

static void on_warn(void *user, const char *message)
{
    (void)user;
    (void)message;
    n_warned++;
}

/* Open a file, read all weights and close it. */
static enum gguf_status load_file(const char *path, struct gguf_error *err)
{
    struct gguf_file *file;
    struct gguf_model *model = NULL;
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    p.warn.fn = on_warn;
    n_warned = 0;
    enum gguf_status st = gguf_file_open(&file, path, NULL, err);
    if (st == GGUF_OK)
        st = gguf_model_create(&model, file, &p, err);
    if (st == GGUF_OK)
        st = gguf_model_check_finite(model, NULL, err);
    gguf_model_destroy(model);
    gguf_file_close(file);
    return st;
}

static void check_hostile(void)
{
    const char *dir = hostile_make();
    char line[1024], path[4096];
    int n = 0, n_wrong = 0;
    snprintf(path, sizeof path, "%s/expect.tsv", dir ? dir : "");
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *col[8], *p = line;
        for (int i = 0; i < 8; i++) {
            col[i] = p;
            p += strcspn(p, "\t\n");
            if (*p)
                *p++ = 0;
        }
        int accept = strcmp(col[6], "accept") == 0;
        if (line[0] == '#' || (!accept && strcmp(col[6], "reject") != 0))
            continue;
        struct gguf_error err = { GGUF_OK, 0, 0, "" };
        snprintf(path, sizeof path, "%s/%s", dir, col[0]);
        enum gguf_status st = load_file(path, &err);
        n++;
        if ((st == GGUF_OK) != accept || (st != GGUF_OK && !err.message[0])) {
            n_wrong++;
            printf("# %s: %s; %s\n", col[0],
                   st == GGUF_OK ? "accepted" : err.message, col[2]);
        }
    }
    if (f)
        fclose(f);
    hostile_remove();
    ok(n > 100 && !n_wrong, "%d models as the list expects", n - n_wrong);
}

/* ---- what texts of tests/family cannot say ---- */

static const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = 32 };

static struct gen g;

static enum gguf_status open_bytes(const void *data, size_t size,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err)
{
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    p.allocator = allocator;
    return run_try(data, size, &p, err);
}

/* Open the model with one key of its text changed. */
static enum gguf_status open_changed(const char *key, const char *v,
                                     struct gguf_error *err)
{
    static const char bytes[] = "abcdefghijklmnopqrstuvwxyz012345";
    struct gguf_str text[32];
    size_t size;
    for (size_t i = 0; i < 32; i++)
        text[i] = (struct gguf_str){ bytes + i, 1 };
    gen_init(&g, 3);
    gen_model(&g, &spec);
    if (gguf_meta_set_strz(g.meta, key, v, NULL) ||
        gguf_meta_set_str_array(g.meta, "tokenizer.ggml.tokens", text, 32,
                                NULL))
        abort();
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    const enum gguf_status st = open_bytes(file, size, NULL, err);
    free(file);
    gen_fini(&g);
    return st;
}

static void check_changes(void)
{
    struct gguf_error err = { .message = "" };
    ok(open_changed("general.architecture", "gem\033ma3", &err) ==
               GGUF_E_ARCH &&
           strstr(err.message, "architecture 'gem\\x1Bma3' is not supported"),
       "%s", err.message);
    ok(open_changed("tokenizer.ggml.model", "bert", &err) == GGUF_OK,
       "a vocabulary of WordPiece");
}

/* ---- no memory ---- */

static void check_nomem(const void *data, size_t size)
{
    enum gguf_status st = GGUF_E_NOMEM;
    long n;
    int bad = 0;
    for (n = 0; n < 1000 && st == GGUF_E_NOMEM; n++) {
        struct failalloc f;
        const struct gguf_allocator *a = failalloc_from(&f, (unsigned)n);
        st = open_bytes(data, size, a, NULL);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 5,
       "each of %ld allocations may fail; nothing is lost", n - 1);
}

/* ---- NaN ---- */

static void check_nan(uint8_t *data, size_t size)
{
    struct gguf_file *file;
    struct gguf_model *model;
    struct gguf_error err;
    if (gguf_file_open_memory(&file, data, size, NULL, &err) != GGUF_OK ||
        gguf_model_create(&model, file, NULL, &err) != GGUF_OK) {
        ok(0, "%s", err.message);
        return;
    }
    ok(gguf_model_check_finite(model, NULL, &err) == GGUF_OK,
       "all are numbers");
    const struct gguf_tensor_info *t =
        gguf_file_tensor_find(file, "blk.0.ffn_down.weight");
    uint8_t *w = data + gguf_file_data_off(file) + t->off;
    memset(w + 4 * 1234, 0xff, 4);
    ok(gguf_model_check_finite(model, NULL, &err) == GGUF_E_NONFINITE &&
           strstr(err.message,
                  "'blk.0.ffn_down.weight': element 1234 is not a"),
       "%s", err.message);
    ok(err.offset == (uint64_t)(w + 4 * 1234 - data), "its byte is %" PRIu64,
       err.offset);
    gguf_model_destroy(model);
    gguf_file_close(file);
}

int main(void)
{
    size_t size;
    check_hostile();
    check_changes();
    gen_init(&g, 3);
    gen_model(&g, &spec);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    check_nomem(file, size);
    check_nan(file, size);
    free(file);
    gen_fini(&g);
    return done_testing();
}
