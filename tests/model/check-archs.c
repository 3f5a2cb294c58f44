/* check-archs.c - the table of architectures: each row against a file of it */
#include "config.h"
#include "base/compiler.h"
#include "gguf/verify.h"
#include "model/arch.h"
#include "tests/model/gen.h"
#include "tests/tap.h"

#include <dirent.h>

/* ---- what is found in a file ---- */

struct seen {
    unsigned n;
    char first[400];
};

/* Notes, and keys of a vocabulary that is not there, are not of interest. */
static int note(void *user, const struct gguf_finding *f)
{
    struct seen *s = user;
    if (f->severity == GGUF_SEVERITY_NOTE)
        return 0;
    if (!s->n++)
        snprintf(s->first, sizeof s->first, "%s", f->message);
    return 0;
}

/* ---- a model of each architecture ---- */

static void check_model(const char *path, const char *name)
{
    static struct gen g;
    struct gguf_file *file;
    struct gguf_error err;
    struct seen s = { .n = 0 };
    size_t size;
    gen_init(&g, 0);
    if (!gen_read(&g, path)) {
        ok(0, "%s is read", name);
        gen_fini(&g);
        return;
    }
    void *data = gen_empty_file(&g, &size);
    if (gguf_file_open_memory(&file, data, size, NULL, &err) ||
        gguf_file_verify(file, NULL, note, &s, &err))
        ok(0, "%s: %s", name, err.message);
    else
        ok(!s.n, "%s: %u findings: %s", name, s.n, s.first);
    gguf_file_close(file);
    free(data);
    gen_fini(&g);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void check_models(void)
{
    static char names[512][256];
    size_t n = 0;
    const char *dir = shared_path("archs/public/skeletons");
    DIR *d = dir ? opendir(dir) : NULL;
    if (!d) {
        skip("no models of architectures here");
        return;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".json") && n < GG_LEN(names))
            snprintf(names[n++], sizeof names[0], "%s", e->d_name);
    closedir(d);
    qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++) {
        char rel[512];
        snprintf(rel, sizeof rel, "archs/public/skeletons/%s", names[i]);
        check_model(shared_path(rel), names[i]);
    }
}

/* ---- the rows themselves ---- */

static void check_order(void)
{
    unsigned bad = 0;
    for (size_t i = 1; i < gg_arch_count(); i++)
        bad += strcmp(gg_arch_at(i - 1)->name, gg_arch_at(i)->name) >= 0;
    ok(!bad && gg_arch_count() > 130, "%zu rows in the order of names",
       gg_arch_count());
}

int main(void)
{
    check_order();
    check_models();
    return done_testing();
}
