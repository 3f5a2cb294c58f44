/* SPDX-License-Identifier: MIT */
/* carried.c - the texts of tests/family against what they were made of */
#include "config.h"
#include "tests/family/carried.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "tests/model/run.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <dirent.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

static struct skeleton theirs, ours;

/* What llama.cpp gives for the tokens; NULL: not there. To be freed. */
#ifdef HAVE_ZLIB
static float *read_outputs(const char *name, size_t n)
{
    char rel[300];
    snprintf(rel, sizeof rel, "archs/public/logits/%s.f32.gz", name);
    const char *path = shared_path(rel);
    gzFile f = path ? gzopen(path, "rb") : NULL;
    const unsigned size = (unsigned)(n * sizeof(float));
    float *x = f ? malloc(size) : NULL;
    if (x && gzread(f, x, size) != (int)size) {
        free(x);
        x = NULL;
    }
    for (size_t i = 0; x && i < n; i++)
        x[i] = gg_bytes_f32_from_bits(gg_bytes_load32le(&x[i]));
    if (f)
        gzclose(f);
    return x;
}
#else
static float *read_outputs(const char *name, size_t n)
{
    (void)name, (void)n;
    return NULL;
}
#endif

bool carried_outputs(const struct skeleton *s, const float *got, double *nmse,
                     bool *same)
{
    float *want = read_outputs(s->name, s->n_rows * s->width);
    if (!want)
        return false;
    *nmse = run_nmse(got, want, s->n_rows * s->width);
    *same = skeleton_nmse(s, want) < 1e-15; /* of numbers of nine digits */
    free(want);
    return true;
}

/* Do something with each skeleton there; how many there are. */
static size_t for_each(void (*fn)(void *user), void *user)
{
    size_t n = 0;
    char dir[4096], path[4400];
    const char *p = shared_path("archs/public/skeletons");
    snprintf(dir, sizeof dir, "%s", p ? p : "");
    DIR *d = p ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (!strstr(e->d_name, ".json"))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (skeleton_read_json(&theirs, path))
            fn(user);
        else
            printf("# %s cannot be read\n", path);
        skeleton_close(&theirs);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

static void compare(void *user)
{
    const bool good =
        skeleton_open(&ours, theirs.name) && skeleton_same(&ours, &theirs);
    if (!good)
        printf("# %s has no text, or another\n", theirs.name);
    *(size_t *)user += good;
    skeleton_close(&ours);
}

size_t carried_models(size_t *n_same)
{
    *n_same = 0;
    return for_each(compare, n_same);
}

/* ---- making them ---- */

struct carrying {
    const char *dir;
    char **names;
    bool bad;
};

static bool wants_digest(const struct carrying *c)
{
    bool wants = skeleton_open(&ours, theirs.name) && ours.n_rows;
    for (char **p = c->names; *p && !wants; p++)
        wants = !strcmp(*p, theirs.name);
    theirs.tol = ours.tol;
    skeleton_close(&ours);
    return wants;
}

/* Write the model's section; what follows it in the old text stays. */
static bool write_text(const char *path, const struct skeleton *s)
{
    char *old = slurp(path, NULL);
    const char *rest = old ? strstr(old, "\n[") : NULL;
    FILE *f = fopen(path, "w");
    if (f) {
        skeleton_print(s, f);
        fputs(rest ? rest : "", f);
    }
    free(old);
    return f && !fclose(f);
}

static void carry_one(void *user)
{
    enum { ROWS = SKELETON_TOKENS };
    const size_t width = skeleton_width(&theirs);
    struct carrying *c = user;
    char path[4400];
    if (wants_digest(c)) {
        float *x = read_outputs(theirs.name, ROWS * width);
        if (x) {
            theirs.n_rows = ROWS;
            theirs.width = width;
            skeleton_digest(x, ROWS, width, theirs.sum);
        }
        c->bad |= !x;
        free(x);
    }
    if (!skeleton_path(theirs.name, path))
        snprintf(path, sizeof path, "%s/%s.txt", c->dir, theirs.name);
    if (!write_text(path, &theirs)) {
        perror(path);
        c->bad = true;
    }
}

int carry(const char *dir, char **names)
{
    struct carrying c = { dir, names, false };
    size_t n = for_each(carry_one, &c);
    printf("%zu models written to %s\n", n, dir);
    return !n || c.bad;
}
