/* SPDX-License-Identifier: MIT */
/* roundtrip.c - converts folders to files, and files back to folders */
#include "config.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- folders that are elsewhere ---- */

/* Opens "far:PATH" and counts the open readers. */
static int n_open;

static bool far_takes(void *user, const char *path)
{
    (void)user;
    return !strncmp(path, "far:", 4);
}

static enum gguf_status far_read(void *user, uint64_t off, void *dst,
                                 size_t size, struct gguf_error *err)
{
    FILE *f = user;
    if (!size || fseek(f, (long)off, SEEK_SET) ||
        fread(dst, 1, size, f) != size)
        return gguf_error_set(err, GGUF_E_IO, "not read");
    return GGUF_OK;
}

static void far_close(void *user)
{
    n_open--;
    fclose(user);
}

static enum gguf_status far_open(void *user, const char *path,
                                 struct gguf_reader *out,
                                 struct gguf_error *err)
{
    struct stat s;
    (void)user;
    out->user = fopen(path + 4, "rb");
    if (!out->user)
        return gguf_error_set(err, GGUF_E_NOTFOUND, "is not there");
    n_open++;
    out->size = fstat(fileno(out->user), &s) ? 0 : (uint64_t)s.st_size;
    out->read_at = far_read;
    out->close = far_close;
    return GGUF_OK;
}

bool folder_any, folder_dense;

static enum gguf_status convert_once(const char *dir, const char *out,
                                     const char *recipe,
                                     struct gguf_error *err)
{
    static const struct gguf_opener opener = { sizeof opener, far_takes,
                                               far_open, NULL };
    struct gguf_convert *c;
    struct gguf_quant *q = NULL;
    struct gguf_recipe *r = NULL;
    struct gguf_convert_params cp = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    cp.opener = &opener;
    cp.allow_incomplete = folder_any;
    cp.dense_modules = folder_dense;
    enum gguf_status st = gguf_convert_open(&c, dir, &cp, err);
    o.force = o.no_sync = 1;
    if (st == GGUF_OK)
        st = gguf_recipe_preset(&r, recipe ? recipe : "COPY", NULL, err);
    p.recipe = r;
    if (st == GGUF_OK)
        st = gguf_convert_create_job(&q, c, &p, err);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, out, &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    gguf_convert_close(c);
    return st;
}

enum gguf_status folder_convert(const char *dir, const char *out,
                                const char *recipe, struct gguf_error *err)
{
    char far_dir[400], far_out[400];
    struct gguf_error far_err;
    gguf_error_clear(&far_err);
    snprintf(far_dir, sizeof far_dir, "far:%s", dir);
    snprintf(far_out, sizeof far_out, "%s.far", out);
    const enum gguf_status st = convert_once(dir, out, recipe, err);
    const enum gguf_status other =
        convert_once(far_dir, far_out, recipe, &far_err);
    const bool same = st == other && !n_open &&
                      (st == GGUF_OK ? same_bytes(out, far_out)
                                     : !strcmp(err->message, far_err.message));
    unlink(far_out);
    return same ? st
                : gguf_error_set(err, GGUF_E_MISMATCH,
                                 "not the same of an opener's folder: %d, "
                                 "%d open: %s",
                                 (int)other, n_open, far_err.message);
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
    p.note.fn = print_key;
    gg_os_make_folder(back);
    enum gguf_status st = gguf_folder_write(path, dir, &p, err);
    if (st == GGUF_OK)
        st = folder_convert(dir, again, NULL, err);
    const bool same = st == GGUF_OK && same_bytes(path, again);
    scratch_clean(back);
    return same;
}
