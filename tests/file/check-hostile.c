/* SPDX-License-Identifier: MIT */
/* check-hostile.c - every file of the hostile collection is opened or refused
 * as it must be
 *
 * The rows of tests/hostile give the expected answer of opening and listing,
 * and the reason. Files that are wrong only as members of a set, or as
 * importance data, open like any other.
 */
#include "config.h"
#include "gguf/check.h"
#include "tests/hostile/hostile.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <inttypes.h>

/* Touch everything that a listing prints. Returns a value that depends on it.
 */
static uint64_t list_all(const struct gguf_file *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        struct gguf_kv_iter it;
        struct gguf_kv e;
        gguf_kv_iter_init(&it, kv);
        while (gguf_kv_iter_next(&it, &e))
            sum += e.size + (e.size ? *(const unsigned char *)e.data : 0);
        for (size_t k = 0; k < kv->size; k++)
            sum += ((const unsigned char *)kv->data)[k];
    }
    for (size_t i = 0; i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        const unsigned char *d = gguf_file_tensor_data(f, i);
        sum += d[0] + d[t->size - 1] + t->name.size;
    }
    return sum;
}

static bool count_warning(void *user, const struct gguf_finding *f)
{
    unsigned *n = user;
    *n += f->severity != GGUF_SEVERITY_NOTE;
    return 0;
}

/* Check for a warning if the row expects one. */
static void check_warning(const struct gguf_file *f, const char *name,
                          const char *wanted)
{
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    unsigned n = 0;
    p.payload = true;
    enum gguf_status st = gguf_file_check(
        f, &p, (struct gguf_finding_callback){ count_warning, &n }, NULL);
    ok(st == GGUF_OK && (n || !*wanted), "%s: %u warnings, %s", name, n,
       *wanted ? wanted : "none needed");
}

/* Check a file. warning: reason of an expected warning, or "". */
static void check_file(const char *dir, const char *name, const char *expect,
                       const char *reason, const char *warning)
{
    const struct gguf_file_params alone = { .struct_size = sizeof alone,
                                            .single_file = true };
    char path[4400];
    struct gguf_file *f;
    struct gguf_error err;
    gguf_error_clear(&err);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    double t = scratch_cpu_time();
    enum gguf_status st = gguf_file_open(&f, path, &alone, &err);
    if (st == GGUF_OK)
        list_all(f);
    t = scratch_cpu_time() - t;
    int accept = !strcmp(expect, "accept");
    ok((st == GGUF_OK) == accept, "%s: %s (%s)", name, expect, reason);
    if (st != GGUF_OK && !accept)
        ok(err.offset != GGUF_NO_OFFSET && err.message[0] &&
               err.status == st && f == NULL,
           "%s: refused at byte %" PRIu64 ": %s", name, err.offset,
           err.message);
    else if (st != GGUF_OK)
        printf("# %s\n", err.message);
    if (f)
        check_warning(f, name, warning);
    if (t > 1)
        ok(0, "%s: took %.1f s", name, t);
    gguf_file_close(f);
}

/* Compare the rows with ../shared/hostile, if it is there. */
static void compare_shared(void)
{
    size_t n, n_same = 0;
    struct hostile *h = hostile_read(&n);
    if (!h || !shared_path("hostile/public/expect.tsv")) {
        hostile_free(h, h ? n : 0);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char rel[200];
        size_t size;
        snprintf(rel, sizeof rel, "hostile/public/%s", h[i].name);
        uint8_t *want = slurp(shared_path(rel), &size);
        bool same = want && size == h[i].size;
        for (size_t k = 0; same && k < size; k++)
            same = want[k] == h[i].data[k] || h[i].any[k];
        if (!same)
            printf("# %s is another\n", h[i].name);
        n_same += same;
        free(want);
    }
    ok(n == n_same, "%zu of %zu files are those of ../shared", n_same, n);
    size_t n_rows = 0;
    char *table = slurp(shared_path("hostile/public/expect.tsv"), NULL);
    for (char *p = table; p && *p; p += strcspn(p, "\n") + 1)
        n_rows += *p != '#';
    ok(n == n_rows, "every row is compared");
    free(table);
    hostile_free(h, n);
}

int main(void)
{
    const char *dir = hostile_make();
    char path[4096], line[4096];
    compare_shared();
    snprintf(path, sizeof path, "%s/expect.tsv", dir ? dir : "");
    FILE *in = fopen(path, "r");
    unsigned n = 0;
    while (in && fgets(line, sizeof line, in)) {
        char *name = strtok(line, "\t"), *expect = strtok(NULL, "\t"),
             *reason = strtok(NULL, "\t"), *class = strtok(NULL, "\t");
        if (!name || name[0] == '#' || !expect || !reason || !class)
            continue;
        n++;
        /* skip three columns; warnings about vocabularies and models are given
         * elsewhere */
        char *warn = NULL;
        for (int i = 0; i < 4; i++)
            warn = strtok(NULL, "\t");
        int ours = warn && !strcmp(warn, "yes") && strcmp(class, "vocab") &&
                   strcmp(class, "tensor-shape");
        check_file(dir, name, expect, reason,
                   ours || !strcmp(name, "data-inf.gguf") ||
                           !strcmp(name, "data-nan.gguf") ||
                           !strcmp(name, "data-qnan.gguf")
                       ? reason
                       : "");
    }
    if (in)
        fclose(in);
    ok(n > 330, "%u files", n);
    hostile_remove();
    return done_testing();
}
