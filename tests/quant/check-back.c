/* check-back.c - models of types that are only decoded, back to floats
 *
 * A job's F32 is what gguf_rows_get gives for the input, element by element.
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "gguf/quant.h"
#include "gguf/stats.h"
#include "gguf/writer.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <unistd.h>

static char dir[3000], in[4000], out[4000];

struct tensor {
    const char *name;
    uint32_t type;
    int64_t ne[4];
    const void *data; /* NULL: random, with scales that are finite */
};

/* Random bytes: every other byte has no bit that could make a half or a float
 * infinite, whatever field it falls into. */
static uint8_t *random_data(uint64_t size)
{
    uint8_t *p = malloc((size_t)size);
    for (uint64_t i = 0; i < size; i++)
        p[i] = (uint8_t)rnd64() & 0xb7;
    return p;
}

static bool write_model(const struct tensor *t, size_t n)
{
    struct gguf_meta *m;
    struct gguf_writer *w;
    struct gguf_output_params p = GGUF_OUTPUT_PARAMS_INIT;
    p.force = p.no_sync = 1;
    if (gguf_meta_create(&m, NULL, NULL) != GGUF_OK)
        return false;
    bool good = gguf_meta_set_strz(m, "general.architecture", "test", NULL) ==
                    GGUF_OK &&
                gguf_writer_create(&w, m, NULL, NULL) == GGUF_OK;
    gguf_meta_destroy(m);
    if (!good)
        return false;
    for (size_t i = 0; good && i < n; i++) {
        struct gguf_str name = { t[i].name, strlen(t[i].name) };
        good = gguf_writer_add_tensor(w, name, t[i].type, 3, t[i].ne, NULL) ==
               GGUF_OK;
    }
    good = good && gguf_writer_open(w, in, &p, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < n; i++) {
        uint64_t row;
        good = gguf_dtype_row_size(t[i].type, (uint64_t)t[i].ne[0], &row,
                                   NULL) == GGUF_OK;
        row *= (uint64_t)(t[i].ne[1] * t[i].ne[2]);
        uint8_t *any = t[i].data ? NULL : random_data(row);
        good = good && gguf_writer_begin(w, i, NULL) == GGUF_OK &&
               gguf_writer_write(w, any ? any : t[i].data, row, NULL) ==
                   GGUF_OK;
        free(any);
    }
    good = good && gguf_writer_commit(w, NULL) == GGUF_OK;
    gguf_writer_destroy(w);
    return good;
}

/* Make `out' of `in'. */
static enum gguf_status convert(const char *type, int compat,
                                struct gguf_error *err)
{
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    o.force = o.no_sync = 1;
    enum gguf_status st = gguf_recipe_preset(&r, type, NULL, err);
    p.recipe = r;
    p.allow_requantize = 1;
    p.compat = compat;
    st = st ? st : gguf_quant_create(&q, in, &p, err);
    st = st ? st : gguf_quant_run(q, out, &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    return st;
}

static const struct gguf_tensor_info *find(const struct gguf_file *f,
                                           struct gguf_str name)
{
    char s[100];
    snprintf(s, sizeof s, "%.*s", (int)name.size, name.data);
    return gguf_file_tensor_find(f, s);
}

/* Every tensor of `out' against that of `in', as floats; how many there are,
 * or -1 where two differ. */
static int compare(const struct gguf_rows *rows)
{
    struct gguf_file *a, *b;
    int n = 0;
    if (gguf_file_open(&a, in, NULL, NULL) != GGUF_OK)
        return -1;
    if (gguf_file_open(&b, out, NULL, NULL) != GGUF_OK) {
        gguf_file_close(a);
        return -1;
    }
    for (size_t i = 0; n >= 0 && i < gguf_file_n_tensors(b); i++, n++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(b, i);
        const struct gguf_tensor_info *s = find(a, t->name);
        size_t size = (size_t)t->n_elements * sizeof(float);
        float *x = malloc(size), *y = malloc(size);
        if (!s || s->n_elements != t->n_elements ||
            gguf_rows_get(rows, a, s->index, 0, s->n_elements, x, NULL) !=
                GGUF_OK ||
            gguf_rows_get(rows, b, i, 0, t->n_elements, y, NULL) != GGUF_OK ||
            memcmp(x, y, size) != 0)
            n = -2;
        free(x);
        free(y);
    }
    gguf_file_close(a);
    gguf_file_close(b);
    return n;
}

static void test_fork(const struct gguf_rows *rows)
{
    static const struct tensor t[] = {
        { "a.weight", 133, { 96, 40, 1, 1 }, NULL },
        { "b.weight", 137, { 512, 40, 1, 1 }, NULL },
        { "c.weight", 138, { 512, 40, 1, 1 }, NULL },
        { "d.weight", 139, { 512, 40, 1, 1 }, NULL },
        { "e.weight", 140, { 512, 40, 1, 1 }, NULL },
        { "f.weight", 141, { 512, 40, 1, 1 }, NULL },
        { "g.weight", 144, { 256, 7, 5, 1 }, NULL },
        { "h.weight", 145, { 1024, 100, 1, 1 }, NULL },
        { "i.weight", 146, { 512, 40, 1, 1 }, NULL },
        { "j.weight", 152, { 512, 40, 1, 1 }, NULL },
        { "k.weight", 156, { 512, 40, 1, 1 }, NULL },
    };
    struct gguf_error err = { .message = "" };
    ok(write_model(t, GG_LEN(t)), "a model of a fork's types");
    ok(convert("F32", 0, &err) == GGUF_OK, "to F32: %s", err.message);
    int n = compare(rows);
    ok(n == (int)GG_LEN(t), "%d tensors are the same", n);
    ok(convert("Q8_0", 0, &err) == GGUF_OK, "to Q8_0: %s", err.message);

    static const struct tensor u[] = {
        { "a.weight", 153, { 512, 4, 1, 1 }, NULL },
    };
    ok(write_model(u, 1) && convert("F32", 0, &err) == GGUF_E_UNSUPPORTED,
       "what is not decoded is refused: %s", err.message);
}

int main(void)
{
    struct gguf_rows *rows;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/check-back.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir) || gguf_rows_create(&rows, NULL, NULL) != GGUF_OK)
        return 99;
    snprintf(in, sizeof in, "%s/in.gguf", dir);
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    test_fork(rows);
    gguf_rows_destroy(rows);
    unlink(in);
    unlink(out);
    rmdir(dir);
    return done_testing();
}
