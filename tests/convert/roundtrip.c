/* roundtrip.c - a file becomes a folder, which becomes the same file */
#include "config.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"

#include <string.h>
#include <sys/stat.h>

enum gguf_status folder_convert(const char *dir, const char *out,
                                const char *recipe, struct gguf_error *err)
{
    struct gguf_convert *c;
    struct gguf_quant *q = NULL;
    struct gguf_recipe *r = NULL;
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    enum gguf_status st = gguf_convert_open(&c, dir, NULL, err);
    o.force = o.no_sync = 1;
    if (st == GGUF_OK)
        st = gguf_recipe_preset(&r, recipe ? recipe : "COPY", NULL, err);
    p.recipe = r;
    if (st == GGUF_OK)
        st = gguf_convert_job(&q, c, &p, err);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, out, &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    gguf_convert_close(c);
    return st;
}

static bool same_bytes(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    int x = 0, y = 0;
    long at = 0;
    while (f && g && x == y && x != EOF) {
        x = getc(f);
        y = getc(g);
        at++;
    }
    if (f)
        fclose(f);
    if (g)
        fclose(g);
    if (x != y)
        printf("# byte %ld is %d, not %d\n", at, y, x);
    return f && g && x == y;
}

static void print_key(void *user, const char *key)
{
    (void)user;
    printf("# the folder does not say %s\n", key);
}

bool folder_roundtrip(const char *path, const char *name, const char *back,
                      struct gguf_error *err)
{
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    const char *dir = scratch_path(back, name);
    const char *again = scratch_path(back, "again.gguf");
    p.force = p.no_sync = 1;
    p.note = print_key;
    mkdir(back, 0777);
    enum gguf_status st = gguf_folder_write(path, dir, &p, err);
    if (st == GGUF_OK)
        st = folder_convert(dir, again, NULL, err);
    const bool same = st == GGUF_OK && same_bytes(path, again);
    scratch_clean(back);
    return same;
}
