/* SPDX-License-Identifier: MIT */
/* check-verify.c - findings of gguf_file_verify about metadata and tensors */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "gguf/verify.h"
#include "gguf/split.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/hostile/hostile.h"
#include "tests/model/findings.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------ fixtures --- */

/* Do all these findings lack a place in the file? */
static int has_no_place(const char *codes)
{
    static const char *const none[] = { "no-tokenizer", "no-scores",
                                        "missing-", "no-merges", "no-pre" };
    for (size_t i = 0; i < GG_LEN(none); i++)
        if (strstr(codes, none[i]))
            return 1;
    return 0;
}

static void check_fixtures(void)
{
    for (const struct fix_model *x = fix_models; x->name; x++) {
        struct findings s = { .n = 0 };
        struct fix fx;
        fix_init(&fx);
        x->make(&fx);
        ok(findings_in(fx.data, fx.size, NULL, &s) == GGUF_OK &&
               !strcmp(s.codes, x->codes) && !s.n_outside &&
               (!s.n || s.offset != GGUF_NO_OFFSET || has_no_place(s.codes)),
           "%s: %s: %s", x->name, s.codes, s.last);
        fix_fini(&fx);
    }
}

/* Make the fixture of this name. */
static void make_fixture(struct fix *fx, const char *name)
{
    fix_init(fx);
    for (const struct fix_model *x = fix_models; x->name; x++)
        if (!strcmp(x->name, name))
            x->make(fx);
}

/* Verifying a file with its own metadata as new metadata gives the file's
 * findings. Without an architecture in them, that is found. */
static void check_meta(void)
{
    struct gguf_check_params payload = GGUF_INIT(struct gguf_check_params);
    struct gguf_error err;
    struct gguf_file *f;
    struct gguf_meta *m;
    struct findings one, two;
    unsigned bad = 0, n = 0;
    for (const struct fix_model *x = fix_models; x->name; x++, n++) {
        struct fix fx;
        one = two = (struct findings){ .n = 0 };
        fix_init(&fx);
        x->make(&fx);
        if (gguf_file_open_memory(&f, fx.data, fx.size, NULL, NULL) ||
            gguf_meta_create(&m, NULL, NULL) ||
            gguf_meta_copy_file(m, f, NULL))
            exit(99);
        int same =
            gguf_file_verify(
                f, NULL, (struct gguf_finding_callback){ findings_note, &one },
                &err) == GGUF_OK &&
            gguf_file_verify_meta(
                f, m, NULL,
                (struct gguf_finding_callback){ findings_note, &two },
                &err) == GGUF_OK &&
            !memcmp(&one, &two, sizeof one);
        if (!same)
            printf("# %s: %s: %s / %s: %s\n", x->name, one.codes, one.last,
                   two.codes, two.last);
        bad += !same;
        gguf_meta_remove(m, "general.architecture");
        two = (struct findings){ .n = 0 };
        /* the file is a later shard, which needs no architecture */
        bool later = gguf_meta_find(m, "split.no");
        bad += gguf_file_verify_meta(
                   f, m, NULL,
                   (struct gguf_finding_callback){ findings_note, &two },
                   &err) != GGUF_OK ||
               !strstr(two.codes, "no-architecture") != later;
        gguf_meta_destroy(m);
        gguf_file_close(f);
        fix_fini(&fx);
    }
    ok(!bad, "%u files: verified with their own metadata", n);
    struct fix fx;
    make_fixture(&fx, "model-spm");
    payload.payload = true;
    if (gguf_file_open_memory(&f, fx.data, fx.size, NULL, NULL) ||
        gguf_meta_create(&m, NULL, NULL))
        exit(99);
    ok(gguf_file_verify_meta(
           f, m, &payload,
           (struct gguf_finding_callback){ findings_note, &two },
           &err) == GGUF_E_INVALID,
       "%s", err.message);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    fix_fini(&fx);
}

/* A finding about a misspelled name suggests the nearest known one. */
static void check_near(void)
{
    struct findings s = { .n = 0 };
    struct fix fx;
    make_fixture(&fx, "model-pre-unknown");
    ok(findings_in(fx.data, fx.size, NULL, &s) == GGUF_OK && s.n == 1 &&
           strstr(s.last, "'lama-bpe'") &&
           strstr(s.last, "like it are 'llama-bpe' and '"),
       "%s", s.last);
    fix_fini(&fx);
}

/* The offset of a finding is that of the text, element or entry at fault. */
static void check_places(void)
{
    static const struct {
        const char *name, *bytes;
        size_t size;
    } rows[] = {
        { "model-byte-bad", "\6\0\0\0\0\0\0\0<0xZZ>", 14 },
        { "model-merge-unknown", "\3\0\0\0\0\0\0\0z x", 11 },
        { "model-kinds-value", "\x63\0\0\0", 4 },
        { "model-suppress-range", "\xe8\3\0\0", 4 },
        { "model-matrix-type", "\x13\0\0\0\0\0\0\0blk.0.ffn_up.weight", 27 },
    };
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        struct findings s = { .n = 0, .stop_at = 1 };
        struct fix fx;
        make_fixture(&fx, rows[i].name);
        ok(findings_in(fx.data, fx.size, NULL, &s) == GGUF_E_CANCELLED &&
               s.offset + rows[i].size <= fx.size &&
               !memcmp(fx.data + s.offset, rows[i].bytes, rows[i].size),
           "%s: byte %" PRIu64 ": %s", rows[i].name, s.offset, s.last);
        fix_fini(&fx);
    }
}

static void check_nomem(void)
{
    static const char *const names[] = { "model-bpe", "model-layers-more" };
    for (size_t i = 0; i < GG_LEN(names); i++) {
        struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
        struct failalloc fa;
        struct fix fx;
        unsigned n = 0, bad = 0;
        make_fixture(&fx, names[i]);
        for (;; n++) {
            struct findings s = { .n = 0 };
            p.allocator = failalloc_init(&fa, n);
            enum gguf_status st = findings_in(fx.data, fx.size, &p, &s);
            if (fa.calls <= n)
                break;
            bad += st != GGUF_E_NOMEM || fa.live != 0;
        }
        ok(n > 3 && !bad, "%s: each of %u allocations may fail", names[i], n);
        fix_fini(&fx);
    }
}

/* ------------------------------------------------- a large vocabulary --- */

struct counted {
    size_t live, peak;
};

static void *counted_alloc(void *user, size_t size)
{
    struct counted *c = user;
    size_t *p = malloc(size + 16);
    if (!p)
        return NULL;
    *p = size;
    c->live += size;
    c->peak = c->live > c->peak ? c->live : c->peak;
    return p + 16 / sizeof *p;
}

static void counted_free(void *user, void *ptr)
{
    struct counted *c = user;
    size_t *p = ptr;
    if (!p)
        return;
    c->live -= p[-16 / (int)sizeof *p];
    free(p - 16 / sizeof *p);
}

/* A vocabulary of n tokens and n merges, where `same' tokens have one text. */
static void large_vocab(struct fix *fx, unsigned n, unsigned same)
{
    char text[32];
    fix_init(fx);
    fix_head(fx, 3, 0, 3);
    fix_kv_str(fx, "tokenizer.ggml.model", "gpt2");
    fix_array(fx, "tokenizer.ggml.tokens", GGUF_VAL_STR, n);
    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof text, "t%u", i < same ? 0 : i);
        fix_str(fx, text);
    }
    fix_array(fx, "tokenizer.ggml.merges", GGUF_VAL_STR, n);
    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof text, "t %u", i);
        fix_str(fx, text);
    }
}

static void check_large(void)
{
    enum { N = 400000 };
    for (unsigned same = 0; same <= N; same += N) {
        struct findings s = { .n = 0 };
        struct counted c = { 0, 0 };
        struct gguf_allocator a = { .struct_size =
                                        sizeof(struct gguf_allocator),
                                    .alloc = counted_alloc,
                                    .free = counted_free,
                                    .user = &c };
        struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
        struct fix fx;
        p.allocator = &a;
        large_vocab(&fx, N, same);
        const double most = SCRATCH_SANITIZED ? 10 : 1; /* seconds */
        double t = scratch_cpu_time();
        enum gguf_status st = findings_in(fx.data, fx.size, &p, &s);
        t = scratch_cpu_time() - t;
        ok(st == GGUF_OK && c.live == 0 && t < most && c.peak < 64 << 20 &&
               (strstr(s.codes, "duplicate-token") != NULL) == (same > 0) &&
               strstr(s.codes, "unknown-merge"),
           "%u tokens and merges: %.0f ms, %.1f MiB: %s", N, t * 1e3,
           (double)c.peak / (1 << 20), s.codes);
        struct findings q = { .n = 0 };
        p.quick = true;
        t = scratch_cpu_time();
        st = findings_in(fx.data, fx.size, &p, &q);
        ok(st == GGUF_OK && !strstr(q.codes, "duplicate-token"),
           "quick: %.0f ms: %s", (scratch_cpu_time() - t) * 1e3, q.codes);
        fix_fini(&fx);
    }
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    struct findings s = { .n = 0 };
    struct fix fx;
    make_fixture(&fx, "model-spm");
    p.quick = p.payload = true;
    ok(findings_in(fx.data, fx.size, &p, &s) == GGUF_E_INVALID,
       "quick and payload exclude each other");
    fix_fini(&fx);
}

/* ---------------------------------------------------------------- sets --- */

/* Verify the model at path. Its second shard is missing, which is found as
 * code; NULL: there is nothing at path. */
static void check_gap(const char *path, const char *code)
{
    struct findings s = { .n = 0 };
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct gguf_error err;
    enum gguf_status st = gguf_path_verify(
        path, NULL, NULL, (struct gguf_finding_callback){ findings_note, &s },
        &err);
    if (!code) {
        ok(st == GGUF_E_NOTFOUND && !s.n, "%s", err.message);
        return;
    }
    ok(st == GGUF_OK && !strcmp(s.codes, code) && s.n_error == 1 &&
           s.n_no_file == 1 && strstr(s.last, "is missing: 2"),
       "%s: %s: %s", path, s.codes, s.last);
    unsigned n = 0, leaks = 0;
    struct failalloc fa;
    do {
        p.allocator = failalloc_init(&fa, n++);
        s.n = 0;
        st = gguf_path_verify(
            path, &p, NULL,
            (struct gguf_finding_callback){ findings_note, &s }, &err);
        leaks += fa.live != 0;
    } while (st == GGUF_E_NOMEM && !s.n);
    ok(st == GGUF_OK && s.n == 1 && fa.calls < n && !leaks,
       "none of %u allocations fails unnoticed", n - 1);
}

static void check_set(void)
{
    char dir[] = "/tmp/check-verify-XXXXXX", path[64], prefix[64];
    struct gguf_split_params sp = GGUF_INIT(struct gguf_split_params);
    struct gguf_file *set;
    struct gguf_split_plan *plan;
    struct gguf_file *file;
    struct gguf_error err;
    struct findings s = { .n = 0 }, alone = { .n = 0 }, broken = { .n = 0 };
    struct fix fx;
    if (!scratch_make(dir)) {
        ok(0, "a folder for the test");
        return;
    }
    make_fixture(&fx, "model-tensor-none");
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    snprintf(prefix, sizeof prefix, "%s/s", dir);
    FILE *f = fopen(path, "wb");
    ok(f && fwrite(fx.data, 1, fx.size, f) == fx.size && !fclose(f),
       "a model is written");
    fix_fini(&fx);
    sp.max_tensors = 12;
    if (gguf_file_open(&set, path, NULL, &err) ||
        gguf_split_plan_create(&plan, set, &sp, &err) ||
        gguf_split_plan_write(plan, prefix, NULL, &err)) {
        ok(0, "%s", err.message);
        return;
    }
    gguf_split_plan_destroy(plan);
    gguf_file_close(set);
    ok(gguf_file_open(&set, prefix, NULL, &err) == GGUF_OK &&
           gguf_file_verify(
               set, NULL, (struct gguf_finding_callback){ findings_note, &s },
               &err) == GGUF_OK &&
           !strcmp(s.codes, "missing-tensor") &&
           !strcmp(s.name, "blk.1.attn_v.weight"),
       "a set of %zu: %s: %s", gguf_file_n_shards(set), s.codes, s.last);
    char first[128], second[128];
    snprintf(first, sizeof first, "%s",
             gguf_file_path(gguf_file_shard(set, 0)));
    snprintf(second, sizeof second, "%s",
             gguf_file_path(gguf_file_shard(set, 1)));
    gguf_file_close(set);
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    fp.single_file = true;
    ok(gguf_file_open(&file, first, &fp, &err) == GGUF_OK &&
           gguf_file_verify(
               file, NULL,
               (struct gguf_finding_callback){ findings_note, &alone },
               &err) == GGUF_OK &&
           !strcmp(alone.codes, "shard"),
       "one shard: %s", alone.last);
    unlink(second);
    ok(gguf_file_verify(
           file, NULL,
           (struct gguf_finding_callback){ findings_note, &broken },
           &err) == GGUF_OK &&
           !strcmp(broken.codes, "broken-set shard") && broken.n_error == 1,
       "the other is gone: %s", broken.codes);
    gguf_file_close(file);
    check_gap(prefix, "broken-set");
    unlink(path);
    check_gap(dir, "broken-set");
    unlink(first);
    check_gap(prefix, NULL);
    rmdir(dir);
}

/* ------------------------------------------------ what does not open --- */

static void check_bad(const char *path, const struct fixture *x)
{
    static const struct {
        enum gguf_status status;
        const char *code;
    } codes[] = {
        { GGUF_E_FORMAT, "malformed" },    { GGUF_E_VERSION, "version" },
        { GGUF_E_TRUNCATED, "truncated" }, { GGUF_E_OVERFLOW, "overflow" },
        { GGUF_E_SHAPE, "row-length" },    { GGUF_E_LIMIT, "limit" },
        { GGUF_E_DUPLICATE, "duplicate" },
    };
    const char *code = "?";
    struct findings s = { .n = 0 };
    struct gguf_error err;
    struct fix f;
    fix_init(&f);
    fix_make(x, &f);
    FILE *out = fopen(path, "wb");
    if (!out || (f.size && fwrite(f.data, 1, f.size, out) != f.size) ||
        fclose(out))
        exit(99);
    for (size_t i = 0; i < GG_LEN(codes); i++)
        if (codes[i].status == x->status)
            code = codes[i].code;
    ok(gguf_path_verify(path, NULL, NULL,
                        (struct gguf_finding_callback){ findings_note, &s },
                        &err) == GGUF_OK &&
           s.n_error == 1 && s.n_no_file == 1 && !strcmp(s.codes, code) &&
           s.offset == f.mark,
       "%s: %s: %s", x->name, s.codes, s.last);
    fix_fini(&f);
}

static void check_paths(void)
{
    char dir[] = "/tmp/check-verify-XXXXXX", path[64];
    struct gguf_error err;
    struct findings s = { .n = 0 }, stop = { .stop_at = 1 };
    if (!scratch_make(dir))
        exit(99);
    snprintf(path, sizeof path, "%s/x.gguf", dir);
    for (const struct fixture *x = fix_list("bad metadata"); x->name; x++)
        check_bad(path, x);
    for (const struct fixture *x = fix_list("bad tensors"); x->name; x++)
        check_bad(path, x);
    ok(gguf_path_verify(path, NULL, NULL,
                        (struct gguf_finding_callback){ findings_note, &stop },
                        &err) == GGUF_E_CANCELLED,
       "stopped: %s", err.message);
    unlink(path);
    ok(gguf_path_verify(path, NULL, NULL,
                        (struct gguf_finding_callback){ findings_note, &s },
                        &err) == GGUF_E_NOTFOUND &&
           !s.n,
       "%s", err.message);
    struct fix f;
    fix_init(&f);
    fix_models->make(&f);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(f.data, 1, f.size, out) != f.size || fclose(out))
        exit(99);
    fix_fini(&f);
    ok(gguf_path_verify(path, NULL, NULL,
                        (struct gguf_finding_callback){ findings_note, &s },
                        &err) == GGUF_OK &&
           !s.n_no_file && !strcmp(s.codes, fix_models->codes),
       "one that opens: %s", s.codes);
    unlink(path);
    rmdir(dir);
}

/* ------------------------------------------------- hostile collection --- */

/* Do the findings agree with the table? A file that cannot be loaded has an
 * error, one with "yes" a warning, one that loads no error. */
static int agrees_with(const char *name, const char *model, const char *warn,
                       const struct findings *s)
{
    /* the architecture is missing or unknown: nothing else can be checked */
    static const char *const vague[] = {
        "hp-arch-type.gguf",
        "hp-arch-unknown.gguf",
        "hp-no-arch.gguf",
        "vo-model-unknown.gguf",
    };
    for (size_t i = 0; i < GG_LEN(vague); i++)
        if (!strcmp(name, vague[i]))
            return s->n > 0;
    if (!strcmp(model, "reject"))
        return s->n_error > 0;
    if (!strcmp(model, "accept") && s->n_error)
        return 0;
    return strcmp(warn, "yes") || s->n_error + s->n_warning > 0;
}

static void check_hostile(void)
{
    const char *dir = hostile_make();
    char line[4096], path[4096];
    unsigned n = 0;
    snprintf(path, sizeof path, "%s/expect.tsv", dir ? dir : "");
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        char *col[8], *p = line;
        for (int i = 0; i < 8; i++) {
            col[i] = p;
            p += strcspn(p, "\t\n");
            if (*p)
                *p++ = 0;
        }
        if (strcmp(col[3], "hparams") && strcmp(col[3], "vocab") &&
            strcmp(col[3], "tensor-shape"))
            continue;
        struct gguf_check_params q = GGUF_INIT(struct gguf_check_params);
        struct findings s = { .n = 0 };
        struct gguf_file *file;
        struct gguf_error err;
        q.quick = true; /* gguf-info checks that much by default */
        snprintf(path, sizeof path, "%s/%s", dir, col[0]);
        enum gguf_status st = gguf_file_open(&file, path, NULL, &err);
        if (st == GGUF_OK)
            st = gguf_file_verify(
                file, &q, (struct gguf_finding_callback){ findings_note, &s },
                &err);
        ok(st == GGUF_OK && !s.n_outside &&
               agrees_with(col[0], col[6], col[7], &s),
           "%s: model %s, warning %s: %s", col[0], col[6], col[7], s.codes);
        gguf_file_close(file);
        n++;
    }
    ok(n > 70, "%u files", n);
    if (in)
        fclose(in);
    hostile_remove();
}

int main(void)
{
    check_fixtures();
    check_meta();
    check_near();
    check_places();
    check_nomem();
    check_large();
    check_set();
    check_paths();
    check_hostile();
    return done_testing();
}
