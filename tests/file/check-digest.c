/* SPDX-License-Identifier: MIT */
/* check-digest.c - digests with any number of threads, and manifests */
#include "config.h"
#include "base/sha256.h"
#include "gguf/digest.h"
#include "gguf/split.h"
#include "gguf/writer.h"
#include "tests/failalloc.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <unistd.h>
#include <xxhash.h>

enum { N = 7 };

/* Tensor i has i * i * 40000 + 4 bytes. gone: the file is unlinked. */
static struct gguf_file *make_file_at(const char *path, bool gone)
{
    struct gguf_writer *w = NULL;
    struct gguf_file *f = NULL;
    struct gguf_error err;
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    o.no_sync = o.force = true;
    static uint8_t buf[40000 * N * N + 4];
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (uint8_t)rnd64();
    enum gguf_status st = gguf_writer_create(&w, NULL, NULL, &err);
    for (int i = 0; st == GGUF_OK && i < N; i++) {
        int64_t ne = i * i * 10000 + 1;
        char name[] = { 't', (char)('0' + i) };
        st = gguf_writer_add_tensor(w, (struct gguf_str){ name, 2 },
                                    GGUF_DTYPE_F32, 1, &ne, &err);
    }
    if (st == GGUF_OK)
        st = gguf_writer_begin_file(w, path, &o, &err);
    for (size_t i = 0; st == GGUF_OK && i < N; i++) {
        st = gguf_writer_begin_tensor(w, i, &err);
        if (st == GGUF_OK)
            st = gguf_writer_write(w, buf + i, gguf_writer_tensor(w, i)->size,
                                   &err);
    }
    if (st == GGUF_OK)
        st = gguf_writer_commit(w, &err);
    if (st == GGUF_OK)
        st = gguf_file_open(&f, path, NULL, &err);
    if (st != GGUF_OK)
        printf("# %s\n", err.message);
    gguf_writer_destroy(w);
    if (gone)
        unlink(path);
    return f;
}

/* Expected digests, by one-shot calls of the libraries. */
static void expect_digest(const struct gguf_file *f,
                          enum gguf_digest_algo algo, struct gguf_digest *t,
                          struct gguf_digest *m)
{
    uint8_t *all = malloc(4000000);
    size_t n = 0;
    memset(t, 0, N * sizeof *t);
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i <= N; i++) {
        struct gguf_digest *d = i < N ? &t[i] : m;
        const void *p = i < N ? gguf_file_tensor_data(f, i) : all;
        size_t size = i < N ? (size_t)gguf_file_tensor(f, i)->size : n;
        if (algo == GGUF_DIGEST_XXH64)
            XXH64_canonicalFromHash((XXH64_canonical_t *)d->bytes,
                                    XXH64(p, size, 0));
        else
            XXH128_canonicalFromHash((XXH128_canonical_t *)d->bytes,
                                     XXH3_128bits(p, size));
        d->algo = algo;
        if (i < N) {
            memcpy(all + n, p, size);
            n += size;
        }
    }
    free(all);
}

static int equal_digests(const struct gguf_digest *a,
                         const struct gguf_digest *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!gguf_digest_equal(&a[i], &b[i]))
            return 0;
    return 1;
}

static void check_bytes(enum gguf_digest_algo algo)
{
    /* xxhsum's digests of "", "a" and "abc" */
    static const char *const want[3][3] = {
        { "ef46db3751d8e999", "d24ec4f1a98c6e5b", "44bc2cf5ad770999" },
        { "99aa06d3014798d86001c324468d497f",
          "a96faf705af16834e6c632b61e964e1f",
          "06b05ab6733a618578af5f94892f3950" },
        /* sha256sum's digests; the last is FIPS 180-4's example */
        { "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
          "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    };
    static const char *const text[3] = { "", "a", "abc" };
    for (int i = 0; i < 3; i++) {
        struct gguf_digest d;
        char hex[65] = "";
        if (gguf_digest_bytes(&d, algo, i ? text[i] : NULL, strlen(text[i]),
                              NULL) == GGUF_OK)
            gguf_digest_format(&d, hex);
        ok(!strcmp(hex, want[algo][i]), "%s of \"%s\": %s",
           gguf_digest_algo_name(algo), text[i], hex);
    }
}

/* The longer examples of FIPS 180-4, and texts cut anywhere. */
static void check_sha256(void)
{
    static const char *const want[2] = {
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
    };
    static const char text[] =
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    const size_t size[2] = { sizeof text - 1, 1000000 };
    char *many = malloc(1000000), hex[65];
    memset(many, 'a', 1000000);
    for (int i = 0; i < 2; i++) {
        struct gguf_digest d;
        const enum gguf_status st = gguf_digest_bytes(
            &d, GGUF_DIGEST_SHA256, i ? many : text, size[i], NULL);
        gguf_digest_format(&d, hex);
        ok(st == GGUF_OK && !strcmp(hex, want[i]), "sha256 of %zu bytes",
           size[i]);
    }
    unsigned wrong = 0;
    for (size_t n = 0; n < 200; n++) { /* cut in two ways */
        uint8_t a[32], b[32];
        struct gg_sha256 s;
        gg_sha256_init(&s, gg_sha256_blocks);
        gg_sha256_add(&s, many, n);
        gg_sha256_end(&s, a);
        gg_sha256_init(&s, gg_sha256_blocks);
        for (size_t at = 0, k = 1; at < n; at += k, k = k % 67 + 1)
            gg_sha256_add(&s, many + at, k < n - at ? k : n - at);
        gg_sha256_end(&s, b);
        wrong += memcmp(a, b, sizeof a) != 0;
    }
    ok(!wrong, "sha256 of texts of any length in pieces of any length");
    free(many);
}

static bool stop_at_second(void *user, uint64_t done, uint64_t total)
{
    unsigned *n = user;
    return done > total || ++*n == 2;
}

/* f in shards of two tensors, which are unlinked once they are open. */
static struct gguf_file *open_set(const struct gguf_file *f)
{
    struct gguf_split_params p = { .struct_size = sizeof p, .max_tensors = 2 };
    struct gguf_split_output_params job = { .struct_size = sizeof job,
                                            .no_sync = 1 };
    struct gguf_split_plan *plan = NULL;
    struct gguf_file *set = NULL;
    if (gguf_split_plan_create(&plan, f, &p, NULL) != GGUF_OK ||
        gguf_split_plan_write(plan, "check-digest-set", &job, NULL) !=
            GGUF_OK ||
        gguf_file_open(&set, "check-digest-set", NULL, NULL) != GGUF_OK)
        exit(99);
    gguf_split_plan_destroy(plan);
    for (size_t i = 0; i < gguf_file_n_shards(set); i++)
        unlink(gguf_file_path(gguf_file_shard(set, i)));
    return set;
}

static void check_digests(const struct gguf_file *f,
                          enum gguf_digest_algo algo)
{
    struct gguf_digest want_t[N], want_m, t[N], m;
    struct gguf_error err;
    expect_digest(f, algo, want_t, &want_m);
    for (unsigned n = 0; n <= 4; n++) {
        struct gguf_digest_params p = GGUF_INIT(struct gguf_digest_params);
        struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
        p.algo = algo;
        pp.n_threads = n;
        if (n && gguf_pool_create(&p.pool, &pp, &err) != GGUF_OK)
            continue;
        memset(t, 0, sizeof t);
        memset(&m, 0, sizeof m);
        ok(gguf_digest_tensors(f, &p, t, &m, &err) == GGUF_OK &&
               equal_digests(t, want_t, N) && equal_digests(&m, &want_m, 1),
           "%s, %u threads: tensors and model", gguf_digest_algo_name(algo),
           n);
        memset(t, 0, sizeof t);
        memset(&m, 0, sizeof m);
        ok(gguf_digest_tensors(f, &p, t, NULL, &err) == GGUF_OK &&
               gguf_digest_tensors(f, &p, NULL, &m, &err) == GGUF_OK &&
               equal_digests(t, want_t, N) && equal_digests(&m, &want_m, 1),
           "%s, %u threads: each alone", gguf_digest_algo_name(algo), n);
        unsigned calls = 0;
        p.progress.fn = stop_at_second;
        p.progress.user = &calls;
        if (n < 2)
            ok(gguf_digest_tensors(f, &p, t, &m, &err) == GGUF_E_CANCELLED &&
                   calls == 2,
               "%u threads: stopped", n);
        gguf_pool_destroy(p.pool);
    }
    struct gguf_file *set = open_set(f);
    struct gguf_digest_params p = GGUF_INIT(struct gguf_digest_params);
    p.algo = algo;
    ok(gguf_file_n_shards(set) > 1 &&
           gguf_digest_tensors(set, &p, t, &m, &err) == GGUF_OK &&
           equal_digests(t, want_t, N) && equal_digests(&m, &want_m, 1),
       "a set of %zu shards has the digests of its file",
       gguf_file_n_shards(set));
    gguf_file_close(set);
}

/* Bytes that the process has read by calls so far; 0: unknown. */
static unsigned long long n_read(void)
{
    unsigned long long n = 0;
#if defined(__linux__)
    FILE *f = fopen("/proc/self/io", "r");
    if (!f || fscanf(f, "rchar: %llu", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
#endif
    return n;
}

/* Digests of tensors and of the model read each byte once. Valgrind reads a
 * byte whenever another thread runs: some dozens, while a piece that is read
 * twice has thousands. */
static void check_reads(const struct gguf_file *f)
{
    unsigned long long total = 0;
    struct gguf_digest t[N], m;
    for (size_t i = 0; i < N; i++)
        total += gguf_file_tensor(f, i)->size;
    for (unsigned n = 1; n <= 4; n++) {
        struct gguf_digest_params p = GGUF_INIT(struct gguf_digest_params);
        struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
        struct gguf_error err;
        pp.n_threads = n;
        if (gguf_pool_create(&p.pool, &pp, &err) != GGUF_OK)
            continue;
        const unsigned long long a = n_read(), b = n_read();
        const enum gguf_status st = gguf_digest_tensors(f, &p, t, &m, &err);
        const unsigned long long read = n_read() - b - (b - a);
        gguf_pool_destroy(p.pool);
        if (!a)
            skip("nothing counts reads here");
        else
            ok(st == GGUF_OK && read >= total && read < total + 1000,
               "%u threads: %llu bytes are read, of %llu", n, read, total);
    }
}

/* A file that became shorter after it was opened. */
static void check_shorter(void)
{
#if defined(_WIN32)
    skip("a mapped file cannot become shorter here");
#else
    struct gguf_file *f = make_file_at("check-digest-short.gguf", false);
    struct gguf_digest t[N], m;
    struct gguf_error err;
    for (unsigned n = 1; n <= 3; n++) {
        struct gguf_digest_params p = GGUF_INIT(struct gguf_digest_params);
        struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
        pp.n_threads = n;
        if (gguf_pool_create(&p.pool, &pp, &err) != GGUF_OK)
            continue;
        ok(truncate("check-digest-short.gguf", 1000000) == 0 &&
               gguf_digest_tensors(f, &p, t, &m, &err) == GGUF_E_TRUNCATED &&
               gguf_digest_tensors(f, &p, t, NULL, &err) == GGUF_E_TRUNCATED,
           "%u threads: a file that became shorter: %s", n, err.message);
        gguf_pool_destroy(p.pool);
    }
    gguf_file_close(f);
    unlink("check-digest-short.gguf");
#endif
}

/* ----------------------------------------------------------- manifests --- */

static const struct gguf_str whole = { "", 0 };

static int finds_digest(const struct gguf_manifest *m, const char *tensor,
                        const char *hex)
{
    char got[33] = "";
    const struct gguf_digest *d = gguf_manifest_find(
        m, GGUF_DIGEST_XXH64, (struct gguf_str){ tensor, strlen(tensor) });
    if (d)
        gguf_digest_format(d, got);
    return !strcmp(got, hex);
}

static enum gguf_status parse_manifest(const char *text,
                                       struct gguf_manifest **m,
                                       struct gguf_error *err)
{
    return gguf_manifest_parse(m, text, strlen(text), NULL, err);
}

static void check_manifest(void)
{
    /* as llama-gguf-hash prints them */
    static const char text[] =
        "xxh64     f66e9cd66a4396a0  dir/test.gguf:tensor_0\n"
        "sha1      59f79ecefd8125a996fdf419239051a7e99e5f20  "
        "dir/test.gguf:tensor_0\n"
        "xxh64     7D3A1F9AC04D0537  dir/test.gguf:tensor_1\r\n"
        "\n"
        "xxh64     5a54d3aad816f302  dir/test.gguf\n";
    struct gguf_error err;
    struct gguf_manifest *m;
    ok(parse_manifest(text, &m, &err) == GGUF_OK &&
           gguf_manifest_n_entries(m) == 3 && gguf_manifest_n_skipped(m) == 1,
       "a manifest");
    ok(finds_digest(m, "tensor_0", "f66e9cd66a4396a0") &&
           finds_digest(m, "tensor_1", "7d3a1f9ac04d0537") &&
           finds_digest(m, "", "5a54d3aad816f302") &&
           finds_digest(m, "tensor_2", "") &&
           !gguf_manifest_find(m, GGUF_DIGEST_XXH3_128, whole),
       "knows tensors and the model");
    struct gguf_str name;
    ok(gguf_manifest_entry(m, 2, &name) && name.size == 0 &&
           !gguf_manifest_entry(m, 3, &name),
       "entry by entry");
    const struct gguf_digest *d = gguf_manifest_entry(m, 0, &name);
    char line[128];
    struct gguf_str file = { "dir/test.gguf", 13 };
    size_t n = gguf_manifest_format_tensor(line, sizeof line, d, file, name);
    ok(n == strlen(line) && n == strcspn(text, "\n") &&
           !strncmp(line, text, n),
       "writes the same line: %s", line);
    /* a direction mark, and its escaped form */
    static const char mark[] = "a\xe2\x80\xae", text_of_mark[] = "a\\u{202E}";
    char both[256];
    n = gguf_manifest_format_tensor(both, sizeof both, d, file,
                                    (struct gguf_str){ mark, 4 });
    both[n] = '\n';
    ok(n == strlen("xxh64     f66e9cd66a4396a0  dir/test.gguf:a\\u{202E}") &&
           n == gguf_manifest_format_tensor(NULL, 0, d, file,
                                            (struct gguf_str){ mark, 4 }) &&
           !memcmp(both + n - 9, text_of_mark, 9),
       "a name that could reorder the line is escaped");
    n += 1 + gguf_manifest_format_tensor(both + n + 1, sizeof both - n - 1, d,
                                         file,
                                         (struct gguf_str){ text_of_mark, 9 });
    struct gguf_manifest *escaped;
    ok(parse_manifest(both, &escaped, &err) == GGUF_OK &&
           gguf_manifest_n_entries(escaped) == 2 &&
           finds_digest(escaped, mark, "f66e9cd66a4396a0") &&
           finds_digest(escaped, text_of_mark, "f66e9cd66a4396a0") &&
           finds_digest(escaped, "a", ""),
       "and found again, as is its escaped text as a name");
    gguf_manifest_destroy(escaped);
    ok(parse_manifest("xxh64  f66e9cd66a4396a0  x.gguf:a\xe2\x80\xae\n"
                      "xxh64  f66e9cd66a4396a1  x.gguf\n",
                      &escaped, &err) == GGUF_OK &&
           finds_digest(escaped, mark, "f66e9cd66a4396a0"),
       "one that another program wrote as it is, too");
    gguf_manifest_destroy(escaped);
    gguf_manifest_destroy(m);

    ok(parse_manifest("xxh64  f66e9cd66a4396a0  C:x.gguf:a\n"
                      "xxh64  f66e9cd66a4396a1  C:x.gguf:b\n",
                      &m, &err) == GGUF_OK &&
           finds_digest(m, "a", "f66e9cd66a4396a0") &&
           finds_digest(m, "b", "f66e9cd66a4396a1"),
       "a list without the model");
    gguf_manifest_destroy(m);
    ok(parse_manifest("xxh64  f66e9cd66a4396a0  x.gguf\n", &m, &err) ==
               GGUF_OK &&
           finds_digest(m, "", "f66e9cd66a4396a0"),
       "a list of the model alone");
    gguf_manifest_destroy(m);
    ok(parse_manifest("", &m, &err) == GGUF_OK &&
           gguf_manifest_n_entries(m) == 0,
       "an empty list");
    gguf_manifest_destroy(m);
#define ZEROS "0000000000000000000000000000000"
    ok(parse_manifest(ZEROS "1" ZEROS "2  a/b c.gguf\n" ZEROS "3" ZEROS
                            "4 *d\n",
                      &m, &err) == GGUF_OK &&
           gguf_manifest_n_entries(m) == 0 && gguf_manifest_n_files(m) == 2 &&
           gguf_manifest_file(m, 0, &name)->bytes[31] == 2 &&
           name.size == 10 && !memcmp(name.data, "a/b c.gguf", 10) &&
           gguf_manifest_file(m, 1, &name)->bytes[15] == 3 && name.size == 1 &&
           !gguf_manifest_file(m, 2, &name),
       "sha256sum's lines");
    gguf_manifest_destroy(m);
    static const char *const bad[] = {
        ZEROS "1" ZEROS "2\n",
        ZEROS "1" ZEROS "2 file\n",
        "xxh64\n",
        "xxh64 12\n",
        "xxh64 f66e9cd66a4396a x\n",
        "xxh64 f66e9cd66a4396ag x\n",
        "xxh64 f66e9cd66a4396a00 x\n",
        "\nxxh3-128 f66e9cd66a4396a0 x\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(parse_manifest(bad[i], &m, &err) == GGUF_E_FORMAT && !m,
           "a bad line: %s", err.message);
    ok(parse_manifest(
           "xxh64 f66e9cd66a4396a0 x:a\nxxh64 f66e9cd66a4396a1 x:a\n"
           "xxh64 f66e9cd66a4396a1 x\n",
           &m, &err) == GGUF_E_DUPLICATE &&
           !m,
       "two digests for one: %s", err.message);
    struct failalloc fa;
    unsigned wrong = 0;
    for (unsigned k = 0;; k++) {
        enum gguf_status st = gguf_manifest_parse(
            &m, text, strlen(text), failalloc_init(&fa, k), &err);
        gguf_manifest_destroy(m);
        wrong += fa.live != 0 || (st != GGUF_E_NOMEM && fa.calls > k);
        if (fa.calls <= k)
            break;
    }
    ok(!wrong, "memory may run out at any call");
}

/* A set, with an allocator that fails at each call in turn. */
static void check_nomem(const struct gguf_file *f)
{
    struct gguf_file *set = open_set(f);
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_digest_params p = GGUF_INIT(struct gguf_digest_params);
    struct gguf_digest t[N], m, want[N], want_m;
    struct failalloc fa;
    unsigned wrong = 0, n = 0;
    pp.n_threads = 3;
    if (gguf_pool_create(&p.pool, &pp, NULL) != GGUF_OK ||
        gguf_digest_tensors(set, &p, want, &want_m, NULL) != GGUF_OK)
        exit(99);
    for (;; n++) {
        memset(t, 0, sizeof t);
        p.allocator = failalloc_init(&fa, n);
        enum gguf_status st = gguf_digest_tensors(set, &p, t, &m, NULL);
        wrong += fa.live != 0;
        if (fa.calls <= n) {
            wrong += st != GGUF_OK || !equal_digests(t, want, N) ||
                     !equal_digests(&m, &want_m, 1);
            break;
        }
        wrong += st != GGUF_E_NOMEM;
    }
    ok(!wrong, "memory may run out at each of %u calls", n);
    gguf_pool_destroy(p.pool);
    gguf_file_close(set);
}

int main(void)
{
    struct gguf_file *f = make_file_at("check-digest.gguf", true);
    if (!f)
        return 99;
    check_digests(f, GGUF_DIGEST_XXH64);
    check_digests(f, GGUF_DIGEST_XXH3_128);
    check_bytes(GGUF_DIGEST_XXH64);
    check_bytes(GGUF_DIGEST_XXH3_128);
    check_bytes(GGUF_DIGEST_SHA256);
    check_sha256();
    struct gguf_digest d;
    struct gguf_error err;
    ok(gguf_digest_bytes(&d, (enum gguf_digest_algo)7, "", 0, &err) ==
               GGUF_E_INVALID &&
           strstr(err.message, "algorithm 7"),
       "no such digest");
    check_nomem(f);
    check_reads(f);
    gguf_file_close(f);
    check_shorter();
    check_manifest();
    enum gguf_digest_algo algo = GGUF_DIGEST_SHA256;
    ok(!gguf_digest_algo_find("md5", &algo) && algo == GGUF_DIGEST_SHA256 &&
           gguf_digest_algo_find("xxh3-128", &algo) &&
           algo == GGUF_DIGEST_XXH3_128,
       "names");
    return done_testing();
}
