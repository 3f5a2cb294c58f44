/* replay.c - run a target over seeds, without a fuzzer
 *
 *     check-NAME               the fixtures, the values in them, a few texts,
 *                              and changed copies of all these
 *     check-NAME FILE...       these inputs
 *     check-NAME --seeds DIR   write the seeds as files, for a fuzzer
 */
#include "config.h"
#include "file/value.h"
#include "gguf/file.h"
#include "tests/fix.h"
#include "tests/fuzz/fuzz.h"
#include "tests/tap.h"

enum { MAX_SEEDS = 400, CHANGES = 30 };

static struct fix seed[MAX_SEEDS];
static size_t n_seeds;

static struct fix *new_seed(void)
{
    if (n_seeds == MAX_SEEDS)
        exit(99);
    fix_init(&seed[n_seeds]);
    return &seed[n_seeds++];
}

/* Type and encoded value of every pair of a file. */
static void add_values(const struct fix *fx)
{
    struct gguf_file *f;
    if (gguf_file_open_memory(&f, fx->data, fx->size, NULL, NULL) != GGUF_OK)
        return;
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        uint64_t n;
        if (gg_kv_encoded_size(kv, &n) || n > 4096)
            continue;
        uint8_t *b = malloc((size_t)n);
        gg_kv_encode(kv, false, b);
        struct fix *s = new_seed();
        size_t skip = 8 + kv->key.size + 4;
        fix_u8(s, kv->type);
        fix_bytes(s, b + skip, (size_t)n - skip);
        free(b);
    }
    gguf_file_close(f);
}

static void make_seeds(void)
{
    static const char *const texts[] = {
        "", "xxh64     f66e9cd66a4396a0  m.gguf:a\n"
            "sha1 59f79ecefd8125a996fdf419239051a7e99e5f20 m.gguf:a\n"
            "xxh3-128  29c03956cdaddb76c02b18920c812d41  m.gguf:a\n"
            "xxh64     5a54d3aad816f302  m.gguf\n",
        "xxh64 f66e9cd66a4396a0 x:y:a\nxxh64 f66e9cd66a4396a1 x:y:b",
    };
    const struct fixture *tables[] = { fix_good, fix_bad_meta,
                                       fix_bad_tensor };
    for (int k = 0; k < 3; k++)
        for (const struct fixture *x = tables[k]; x->name; x++) {
            struct fix *s = new_seed();
            x->make(s);
            add_values(s);
        }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        fix_bytes(new_seed(), texts[i], strlen(texts[i]));
}

/* A copy of exactly this size, so that a sanitizer sees one byte too far. */
static void run(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (n)
        memcpy(copy, p, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

/* s with some bytes changed, cut, or doubled. */
static void run_changed(const struct fix *s)
{
    static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff };
    size_t n = s->size;
    uint8_t *b = malloc(2 * n + 1);
    if (n)
        memcpy(b, s->data, n);
    for (uint64_t k = 1 + rnd_below(4); k && n; k--) {
        size_t at = (size_t)rnd_below(n);
        switch (rnd_below(4)) {
        case 0:
            b[at] = odd[rnd_below(sizeof odd)];
            break;
        case 1:
            b[at] ^= (uint8_t)(1u << rnd_below(8));
            break;
        case 2:
            n = at;
            break;
        default:
            if (2 * n <= 2 * s->size) {
                memmove(b + at + 1, b + at, n - at);
                n++;
            }
        }
    }
    run(b, n);
    free(b);
}

static int write_seeds(const char *dir)
{
    for (size_t i = 0; i < n_seeds; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%03zu", dir, i);
        FILE *f = fopen(path, "wb");
        if (!f || (seed[i].size &&
                   fwrite(seed[i].data, 1, seed[i].size, f) != seed[i].size) ||
            fclose(f)) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

static int run_file(const char *path)
{
    static uint8_t b[1 << 24];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    size_t n = fread(b, 1, sizeof b, f);
    fclose(f);
    run(b, n);
    printf("%s: %zu bytes\n", path, n);
    return 0;
}

int main(int argc, char **argv)
{
    make_seeds();
    if (argc == 3 && !strcmp(argv[1], "--seeds"))
        return write_seeds(argv[2]);
    if (argc > 1) {
        int bad = 0;
        for (int i = 1; i < argc; i++)
            bad |= run_file(argv[i]);
        return bad;
    }
    for (size_t i = 0; i < n_seeds; i++)
        run(seed[i].data, seed[i].size);
    ok(n_seeds > 100, "%zu seeds are survived", n_seeds);
    size_t n = 0;
    for (size_t i = 0; i < n_seeds; i++)
        for (int k = 0; k < CHANGES && seed[i].size < 10000; k++, n++)
            run_changed(&seed[i]);
    ok(n > 1000, "and %zu changed ones", n);
    for (size_t i = 0; i < n_seeds; i++)
        fix_fini(&seed[i]);
    return done_testing();
}
